"""A batch, whatever its nesting, as a flat list of named features."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfqueue.errors import InvalidArgument

_LABEL_WORDS = frozenset(
    {"label", "labels", "y", "class", "classes", "target", "targets", "category", "digit"}
)
_SHOWN_VALUES = 4


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature of a batch.

    Attributes:
        name: Where it stands in the structure: ``"image"``, ``"features.image"``, ``"[0]"``, or ``""`` for a
            bare array.
        values: An array whose first axis counts records; of dtype object where the records differ in shape.
    """

    name: str
    values: NDArray[Any]

    @property
    def title(self) -> str:
        return self.name or "batch"

    def describe(self) -> str:
        """Name, dtype and shape in words."""
        kind = "bytes" if _holds_bytes(self.values) else str(self.values.dtype)
        return f"{self.title}: {kind}{list(self.values.shape)}"


def flatten(batch: Any) -> list[Feature]:
    """The features of ``batch`` in the order of its structure.

    Args:
        batch: An array, or any nesting of tuples, namedtuples, lists and dicts of arrays, numbers or bytes.

    Raises:
        InvalidArgument: The batch holds something that is no array.
    """
    return [Feature(name, _as_array(name, value)) for name, value in _leaves("", batch)]


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _leaves(f"{name}.{key}" if name else str(key), part)
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        for key, part in zip(value._fields, value, strict=True):
            yield from _leaves(f"{name}.{key}" if name else str(key), part)
    elif isinstance(value, (tuple, list)) and not _is_values(value):
        for index, part in enumerate(value):
            yield from _leaves(f"{name}[{index}]", part)
    elif value is not None:
        yield name, value


def _is_values(value: Sequence[Any]) -> bool:
    """Whether a list is one feature written as plain numbers or strings, not a structure of features."""
    return bool(value) and all(isinstance(part, (bool, int, float, str, bytes, np.generic)) for part in value)


def _as_array(name: str, value: Any) -> NDArray[Any]:
    if hasattr(value, "numpy") and not isinstance(value, np.ndarray):
        value = value.numpy()
    if isinstance(value, (bytes, str)) or (isinstance(value, list) and isinstance(value[0], (bytes, str))):
        # As dtype "S" numpy would drop trailing zero bytes, which belong to encoded data.
        return np.array(value, dtype=object)
    try:
        array = np.asarray(value)
    except Exception as error:
        raise InvalidArgument(f"feature {name or 'batch'!r} is no array: {type(value).__name__}") from error
    if array.dtype == object and not all(
        isinstance(part, (bytes, str, np.ndarray, int, float, np.generic)) for part in array.flat
    ):
        raise InvalidArgument(
            f"feature {name or 'batch'!r} holds {type(value).__name__} objects; "
            "expected numpy arrays, numbers or bytes, in tuples, namedtuples, lists or dicts"
        )
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
    simple = [feature for feature in features if _is_label_like(feature)]
    for feature in simple:
        if _LABEL_WORDS & set(re.split(r"[^a-z]+", feature.name.lower())):
            return feature
    return next((feature for feature in simple if re.fullmatch(r"(\[\d+\])+", feature.name)), None)


def _is_label_like(feature: Feature) -> bool:
    values = feature.values
    flat = values.ndim == 1 or (values.ndim == 2 and values.shape[1] == 1)
    return (flat and values.dtype != object) or (flat and _holds_bytes(values)) or is_one_hot(values)


def is_one_hot(values: NDArray[Any]) -> bool:
    """Whether each row of a matrix has a single 1 among zeros."""
    if values.ndim != 2 or values.shape[1] < 2 or not len(values) or values.dtype.kind not in "biuf":
        return False
    ones = values == 1
    return bool((ones.sum(axis=1) == 1).all() and ((values == 0) | ones).all())


def label_words(
    values: NDArray[Any], class_names: Mapping[int, str] | Sequence[str] | None = None
) -> list[str]:
    """A title for each record.

    Args:
        values: One label a record: integers, floats, bytes, or one-hot rows.
        class_names: Name of each class, by its number.
    """
    if is_one_hot(values):
        values = values.argmax(axis=1)
    return [_label(value, class_names) for value in values]


def _label(value: Any, class_names: Mapping[int, str] | Sequence[str] | None) -> str:
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
    kind = "bytes" if _holds_bytes(array) else str(array.dtype)
    words = f"{kind}{list(array.shape)}"
    if array.size and array.dtype.kind in "iuf":
        words += f" {_number(array.min())}..{_number(array.max())}"
    return words


def _number(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    return f"{float(value):.4g}" if np.isrealobj(value) else str(value)


def _short_bytes(value: bytes | str) -> str:
    head = value[:200]
    if isinstance(head, str):
        return head
    # More than a third of unprintable bytes: data, not text.
    if sum(byte < 32 for byte in head) * 3 > len(head):
        return f"{len(value)} bytes"
    return head.decode("utf-8", "backslashreplace")


def _holds_bytes(values: NDArray[Any]) -> bool:
    if values.dtype.kind in "SU":
        return True
    return values.dtype == object and values.size > 0 and isinstance(values.flat[0], (bytes, str))
