"""Elements of queues: lists or dictionaries of tensors, dense and sparse, as the components that a queue holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfqueue.errors import InvalidArgument

tf1 = tf.compat.v1


@dataclass(frozen=True, slots=True)
class Element:
    """What a program puts into a queue as one element.

    Attributes:
        components: What the queue holds: dense tensors, and SparseTensors serialized to string vectors of length 3.
        keys: The keys of a dictionary of tensors, or None for a list.
        sparse: For each component, the (dtype, rank) of the SparseTensor that it is, or None.
    """

    components: tuple[Any, ...]
    keys: tuple[str, ...] | None
    sparse: tuple[tuple[Any, int | None] | None, ...]

    def batch(self, components: Sequence[Any]) -> Any:
        """Batched components in the form in which the element came."""
        values = [
            value if kind is None else tf1.io.deserialize_many_sparse(value, kind[0], rank=kind[1])
            for value, kind in zip(components, self.sparse, strict=True)
        ]
        return values if self.keys is None else dict(zip(self.keys, values, strict=True))


def element(tensors: Any) -> Element:
    """The element of a list or dictionary of tensors.

    Raises:
        InvalidArgument: It is neither, or it is empty or nested.
    """
    if isinstance(tensors, Mapping):
        keys: tuple[str, ...] | None = tuple(sorted(tensors))
        values = [tensors[key] for key in sorted(tensors)]
    elif isinstance(tensors, list | tuple):
        keys, values = None, list(tensors)
    else:
        raise InvalidArgument(f"tensors must be a list or a dictionary of tensors; got {type(tensors).__name__}")
    if not values:
        raise InvalidArgument("tensors is empty: there is nothing to put into a queue")
    if any(isinstance(value, list | tuple | Mapping) and not _is_array(value) for value in values):
        raise InvalidArgument("tensors holds a nested list or dictionary; give one flat list or dictionary")
    components: list[Any] = []
    sparse: list[tuple[Any, int | None] | None] = []
    for value in values:
        if isinstance(value, tf.SparseTensor):
            components.append(tf1.io.serialize_sparse(value))
            sparse.append((value.dtype, value.shape.rank))
        else:
            components.append(tf.convert_to_tensor(value))
            sparse.append(None)
    return Element(tuple(components), keys, tuple(sparse))


def _is_array(value: Any) -> bool:
    """Whether a list or tuple is a constant rather than a nest of tensors."""
    return isinstance(value, list | tuple) and not any(tf.is_tensor(part) for part in value)
