"""The data files of a pipeline: do they exist, are they what their reader expects, how many records do they hold."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfqueue.diagnosis.aboutfiles import about_unreadable
from tfqueue.diagnosis.evidence import Evidence, Place
from tfqueue.diagnosis.failure import describe
from tfqueue.diagnosis.paths import about_missing_path
from tfqueue.diagnosis.records import COMPRESSED
from tfqueue.errors import DamagedRecord, PipelineFailed, RecordError
from tfqueue.records import scan
from tfqueue.startcheck.headers import count_records
from tfqueue.startcheck.names import file_names, names_of_producer
from tfqueue.topology.findings import Finding
from tfqueue.topology.model import FETCHES, Read, Reader, Topology, Transform

LOOK_SECONDS = 0.01
"""How long files are looked for, and their first bytes looked at."""
COUNT_SECONDS = 0.01
"""How long records are counted."""
_NAMED = 5  # missing files named in the message
_FEW = 1000  # names that are spread over the list and looked for first
_BY_FILE_NAME = ("TFRecord", "TextLine", "FixedLengthRecord", "WholeFile", "LMDB")


@dataclass(frozen=True, slots=True)
class FileSet:
    """The files that one op reads.

    Attributes:
        op: The name of the op that reads them: a ``ReaderRead*`` or a ``ReadFile``.
        listed: The names of one epoch, in unshuffled order, as they were given.
        names: Those that can be looked at, each once.
        reader: The reader; None for ``ReadFile``.
        read: The read of the reader; None for ``ReadFile``.
        stage: The stage that runs the op.
        source: The line that built the op.
    """

    op: str
    listed: tuple[str, ...]
    names: tuple[str, ...]
    reader: Reader | None
    read: Read | None
    stage: Transform | None
    source: str | None


class Files:
    """The data files of a pipeline.

    Attributes:
        sets: Those of each op that reads files, as far as the graph tells their names.
        findings: What was odd about them.
    """

    def __init__(self, topology: Topology, graph: Any, session: Any) -> None:
        self.topology = topology
        self.graph = graph
        self.sets: list[FileSet] = []
        self.findings: list[Finding] = []
        self._session = session
        self._sizes: dict[str, int] = {}
        self._find_sets()

    def of_read(self, read: str) -> tuple[str, ...]:
        """The files that the read op with this name takes its records from; none where that is not known."""
        return next((found.names for found in self.sets if found.op == read), ())

    def check(self) -> None:
        """Look whether the files exist, and what they are.

        Raises:
            PipelineFailed: ``"missing-file"``, ``"is-a-folder"``, ``"no-match"`` or ``"damaged-file"``.
        """
        deadline = time.monotonic() + LOOK_SECONDS
        for found in self.sets:
            self._look_for(found, deadline)
        for found in self.sets:
            if found.reader is not None and found.reader.kind == "TFRecord":
                self._look_into(found, found.reader, deadline)
            elif found.reader is not None and found.reader.kind in ("TextLine", "FixedLengthRecord"):
                self._look_at_sizes(found, found.reader)

    def count(self) -> dict[str, int]:
        """The records that each read op reads in one epoch, where all could be counted in `COUNT_SECONDS`.

        Raises:
            PipelineFailed: ``"damaged-file"``: a TFRecord file that is cut, or has a damaged header.
        """
        deadline = time.monotonic() + COUNT_SECONDS
        counts: dict[str, int] = {}
        known: dict[tuple[str, str], int | None] = {}
        for found in self.sets:
            if found.reader is None or found.reader.kind == "LMDB":
                continue
            total: int | None = 0
            for listed in found.listed:
                name = listed.removeprefix("file://")
                if total is None or name not in self._sizes or time.monotonic() > deadline:
                    total = None
                    break
                key = (name, found.reader.name)
                if key not in known:
                    known[key] = self._count(found, found.reader, name, deadline)
                count = known[key]
                total = None if count is None else total + count
            if total is not None:
                counts[found.op] = total
        return counts

    def damaged(self, op: str, name: str, damage: DamagedRecord) -> PipelineFailed:
        """The failure for a damaged file that an op would read."""
        found = next(found for found in self.sets if found.op == op)
        advice = (
            "TensorFlow would stop here, in some cases without an error, and every later record of the file would be "
            "missing: write the file anew, or take it out of the list"
        )
        return self._failed(_as_the_reader(damage), found, name, "damaged-file", advice, damage.record)

    # -- which files ---------------------------------------------------------------------------------------------------

    def _find_sets(self) -> None:
        run = {stage.name: stage for stage in stages_that_run(self.topology)}
        for reader in self.topology.readers:
            for read in reader.reads:
                stage = next((run[name] for name in read.consumers if name in run), None)
                unknown_use = self.topology.fetch_stage is None and not read.consumers
                if reader.kind not in _BY_FILE_NAME or read.queue is None or not (stage is not None or unknown_use):
                    continue
                names: list[str] = []
                for producer in self.topology.producers:
                    if producer.queue == read.queue and producer.kind == "files":
                        found = names_of_producer(producer, self.graph, self._session)
                        if not found and found is not None:
                            self._no_match(producer.pattern, read, stage)
                        names.extend(found or ())
                if names:
                    self.sets.append(FileSet(read.name, tuple(names), _local(names), reader, read, stage, read.source))
        for stage in run.values():
            for name, op_type in zip(stage.ops, stage.op_types, strict=True):
                op = self.graph.get_operation_by_name(name) if op_type == "ReadFile" else None
                if op is None or op.control_inputs:  # perhaps inside a tf.cond, which need not take it
                    continue
                found = file_names(op.inputs[0], self.topology, self.graph, self._session)
                if found:
                    source = stage.source
                    self.sets.append(FileSet(name, tuple(found), _local(found), None, None, stage, source))

    def _no_match(self, pattern: str | None, read: Read, stage: Transform | None) -> None:
        if pattern is None:
            return
        first = pattern.split("\n")[0]
        error = tf.errors.InvalidArgumentError(None, None, f"no file matches the pattern {first!r}")
        evidence = self._evidence(error, FileSet(read.name, (), (), None, read, stage, read.source))
        raise describe(evidence, "no-match", f"no file matches {first!r}; {about_missing_path(first)}")

    # -- existence -----------------------------------------------------------------------------------------------------

    def _look_for(self, found: FileSet, deadline: float) -> None:
        missing: list[str] = []
        looked_at = 0
        for name in _spread(found.names):
            if looked_at >= _NAMED and time.monotonic() > deadline:
                break
            looked_at += 1
            try:
                status = os.stat(name)
            except (FileNotFoundError, NotADirectoryError):
                missing.append(name)
                continue
            except OSError as error:
                raise self._failed(error, found, name, "not-readable", "it cannot be looked at") from error
            if stat.S_ISDIR(status.st_mode) and (found.reader is None or found.reader.kind != "LMDB"):
                raise self._failed(
                    tf.errors.FailedPreconditionError(None, None, f"{name}; {os.strerror(errno.EISDIR)}"),
                    found,
                    name,
                    "is-a-folder",
                    "this is a folder, where a file was expected: list the files in it, or give a pattern such as "
                    "folder/*",
                )
            if stat.S_ISREG(status.st_mode):  # what a pipe or a device holds can be read only once
                self._sizes[name] = status.st_size
        if missing:
            missing.sort(key=found.names.index)
            raise self._failed(
                # As the reader would say it, so that a program that looks at the cause finds the same type.
                tf.errors.NotFoundError(None, None, f"{missing[0]}; {os.strerror(errno.ENOENT)}"),
                found,
                missing[0],
                "missing-file",
                _about_missing(missing, looked_at, len(found.names)),
            )

    # -- content -------------------------------------------------------------------------------------------------------

    def _look_into(self, found: FileSet, reader: Reader, deadline: float) -> None:
        empty = []
        for number, name in enumerate(found.names):
            if number and time.monotonic() > deadline:
                break
            if name not in self._sizes:
                continue
            try:
                sniffed = scan.sniff(name)
            except RecordError as error:
                raise self._failed(error, found, name, "not-readable", "it cannot be read by this user") from error
            if sniffed.kind == "empty":
                empty.append(name)
            elif sniffed.kind != "tfrecord" or sniffed.compression != reader.compression:
                damage = scan.damaged(name, 0, 0, f"it is {sniffed.words}")
                advice = about_unreadable(name, reader.compression)
                raise self._failed(_as_the_reader(damage), found, name, "damaged-file", advice, 0)
        self._add_empty(empty, found)

    def _look_at_sizes(self, found: FileSet, reader: Reader) -> None:
        sizes = {name: self._sizes[name] for name in found.names if name in self._sizes}
        self._add_empty([name for name, size in sizes.items() if not size], found)
        if reader.kind != "FixedLengthRecord" or not reader.record_bytes or reader.compression in COMPRESSED:
            return
        for name, size in sizes.items():
            rest = _fixed_length(reader, size)[1]
            if size and rest:
                self.findings.append(
                    Finding(
                        "partial-record",
                        f"{os.path.basename(name)} has {size} bytes, which is no whole number of records of "
                        f"{reader.record_bytes} bytes: the last {rest} bytes are never read; is record_bytes right, or "
                        f"is the file cut?",
                        found.op,
                        found.source,
                    )
                )
                break  # of many files with the same fault one is enough

    def _add_empty(self, empty: Sequence[str], found: FileSet) -> None:
        if empty:
            listed = ", ".join(map(os.path.basename, empty[:3])) + (", ..." if len(empty) > 3 else "")
            self.findings.append(
                Finding(
                    "empty-file",
                    f"{len(empty)} of {len(found.names)} files {'is' if len(empty) == 1 else 'are'} empty ({listed}), "
                    f"and TensorFlow passes over such a file without a word: was its writer closed?",
                    found.op,
                    found.source,
                )
            )

    def _count(self, found: FileSet, reader: Reader, name: str, deadline: float) -> int | None:
        if reader.kind == "WholeFile":
            return 1
        size = self._sizes.get(name)
        if reader.kind == "FixedLengthRecord":
            return None if size is None or reader.compression in COMPRESSED else _fixed_length(reader, size)[0]
        try:
            if reader.kind == "TextLine":
                return _count_lines(name, reader.skip_header_lines or 0)
            return count_records(name, reader.compression, deadline)
        except DamagedRecord as error:
            failed = self.damaged(found.op, name, error)
            raise failed from failed.__cause__
        except (OSError, RecordError):
            return None

    # -- words ---------------------------------------------------------------------------------------------------------

    def _evidence(self, error: BaseException, found: FileSet) -> Evidence:
        return Evidence(
            error,
            str(error),
            self.graph,
            op=self.graph.get_operation_by_name(found.op),
            stage=found.stage,
            topology=self.topology,
            source=found.source,
        )

    def _failed(
        self,
        error: BaseException,
        found: FileSet,
        name: str,
        cause_name: str,
        advice: str,
        record: int | None = None,
    ) -> PipelineFailed:
        evidence = self._evidence(error, found)
        evidence.place = Place(file=name, record=record)
        return describe(evidence, cause_name, advice)


def stages_that_run(topology: Topology) -> Iterator[Transform]:
    """The stages that a runner or the step runs; others may never be."""
    copies: dict[str, int] = {}
    for enqueue in topology.enqueues:
        copies[enqueue.transform] = copies.get(enqueue.transform, 0) + enqueue.copies
    return (stage for stage in topology.transforms if stage.name == FETCHES or copies.get(stage.name))


def _local(names: Sequence[str]) -> tuple[str, ...]:
    """Without remote paths, which nobody but their own file system can look at; without repeats."""
    plain = (name.removeprefix("file://") for name in names)
    return tuple(dict.fromkeys(name for name in plain if "://" not in name))


def _spread(names: Sequence[str]) -> Iterator[str]:
    """Some names from everywhere in a list, then all the others, so that a missing folder is found early."""
    step = max(1, len(names) // _FEW)
    for start in range(step):
        yield from names[start::step]


def _about_missing(missing: Sequence[str], looked_at: int, total: int) -> str:
    words = about_missing_path(missing[0])
    if len(missing) == 1:
        return f"there is no such file; {words}"
    listed = ", ".join(missing[:_NAMED]) + (", ..." if len(missing) > _NAMED else "")
    among = f"of {total}" if looked_at == total else f"of the first {looked_at} looked for, of {total},"
    return f"{len(missing)} {among} files do not exist: {listed}; {words}"


def _fixed_length(reader: Reader, size: int) -> tuple[int, int]:
    """The number of records in a file of ``size`` bytes, and the bytes behind them that are never read."""
    record, hop = reader.record_bytes or 1, reader.hop_bytes or reader.record_bytes or 1
    body = size - (reader.header_bytes or 0) - (reader.footer_bytes or 0)
    if body < record:
        return 0, max(body, 0)
    count = 1 + (body - record) // hop
    return count, max(0, body - ((count - 1) * hop + max(record, hop)))


def _count_lines(name: str, skipped: int) -> int | None:
    if os.path.getsize(name) > 1 << 20:
        return None
    with open(name, "rb") as file:
        data = file.read(1 << 20)
    return max(0, data.count(b"\n") + (not data.endswith(b"\n") and bool(data)) - skipped)


def _as_the_reader(damage: DamagedRecord) -> Exception:
    """The damage as TensorFlow's reader would report it: a program that looks at the cause finds the same type."""
    error = tf.errors.DataLossError(None, None, f"corrupted record at {damage.offset}: {damage}")
    error.__cause__ = damage
    return error  # type: ignore[no-any-return]
