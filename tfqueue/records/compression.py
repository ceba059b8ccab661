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


def inflate(inflater: Any, data: bytes, size: int) -> tuple[bytes, str | None]:
    """Decompresses, and in damaged data as far as it goes.

    Args:
        inflater: What zlib.decompressobj returns.
        data: The bytes to feed.
        size: The most bytes to return.

    Returns:
        The decompressed bytes, and what zlib says is wrong behind them, or None.
    """
    before = inflater.copy()
    try:
        return inflater.decompress(data, size), None
    except zlib.error as error:
        # zlib drops what it had decompressed before the damage; byte by byte it does not.
        out = bytearray()
        with suppress(zlib.error):
            for position in range(len(data)):
                out += before.decompress(before.unconsumed_tail + data[position : position + 1])
        return bytes(out), str(error)
