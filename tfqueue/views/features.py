"""A batch, whatever its nesting, as a flat list of named features; their values as short text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfqueue.equivalence import followed, leaves
from tfqueue.equivalence.followed import is_label_name, is_one_hot
from tfqueue.errors import InvalidArgument

_NAME_WORDS = frozenset({"text", "name", "names", "title"})
_SHOWN_VALUES = 4


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature of a batch.

    Attributes:
        name: Where it stands in the structure: ``"image"``, ``"features.image"``, ``"[0]"``; ``"value"`` for
            a bare array.
        values: An array whose first axis counts records. Of dtype object it holds bytes, or, where records
            differ in shape, one array a record.
    """

    name: str
    values: NDArray[Any]

    @property
    def words(self) -> frozenset[str]:
        """The lower-case words of the name: ``image/object/bbox_xmin`` is {image, object, bbox, xmin}."""
        return followed.words_of(self.name)

    def describe(self) -> str:
        """Name, dtype and shape in words."""
        kind = "bytes" if holds_bytes(self.values) else str(self.values.dtype)
        shape = list(self.values.shape)
        if holds_arrays(self.values):
            kind = f"{self.values[0].dtype} of changing shape"
        return f"{self.name}: {kind}{shape}"


def flatten(batch: Any) -> list[Feature]:
    """The features of ``batch`` in the order of its structure.

    Args:
        batch: An array or a tensor, or any nesting of tuples, namedtuples, lists and dicts of them. Sparse
            and ragged tensors are taken apart into one array a record.

    Raises:
        InvalidArgument: The batch holds something that is no tensor, or nothing at all.
    """
    features = [Feature(name or "value", _values(name, value)) for name, value in _leaves("", batch)]
    if not features:
        raise InvalidArgument(f"the batch is an empty {type(batch).__name__}: it holds no tensor")
    return features


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The leaves of a structure, under the names that a comparison gives them (`tfqueue.equivalence.leaves`)."""
    if isinstance(value, Mapping):
        parts = [(str(key), part) for key, part in value.items()]
    elif isinstance(value, tuple) and hasattr(value, "_fields") and not hasattr(value, "dense_shape"):
        parts = list(zip(value._fields, value, strict=True))
    elif isinstance(value, (tuple, list)) and not _is_plain_row(value):
        parts = [(f"[{index}]", part) for index, part in enumerate(value)]
    else:
        yield name, value
        return
    for key, part in parts:
        yield from _leaves(f"{name}.{key}" if name else key, part)


def _is_plain_row(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, (bool, int, float, str, bytes)) for v in value)


def _values(name: str, value: Any) -> NDArray[Any]:
    if isinstance(value, np.ndarray) and holds_arrays(value):
        return value
    leaf = leaves.as_leaf(value, name or "value")
    if isinstance(leaf, leaves.Dense):
        # numpy knows bfloat16 and the 8-bit floats by name only; float32 holds all their values.
        return leaf.array.astype(np.float32) if "float" in leaf.dtype and leaf.array.dtype.kind == "V" else leaf.array
    return boxed([np.asarray(leaf.row(index), _row_dtype(leaf)) for index in range(leaf.size)])


def _row_dtype(leaf: leaves.Leaf) -> Any:
    # More than one ragged level gives nested lists, which only fit into an array of objects.
    return object if isinstance(leaf, leaves.Ragged) and len(leaf.splits) > 1 else None


def boxed(rows: Sequence[Any]) -> NDArray[Any]:
    """``rows`` as an object array of one axis (numpy would try to make one block of them)."""
    array = np.empty(len(rows), object)
    for position, row in enumerate(rows):
        array[position] = row
    return array


def one_per_record(features: Iterable[Feature], count: int) -> tuple[list[Feature], list[Feature]]:
    """``features`` parted into those with a value for each of ``count`` records, and the others."""
    fitting: list[Feature] = []
    others: list[Feature] = []
    for feature in features:
        shape = feature.values.shape
        (fitting if shape and shape[0] == count else others).append(feature)
    return fitting, others


def find_label(features: Sequence[Feature]) -> Feature | None:
    """The feature that titles the records: by name, or else the first unnamed one with one value a record."""
    number = followed.find_label([(feature.name, feature.values) for feature in features])
    return None if number is None else features[number]


def find_class_text(features: Sequence[Feature]) -> Feature | None:
    """The feature that holds the name of each record's class, as ``image/class/text`` in many TFRecords."""
    for feature in features:
        named = is_label_name(feature.name) and _NAME_WORDS & feature.words
        if named and holds_bytes(feature.values) and feature.values.size == len(feature.values):
            return feature
    return None


ClassNames = Mapping[int, str] | Sequence[str]


def label_words(values: NDArray[Any], class_names: ClassNames | None = None) -> list[str]:
    """A title for each record.

    Args:
        values: One label a record: integers, floats, bytes, or one-hot rows.
        class_names: Name of each class, by its number.
    """
    if is_one_hot(values):
        values = values.argmax(axis=1)
    return [_label(value, class_names) for value in values]


def _label(value: Any, class_names: ClassNames | None) -> str:
    value = np.asarray(value).reshape(-1)[0] if np.size(value) == 1 else value
    words = short(value)
    if class_names is None or not isinstance(value, (int, np.integer)):
        return words
    number = int(value)
    if isinstance(class_names, Mapping):
        name = class_names.get(number)
    else:
        name = class_names[number] if 0 <= number < len(class_names) else None
    return f"{words} no such class" if name is None else f"{words} {name}"


def check_class_names(class_names: Any) -> None:
    """Refuse what is neither a sequence nor a mapping of names.

    Raises:
        InvalidArgument: It is neither.
    """
    if class_names is None or (
        isinstance(class_names, (Mapping, Sequence)) and not isinstance(class_names, (str, bytes))
    ):
        return
    raise InvalidArgument(
        f"class_names is a {type(class_names).__name__}; expected a list of names, or a dict from number to name"
    )


def short(value: Any) -> str:
    """The value of one feature of one record, in a few characters."""
    if isinstance(value, (bytes, str)):
        return _short_bytes(value)
    array = np.asarray(value)
    if array.size == 1:
        item = array.reshape(-1)[0]
        return _short_bytes(item) if isinstance(item, (bytes, str)) else _number(item)
    if array.size <= _SHOWN_VALUES and array.ndim == 1:
        return "[" + ", ".join(short(item) for item in array) + "]"
    kind = "bytes" if holds_bytes(array) else str(array.dtype)
    words = f"{kind}{list(array.shape)}"
    if array.size and array.dtype.kind in "iuf":
        words += f" {_number(array.min())}..{_number(array.max())}"
    return words


def _number(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (complex, np.complexfloating)):
        return f"{complex(value):.4g}"
    return f"{float(value):.4g}" if isinstance(value, (float, np.number)) else type(value).__name__


def _short_bytes(value: bytes | str) -> str:
    head = value[:200]
    if isinstance(head, str):
        return head
    # More than a third of unprintable bytes: data, not text.
    if sum(byte < 32 for byte in head) * 3 > len(head):
        return f"{len(value)} bytes"
    return head.decode("utf-8", "backslashreplace")


def holds_bytes(values: NDArray[Any]) -> bool:
    """Whether the values are strings of bytes."""
    return values.dtype == object and values.size > 0 and isinstance(values.flat[0], (bytes, str))


def holds_arrays(values: NDArray[Any]) -> bool:
    """Whether there is one array a record, because the records differ in shape."""
    return values.dtype == object and values.ndim == 1 and values.size > 0 and isinstance(values[0], np.ndarray)
