"""Where each record of a file begins, kept beside the file, so that the next reader need not look again.

The index of ``a.tfrecord`` is the hidden file ``.a.tfrecord.tfqindex``:

    8 bytes "TFQIDX1\\n" | uint64 size of the file | uint64 time of its last change in ns | uint64 size of the data
    | uint32 compression (0 none, 1 GZIP, 2 ZLIB) | uint32 CRC-32C of the offsets | uint64 offset of each frame

all little-endian. An index of another size or time than its file is stale, and is made anew.
"""

from __future__ import annotations

import os
import struct
from array import array
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from typing import Final

import numpy as np
import numpy.typing as npt

from tfqueue.errors import RecordError
from tfqueue.records.atomic import write_whole
from tfqueue.records.compression import Compression
from tfqueue.records.framing import FRAME_SIZE, HEADER_SIZE, crc32c
from tfqueue.records.paths import Path, fspath, index_name, open_to_read
from tfqueue.records.scan import Source, checked_length, cut, open_source, scan

_MAGIC: Final = b"TFQIDX1\n"
_FIXED: Final = struct.Struct("<8sQQQII")
_COMPRESSIONS: Final[tuple[Compression, ...]] = ("", "GZIP", "ZLIB")
_BLOCK: Final = 1 << 20
_unpack_length = struct.Struct("<Q").unpack_from


@dataclass(frozen=True, slots=True)
class FileIndex:
    """Where the records of a file are.

    Attributes:
        path: The file.
        compression: "", "GZIP" or "ZLIB".
        offsets: [records] where each frame begins, in the decompressed data.
        size: The size of the decompressed data.
    """

    path: str
    compression: Compression
    offsets: npt.NDArray[np.uint64]
    size: int

    def __len__(self) -> int:
        return len(self.offsets)


def file_index(path: Path, *, compression: str | None = "auto", keep: bool = True) -> FileIndex:
    """Returns the index of a file: the one beside it, or a new one if there is none or it is stale.

    A new index is made in one pass, which checks every header but no payload, and is kept beside the file, unless the
    folder cannot be written.

    Args:
        path: The file.
        compression: As for ``frames``.
        keep: Whether a new index is kept.

    Raises:
        DamagedRecord: A header is damaged, or the file ends inside a record.
        RecordError: The file cannot be read.
    """
    name = fspath(path)
    with open_to_read(name) as file:
        found = load_index(name, os.fstat(file.fileno()))
        source = open_source(file, name, compression)
        if found is not None and found.compression == source.compression:
            return found
        offsets, size = _compressed_offsets(source, name) if source.compression else _plain_offsets(file, name)
        index = FileIndex(name, source.compression, np.frombuffer(offsets, np.uint64), size)
        if keep:
            with suppress(RecordError, OSError):
                _save(index, os.fstat(file.fileno()))
    return index


def load_index(name: str, status: os.stat_result | None) -> FileIndex | None:
    """Returns the index kept beside a file, or None if there is none that can be used.

    Args:
        name: The file.
        status: What the index must fit to; with None also a stale index is returned.
    """
    try:
        with open(index_name(name), "rb") as file:
            content = file.read()
    except OSError:
        return None
    if len(content) < _FIXED.size or (len(content) - _FIXED.size) % 8:
        return None
    magic, file_size, changed, size, compression, crc = _FIXED.unpack_from(content)
    body = content[_FIXED.size :]
    if magic != _MAGIC or compression >= len(_COMPRESSIONS) or crc != crc32c(body):
        return None
    if status is not None and (file_size, changed) != (status.st_size, status.st_mtime_ns):
        return None
    offsets = np.frombuffer(body, "<u8").astype(np.uint64, copy=False)
    return FileIndex(name, _COMPRESSIONS[compression], offsets, size)


def _save(index: FileIndex, status: os.stat_result) -> None:
    body = index.offsets.astype("<u8").tobytes()
    compression = _COMPRESSIONS.index(index.compression)
    head = _FIXED.pack(_MAGIC, status.st_size, status.st_mtime_ns, index.size, compression, crc32c(body))
    write_whole(index_name(index.path), head + body)


def _plain_offsets(file: FileIO, name: str) -> tuple[array[int], int]:
    """Reads the headers only; payloads larger than a block are stepped over."""
    size = os.fstat(file.fileno()).st_size
    descriptor = file.fileno()
    offsets = array("Q")
    start = 0  # of the block, in the file
    position = 0  # of the next frame, in the block
    block = os.pread(descriptor, _BLOCK, 0)
    known: set[bytes] = set()  # most lengths occur often, and a look is faster than a CRC
    while True:
        if len(block) - position < HEADER_SIZE:
            start += position
            position = 0
            if start >= size:
                break
            block = os.pread(descriptor, _BLOCK, start)
        head = block[position : position + HEADER_SIZE]
        if head not in known:
            checked_length(head, name, len(offsets), start + position)
            if len(known) < 4096:
                known.add(head)
        offsets.append(start + position)
        position += FRAME_SIZE + int(_unpack_length(head)[0])
        if position > len(block):
            if start + position > size:
                begin = offsets[-1]
                raise cut(name, len(offsets) - 1, begin, start + position - begin - FRAME_SIZE, size - begin)
            start += position
            position = 0
            block = os.pread(descriptor, _BLOCK, start)
    return offsets, size


def _compressed_offsets(source: Source, name: str) -> tuple[array[int], int]:
    offsets = array("Q")
    size = 0
    for _, offset, payload in scan(source, name):
        offsets.append(offset)
        size = offset + FRAME_SIZE + len(payload)
    return offsets, size
