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
