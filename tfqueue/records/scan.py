"""The frames of TFRecord files, both CRCs checked.

TensorFlow's own readers stop without an error where a file ends inside the header of a record. Here that is an error
like any other damage, with file, record and offset.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from io import FileIO
from typing import Final

from tfqueue.errors import DamagedRecord
from tfqueue.records.compression import (
    FLUSH_MARKER,
    RAW_WINDOW_BITS,
    TRAILER_SIZE,
    WINDOW_BITS,
    Compression,
    inflate,
    normalise,
)
from tfqueue.records.framing import FOOTER_SIZE, FRAME_SIZE, HEADER_SIZE, crc32c, header_length, mask
from tfqueue.records.paths import Path, fspath, open_to_read
from tfqueue.records.sniffing import Sniffed, sniff, sniff_bytes

__all__ = ["Sniffed", "Source", "checked_length", "cut", "damaged", "frames", "open_source", "scan", "sniff"]

_CHUNK: Final = 1 << 20
_INPUT: Final = 1 << 16
_unpack_footer = struct.Struct("<I").unpack_from


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
    with open_to_read(name) as file:
        yield from scan(open_source(file, name, compression), name, check_payload=check_payload)


def scan(
    source: Source, name: str, *, index: int = 0, start: int = 0, check_payload: bool = True
) -> Iterator[tuple[int, int, bytes]]:
    """Yields the records of a source, as ``frames`` does.

    Args:
        source: The bytes, from the beginning of a frame.
        name: The file, for errors.
        index: The number of the first record.
        start: Its offset.
        check_payload: As for ``frames``.
    """
    buffer = b""
    position = 0  # of the next frame, in the buffer
    lengths: dict[bytes, int] = {}
    while True:
        if len(buffer) - position < HEADER_SIZE:
            start += position
            buffer = source.fill(buffer[position:], HEADER_SIZE)
            position = 0
            if not buffer and not source.damage:
                return
        head = buffer[position : position + HEADER_SIZE]
        length = lengths.get(head)
        if length is None:
            length = checked_length(head, name, index, start + position, source.damage)
            if len(lengths) < 4096:
                lengths[head] = length
        end = position + FRAME_SIZE + length
        if end > len(buffer):
            start += position
            buffer = source.fill(buffer[position:], FRAME_SIZE + length)
            position, end = 0, FRAME_SIZE + length
            if end > len(buffer):
                raise cut(name, index, start, length, len(buffer), source.damage)
        payload = buffer[position + HEADER_SIZE : end - FOOTER_SIZE]
        if check_payload and mask(crc32c(payload)) != _unpack_footer(buffer, end - FOOTER_SIZE)[0]:
            raise damaged(name, index, start + position, "the payload does not match its checksum")
        yield index, start + position, payload
        index += 1
        position = end


class Source:
    """The decompressed bytes of an open file, read from front to back.

    Args:
        file: The file, where reading is to begin.
        compression: How it is compressed.

    Attributes:
        compression: How it is compressed.
        damage: What is wrong with the compressed stream; all bytes before that place have been given.
    """

    def __init__(self, file: FileIO, compression: Compression) -> None:
        self.compression = compression
        self.damage: str | None = None
        self._file = file
        self._size = os.fstat(file.fileno()).st_size
        self._inflater = zlib.decompressobj(WINDOW_BITS[compression]) if compression else None
        self._damaged_at: int | None = None
        self._trailer = 0  # that zlib leaves unread behind a bare stream

    def fill(self, buffer: bytes, size: int) -> bytes:
        """Returns ``buffer`` with more bytes behind it: at least ``size`` in all, or all that there are."""
        missing = size - len(buffer)
        if self._inflater is None:
            # Never more than the file has left, whatever a length field says.
            missing = min(missing, max(0, self._size - self._file.tell()))
            # More than is missing, so that small records need no read of their own; the header that follows, for
            # large ones.
            return buffer + _read_all(self._file, missing + (_CHUNK if missing < _CHUNK else HEADER_SIZE))
        parts = [buffer]
        while missing > 0 and (part := self.inflate(_CHUNK)):
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def inflate(self, size: int) -> bytes:
        """Returns the next decompressed bytes, at most ``size``; none at the end, or at damage."""
        assert self._inflater is not None
        while not self.damage:
            if self._inflater.eof:
                data = self._next_member()
                if not data:
                    return b""
            else:
                data = self._inflater.unconsumed_tail or self._file.read(_INPUT)
            out, position, error = inflate(self._inflater, data, size)
            if error:
                self.damage = f"the {self.compression} stream is damaged: {error}"
                self._damaged_at = self._file.tell() - len(data) + position
            elif not data and not out and not self._inflater.eof:
                self.damage = f"the {self.compression} stream is cut: its end is missing"
            if out:
                return out
        return b""

    def _next_member(self) -> bytes:
        """Begins with what stands behind the end of a stream; returns its first bytes, or none."""
        assert self._inflater is not None
        data = self._inflater.unused_data
        if len(data) <= self._trailer:
            data += self._file.read(_INPUT)
        data = data[self._trailer :]
        self._trailer = 0
        if data and not (self.compression == "GZIP" and data.startswith(b"\x1f")):
            self.damage = f"bytes that belong to no {self.compression} stream follow at its end"
            return b""
        # Several gzip members one after the other are one file, as gzip itself has it.
        self._inflater = zlib.decompressobj(WINDOW_BITS["GZIP"]) if data else self._inflater
        return data

    def resumed(self) -> Source | None:
        """Returns the source of what stands behind the damage, from the next place at which the writer has flushed.

        RecordWriter flushes after each megabyte; other programs seldom do.
        """
        position = self._damaged_at
        while position is not None:
            position = _find(self._file, FLUSH_MARKER, position)
            if position is None:
                return None
            position += len(FLUSH_MARKER)
            again = Source(self._file, self.compression)
            again._inflater = zlib.decompressobj(RAW_WINDOW_BITS)
            again._trailer = TRAILER_SIZE[self.compression]
            self._file.seek(position)
            # By chance the marker stands in other data too; what follows it there is hardly a stream.
            if again.inflate(_INPUT):
                again._inflater = zlib.decompressobj(RAW_WINDOW_BITS)
                again.damage = None
                self._file.seek(position)
                return again
        return None


def open_source(file: FileIO, name: str, compression: str | None) -> Source:
    """Returns the decompressed bytes of a file.

    Raises:
        DamagedRecord: The file is no TFRecord file, or is compressed in another way than the caller says.
    """
    head = file.read(4096)
    file.seek(0)  # also for whoever goes on after an error
    found = sniff_bytes(head)
    if compression == "auto":
        if found.kind not in ("tfrecord", "empty", "unknown"):
            raise damaged(name, 0, 0, f"this is no TFRecord file; it is {found.words}")
        return Source(file, found.compression)
    wanted = normalise(compression or "", name=name)
    if found.kind == "tfrecord" and found.compression != wanted:
        raise damaged(
            name,
            0,
            0,
            f"compression is {wanted or 'none'!r}, but the file is {found.compression or 'not compressed'}",
        )
    return Source(file, wanted)


def _find(file: FileIO, wanted: bytes, position: int) -> int | None:
    """Returns where ``wanted`` stands next in a file, or None."""
    file.seek(position)
    kept = b""
    while block := file.read(_CHUNK):
        found = (kept + block).find(wanted)
        if found >= 0:
            return position - len(kept) + found
        position += len(block)
        kept = (kept + block)[1 - len(wanted) :]
    return None


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


def checked_length(head: bytes, name: str, index: int, offset: int, stream_damage: str | None = None) -> int:
    """Returns the length that a header gives.

    Raises:
        DamagedRecord: The header is cut, or its CRC is wrong.
    """
    if len(head) < HEADER_SIZE:
        words = stream_damage or f"the file ends {len(head)} bytes into a header of {HEADER_SIZE} bytes"
        raise damaged(name, index, offset, words)
    length = header_length(head)
    if length is None:
        hint = "" if index else " (is this a TFRecord file?)"
        raise damaged(name, index, offset, f"the length does not match its checksum{hint}")
    return length


def cut(
    name: str, index: int, offset: int, length: int, available: int, stream_damage: str | None = None
) -> DamagedRecord:
    """Returns the error for a record of ``length`` bytes, of whose frame only ``available`` bytes are there."""
    part = "payload" if available < HEADER_SIZE + length else "checksum of the payload"
    words = f"the file ends inside the {part}: of {FRAME_SIZE + length} bytes {available} are there"
    return damaged(name, index, offset, stream_damage or words)


def damaged(name: str, index: int, offset: int, words: str) -> DamagedRecord:
    """Returns the error for a damaged record."""
    return DamagedRecord(f"{name!r}, record {index}, byte {offset}: {words}", file=name, record=index, offset=offset)
