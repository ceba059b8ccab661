"""The frame of one record in a TFRecord file.

    uint64 length | uint32 masked CRC-32C of the length | length bytes of payload | uint32 masked CRC-32C of
    the payload

All numbers are little-endian. A stored CRC is rotated and offset ("masked"), because computing the CRC of a
string that itself holds CRCs is weak. The format is documented at
https://www.tensorflow.org/tutorials/load_data/tfrecord.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache

import google_crc32c
import numpy as np
import numpy.typing as npt

HEADER_SIZE = 12
FOOTER_SIZE = 4
FRAME_SIZE = HEADER_SIZE + FOOTER_SIZE
MAX_PAYLOAD = 2**31 - 1
"""The largest payload that protobuf can parse as one message, in bytes."""

_MASK_DELTA = 0xA282EAD8
_LENGTH = struct.Struct("<Q")
_HEADER = struct.Struct("<QI")
_FOOTER = struct.Struct("<I")

# google_crc32c has a C core and no type information.
crc32c = google_crc32c.value


def mask(crc: int) -> int:
    """Returns the form in which a TFRecord file stores a CRC-32C."""
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def unmask(stored: int) -> int:
    """Returns the CRC-32C that a TFRecord file stores as ``stored``; the inverse of ``mask``."""
    rotated = (stored - _MASK_DELTA) & 0xFFFFFFFF
    return ((rotated >> 17) | (rotated << 15)) & 0xFFFFFFFF


def masked_crc(data: bytes) -> int:
    """Returns the masked CRC-32C of ``data``."""
    return mask(crc32c(data))


def header_length(head: bytes) -> int | None:
    """Returns the length that the 12 bytes of a header give, or None if the CRC is wrong or bytes are missing."""
    if len(head) != HEADER_SIZE:
        return None
    length, stored = _HEADER.unpack(head)
    return int(length) if mask(crc32c(head[:8])) == stored else None


def flipped_length(head: bytes) -> tuple[int, int] | None:
    """Returns the length that a damaged header had, if one wrong byte in its length explains the damage.

    The CRC is linear: what the CRCs of the true and of the stored length have in XOR depends only on the wrong byte.

    Returns:
        The true length and the position of the wrong byte, or None.
    """
    if len(head) != HEADER_SIZE:
        return None
    _, stored = _HEADER.unpack(head)
    found = _single_byte_changes().get(crc32c(head[:8]) ^ unmask(stored))
    if found is None:
        return None
    position, change = found
    return int.from_bytes(head[:8], "little") ^ change << 8 * position, position


def is_header(head: bytes) -> bool:
    """Says whether 12 bytes are a header, or were one before one of them became wrong."""
    if len(head) != HEADER_SIZE:
        return False
    difference = _HEADER.unpack(head)[1] ^ masked_crc(head[:8])
    return wrong_bytes(difference) <= 1 or flipped_length(head) is not None


def wrong_bytes(difference: int) -> int:
    """Returns how many bytes of two CRCs differ, given their XOR."""
    return sum(byte != 0 for byte in difference.to_bytes(4, "little"))


@lru_cache(maxsize=1)
def _single_byte_changes() -> dict[int, tuple[int, int]]:
    table = crc_changes()
    return {int(table[position, change]): (position, change) for position in range(8) for change in range(1, 256)}


@lru_cache(maxsize=1)
def crc_changes() -> npt.NDArray[np.uint32]:
    """Returns [8, 256]: how the CRC of eight bytes changes if the byte at a position is XORed with a value."""
    zeros = crc32c(bytes(8))
    table = np.zeros((8, 256), np.uint32)
    for position in range(8):
        for change in range(1, 256):
            table[position, change] = crc32c(bytes(position) + bytes([change]) + bytes(7 - position)) ^ zeros
    return table


@lru_cache(maxsize=4096)
def header(length: int) -> bytes:
    """Returns the 12 bytes that stand before a payload of ``length`` bytes."""
    return _HEADER.pack(length, masked_crc(_LENGTH.pack(length)))


def footer(payload: bytes) -> bytes:
    """Returns the 4 bytes that stand behind ``payload``."""
    return _FOOTER.pack(masked_crc(payload))


def frames(payloads: Sequence[bytes]) -> bytes:
    """Returns the frames of ``payloads``, one after the other, as they stand in an uncompressed file."""
    crcs = np.fromiter(map(crc32c, payloads), np.uint32, len(payloads))
    # uint32 arithmetic wraps, as the mask wants it.
    masked = ((crcs >> 15) | (crcs << 17)) + np.uint32(_MASK_DELTA)
    parts: list[bytes] = [b""] * (3 * len(payloads))
    parts[0::3] = map(header, map(len, payloads))
    parts[1::3] = payloads
    parts[2::3] = masked.astype("<u4").view("V4").tolist()
    return b"".join(parts)
