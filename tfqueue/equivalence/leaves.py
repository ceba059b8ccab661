"""What a batch is made of: named features, each a dense, ragged or sparse leaf with one row a record.

A side of a comparison delivers whatever its pipeline delivers: numpy arrays, eager tensors, the sparse and
ragged values of TensorFlow, Python numbers and strings, nested in tuples, named tuples, lists and dicts.
Everything after this module sees features with a name and leaves with rows. TensorFlow is not imported: its
values are recognised by what they offer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tfqueue.errors import InvalidStream

Array = npt.NDArray[Any]

STRING = "string"
_SINGLE = "value"
_SCALARS = (bool, int, float, complex, str, bytes)


@dataclass(frozen=True, slots=True)
class Dense:
    """An array; axis 0 counts the records.

    Attributes:
        array: The values. Strings are an object array of bytes.
    """

    array: Array

    @property
    def dtype(self) -> str:
        return STRING if self.array.dtype == object else self.array.dtype.name

    @property
    def kind(self) -> str:
        return "dense"

    @property
    def rank(self) -> int:
        return self.array.ndim

    @property
    def size(self) -> int:
        return int(self.array.shape[0])

    @property
    def row_shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape[1:])

    @property
    def nbytes(self) -> int:
        if self.array.dtype == object:
            return sum(len(item) + 40 for item in self.array.ravel())
        return self.array.nbytes

    def rows(self, start: int, stop: int) -> Dense:
        return Dense(self.array[start:stop])

    def row(self, index: int) -> Any:
        return self.array[index]


@dataclass(frozen=True, slots=True)
class Ragged:
    """Rows of unequal length, as tf.RaggedTensor.

    Attributes:
        splits: The row splits of every ragged dimension, outermost first.
        values: The flat values; axes after the first are uniform.
    """

    splits: tuple[Array, ...]
    values: Array

    @property
    def dtype(self) -> str:
        return STRING if self.values.dtype == object else self.values.dtype.name

    @property
    def kind(self) -> str:
        return "ragged"

    @property
    def rank(self) -> int:
        return len(self.splits) + self.values.ndim

    @property
    def size(self) -> int:
        return len(self.splits[0]) - 1

    @property
    def row_shape(self) -> tuple[int, ...]:
        longest = tuple(int(np.diff(s).max(initial=0)) for s in self.splits)
        return longest + tuple(self.values.shape[1:])

    @property
    def nbytes(self) -> int:
        return Dense(self.values).nbytes + sum(s.nbytes for s in self.splits)

    def rows(self, start: int, stop: int) -> Ragged:
        splits = []
        low, high = start, stop
        for level in self.splits:
            part = level[low : high + 1]
            low, high = int(part[0]), int(part[-1])
            splits.append(part - low)
        return Ragged(tuple(splits), self.values[low:high])

    def row(self, index: int) -> Any:
        """The record as a dense array (one ragged level) or as nested lists (more)."""
        one = self.rows(index, index + 1)
        if len(one.splits) == 1:
            return one.values
        nested: list[Any] = list(one.values)
        for level in reversed(one.splits[1:]):
            nested = [nested[int(a) : int(b)] for a, b in pairwise(level)]
        return nested


@dataclass(frozen=True, slots=True)
class Sparse:
    """Entries by coordinates, as tf.SparseTensor.

    Attributes:
        indices: int64 of shape [entries, rank], in row-major order; column 0 is the record.
        values: One value an entry.
        dense_shape: int64 of shape [rank].
    """

    indices: Array
    values: Array
    dense_shape: Array

    @property
    def dtype(self) -> str:
        return STRING if self.values.dtype == object else self.values.dtype.name

    @property
    def kind(self) -> str:
        return "sparse"

    @property
    def rank(self) -> int:
        return len(self.dense_shape)

    @property
    def size(self) -> int:
        return int(self.dense_shape[0])

    @property
    def row_shape(self) -> tuple[int, ...]:
        return tuple(int(d) for d in self.dense_shape[1:])

    @property
    def nbytes(self) -> int:
        return Dense(self.values).nbytes + self.indices.nbytes

    def rows(self, start: int, stop: int) -> Sparse:
        low, high = np.searchsorted(self.indices[:, 0], [start, stop])
        indices = self.indices[low:high].copy()
        indices[:, 0] -= start
        shape = self.dense_shape.copy()
        shape[0] = stop - start
        return Sparse(indices, self.values[low:high], shape)

    def row(self, index: int) -> Any:
        """The record as a dense array, zeros (or empty strings) where nothing is stored."""
        low, high = np.searchsorted(self.indices[:, 0], [index, index + 1])
        dense = np.full(self.row_shape, b"" if self.values.dtype == object else 0, dtype=self.values.dtype)
        dense[tuple(self.indices[low:high, 1:].T)] = self.values[low:high]
        return dense


@dataclass(frozen=True, slots=True)
class Digested:
    """A feature of which only the digests are there, as a golden holds it.

    Attributes:
        kind: Dense, ragged or sparse.
        dtype: The dtype it was recorded with.
        row_shape: The shape of one record.
        digests: uint64, one a record.
        nan_records: How many of the records hold a NaN.
        idle_tail: True if the last slice of every record along its first axis is zeros.
    """

    kind: str
    dtype: str
    row_shape: tuple[int, ...]
    digests: npt.NDArray[np.uint64]
    nan_records: int
    idle_tail: bool

    @property
    def rank(self) -> int:
        return 1 + len(self.row_shape)

    @property
    def size(self) -> int:
        return len(self.digests)

    @property
    def nbytes(self) -> int:
        return self.digests.nbytes

    def rows(self, start: int, stop: int) -> Digested:
        part = self.digests[start:stop]
        return Digested(self.kind, self.dtype, self.row_shape, part, min(self.nan_records, len(part)), self.idle_tail)

    def row(self, index: int) -> Any:
        """None: the values are not there."""
        return None


Leaf = Dense | Ragged | Sparse | Digested


def flatten(batch: Any) -> tuple[tuple[str, Leaf], ...]:
    """The features of one batch, in the order in which the structure holds them.

    A dict key and a named tuple's field give their own name, a position in a tuple or list gives ``[0]``,
    deeper levels are joined with a dot (``features.image``, ``[0].label``), and a batch that is one tensor is
    ``value``.

    Args:
        batch: A tensor or a nested tuple, named tuple, list or dict of tensors.

    Raises:
        InvalidStream: The batch holds something that is no tensor, or nothing at all.
    """
    features: list[tuple[str, Leaf]] = []
    if type(batch) is dict and all(type(key) is str for key in batch):  # the usual case, without detours
        for key, value in batch.items():
            if type(value) is np.ndarray and value.dtype.kind in "biuf" and value.dtype.isnative:
                features.append((key, Dense(value)))
            else:
                _walk(value, key, features)
    else:
        _walk(batch, "", features)
    if not features:
        raise InvalidStream(f"a batch is an empty {type(batch).__name__}: it holds no tensor")
    return tuple(features)


def _walk(value: Any, name: str, features: list[tuple[str, Leaf]]) -> None:
    children = _children(value)
    if children is None:
        features.append((name or _SINGLE, as_leaf(value, name or _SINGLE)))
        return
    for key, child in children:
        _walk(child, f"{name}.{key}" if name else key, features)


def _children(value: Any) -> list[tuple[str, Any]] | None:
    """The named parts of a structure; None for what is a value."""
    if isinstance(value, Mapping):
        return [(str(key), child) for key, child in value.items()]
    if _is_sparse(value):
        return None
    if _is_named_tuple(value):
        return list(zip(value._fields, value, strict=True))
    if isinstance(value, tuple) or (isinstance(value, list) and not _is_row(value)):
        return [(f"[{i}]", child) for i, child in enumerate(value)]
    return None


def _is_row(value: list[Any]) -> bool:
    """Whether a list is meant as one array of Python numbers or strings, not as a structure of tensors."""
    return bool(value) and all(isinstance(item, _SCALARS) for item in value) and len({type(i) for i in value}) == 1


def _is_named_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _is_sparse(value: Any) -> bool:
    return all(hasattr(value, name) for name in ("indices", "values", "dense_shape"))


def named(structure: Any) -> list[tuple[str, Any]]:
    """The parts of a structure by the names of `flatten`, whatever they are: tensors of a graph, specs."""

    def walk(value: Any, name: str) -> list[tuple[str, Any]]:
        children = _children(value)
        if children is None:
            return [(name or _SINGLE, value)]
        return [part for key, child in children for part in walk(child, f"{name}.{key}" if name else key)]

    return walk(structure, "")


def skeleton(batch: Any) -> str:
    """The structure in words, ``{image: tensor, label: tensor}``, without dtypes and shapes."""
    children = _children(batch)
    if children is None:
        return "sparse" if _is_sparse(batch) else "ragged" if hasattr(batch, "nested_row_splits") else "tensor"
    parts = [(key, skeleton(child)) for key, child in children]
    if isinstance(batch, Mapping):
        return "{" + ", ".join(f"{key}: {words}" for key, words in parts) + "}"
    if _is_named_tuple(batch):
        return f"{type(batch).__name__}({', '.join(f'{key}={words}' for key, words in parts)})"
    inner = ", ".join(words for _, words in parts)
    return f"({inner},)" if len(parts) == 1 else f"({inner})"


def as_leaf(value: Any, name: str) -> Leaf:
    """One feature's value as a leaf.

    Raises:
        InvalidStream: The value is no tensor.
    """
    if isinstance(value, np.ndarray):
        return Dense(_plain(value, name))
    if isinstance(value, Digested):
        return value
    if _is_sparse(value):
        return _sparse(value, name)
    if hasattr(value, "nested_row_splits") and hasattr(value, "flat_values"):
        splits = tuple(_numpy(s, name).astype(np.int64) for s in value.nested_row_splits)
        return Ragged(splits, _plain(_numpy(value.flat_values, name), name))
    return Dense(_plain(_numpy(value, name), name))


def _sparse(value: Any, name: str) -> Sparse:
    indices = _numpy(value.indices, name).astype(np.int64).reshape(-1, len(_numpy(value.dense_shape, name)))
    values = _plain(_numpy(value.values, name), name)
    order = np.lexsort(indices.T[::-1])
    if not np.array_equal(order, np.arange(len(order))):
        indices, values = indices[order], values[order]
    return Sparse(indices, values, _numpy(value.dense_shape, name).astype(np.int64))


def _numpy(value: Any, name: str) -> Array:
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    if hasattr(value, "numpy"):
        held = value.numpy()
        # A string tensor without axes is bytes, of which numpy's own string type would drop the NULs at the end.
        return np.asarray(held, dtype=object if isinstance(held, bytes) else None)
    if hasattr(value, "graph") and hasattr(value, "op"):
        raise InvalidStream(
            f"feature {name} is the graph tensor {value.name!r}, not its value; "
            "for TF1 graph code give tfqueue.QueuePipeline(build_fn) as the side"
        )
    if isinstance(value, (str, bytes)):
        return np.asarray(value, dtype=object)
    if isinstance(value, _SCALARS) or hasattr(value, "__array__"):
        return np.asarray(value)
    if isinstance(value, list) and _is_row(value):
        return np.asarray(value, dtype=object if isinstance(value[0], (str, bytes)) else None)
    raise InvalidStream(
        f"feature {name} is {_article(type(value).__name__)}, not a tensor; a batch is an array or a "
        f"tensor, or a "
        "nested tuple, list or dict of them"
    )


def _plain(array: Array, name: str) -> Array:
    """The array with strings as objects of type bytes and numbers in this machine's byte order."""
    if array.dtype.kind == "S":
        return array.astype(object)
    if array.dtype.kind == "U" or (array.dtype == object and any(isinstance(v, str) for v in array.ravel())):
        encoded = np.empty(array.size, dtype=object)
        encoded[:] = [v.encode("utf-8", "surrogatepass") if isinstance(v, str) else v for v in array.ravel()]
        array = encoded.reshape(array.shape)
    if array.dtype == object:
        for item in array.ravel():
            if not isinstance(item, bytes):
                raise InvalidStream(
                    f"feature {name} is an array of Python objects, among them "
                    f"{_article(type(item).__name__)}; "
                    "expected numbers, booleans or strings (rows of unequal length: use tf.ragged)"
                )
        return array
    if array.dtype.kind in "mM":
        raise InvalidStream(f"feature {name} has the dtype {array.dtype}, which no TensorFlow tensor has")
    if array.dtype.kind == "V" and array.dtype.names:
        raise InvalidStream(f"feature {name} is a structured array; give its fields as a dict of arrays")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _article(word: str) -> str:
    return f"an {word}" if word[:1].lower() in "aeiou" else f"a {word}"


