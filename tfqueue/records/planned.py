"""Writing from a source of known size: shards that are made independently, side by side, and after a kill only the
rest.

Each shard is a file of its own that appears whole. What is being written stands in a hidden plan beside the shards
until all of them are there; then the manifest takes its place. So a set without a manifest but with a plan was
interrupted, and the plan says whether another call would go on with the same work.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Protocol

from tfqueue.errors import InvalidArgument, RecordError, TFQueueError
from tfqueue.records.atomic import check_target, write_whole
from tfqueue.records.compression import Compression, normalise
from tfqueue.records.encode import Layout
from tfqueue.records.framefile import WrittenFile
from tfqueue.records.manifest import save_manifest
from tfqueue.records.paths import Path, existing_shards, fspath, manifest_name, shard_name
from tfqueue.records.progress import bar
from tfqueue.records.reader import count
from tfqueue.records.shards import check_sharding, even_sizes
from tfqueue.records.verification import file_crc
from tfqueue.records.writer import RecordWriter


class RowSource(Protocol):
    """Records of a known number, any part of which can be made by itself."""

    def __len__(self) -> int: ...

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """Yields the features of each record."""

    def part(self, start: int, stop: int) -> RowSource:
        """Returns the source of some of the records; it can be pickled."""

    def fingerprint(self) -> str:
        """Returns a text that another source of other records hardly has."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What the writers of arrays and of images have in common; see ``RecordWriter`` and ``write_arrays``."""

    shards: int | None = None
    records_per_shard: int | None = None
    bytes_per_shard: int | None = None
    compression: str | None = None
    overwrite: bool = False
    resume: bool = False
    workers: int = 1
    processes: bool = False
    manifest: bool | None = None
    layout: Layout = "bytes"
    narrow: bool = False
    progress: bool | None = None


@dataclass(frozen=True, slots=True)
class _Job:
    """One file to be written."""

    path: str
    source: RowSource
    start: int
    compression: Compression
    options: WriteOptions


def write_planned(path: Path, source: RowSource, options: WriteOptions, *, info: Mapping[str, Any]) -> list[str]:
    """Writes all records of a source; returns the paths of the files, in order.

    Args:
        path: As for ``RecordWriter``.
        source: The records.
        options: How to write them.
        info: What to put into the manifest besides what it always holds.

    Raises:
        InvalidArgument: Options that contradict each other.
        RecordError: A record cannot be stored (its number is that in the whole source), or the files cannot be written.
    """
    name = fspath(path)
    sizes = _sizes(len(source), options)
    compression = normalise(options.compression, name=name)
    if sizes is None:
        return _write_stream(name, source, compression, options, info)
    sharded = options.shards is not None or options.records_per_shard is not None
    files = [shard_name(name, shard, len(sizes)) for shard in range(len(sizes))] if sharded else [name]
    plan = _Plan(name, files, sizes, compression, options, source.fingerprint() if sharded else "")
    done = plan.begin(sharded)
    starts = [sum(sizes[:shard]) for shard in range(len(sizes))]
    jobs = [
        _Job(file, source.part(start, start + size), start, compression, options)
        for file, start, size in zip(files, starts, sizes, strict=True)
        if file not in done
    ]
    try:
        with bar(f"writing {os.path.basename(name)}", len(source), progress=options.progress) as advance:
            advance(sum(file.records for file in done.values()))
            for written in _run(jobs, options, advance):
                done[written.path] = written
    except BaseException:
        plan.abandon()
        raise
    plan.end([done[file] for file in files], info, sharded)
    return files


def _sizes(records: int, options: WriteOptions) -> list[int] | None:
    """Returns how many records each file gets, or None if that is known only when they are written."""
    check_sharding(
        shards=options.shards,
        records_per_shard=options.records_per_shard,
        bytes_per_shard=options.bytes_per_shard,
    )
    if isinstance(options.workers, bool) or not isinstance(options.workers, int) or options.workers < 1:
        raise InvalidArgument(f"workers is {options.workers!r}; expected a positive int")
    if options.overwrite and options.resume:
        raise InvalidArgument("overwrite and resume are given together; expected at most one of them")
    if options.bytes_per_shard is not None:
        if options.resume or options.workers > 1:
            raise InvalidArgument(
                "bytes_per_shard goes with neither resume nor workers: use shards or records_per_shard"
            )
        return None
    if options.shards is not None:
        return even_sizes(records, options.shards)
    if options.records_per_shard is None:
        return [records]
    size = options.records_per_shard
    return [min(size, records - start) for start in range(0, max(records, 1), size)]


def _write_stream(
    name: str, source: RowSource, compression: Compression, options: WriteOptions, info: Mapping[str, Any]
) -> list[str]:
    with RecordWriter(
        name,
        bytes_per_shard=options.bytes_per_shard,
        expected_records=len(source),
        compression=compression,
        overwrite=options.overwrite,
        layout=options.layout,
        narrow=options.narrow,
        progress=options.progress,
        manifest=options.manifest,
        info=info,
    ) as writer:
        for features in source.rows():
            writer.write(features)
    return writer.paths


