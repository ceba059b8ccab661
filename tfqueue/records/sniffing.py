"""What a file is, judged by its first bytes and not by its name."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final

from tfqueue.records.compression import WINDOW_BITS, Compression, inflate
from tfqueue.records.framing import HEADER_SIZE, is_header
from tfqueue.records.paths import Path, fspath, open_to_read

_HEAD: Final = 4096
_PROBE: Final = 1 << 16
_COMPRESSIONS: Final[tuple[Compression, ...]] = ("GZIP", "ZLIB")
_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"GIF8", "gif"),
    (b"BM", "bmp"),
    (b"\x93NUMPY", "npy"),
    (b"\x89HDF\r\n\x1a\n", "hdf5"),
    (b"PK\x03\x04", "zip"),
    (b"%PDF", "pdf"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x80\x02", "pickle"),
    (b"\x80\x03", "pickle"),
    (b"\x80\x04", "pickle"),
    (b"\x80\x05", "pickle"),
    (b"PAR1", "parquet"),
    (b"SQLite format 3\x00", "sqlite"),
    (b"version https://git-lfs.github.com/spec/", "git-lfs-pointer"),
)


@dataclass(frozen=True, slots=True)
class Sniffed:
    """What a file is, judged by its first bytes.

    Attributes:
        kind: "tfrecord", "empty", "text", "html", "git-lfs-pointer", "png", "jpeg", "wav", "webp", "npy",
            "zip", and so on; "gzip" or "zlib" for compressed data that is no TFRecord file; "unknown".
        compression: How a TFRecord file is compressed: "", "GZIP" or "ZLIB".
    """

    kind: str
    compression: Compression = ""

    @property
    def words(self) -> str:
        """What the file is, as the end of the sentence "it is ..."."""
        special = {
            "tfrecord": "a TFRecord file",
            "empty": "an empty file",
            "text": "a text file",
            "html": "an HTML page",
            "git-lfs-pointer": "a Git LFS pointer: the data itself was never downloaded (git lfs pull)",
            "gzip": "gzip data that holds no TFRecord file",
            "zlib": "zlib data that holds no TFRecord file",
            "unknown": "of no known kind",
        }
        return special.get(self.kind, f"a {self.kind} file")


def sniff(path: Path) -> Sniffed:
    """Says what a file is, by its first bytes, whatever its name.

    Raises:
        RecordError: The file does not exist or cannot be read.
    """
    with open_to_read(fspath(path)) as file:
        return sniff_bytes(file.read(_HEAD))


def sniff_bytes(head: bytes) -> Sniffed:
    """Says what a file is that starts with ``head``, of which the first 4096 bytes are looked at."""
    if not head:
        return Sniffed("empty")
    # First, because the length in a header may look like any magic number: 35615 bytes start like gzip.
    if is_header(head[:HEADER_SIZE]):
        return Sniffed("tfrecord")
    for compression in _COMPRESSIONS:
        plain = _inflated_head(head, compression)
        if plain is not None:
            # Too little to judge (no records at all, or a stream damaged at its start) is taken for records.
            kind = "tfrecord" if len(plain) < HEADER_SIZE or is_header(plain[:HEADER_SIZE]) else compression.lower()
            return Sniffed(kind, compression)
    # Four zeros after two bytes of magic are rather the upper half of a length.
    is_length = head[4:8] == bytes(4)
    for magic, kind in _MAGIC:
        if head.startswith(magic) and not (is_length and len(magic) == 2):
            return Sniffed(kind)
    if head[:4] == b"RIFF" and head[8:12] in (b"WAVE", b"WEBP"):
        return Sniffed("wav" if head[8:12] == b"WAVE" else "webp")
    if head[257:262] == b"ustar":
        return Sniffed("tar")
    return Sniffed(_text_kind(head))


def _inflated_head(head: bytes, compression: Compression) -> bytes | None:
    """Returns what ``head`` decompresses to, as far as it goes; None if it is not compressed in this way."""
    if compression == "GZIP" and not head.startswith(b"\x1f\x8b\x08"):
        return None
    if compression == "ZLIB" and (
        len(head) < 2 or head[0] & 15 != 8 or head[0] >> 4 > 7 or int.from_bytes(head[:2], "big") % 31
    ):
        return None
    plain, _, error = inflate(zlib.decompressobj(WINDOW_BITS[compression]), head, _PROBE)
    # The two bytes of ZLIB occur in other data as well, the three of GZIP hardly.
    return None if error and compression == "ZLIB" and not is_header(plain[:HEADER_SIZE]) else plain


def _text_kind(head: bytes) -> str:
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:  # else: a character cut at the end of what was read
            return "unknown"
        text = head[: error.start].decode("utf-8")
    if any(character < " " and character not in "\t\r\n\f\x1b" for character in text):
        return "unknown"
    return "html" if text.lstrip()[:15].lower().startswith(("<!doctype html", "<html")) else "text"
