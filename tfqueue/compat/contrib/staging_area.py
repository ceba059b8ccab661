"""tf.contrib.staging.StagingArea: a queue of elements beside the queues, for the next step's data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfqueue.errors import InvalidArgument

tf1 = tf.compat.v1


class StagingArea:
    """Elements that wait in the order in which they were put; no end and no close.

    Args:
        dtypes: Of the tensors of an element.
        shapes: Of them, where they are known.
        names: Of them, where elements are dictionaries.
        shared_name: A name by which other sessions share the area.
        capacity: Elements that fit; ``put`` waits for room. 0: without bound.
        memory_limit: Bytes that fit. 0: without bound.
    """

    def __init__(
        self,
        dtypes: Sequence[Any],
        shapes: Sequence[Any] | None = None,
        names: Sequence[str] | None = None,
        shared_name: str | None = None,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        self._dtypes = [tf.as_dtype(dtype) for dtype in dtypes]
        if shapes is not None and len(shapes) != len(self._dtypes):
            raise InvalidArgument(f"StagingArea has {len(self._dtypes)} dtypes and {len(shapes)} shapes")
        if names is not None and len(names) != len(self._dtypes):
            raise InvalidArgument(f"StagingArea has {len(self._dtypes)} dtypes and {len(names)} names")
        if capacity < 0 or memory_limit < 0:
            raise InvalidArgument(f"capacity and memory_limit cannot be negative; got {capacity} and {memory_limit}")
        self._shapes = [tf.TensorShape(shape) for shape in shapes] if shapes is not None else None
        self._names = list(names) if names is not None else None
        with tf1.name_scope("staging_area") as scope:
            self._name = str(scope).rstrip("/")
        self._attributes = {
            "capacity": capacity,
            "memory_limit": memory_limit,
            "container": "",
            "shared_name": shared_name or self._name,
        }

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtypes(self) -> list[Any]:
        return self._dtypes

    @property
    def shapes(self) -> list[Any]:
        return self._shapes or [tf.TensorShape(None)] * len(self._dtypes)

    @property
    def names(self) -> list[str] | None:
        return self._names

    def put(self, values: Any, name: str | None = None) -> Any:
        """The op that puts one element: a tensor, a list of them, or a dictionary where the area has names."""
        if isinstance(values, dict):
            if self._names is None or sorted(values) != sorted(self._names):
                raise InvalidArgument(f"put needs the names {self._names}; got {sorted(values)}")
            values = [values[key] for key in self._names]
        elif self._names is not None:
            raise InvalidArgument(f"put needs a dictionary with the names {self._names}")
        flat = list(values) if isinstance(values, list | tuple) else [values]
        if len(flat) != len(self._dtypes):
            raise InvalidArgument(f"put needs {len(self._dtypes)} tensors; got {len(flat)}")
        tensors = [tf.convert_to_tensor(value, dtype) for value, dtype in zip(flat, self._dtypes, strict=True)]
        for tensor, shape in zip(tensors, self.shapes, strict=True):
            if not tensor.shape.is_compatible_with(shape):
                raise InvalidArgument(f"put of shape {tensor.shape} into a staging area of shape {shape}")
        return tf.raw_ops.Stage(values=tensors, name=name or f"{self._basename}_put", **self._attributes)

    def get(self, name: str | None = None) -> Any:
        """The next element, as `put` takes it; waits until there is one. A list where it has several tensors."""
        taken = tf.raw_ops.Unstage(dtypes=self._dtypes, name=name or f"{self._basename}_get", **self._attributes)
        return self._returned(list(taken))

    def peek(self, index: Any, name: str | None = None) -> Any:
        """The element at ``index``, which stays."""
        name = name or f"{self._basename}_peek"
        taken = tf.raw_ops.StagePeek(index=tf.cast(index, tf.int32), dtypes=self._dtypes, name=name, **self._attributes)
        return self._returned(list(taken))

    def size(self, name: str | None = None) -> Any:
        """How many elements wait, an int32 scalar."""
        return tf.raw_ops.StageSize(dtypes=self._dtypes, name=name or f"{self._basename}_size", **self._attributes)

    def clear(self, name: str | None = None) -> Any:
        """The op that drops all elements."""
        return tf.raw_ops.StageClear(dtypes=self._dtypes, name=name or f"{self._basename}_clear", **self._attributes)

    @property
    def _basename(self) -> str:
        return self._name.rpartition("/")[2]

    def _returned(self, tensors: list[Any]) -> Any:
        for tensor, shape in zip(tensors, self.shapes, strict=True):
            tensor.set_shape(shape)
        if self._names is not None:
            return dict(zip(self._names, tensors, strict=True))
        return tensors if len(tensors) > 1 else tensors[0]
