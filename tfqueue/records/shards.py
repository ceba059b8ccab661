"""Where records go: one file, or shards cut by number, by records or by bytes. All keep the order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Protocol

from tfqueue.errors import InvalidArgument, RecordError
from tfqueue.records.compression import Compression
from tfqueue.records.framefile import FrameFile, WrittenFile
from tfqueue.records.framing import FRAME_SIZE
from tfqueue.records.paths import shard_name
from tfqueue.records.scan import frames

_MAX_OPEN = 256
"""How many full shards stay open; more would meet the limit of open files of a process."""


class Output(Protocol):
    """Takes payloads and makes files of them, all of which appear in ``commit``."""

    def write(self, payload: bytes) -> None: ...

    def flush(self) -> None: ...

    def prepare(self) -> None:
        """Makes everything durable under temporary names, so that ``commit`` only has to rename."""

    def commit(self) -> list[WrittenFile]: ...

    def discard(self) -> None: ...


def open_output(
    path: str,
    *,
    shards: int | None,
    records_per_shard: int | None,
    bytes_per_shard: int | None,
    expected_records: int | None,
    compression: Compression,
    overwrite: bool,
) -> Output:
    """Returns the output that the (checked) arguments of a writer describe."""
    if shards is not None:
        if expected_records is None:
            return SpooledShards(path, shards, compression=compression, overwrite=overwrite)
        limits = iter(even_sizes(expected_records, shards))
        return ShardSet(path, limits, compression=compression, overwrite=overwrite)
    if records_per_shard is not None:
        forever = itertools.repeat(records_per_shard)
        return ShardSet(path, forever, compression=compression, overwrite=overwrite, endless=True)
    if bytes_per_shard is not None:
        forever = itertools.repeat(2**63)
        return ShardSet(path, forever, compression=compression, overwrite=overwrite, endless=True, size=bytes_per_shard)
    return SingleFile(path, compression=compression, overwrite=overwrite)


def check_sharding(**given: int | None) -> None:
    """Checks the arguments ``shards``, ``records_per_shard`` and ``bytes_per_shard`` of a writer.

    Raises:
        InvalidArgument: They contradict each other, or one is no positive int.
    """
    numbers = {name: value for name, value in given.items() if value is not None}
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InvalidArgument(f"{name} is {value!r}; expected a positive int")
    if len(numbers) > 1:
        raise InvalidArgument(f"{' and '.join(numbers)} are given together; expected at most one of them")


def even_sizes(records: int, shards: int) -> list[int]:
    """Returns how many records each shard gets: numbers that differ by one at most, the larger ones first."""
    size, larger = divmod(records, shards)
    return [size + 1] * larger + [size] * (shards - larger)


class SingleFile:
    """One file."""

    def __init__(self, path: str, *, compression: Compression, overwrite: bool) -> None:
        self._file = FrameFile(path, compression=compression, overwrite=overwrite)
        self.write = self._file.write
        self.flush = self._file.flush
        self.discard = self._file.discard

    def prepare(self) -> None:
        self._file.flush()

    def commit(self) -> list[WrittenFile]:
        return [self._file.commit()]


class ShardSet:
    """Shards that are filled one after the other.

    Args:
        path: The name from which those of the shards are made.
        limits: How many records each shard takes.
        compression: As for ``FrameFile``.
        overwrite: As for ``FrameFile``.
        size: How many bytes of frames a shard takes, unless a single record is larger.
        endless: Whether there are only as many shards as get a record; else one for each of ``limits``.
    """

    def __init__(
        self,
        path: str,
        limits: Iterator[int],
        *,
        compression: Compression,
        overwrite: bool,
        size: int = 2**63,
        endless: bool = False,
    ) -> None:
        self._path = path
        self._limits = limits
        self._compression: Compression = compression
        self._overwrite = overwrite
        self._size = size
        self._endless = endless
        self._files: list[FrameFile] = []
        self._left = 0
        self._next()

    def write(self, payload: bytes) -> None:
        current = self._files[-1]
        if not self._left or (current.records and current.size + FRAME_SIZE + len(payload) > self._size):
            current = self._next()
        current.write(payload)
        self._left -= 1

    def flush(self) -> None:
        self._files[-1].flush()

    def prepare(self) -> None:
        if not self._endless:
            for _ in self._limits:
                self._files.append(self._open())
        for file in self._files:
            file.park()

    def commit(self) -> list[WrittenFile]:
        count = len(self._files)
        written = []
        for shard, file in enumerate(self._files):
            written.append(file.commit(shard_name(self._path, shard, count), overwrite=self._overwrite))
        return written

    def discard(self) -> None:
        for file in self._files:
            file.discard()

    def _next(self) -> FrameFile:
        limit = next(self._limits, None)
        if limit is None:
            raise RecordError(f"more records are written to {self._path!r} than expected_records says", file=self._path)
        if len(self._files) >= _MAX_OPEN:
            self._files[-1].park()
        file = self._open()
        self._files.append(file)
        self._left = limit
        return file

    def _open(self) -> FrameFile:
        # The name is checked when the shard gets its own: this one never appears. Only the first shard may
        # clean up, because parked ones are not locked.
        return FrameFile(self._path, compression=self._compression, overwrite=True, clean=not self._files)


class SpooledShards:
    """A given number of shards for an unknown number of records: one temporary, cut up at the end."""

    def __init__(self, path: str, shards: int, *, compression: Compression, overwrite: bool) -> None:
        self._path = path
        self._shards = shards
        self._compression: Compression = compression
        self._overwrite = overwrite
        self._spool = FrameFile(path, overwrite=True)
        self._set: ShardSet | None = None
        self.write = self._spool.write
        self.flush = self._spool.flush

    def prepare(self) -> None:
        self._spool.flush()
        limits = iter(even_sizes(self._spool.records, self._shards))
        self._set = ShardSet(self._path, limits, compression=self._compression, overwrite=self._overwrite)
        for _, _, payload in frames(self._spool.temporary, compression=""):
            self._set.write(payload)
        self._set.prepare()

    def commit(self) -> list[WrittenFile]:
        assert self._set is not None
        self._spool.discard()
        return self._set.commit()

    def discard(self) -> None:
        self._spool.discard()
        if self._set is not None:
            self._set.discard()
