"""What a report keeps of its two sides for pictures: how they were made, and the labels of their first records."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfqueue.equivalence.leaves import Dense, Leaf
from tfqueue.equivalence.streams import Run
from tfqueue.topology.dataset import Unread

_LABEL_WORDS = frozenset({"label", "labels", "y", "class", "classes", "target", "targets", "category", "digit"})
_UNNAMED = re.compile(r"\.?(\[\d+\]\.?)+")
_RECORDS = 100_000
_NAMES = 1000  # different strings, beyond which they are no classes


def how_made(run: Run) -> Any:
    """The `tfqueue.topology.Topology` of a running side, or the `Unread` chain of its Dataset; None if it is neither.

    Args:
        run: The pass, not yet ended.
    """
    if run.pipeline is not None:
        return run.pipeline.topology
    return None if run.dataset is None else Unread(run.dataset)


def words_of(name: str) -> frozenset[str]:
    """The lower-case words of a feature's name: ``image/object/bbox_xmin`` is {image, object, bbox, xmin}."""
    return frozenset(re.split(r"[^a-z0-9]+", name.lower()))


def is_label_name(name: str) -> bool:
    """Whether a feature is called a label."""
    return bool(_LABEL_WORDS & words_of(name))


def is_unnamed(name: str) -> bool:
    """Whether a feature is called by its place only, such as ``[1]``."""
    return _UNNAMED.fullmatch(name) is not None


def is_one_hot(values: NDArray[Any]) -> bool:
    """Whether each row of a matrix has a single 1 among zeros."""
    if values.ndim != 2 or values.shape[1] < 2 or not len(values) or values.dtype.kind not in "biuf":
        return False
    ones = values == 1
    return bool((ones.sum(axis=1) == 1).all() and ((values == 0) | ones).all())


def find_label(*sides: Sequence[tuple[str, NDArray[Any]]]) -> int | None:
    """The number of the feature that labels the records: by its name, or else the first unnamed one that can be one.

    Args:
        *sides: The features of a batch as (name, values), of one side or, in one order, of several under their names.
    """
    choices: tuple[Callable[[str], bool], ...] = (is_label_name, is_unnamed)
    for chosen in choices:
        for side in sides:
            for number, (name, values) in enumerate(side):
                if chosen(name) and _is_label_like(values):
                    return number
    return None


def _is_label_like(values: NDArray[Any]) -> bool:
    """Whether there is one value a record, or a row with a single 1."""
    flat = values.ndim == 1 or (values.ndim == 2 and values.shape[1] == 1)
    holds_text = values.dtype == object and values.size > 0 and isinstance(values.flat[0], (bytes, str))
    return (flat and (values.dtype != object or holds_text)) or is_one_hot(values)


class KeptLabels:
    """The labels of the first records of a side: 8 bytes a record, of 100,000 records at most.

    Args:
        index: The number of the feature that is followed.
    """

    def __init__(self, index: int) -> None:
        self._index = index
        self._numbers = array("q")
        self._names: dict[Any, int] = {}
        self._one_hot: bool | None = None
        self._kept = True

    def add(self, leaves: tuple[Leaf, ...]) -> None:
        """Note the labels of a batch.

        Args:
            leaves: One leaf a feature.
        """
        room = _RECORDS - len(self._numbers)
        leaf = leaves[self._index]
        if not self._kept or room <= 0 or not leaf.size:
            return
        values = leaf.array[:room] if isinstance(leaf, Dense) else None
        if self._one_hot is None and values is not None:
            self._one_hot = is_one_hot(values)
        numbers = None if values is None else self._numbers_of(values)
        if numbers is None:
            self._kept = False  # what seemed to be a label is none
            del self._numbers[:]
        else:
            self._numbers.frombytes(numbers.astype(np.int64).tobytes())

    def _numbers_of(self, values: NDArray[Any]) -> NDArray[Any] | None:
        if self._one_hot:
            return values.argmax(axis=1) if is_one_hot(values) else None
        if values.size != len(values) or values.dtype.kind not in "biuO":
            return None
        flat = values.reshape(-1)
        if flat.dtype != object:
            return flat
        numbers = [self._names.setdefault(item, len(self._names)) for item in flat.tolist()]
        return np.array(numbers) if len(self._names) <= _NAMES else None

    def values(self) -> NDArray[Any] | None:
        """The labels, int64 or, for strings, objects; None if there are none."""
        if not self._numbers:
            return None
        numbers = np.frombuffer(self._numbers, np.int64)
        if not self._names:
            return numbers
        names = np.empty(len(self._names), object)
        names[:] = list(self._names)
        return np.asarray(names[numbers])
