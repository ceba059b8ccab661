"""The bytes of a tf.train.Example or tf.train.SequenceExample -> features as numpy arrays, without
TensorFlow.

The parser takes everything that protobuf takes: fields in any order, unknown fields, lists that are not
packed, messages split in several pieces. See ``encode`` for the format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tfqueue.records.values import (
    DTYPE_SUFFIX,
    ROW_LENGTHS_SUFFIX,
    SHAPE_SUFFIX,
    Array,
    dtype_from_name,
)

Feature: TypeAlias = "list[bytes] | Array | None"
"""A bytes_list (list), float_list (float32 array), int64_list (int64 array), or a Feature without a list."""

_WIRE_VARINT, _WIRE_FIXED64, _WIRE_LENGTH, _WIRE_FIXED32 = 0, 1, 2, 5
_LIST_FIELDS = (1, 2, 3)
_SHORT = 16
_UINT64_MAX = 2**64 - 1


class MalformedError(Exception):
    """Bytes that are not the message they should be; who knows file and record makes a RecordError of it."""


@dataclass(frozen=True, slots=True)
class Message:
    """One parsed record.

    Attributes:
        context: The features of an Example, or the context of a SequenceExample.
        sequences: The feature lists of a SequenceExample; None for an Example.
    """

    context: dict[str, Feature]
    sequences: dict[str, list[Feature]] | None


def parse(payload: bytes) -> Message:
    """Returns the features of a serialized Example or SequenceExample.

    Raises:
        MalformedError: The bytes are neither.
    """
    usual = _parse_usual(payload)
    if usual is not None:
        return Message(usual, None)
    context: dict[str, Feature] = {}
    sequences: dict[str, list[Feature]] | None = None
    view = memoryview(payload)
    for field, start, end in _fields(view, 0, len(view)):
        if field == 1:
            for name, value in _entries(view, start, end):
                context[name] = _feature(view, *value)
        elif field == 2:
            sequences = {} if sequences is None else sequences
            for name, value in _entries(view, start, end):
                steps = [_feature(view, low, high) for step, low, high in _fields(view, *value) if step == 1]
                sequences[name] = steps
        else:
            raise MalformedError(f"field {field} at byte {start} is no field of an Example")
    return Message(context, sequences)


def _parse_usual(data: bytes) -> dict[str, Feature] | None:
    """Returns the features of an Example in the form that all writers use, several times faster than ``parse``.

    That form has one Features message, entries of a key and a Feature, and packed lists in one piece. None means that
    the bytes have another form, or none that is right.
    """
    found: dict[str, Feature] = {}
    size = len(data)
    try:
        if not size:
            return found
        length, position = _short_varint(data, 1)
        if data[0] != 0x0A or position + length != size:
            return None
        while position < size:
            length, start = _short_varint(data, position + 1)
            end = start + length
            key_size, key = _short_varint(data, start + 1)
            feature_size, feature = _short_varint(data, key + key_size + 1)
            if data[position] != 0x0A or data[start] != 0x0A or data[key + key_size] != 0x12:
                return None
            if feature + feature_size != end or end > size:
                return None
            name = data[key : key + key_size].decode()
            position = end
            if not feature_size:
                found[name] = None
                continue
            list_size, first = _short_varint(data, feature + 1)
            if first + list_size != end:
                return None
            kind = data[feature]
            if kind == 0x0A:
                values: list[bytes] = []
                while first < end:
                    length, begin = _short_varint(data, first + 1)
                    if data[first] != 0x0A or begin + length > end:
                        return None
                    first = begin + length
                    values.append(data[begin:first])
                found[name] = values
                continue
            payload = first
            if list_size:
                length, payload = _short_varint(data, first + 1)
                if data[first] != 0x0A or payload + length != end:
                    return None
            if kind == 0x1A:
                found[name] = read_varints(data[payload:end])
            elif kind == 0x12 and not (end - payload) % 4:
                found[name] = np.frombuffer(data, "<f4", (end - payload) // 4, payload).copy()
            else:
                return None
    except (IndexError, UnicodeDecodeError, MalformedError):
        return None
    return found


def _short_varint(data: bytes, position: int) -> tuple[int, int]:
    value = data[position]
    position += 1
    if value < 128:
        return value, position
    value &= 127
    shift = 7
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
        if shift > 35:  # 32 GB: no message is that long
            raise IndexError


def features(message: Message) -> dict[str, Any]:
    """Returns the features of a record as numpy arrays, arrays of layout "bytes" with their dtype and shape.

    Raises:
        MalformedError: The bytes of an array do not have the size that its dtype and shape need, or a feature
            of the context has the name of a sequence.
    """
    found = restore(message.context)
    for name, steps in (message.sequences or {}).items():
        if name in found:
            raise MalformedError(f"{name!r} is both a context feature and a sequence")
        found[name] = _object_array([plain(step) for step in steps])
    return found


def restore(context: Mapping[str, Feature]) -> dict[str, Any]:
    """Returns a dict in which ``<name>/shape``, ``/dtype`` and ``/row_lengths`` have been used up."""
    restored: dict[str, Array] = {}
    used: set[str] = set()
    for beside in context:
        if beside.endswith(DTYPE_SUFFIX):
            name = beside[: -len(DTYPE_SUFFIX)]
            array = _restore_array(name, context) if name in context else None
            if array is not None:
                restored[name] = array
                used |= {beside, name + SHAPE_SUFFIX}
        elif beside.endswith(ROW_LENGTHS_SUFFIX):
            name = beside[: -len(ROW_LENGTHS_SUFFIX)]
            array = _restore_ragged(context[name], context[beside]) if name in context else None
            if array is not None:
                restored[name] = array
                used.add(beside)
    return {
        name: restored[name] if name in restored else plain(feature)
        for name, feature in context.items()
        if name not in used
    }


def plain(feature: Feature) -> Array:
    """Returns the values of a feature as a 1-D array: float32, int64, or bytes objects."""
    if feature is None:
        return np.empty(0, np.float32)
    return _object_array(feature) if isinstance(feature, list) else feature


def _restore_array(name: str, context: Mapping[str, Feature]) -> Array | None:
    feature = context[name]
    shape, text = context.get(name + SHAPE_SUFFIX), context.get(name + DTYPE_SUFFIX)
    # A shape without dimensions is an empty int64_list.
    if not isinstance(shape, np.ndarray) or shape.dtype != np.int64 or not isinstance(text, list) or len(text) != 1:
        return None
    dims = tuple(shape.tolist())
    if any(dim < 0 for dim in dims):
        return None
    dtype_name = text[0].decode("utf-8", "replace")
    if dtype_name in ("str", "bytes"):
        dtype = np.dtype(object)
    else:
        known = dtype_from_name(dtype_name)
        if known is None:
            return None
        dtype = known
    count = 1
    for dim in dims:
        count *= dim
    try:
        if dtype.kind in "OSU":
            values: list[Any] = [] if feature is None else list(feature)
            if len(values) != count:
                raise MalformedError(f"{name!r} has {len(values)} values, but shape {dims} needs {count}")
            if dtype_name == "str" or dtype.kind == "U":
                values = [value.decode() for value in values]
            array = np.array(values, dtype) if dtype.kind != "O" else _object_array(values)
            return np.asarray(array.reshape(dims))
        if isinstance(feature, np.ndarray):
            return np.asarray(feature.astype(dtype).reshape(dims))
        if feature is None or len(feature) != 1:
            return None
        memory = feature[0]
        if len(memory) != count * dtype.itemsize:
            raise MalformedError(
                f"{name!r} has {len(memory)} bytes; {dtype} of shape {dims} needs {count * dtype.itemsize}"
            )
        restored: Array = np.frombuffer(memory, dtype).reshape(dims).copy()
        return restored
    except (UnicodeDecodeError, ValueError, AttributeError) as error:
        raise MalformedError(f"{name!r} is not a {dtype_name} array of shape {dims}: {error}") from error


def _restore_ragged(feature: Feature, lengths: Feature) -> Array | None:
    if not isinstance(lengths, np.ndarray) or lengths.dtype != np.int64:
        return None
    values = plain(feature)
    if (lengths < 0).any() or int(lengths.sum()) != len(values):
        return None
    return _object_array(np.split(values, np.cumsum(lengths)[:-1]) if len(lengths) else [])


def _object_array(values: list[Any]) -> Array:
    # np.array would try to make one block of values of equal length.
    array = np.empty(len(values), object)
    array[:] = values if not values or not isinstance(values[0], np.ndarray) else _boxed(values)
    return array


def _boxed(values: list[Any]) -> Array:
    array = np.empty(len(values), object)
    for position, value in enumerate(values):
        array[position] = value
    return array


def _entries(view: memoryview, start: int, end: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yields the keys of a map field and where their values lie."""
    for field, low, high in _fields(view, start, end):
        if field != 1:
            continue
        name = ""
        value = (low, low)
        for part, first, last in _fields(view, low, high):
            if part == 1:
                try:
                    name = str(view[first:last], "utf-8")
                except UnicodeDecodeError:
                    raise MalformedError(f"a feature name at byte {first} is not UTF-8") from None
            elif part == 2:
                value = (first, last)
        yield name, value


