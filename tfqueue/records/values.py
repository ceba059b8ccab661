"""What a value given by the user is in a Feature: which of the three lists, and the bytes of that list."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Payload: TypeAlias = "bytes | memoryview"

# How a payload stands in a Feature. ONE and MANY are both a bytes_list; MANY carries the tag and length of each of its
# values inside the payload. UNSET is a Feature without any list, which says "no values, kind unknown".
ONE: Final = 0
MANY: Final = 1
FLOAT: Final = 2
INT64: Final = 3
UNSET: Final = 4

SHAPE_SUFFIX: Final = "/shape"
DTYPE_SUFFIX: Final = "/dtype"
ROW_LENGTHS_SUFFIX: Final = "/row_lengths"

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
# Half a step above the largest float32: from here on rounding gives infinity.
_FLOAT_MAX = float.fromhex("0x1.ffffffp127")
_FLOAT32 = np.dtype("<f4")
_COPIED = 1 << 14
_SMALL = [bytes([value]) for value in range(128)]
_pack_float = struct.Struct("<f").pack


class RefusedError(Exception):
    """A value that cannot be stored; whoever knows the feature and the record turns it into a RecordError."""


def varint(value: int) -> bytes:
    """Returns the base-128 varint of a non-negative number."""
    if value < 128:
        return _SMALL[value]
    if value < 16384:
        return bytes((value & 127 | 128, value >> 7))
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def varints(values: Array) -> bytes:
    """Returns the varints of int64 ``values``, end to end; a negative one takes ten bytes, as in protobuf."""
    if values.size < 16:
        return b"".join(map(integer, values.tolist()))
    unsigned = values.view(np.uint64)
    largest = int(unsigned.max())
    if largest < 128:
        return unsigned.astype(np.uint8).tobytes()
    width = -(-largest.bit_length() // 7)
    if width <= 8:
        rows = _bytes_of(_septets(unsigned, width))
    else:  # eight bytes from the lower 56 bits, two from the rest
        rest = unsigned >> np.uint64(56)
        low = _septets(unsigned & np.uint64(2**56 - 1), 8)
        low |= (rest != 0) * np.uint64(0x8080808080808080)
        rows = np.empty((len(unsigned), 10), np.uint8)
        rows[:, :8] = _bytes_of(low)
        rows[:, 8:] = _bytes_of(_septets(rest, 2))
    return _without_unused(rows, unsigned)


def _septets(values: npt.NDArray[np.uint64], width: int) -> npt.NDArray[Any]:
    """Returns numbers of 2, 4 or 8 bytes: in each byte, low ones first, seven bits of a value and "more follows"."""
    dtype, steps = _SPREAD[0 if width <= 2 else 1 if width <= 4 else 2]
    size = np.dtype(dtype).itemsize
    spread = values.astype(dtype)
    # Makes room for the extra bits: halves the groups of bits until each has seven.
    for stay, move, shift in steps:
        moved = spread & dtype(move)
        moved <<= dtype(shift)
        spread &= dtype(stay)
        spread |= moved
    # Now bit 7 of a byte is free. It must be set if any higher byte holds a bit: OR them down, and add 127 to carry.
    above = spread >> dtype(8)
    bits = 8
    while bits < 8 * (width - 1):
        above |= above >> dtype(bits)
        bits *= 2
    above += dtype(int.from_bytes(b"\x7f" * size, "little"))
    above &= dtype(int.from_bytes(b"\x80" * size, "little"))
    spread |= above
    return spread


def _bytes_of(numbers: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Returns the bytes of unsigned numbers, one row a number, low ones first."""
    little = numbers.astype(numbers.dtype.newbyteorder("<"), copy=False)
    return little.view(np.uint8).reshape(len(numbers), -1)


_SPREAD: Final = (
    (np.uint16, ((0x7F, 0x3F80, 1),)),
    (np.uint32, ((0x3FFF, 0xFFFC000, 2), (0x7F007F, 0x3F803F80, 1))),
    (
        np.uint64,
        (
            (0xFFFFFFF, 0xFFFFFFF0000000, 4),
            (0x3FFF00003FFF, 0xFFFC0000FFFC000, 2),
            (0x7F007F007F007F, 0x3F803F803F803F80, 1),
        ),
    ),
)