def common_size(features: tuple[tuple[str, Leaf], ...]) -> int | None:
    """How many records a batch holds: the one leading size of all features that have one, else None."""
    sizes = {leaf.size for _, leaf in features if leaf.rank > 0}
    return sizes.pop() if len(sizes) == 1 else None


def spread(leaf: Leaf, size: int) -> Leaf:
    """A value given once a batch, as one row a record."""
    if isinstance(leaf, Dense) and leaf.rank == 0:
        return Dense(np.broadcast_to(leaf.array, (size,)))
    return leaf


def as_one_record(leaf: Leaf) -> Leaf:
    """A whole leaf as the single row of a batch of one."""
    if isinstance(leaf, Dense):
        return Dense(leaf.array[np.newaxis])
    if isinstance(leaf, Sparse):
        indices = np.concatenate([np.zeros((len(leaf.indices), 1), np.int64), leaf.indices], axis=1)
        return Sparse(indices, leaf.values, np.concatenate([[1], leaf.dense_shape]).astype(np.int64))
    if isinstance(leaf, Digested):
        return leaf
    outer = np.asarray([0, leaf.size], dtype=np.int64)
    return Ragged((outer, *leaf.splits), leaf.values)


def is_float(dtype: Any) -> bool:
    """Whether a numpy dtype holds floats, those of TensorFlow that numpy itself lacks (bfloat16, float8) included."""
    return bool(dtype.kind == "f" or dtype.name.startswith(("bfloat", "float8")))


def as_plain_floats(array: Array) -> Array:
    """Floats that numpy itself lacks (bfloat16, float8) as float32, which holds them all; others as they are."""
    return array.astype(np.float32) if array.dtype.kind not in "biufcO" and is_float(array.dtype) else array


def values_of(leaf: Leaf) -> Array:
    """All values of a leaf, without its structure; none of a golden's."""
    if isinstance(leaf, Digested):
        return np.zeros(0)
    return leaf.array if isinstance(leaf, Dense) else leaf.values


def as_array(value: Any) -> Array:
    """One feature of one record, as `row` gives it, as an array; nested ragged rows as an array of their
    text.
    """
    if isinstance(value, bytes) or (isinstance(value, list) and value and not _is_row(value)):
        array = np.empty((), dtype=object)
        array[()] = value if isinstance(value, bytes) else repr(value).encode()
        return array
    return np.asarray(value)
