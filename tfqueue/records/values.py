"""What a value given by the user is in a Feature: which of the three lists, and the bytes of that list."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Payload: TypeAlias = "bytes | memoryview"

# How a payload stands in a Feature. ONE and MANY are both a bytes_list; MANY carries the tag and length of
# each of # its values inside the payload. UNSET is a Feature without any list, which says "no values, kind
# unknown".
ONE: Final = 0
MANY: Final = 1
FLOAT: Final = 2
INT64: Final = 3
UNSET: Final = 4

SHAPE_SUFFIX: Final = "/shape"
DTYPE_SUFFIX: Final = "/dtype"
ROW_LENGTHS_SUFFIX: Final = "/row_lengths"

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_SMALL = [bytes([value]) for value in range(128)]
_pack_float = struct.Struct("<f").pack


class RefusedError(Exception):
    """A value that cannot be stored; whoever knows the feature and the record turns it into a RecordError."""


def varint(value: int) -> bytes:
    """Returns the base-128 varint of a non-negative number."""
    if value < 128:
        return _SMALL[value]
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def varints(values: Array) -> bytes:
    """Returns the varints of int64 ``values``, end to end; a negative one takes ten bytes, as in protobuf."""
    if not values.size:
        return b""
    unsigned = values.view(np.uint64)
    largest = int(unsigned.max())
    if largest < 128:
        return unsigned.astype(np.uint8).tobytes()
    width = max(1, -(-largest.bit_length() // 7))
    # Byte j of every value in column j, with the bit that says "more follows"; then only the bytes in use are
    # kept.
    columns = np.empty((values.size, width), np.uint8)
    used = np.empty((values.size, width), np.bool_)
    rest = unsigned
    for column in range(width):
        used[:, column] = rest != 0
        columns[:, column] = rest
        rest = rest >> np.uint64(7)
    used[:, 0] = True
    columns |= 0x80
    lengths = used.sum(axis=1)
    columns[np.arange(values.size), lengths - 1] &= 0x7F
    return columns[used].tobytes()


def integer(value: int) -> bytes:
    """Returns the payload of one Python int."""
    if 0 <= value < 128:
        return _SMALL[value]
    if not _INT64_MIN <= value <= _INT64_MAX:
        raise RefusedError(f"{value} is outside the range of int64_list")
    return varint(value & 0xFFFFFFFFFFFFFFFF)


def floating(value: float) -> bytes:
    """Returns the payload of one Python float, rounded to the float32 that a float_list holds."""
    try:
        return _pack_float(value)
    except OverflowError:
        raise RefusedError(f"{value!r} is outside the range of float32, which a float_list holds") from None


def many(values: Sequence[bytes]) -> tuple[int, Payload]:
    """Returns the kind and payload of a bytes_list."""
    if len(values) == 1:
        return ONE, values[0]
    parts: list[bytes] = []
    for value in values:
        parts += (b"\x0a", varint(len(value)), value)
    return MANY, b"".join(parts)


def encode_text(value: str) -> bytes:
    """Returns a str as the UTF-8 that a bytes_list holds."""
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise RefusedError(
            f"{value!r} cannot be stored as UTF-8: {error.reason} at character {error.start}"
        ) from None


def raw(array: Array) -> Payload:
    """Returns the memory of an array, row-major and little-endian; without a copy where it is so already."""
    dtype = array.dtype.newbyteorder("<")
    flat = np.ascontiguousarray(array, dtype=dtype).reshape(-1)
    return flat.view(np.uint8).data if flat.nbytes else b""


def is_small_float(dtype: np.dtype[Any]) -> bool:
    """Says whether every value of ``dtype`` is a float32 as well, so that a float_list holds it exactly."""
    return (dtype.kind == "f" and dtype.itemsize <= 4) or (_is_extension(dtype) and "float" in dtype.name)


def is_small_integer(dtype: np.dtype[Any]) -> bool:
    """Says whether every value of ``dtype`` is an int64 as well, so that an int64_list holds it exactly."""
    if dtype.kind == "u":
        return dtype.itemsize < 8
    return dtype.kind in "bi" or (_is_extension(dtype) and "int" in dtype.name)


def _is_extension(dtype: np.dtype[Any]) -> bool:
    """Says whether ``dtype`` is one of ml_dtypes, such as bfloat16."""
    return dtype.type.__module__.partition(".")[0] == "ml_dtypes"


def is_storable(dtype: np.dtype[Any]) -> bool:
    """Says whether the memory of an array of ``dtype`` means the same everywhere."""
    # A long double differs from one platform to the next.
    portable = dtype.kind in "biufcmM" and dtype.name not in (
        "float96",
        "float128",
        "complex192",
        "complex256",
    )
    return portable or _is_extension(dtype)


def is_text(dtype: np.dtype[Any]) -> bool:
    """Says whether an array of ``dtype`` holds str or bytes."""
    return dtype.kind in "SUOT"


def texts(array: Array) -> tuple[list[bytes], str]:
    """Returns the elements of an array of str or bytes, and the dtype name that brings them back."""
    dtype = array.dtype
    elements = array.reshape(-1).tolist()
    if dtype.kind == "S":
        return elements, dtype.str
    kinds = set(map(type, elements))
    if kinds <= {str}:
        name = dtype.newbyteorder("<").str if dtype.kind == "U" else "str"
        return [encode_text(element) for element in elements], name
    if kinds <= {bytes}:
        return elements, "bytes"
    listed = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise RefusedError(f"an object array of {listed}; expected only str or only bytes")


def as_list(array: Array, *, narrow: bool) -> tuple[int, Payload]:
    """Returns the kind and payload of an array in the list that holds it; the shape is lost.

    Raises:
        RefusedError: No list holds the dtype, or only by losing range or digits and ``narrow`` is False.
    """
    dtype = array.dtype
    if is_small_float(dtype):
        return FLOAT, raw(array.astype("<f4", copy=False))
    if is_small_integer(dtype):
        return INT64, varints(np.ascontiguousarray(array, dtype=np.int64).reshape(-1))
    if is_text(dtype):
        return many(texts(array)[0])
    if dtype.kind == "f":
        if not narrow:
            raise RefusedError(
                f"a {dtype.name} array would lose digits in a float_list, which holds float32; pass "
                "narrow=True, convert it with .astype(np.float32), or use layout='bytes'"
            )
        return FLOAT, raw(_narrowed(array))
    if dtype.kind == "u":
        if not narrow:
            raise RefusedError(
                "a uint64 array does not fit in an int64_list; pass narrow=True if all values are below "
                "2**63, or use layout='bytes'"
            )
        if array.size and int(array.max()) > _INT64_MAX:
            raise RefusedError(f"{int(array.max())} is outside the range of int64_list; use layout='bytes'")
        return INT64, varints(np.ascontiguousarray(array, dtype=np.int64).reshape(-1))
    raise RefusedError(
        f"an array of dtype {dtype.name} has no list form; use layout='bytes' or convert it first"
    )


def _narrowed(array: Array) -> Array:
    with np.errstate(over="ignore"):
        small = array.astype("<f4")
    lost = np.isinf(small) & np.isfinite(array)
    if lost.any():
        raise RefusedError(
            f"{array[lost].flat[0]!r} is outside the range of float32, which a float_list holds"
        )
    return small


def sequence(values: Sequence[Any], *, narrow: bool) -> tuple[int, Payload]:
    """Returns the kind and payload of a flat list of Python or numpy values."""
    kinds = set(map(type, values))
    if not kinds:
        return UNSET, b""
    if kinds <= {int, bool}:
        try:
            return INT64, varints(np.array(values, np.int64))
        except OverflowError:
            outside = next(value for value in values if not _INT64_MIN <= value <= _INT64_MAX)
            raise RefusedError(f"{outside} is outside the range of int64_list") from None
    if kinds <= {float, int, bool}:
        # A Python float promises no precision; an array of float64 does, and goes through as_list.
        return FLOAT, raw(_narrowed(np.array(values, np.float64)))
    if kinds <= {bytes, str, bytearray, memoryview}:
        return many([encode_text(value) if isinstance(value, str) else bytes(value) for value in values])
    if all(issubclass(kind, (np.generic, int, float)) for kind in kinds):
        return as_list(np.array(values), narrow=narrow)
    listed = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise RefusedError(f"a list of {listed}; expected numbers, or str and bytes, or lists of those")


def dtype_from_name(name: str) -> np.dtype[Any] | None:
    """Returns the dtype stored under a ``/dtype`` feature, or None if this is no name that tfqueue writes."""
    try:
        dtype = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):
        try:
            import ml_dtypes

            dtype = np.dtype(getattr(ml_dtypes, name))
        except (ImportError, AttributeError, TypeError):
            return None
    return dtype if is_storable(dtype) or dtype.kind in "SU" else None