def _feature(view: memoryview, start: int, end: int) -> Feature:
    kind = 0
    pieces: list[tuple[int, int]] = []
    for field, low, high in _fields(view, start, end):
        if field in _LIST_FIELDS:
            if field != kind:  # a oneof: the last kind wins, and pieces of one kind are merged
                kind, pieces = field, []
            pieces.append((low, high))
    if kind == 0:
        return None
    if kind == 1:
        return [bytes(view[a:b]) for low, high in pieces for field, a, b in _fields(view, low, high) if field == 1]
    read = _floats if kind == 2 else _integers
    arrays = [read(view, low, high) for low, high in pieces]
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _floats(view: memoryview, start: int, end: int) -> Array:
    arrays = []
    for field, low, high in _fields(view, start, end):
        if field == 1:
            if (high - low) % 4:
                raise MalformedError(f"a float_list at byte {low} has {high - low} bytes, not a multiple of 4")
            arrays.append(np.frombuffer(view[low:high], "<f4").copy())
    return arrays[0] if len(arrays) == 1 else np.concatenate([np.empty(0, np.float32), *arrays])


def _integers(view: memoryview, start: int, end: int) -> Array:
    arrays = [read_varints(view[low:high]) for field, low, high in _fields(view, start, end) if field == 1]
    return arrays[0] if len(arrays) == 1 else np.concatenate([np.empty(0, np.int64), *arrays])


