"""One TFRecord file under construction: payloads in, frames out, whole or not at all."""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from dataclasses import dataclass

import google_crc32c

from tfqueue.errors import RecordError
from tfqueue.records.atomic import AtomicFile
from tfqueue.records.compression import WINDOW_BITS, Compression
from tfqueue.records.framing import FRAME_SIZE, MAX_PAYLOAD, footer, frames, header
from tfqueue.records.paths import Path, index_name

_BUFFER = 1 << 20


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that has been written.

    Attributes:
        path: Where it is.
        records: How many records it holds.
        size: Its size in bytes, as it lies on disk.
        crc32c: The CRC-32C of all its bytes.
    """

    path: str
    records: int
    size: int
    crc32c: int


class FrameFile:
    """A TFRecord file under construction.

    Args:
        path: Where the file will appear.
        compression: "", "GZIP" or "ZLIB".
        overwrite: Whether a file that is there may be replaced.
        clean: Whether the remains of killed writers of the same path are removed first.

    Attributes:
        records: How many records have been written.
        size: The size of their frames in bytes, before compression.
    """

    def __init__(
        self, path: Path, *, compression: Compression = "", overwrite: bool = False, clean: bool = True
    ) -> None:
        self._target = AtomicFile(path, overwrite=overwrite, clean=clean)
        self._deflater = zlib.compressobj(wbits=WINDOW_BITS[compression]) if compression else None
        self._pending: list[bytes] = []
        self._pending_size = 0
        self._unflushed = 0
        self._disk_size = 0
        self._crc = 0
        self.records = 0
        self.size = 0

    @property
    def temporary(self) -> str:
        """The name under which the bytes lie until ``commit``."""
        return self._target.temporary

    def write(self, payload: bytes) -> None:
        """Adds a record.

        Raises:
            RecordError: It is larger than any protobuf message may be, or the disk failed.
        """
        size = len(payload)
        if size >= _BUFFER:
            if size > MAX_PAYLOAD:
                raise RecordError(
                    f"record {self.records} has {size} bytes; protobuf parses at most {MAX_PAYLOAD}",
                    file=self._target.path,
                    record=self.records,
                )
            self.flush()
            for part in (header(size), payload, footer(payload)):
                self._put(part)
        else:
            self._pending.append(payload)
            self._pending_size += size
            if self._pending_size >= _BUFFER or len(self._pending) >= 8192:
                self.flush()
        self.records += 1
        self.size += FRAME_SIZE + size

    def flush(self) -> None:
        """Hands everything written so far to the operating system (a compressor may hold some back)."""
        if self._pending:
            pending, self._pending, self._pending_size = self._pending, [], 0
            self._put(frames(pending))

    def commit(self, path: Path | None = None, *, overwrite: bool | None = None) -> WrittenFile:
        """Makes the file appear; ``path`` and ``overwrite`` replace what was said at the start."""
        self._finish()
        self._target.commit(path, overwrite=overwrite)
        with suppress(OSError):  # that of the file that was replaced
            os.unlink(index_name(self._target.path))
        return WrittenFile(self._target.path, self.records, self._disk_size, self._crc)

    def park(self) -> None:
        """Closes a file that is complete but has no name yet, to save a file descriptor."""
        self._finish()
        self._target.park()

    def discard(self) -> None:
        """Removes everything; nothing appears."""
        self._target.discard()

    def _finish(self) -> None:
        self.flush()
        if self._deflater is not None:
            deflater, self._deflater = self._deflater, None
            self._store(deflater.flush())

    def _put(self, data: bytes) -> None:
        if self._deflater is None:
            self._store(data)
            return
        self._store(self._deflater.compress(data))
        self._unflushed += len(data)
        if self._unflushed >= _BUFFER:
            # From here on the stream can be read without what is before, so that damage there does not spread.
            self._store(self._deflater.flush(zlib.Z_FULL_FLUSH))
            self._unflushed = 0

    def _store(self, data: bytes) -> None:
        self._crc = google_crc32c.extend(self._crc, data)
        self._disk_size += len(data)
        self._target.write(data)
