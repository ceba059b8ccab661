"""The frames of TFRecord files, both CRCs checked, and what a file is that holds none.

TensorFlow's own readers stop without an error where a file ends inside the header of a record. Here that is
an error like any other damage, with file, record and offset.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import FileIO
from typing import Final

from tfqueue.errors import DamagedRecord, RecordError
from tfqueue.records.compression import WINDOW_BITS, Compression, normalise
from tfqueue.records.framing import FOOTER_SIZE, FRAME_SIZE, HEADER_SIZE, crc32c, mask
from tfqueue.records.paths import Path, fspath

_CHUNK: Final = 1 << 20
_unpack_header = struct.Struct("<QI").unpack
_unpack_footer = struct.Struct("<I").unpack_from

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
    name = fspath(path)
    with _open(name) as file:
        head = file.read(4096)
    return sniff_bytes(head)


def sniff_bytes(head: bytes) -> Sniffed:
    """Says what a file is that starts with ``head``, of which the first 4096 bytes are looked at."""
    if not head:
        return Sniffed("empty")
    # First, because the length in a header may look like any magic number: 35615 bytes start like gzip.
    if header_length(head[:HEADER_SIZE]) is not None:
        return Sniffed("tfrecord")
    for compression in ("GZIP", "ZLIB"):
        plain = _inflated_head(head, WINDOW_BITS[compression])
        if plain is not None:
            # Data of no records at all is an empty TFRecord file.
            holds_records = not plain or header_length(plain[:HEADER_SIZE]) is not None
            kind = "tfrecord" if holds_records else compression.lower()
            return Sniffed(kind, compression)
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return Sniffed(kind)
    if head[:4] == b"RIFF" and head[8:12] in (b"WAVE", b"WEBP"):
        return Sniffed("wav" if head[8:12] == b"WAVE" else "webp")
    if head[257:262] == b"ustar":
        return Sniffed("tar")
    return Sniffed(_text_kind(head))


def header_length(head: bytes) -> int | None:
    """Returns the length that a 12-byte header gives, or None if its CRC is wrong or it is cut."""
    if len(head) != HEADER_SIZE:
        return None
    length, stored = _unpack_header(head)
    return int(length) if mask(crc32c(head[:8])) == stored else None


def _inflated_head(head: bytes, window_bits: int) -> bytes | None:
    if window_bits == 31 and head[:3] != b"\x1f\x8b\x08":
        return None
    if window_bits == 15 and (len(head) < 2 or head[0] & 15 != 8 or head[0] >> 4 > 7 or (head[0] << 8 | head[1]) % 31):
        return None
    try:
        return zlib.decompressobj(window_bits).decompress(head, _CHUNK)
    except zlib.error:
        # The two bytes of zlib occur in other data as well; the three of gzip hardly.
        return b"\xff" * HEADER_SIZE if window_bits == 31 else None


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


def frames(
    path: Path, *, compression: str | None = "auto", check_payload: bool = True
) -> Iterator[tuple[int, int, bytes]]:
    """Yields the records of one file in order.

    Args:
        path: The file.
        compression: "auto" decides by the first bytes; else "GZIP", "ZLIB" or "" as for
            tf.data.TFRecordDataset.
        check_payload: Whether the CRC of each payload is checked too, not only that of its length.

    Yields:
        The 0-based number of the record, the byte offset of its frame in the decompressed file, and its
        payload.

    Raises:
        DamagedRecord: At the first damage, with file, record and offset; also where the file ends inside a
            header.
        RecordError: The file cannot be read.
    """
    name = fspath(path)
    with _open(name) as file:
        source = open_source(file, name, compression)
        buffer = b""
        position = 0  # of the next frame, in the buffer
        start = 0  # of the buffer, in the decompressed file
        index = 0
        lengths: dict[bytes, int] = {}
        while True:
            if len(buffer) - position < HEADER_SIZE:
                start += position
                buffer = buffer[position:] + source.read(_CHUNK)
                position = 0
                if len(buffer) < HEADER_SIZE:
                    buffer += source.read(_CHUNK)
                if not buffer and not source.damage:
                    return
            head = buffer[position : position + HEADER_SIZE]
            length = lengths.get(head)
            if length is None:
                length = _checked_length(head, name, index, start + position, source)
                if len(lengths) < 4096:
                    lengths[head] = length
            end = position + FRAME_SIZE + length
            if end > len(buffer):
                start += position
                buffer = source.fill(buffer[position:], FRAME_SIZE + length)
                position, end = 0, FRAME_SIZE + length
                if end > len(buffer):
                    if source.damage:
                        raise damaged(name, index, start, source.damage)
                    raise _cut(name, index, start, length, len(buffer))
            payload = buffer[position + HEADER_SIZE : end - FOOTER_SIZE]
            if check_payload and mask(crc32c(payload)) != _unpack_footer(buffer, end - FOOTER_SIZE)[0]:
                raise damaged(name, index, start + position, "the payload does not match its checksum")
            yield index, start + position, payload
            index += 1
            position = end


class Source:
    """The decompressed bytes of an open file, read from front to back.

    Args:
        file: The file, at its start.
        name: Its name, for error messages.
        compression: How it is compressed.
    """

    def __init__(self, file: FileIO, name: str, compression: Compression) -> None:
        self.compression = compression
        self._file = file
        self._name = name
        self._size = os.fstat(file.fileno()).st_size
        self._inflater = zlib.decompressobj(WINDOW_BITS[compression]) if compression else None
        self._given = 0
        self.damage: str | None = None

    def read(self, size: int) -> bytes:
        """Returns the next bytes, at most about ``size``; none at the end of the data, or at damage."""
        if self._inflater is None:
            return self._file.read(size)
        return self._inflate(size)

    def fill(self, buffer: bytes, size: int) -> bytes:
        """Returns ``buffer`` with more bytes behind it, ``size`` in all or what there is."""
        missing = size - len(buffer)
        if self._inflater is None:
            # Never more than the file has left, whatever a length field says.
            missing = min(missing, max(0, self._size - self._file.tell()))
            # The chunk behind it comes along, so that the next header needs no read of its own.
            return buffer + _read_all(self._file, missing + (_CHUNK if missing < _CHUNK else HEADER_SIZE))
        parts = [buffer]
        while missing > 0:
            part = self._inflate(max(_CHUNK, min(missing, 16 * _CHUNK)))
            if not part:
                break
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def _inflate(self, size: int) -> bytes:
        inflater = self._inflater
        assert inflater is not None
        while not self.damage:
            if inflater.eof:
                rest = inflater.unused_data or self._file.read(_CHUNK)
                if not rest:
                    return b""
                if self.compression != "GZIP" or not rest.startswith(b"\x1f"):
                    self.damage = f"bytes that belong to no {self.compression} stream follow at its end"
                    return b""
                # Several gzip members one after the other are one file, as gzip itself has it.
                inflater = self._inflater = zlib.decompressobj(WINDOW_BITS["GZIP"])
                data = rest
            else:
                data = inflater.unconsumed_tail or self._file.read(_CHUNK)
                if not data:
                    self.damage = f"the {self.compression} stream is cut: its end is missing"
                    return b""
            try:
                out = inflater.decompress(data, size)
            except zlib.error as error:
                self.damage = f"the {self.compression} stream is damaged: {error}"
                return b""
            if out:
                return out
        return b""


def open_source(file: FileIO, name: str, compression: str | None) -> Source:
    """Returns the decompressed bytes of a file.

    Raises:
        DamagedRecord: The file is no TFRecord file, or is compressed in another way than the caller says.
    """
    head = file.read(4096)
    file.seek(0)
    found = sniff_bytes(head)
    if compression == "auto":
        if found.kind not in ("tfrecord", "empty", "unknown"):
            raise damaged(name, 0, 0, f"this is no TFRecord file; it is {found.words}")
        return Source(file, name, found.compression)
    wanted = normalise(compression or "", name=name)
    if found.kind == "tfrecord" and found.compression != wanted:
        raise damaged(
            name,
            0,
            0,
            f"compression is {wanted or 'none'!r}, but the file is {found.compression or 'not compressed'}",
        )
    return Source(file, name, wanted)


def _open(name: str) -> FileIO:
    try:
        return FileIO(name, "r")
    except OSError as error:
        raise RecordError(f"{name!r} cannot be read: {error.strerror}", file=name) from error


def _read_all(file: FileIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) == size:
        return data
    parts = [data]
    size -= len(data)
    while size > 0 and (data := file.read(size)):
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


def _checked_length(head: bytes, name: str, index: int, offset: int, source: Source) -> int:
    if len(head) < HEADER_SIZE:
        words = source.damage or f"the file ends {len(head)} bytes into a header of {HEADER_SIZE} bytes"
        raise damaged(name, index, offset, words)
    length = header_length(head)
    if length is None:
        hint = ""
        if index == 0:
            hint = " (is this a TFRecord file?)"
        raise damaged(name, index, offset, f"the length does not match its checksum{hint}")
    return length


def _cut(name: str, index: int, offset: int, length: int, available: int) -> DamagedRecord:
    part = "payload" if available < HEADER_SIZE + length else "checksum of the payload"
    return damaged(
        name,
        index,
        offset,
        f"the file ends inside the {part}: of {FRAME_SIZE + length} bytes {available} are there",
    )


def damaged(name: str, index: int, offset: int, words: str) -> DamagedRecord:
    """Returns the error for a damaged record."""
    return DamagedRecord(f"{name!r}, record {index}, byte {offset}: {words}", file=name, record=index, offset=offset)
