"""The compressions of TFRecord files: none, GZIP (RFC 1952), ZLIB (RFC 1950), over the file as a whole."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

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