def read_varints(packed: bytes | memoryview) -> Array:
    """Returns the int64 values of a packed list."""
    if len(packed) <= _SHORT:
        return _few_varints(packed)
    data = np.frombuffer(packed, np.uint8)
    if not data.size:
        return np.empty(0, np.int64)
    last = data < 0x80
    if last.all():
        return data.astype(np.int64)
    if not last[-1]:
        raise MalformedError("an int64_list ends in the middle of a number")
    ends = np.flatnonzero(last)
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    if int(lengths.max()) > 10:
        raise MalformedError("an int64_list holds a number of more than ten bytes")
    place = np.arange(data.size) - np.repeat(starts, lengths)
    shifted = (data & 0x7F).astype(np.uint64) << (7 * place).astype(np.uint64)
    return np.add.reduceat(shifted, starts).view(np.int64)


def _few_varints(packed: bytes | memoryview) -> Array:
    values = []
    value = shift = 0
    for byte in packed:
        value |= (byte & 0x7F) << shift
        if byte >= 0x80:
            shift += 7
            if shift > 63:
                raise MalformedError("an int64_list holds a number of more than ten bytes")
            continue
        values.append(value)
        value = shift = 0
    if shift:
        raise MalformedError("an int64_list ends in the middle of a number")
    # The tenth byte has one bit that counts, and the highest bit is the sign.
    return np.array([value & _UINT64_MAX for value in values], np.uint64).view(np.int64)


def _fields(view: memoryview, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yields number, start and end of each field of a message; for a number the bytes of its value."""
    position = start
    while position < end:
        tag, position = _varint(view, position, end)
        field, wire = tag >> 3, tag & 7
        if wire == _WIRE_LENGTH:
            length, position = _varint(view, position, end)
        elif wire == _WIRE_FIXED32:
            length = 4
        elif wire == _WIRE_FIXED64:
            length = 8
        elif wire == _WIRE_VARINT:
            length = _varint(view, position, end)[1] - position
        else:
            raise MalformedError(f"byte {position - 1} has wire type {wire}, which no Example has")
        if field == 0:
            raise MalformedError(f"byte {position - 1} has field number 0")
        if length > end - position:
            raise MalformedError(f"a field at byte {position} claims {length} bytes, but {end - position} are left")
        yield field, position, position + length
        position += length


def _varint(view: memoryview, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while position < end:
        byte = view[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 63:
            break
    raise MalformedError(f"a number that ends at byte {position} is cut or too long")