def _without_unused(rows: npt.NDArray[np.uint8], values: npt.NDArray[np.uint64]) -> bytes:
    """Returns the bytes in use, end to end. They are those that are not zero, but for the only one of a zero."""
    zeros = len(values) - np.count_nonzero(values)
    if not zeros:
        # Deleting a byte value is the fastest way there is.
        return rows.tobytes().translate(None, b"\0")
    width = rows.shape[1]
    if 16 * zeros < len(rows):
        data = rows.tobytes()
        edges = [0]
        for position in np.flatnonzero(values == 0).tolist():
            edges += (position, position + 1)
        pieces = zip(edges[0::2], [*edges[1::2], len(rows)], strict=True)
        return b"\0".join([data[width * low : width * high].translate(None, b"\0") for low, high in pieces])
    flat = rows.reshape(-1)
    used = flat != 0
    used[::width] = True
    kept: npt.NDArray[np.uint8] = flat[used]
    return kept.tobytes()


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
        raise RefusedError(f"{value!r} cannot be stored as UTF-8: {error.reason} at character {error.start}") from None


def raw(array: Array) -> Payload:
    """Returns the memory of an array, row-major and little-endian; without a copy where it is so already."""
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    if array.nbytes < _COPIED:  # a view of a small array costs more than its copy
        return array.tobytes()
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


@lru_cache(maxsize=256)
def is_small_float(dtype: np.dtype[Any]) -> bool:
    """Says whether every value of ``dtype`` is a float32 as well, so that a float_list holds it exactly."""
    return (dtype.kind == "f" and dtype.itemsize <= 4) or (_is_extension(dtype) and "float" in dtype.name)


@lru_cache(maxsize=256)
def is_small_integer(dtype: np.dtype[Any]) -> bool:
    """Says whether every value of ``dtype`` is an int64 as well, so that an int64_list holds it exactly."""
    if dtype.kind == "u":
        return dtype.itemsize < 8
    return dtype.kind in "bi" or (_is_extension(dtype) and "int" in dtype.name)


def _is_extension(dtype: np.dtype[Any]) -> bool:
    """Says whether ``dtype`` is one of ml_dtypes, such as bfloat16."""
    return dtype.type.__module__.partition(".")[0] == "ml_dtypes"


@lru_cache(maxsize=256)
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


def as_list(array: Array | np.generic, *, narrow: bool) -> tuple[int, Payload]:
    """Returns the kind and payload of an array or numpy scalar in the list that holds it; the shape is lost.

    Raises:
        RefusedError: No list holds the dtype, or only by losing range or digits and ``narrow`` is False.
    """
    dtype = array.dtype
    if is_small_integer(dtype):
        if not array.shape:
            return INT64, integer(int(array))
        return INT64, varints(np.ascontiguousarray(array, dtype=np.int64).reshape(-1))
    if isinstance(array, np.generic):
        array = np.asarray(array)
    if is_small_float(dtype):
        return FLOAT, raw(array if dtype == _FLOAT32 else array.astype(_FLOAT32))
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
    raise RefusedError(f"an array of dtype {dtype.name} has no list form; use layout='bytes' or convert it first")


def _narrowed(array: Array) -> Array:
    with np.errstate(over="ignore"):
        small = array.astype("<f4")
    lost = np.isinf(small) & np.isfinite(array)
    if lost.any():
        raise RefusedError(f"{array[lost].flat[0]!r} is outside the range of float32, which a float_list holds")
    return small


def sequence(values: Sequence[Any], kinds: set[type], *, narrow: bool) -> tuple[int, Payload]:
    """Returns the kind and payload of a flat list of Python or numpy values of the types ``kinds``."""
    if not kinds:
        return UNSET, b""
    if kinds <= {int, bool}:
        if len(values) < 32:
            return INT64, b"".join(map(integer, values))
        try:
            return INT64, varints(np.array(values, np.int64))
        except OverflowError:
            outside = next(value for value in values if not _INT64_MIN <= value <= _INT64_MAX)
            raise RefusedError(f"{outside} is outside the range of int64_list") from None
    if kinds <= {float, int, bool}:
        # A Python float promises no precision; an array of float64 does, and goes through as_list.
        try:
            return FLOAT, struct.pack(f"<{len(values)}f", *values)
        except OverflowError:
            outside = next(value for value in values if _FLOAT_MAX <= abs(value) != math.inf)
            raise RefusedError(f"{outside!r} is outside the range of float32, which a float_list holds") from None
    if kinds <= {bytes, str, bytearray, memoryview}:
        return many([encode_text(value) if isinstance(value, str) else bytes(value) for value in values])
    if all(issubclass(kind, (np.generic, int, float)) for kind in kinds):
        return as_list(np.array(values), narrow=narrow)
    listed = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise RefusedError(f"a list of {listed}; expected numbers, or str and bytes, or lists of those")


@lru_cache(maxsize=256)
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
