"""The compressions of TFRecord files: none, GZIP (RFC 1952), ZLIB (RFC 1950), over the file as a whole."""

from __future__ import annotations

import zlib
from contextlib import suppress
from typing import Any, Final, Literal, TypeAlias

from tfqueue.errors import InvalidArgument

Compression: TypeAlias = Literal["", "GZIP", "ZLIB"]
"""As tf.io.TFRecordOptions and tf.data.TFRecordDataset spell it; "" is none."""

WINDOW_BITS: Final = {"GZIP": 31, "ZLIB": 15}
"""The wbits argument of zlib that writes and reads each format."""

RAW_WINDOW_BITS: Final = -15
"""The same for the bare deflate stream inside both."""

TRAILER_SIZE: Final = {"GZIP": 8, "ZLIB": 4}
"""How many bytes with the checksum of the data stand behind the deflate stream."""

FLUSH_MARKER: Final = b"\x00\x00\xff\xff"
"""The end of a full flush: an empty stored block (RFC 1951, 3.2.4). What follows needs nothing of what is before."""


def normalise(compression: str | None, *, name: str) -> Compression:
    """Returns the compression meant by an argument.

    Args:
        compression: "GZIP", "ZLIB", "" or "NONE" in any case; None decides by ``name``: GZIP if it ends in
            ".gz".
        name: The file to be written.

    Raises:
        InvalidArgument: Any other value.
    """
    if compression is None:
        return "GZIP" if name.lower().endswith((".gz", ".gzip")) else ""
    upper = compression.upper() if isinstance(compression, str) else compression
    if upper in ("", "NONE"):
        return ""
    if upper == "GZIP":
        return "GZIP"
    if upper == "ZLIB":
        return "ZLIB"
    raise InvalidArgument(f"compression is {compression!r}; expected 'GZIP', 'ZLIB', '' (none) or None (by the name)")


def inflate(inflater: Any, data: bytes, size: int) -> tuple[bytes, int, str | None]:
    """Decompresses, and in damaged data as far as it goes.

    Args:
        inflater: What zlib.decompressobj returns.
        data: The bytes to feed.
        size: The most bytes to return.

    Returns:
        The decompressed bytes; and of damaged data the position of the first byte that zlib does not take, and what it
        says is wrong, else 0 and None.
    """
    before = inflater.copy()
    try:
        return inflater.decompress(data, size), 0, None
    except zlib.error as error:
        # zlib drops what it had decompressed before the damage; byte by byte it does not.
        out = bytearray()
        position = 0
        with suppress(zlib.error):
            for position in range(len(data)):
                out += before.decompress(data[position : position + 1])
        return bytes(out), position, str(error)
