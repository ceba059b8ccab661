"""Takes the batches of one side apart: the same features each time, one leaf each, all of one size.

Nearly every batch is made like the one before it. What was found out about that one is not found out again, because
for small records it would cost more than to read them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tfqueue.equivalence.leaves import Dense, Leaf, as_leaf, as_one_record, common_size, flatten, spread
from tfqueue.errors import InvalidStream

_ABSENT = object()


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """What batches that are made alike have in common; one object for all of them.

    Attributes:
        size: Records.
        makes: (dtype, shape of a record, kind) of each feature; of ragged and sparse features the bounding shape.
        nbytes: The size of the batch in bytes, or None if batches of this layout are not equally large.
        joinable: Whether batches of this layout can be joined to one: all features are dense.
    """

    size: int
    makes: tuple[tuple[str, tuple[int, ...], str], ...]
    nbytes: int | None
    joinable: bool

    @classmethod
    def of(cls, leaves: tuple[Leaf, ...]) -> Layout:
        """The layout of a batch."""
        numbers = all(isinstance(leaf, Dense) and leaf.array.dtype != object for leaf in leaves)
        return cls(
            leaves[0].size,
            tuple((leaf.dtype, tuple(leaf.row_shape), leaf.kind) for leaf in leaves),
            sum(leaf.nbytes for leaf in leaves) if numbers else None,
            all(isinstance(leaf, Dense) for leaf in leaves),
        )

    def same_rows(self, other: Layout) -> bool:
        """Whether records of both can stand in one batch."""
        if self is other:
            return self.joinable
        return self.joinable and other.joinable and self.makes == other.makes


class Intake:
    """The features of the batches of one side.

    Args:
        role: The side, for the words of errors.
        names: The features to take, in this order.
        every: All features that the first batch had.
        batched: Whether axis 0 counts records; else each batch is one record.
    """

    def __init__(self, role: str, names: tuple[str, ...], every: frozenset[str], batched: bool) -> None:
        self._role = role
        self._names = names
        self._every = every
        self._batched = batched
        self._form: Any = None
        self._places: tuple[int, ...] = ()
        self._arrays: tuple[tuple[Any, tuple[int, ...]], ...] = ()
        self._layout: Layout | None = None

    def take(self, batch: Any, number: int) -> tuple[tuple[Leaf, ...], Layout]:
        """The leaves of a batch, and their layout: that of the last batch itself, if this one is made like it.

        Args:
            batch: What the side delivered.
            number: The number of the batch, for the words of errors.

        Raises:
            InvalidStream: The batch has other features than the first, or features of unequal sizes.
        """
        leaves = self._like_the_last(batch)
        if leaves is not None and self._layout is not None:
            return leaves, self._layout
        leaves = self._searched(batch, number)
        self._layout = Layout.of(leaves)
        self._remember(batch, leaves)
        return leaves, self._layout

    def _like_the_last(self, batch: Any) -> tuple[Leaf, ...] | None:
        found: list[Any] = []
        if self._form is None or not _unpacked(batch, self._form, found):
            return None
        leaves = []
        for place, name, (dtype, shape) in zip(self._places, self._names, self._arrays, strict=True):
            array = found[place]
            if array.dtype is not dtype or array.shape != shape:
                return None
            leaves.append(as_leaf(array, name) if dtype.kind == "O" else Dense(array))
        return tuple(leaves)

    def _remember(self, batch: Any, leaves: tuple[Leaf, ...]) -> None:
        """Learn how to take the next batch apart, if it is made of arrays and tensors and nothing else."""
        self._form = None
        arrays = [leaf.array for leaf in leaves if isinstance(leaf, Dense)]
        if not self._batched or len(arrays) < len(leaves):
            return
        form = _form(batch)
        found: list[Any] = []
        if form is None or not _unpacked(batch, form, found) or any(not array.ndim for array in found):
            return
        names = [name for name, _ in flatten(batch)]
        self._places = tuple(names.index(name) for name in self._names)
        if all(found[place].dtype is array.dtype for place, array in zip(self._places, arrays, strict=True)):
            self._form, self._arrays = form, tuple((array.dtype, array.shape) for array in arrays)

    def _searched(self, batch: Any, number: int) -> tuple[Leaf, ...]:
        found = dict(flatten(batch))
        absent = [name for name in self._names if name not in found]
        if absent:
            raise InvalidStream(
                f"batch {number} of the {self._role} has no feature {absent[0]}, which earlier batches had; "
                f"it has: {', '.join(found)}"
            )
        new = [name for name in found if name not in self._every]
        if new:
            raise InvalidStream(
                f"batch {number} of the {self._role} has the feature {new[0]}, which earlier batches lacked; "
                f"they had: {', '.join(sorted(self._every))}"
            )
        features = tuple((name, found[name]) for name in self._names)
        if not self._batched:
            return tuple(as_one_record(leaf) for _, leaf in features)
        size = common_size(features)
        if size is None:
            sizes = ", ".join(f"{name} {leaf.size if leaf.rank else 'no axis'}" for name, leaf in features)
            raise InvalidStream(f"batch {number} of the {self._role} holds unequal numbers of records: {sizes}")
        return tuple(spread(leaf, size) for _, leaf in features)


def _form(batch: Any) -> Any:
    """How a batch is put together: (type, keys, forms of the parts), and of a value its type; None for other things."""
    kind = type(batch)
    if kind is np.ndarray or _is_tensor_type(kind):
        return kind
    parts: list[tuple[Any, Any]]
    if kind is dict and all(type(key) is str for key in batch):
        parts = list(batch.items())
    elif isinstance(batch, tuple):
        parts = list(enumerate(batch))
    else:
        return None
    forms = [(key, _form(part)) for key, part in parts]
    return None if any(form is None for _, form in forms) else (kind, forms)


def _is_tensor_type(kind: type) -> bool:
    """Whether values of a type are the dense tensors of TensorFlow, with their numbers at hand."""
    return kind.__module__.startswith("tensorflow.") and kind.__name__ == "EagerTensor"


def _unpacked(batch: Any, form: Any, found: list[Any]) -> bool:
    """Whether a batch has a form; adds its arrays to ``found``, in the order of `flatten`."""
    if type(form) is not tuple:
        if type(batch) is not form:
            return False
        found.append(batch if form is np.ndarray else batch.numpy())
        return type(found[-1]) is np.ndarray
    kind, parts = form
    if type(batch) is not kind or len(batch) != len(parts):
        return False
    for key, part in parts:
        child = batch.get(key, _ABSENT) if kind is dict else batch[key]
        if not _unpacked(child, part, found):
            return False
    return True