def _run(jobs: list[_Job], options: WriteOptions, advance: Callable[[int], None]) -> Iterator[WrittenFile]:
    if options.workers == 1 or len(jobs) < 2:
        for job in jobs:
            yield _write_job(job, advance)
        return
    executor: Executor
    workers = min(options.workers, len(jobs))
    if options.processes:
        # Not fork: a copy of a process with TensorFlow's threads may hang.
        executor = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
        futures = [executor.submit(_write_job, job) for job in jobs]
        for future in futures:
            future.add_done_callback(lambda done: advance(done.result().records if not _failed(done) else 0))
    else:
        executor = ThreadPoolExecutor(workers)
        futures = [executor.submit(_write_job, job, advance) for job in jobs]
    try:
        wait(futures, return_when=FIRST_EXCEPTION)
        for future in futures:
            if future.done():
                yield future.result()
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _failed(future: Future[WrittenFile]) -> bool:
    return future.cancelled() or future.exception() is not None


def _write_job(job: _Job, advance: Callable[[int], None] | None = None) -> WrittenFile:
    options = job.options
    with RecordWriter(
        job.path,
        expected_records=len(job.source),
        compression=job.compression,
        overwrite=options.overwrite,
        layout=options.layout,
        narrow=options.narrow,
        first_record=job.start,
    ) as writer:
        for features in job.source.rows():
            writer.write(features)
            if advance is not None:
                advance(1)
    return writer.written[0]


class _Plan:
    """What is being written, kept beside the files until they are complete."""

    def __init__(
        self,
        name: str,
        files: list[str],
        sizes: list[int],
        compression: Compression,
        options: WriteOptions,
        fingerprint: str,
    ) -> None:
        folder, base = os.path.split(name)
        self._name = name
        self._path = os.path.join(folder, f".{base}.plan.json")
        self._files = files
        self._sizes = sizes
        self._compression = compression
        self._options = options
        content = [sizes, compression, options.layout, options.narrow, fingerprint]
        self._digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()

    def begin(self, sharded: bool) -> dict[str, WrittenFile]:
        """Makes room, leaves the plan, and returns the files that are there already and stay."""
        old = list(existing_shards(self._name)) if sharded else [file for file in self._files if os.path.lexists(file)]
        done: dict[str, WrittenFile] = {}
        if self._options.resume:
            done = self._finished(old)
        elif old and not self._options.overwrite:
            interrupted = os.path.exists(self._path)
            cure = "overwrite=True to replace them" + (" or resume=True to go on" if interrupted else "")
            state = "was begun and not finished" if interrupted else "exists already"
            raise RecordError(
                f"{self._name!r} {state}: there are {len(old)} files, such as {old[0]!r}; pass {cure}", file=self._name
            )
        for file in self._files:
            check_target(file, overwrite=True)
        if sharded:
            # Old shards go first: half old and half new ones would look like a set.
            for file in (manifest_name(self._name), *old):
                if file not in done:
                    with suppress(FileNotFoundError):
                        os.unlink(file)
            write_whole(self._path, json.dumps({"digest": self._digest, "records": self._sizes}).encode())
        return done

    def _finished(self, old: list[str]) -> dict[str, WrittenFile]:
        try:
            with open(self._path, encoding="utf-8") as file:
                same = json.load(file)["digest"] == self._digest
        except FileNotFoundError:
            if old:
                raise RecordError(
                    f"{self._name!r} cannot be resumed: files such as {old[0]!r} exist, but no plan of an interrupted "
                    "writer; pass overwrite=True to replace them",
                    file=self._name,
                ) from None
            return {}
        except (OSError, ValueError, KeyError, TypeError):
            same = False
        if not same:
            raise RecordError(
                f"{self._name!r} cannot be resumed: what was begun there is not what is to be written now (other "
                "data, shards, layout or compression); pass overwrite=True to begin anew",
                file=self._name,
            )
        done = {}
        for path, size in zip(self._files, self._sizes, strict=True):
            if path in old and _holds(path, size):
                done[path] = WrittenFile(path, size, os.path.getsize(path), file_crc(path))
        return done

    def abandon(self) -> None:
        """Clears up after an error; with resume, what is finished stays for the next call."""
        if self._options.resume or not os.path.exists(self._path):
            return
        for file in (*self._files, self._path):
            with suppress(FileNotFoundError):
                os.unlink(file)

    def end(self, written: list[WrittenFile], info: Mapping[str, Any], sharded: bool) -> None:
        """Writes the manifest in the place of the plan."""
        manifest = self._options.manifest
        if sharded if manifest is None else manifest:
            save_manifest(self._name, written, self._compression, info)
        with suppress(FileNotFoundError):
            os.unlink(self._path)


def _holds(path: str, records: int) -> bool:
    try:
        return count(path) == records
    except TFQueueError:
        return False
