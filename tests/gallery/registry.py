"""What a gallery program is, and the list of all of them.

A family file registers one *builder* per program with `entry`. A builder makes its data in a folder and
returns a `Program`: TF1 code that builds the graph, and the records that this graph must deliver. What is
true for any data of a program (its topology, whether its order is defined, what can break) stands on the
`Entry`, so that tests can be parametrised without making any file.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Stage:
    """A place where a fault can be injected, and how plain TensorFlow reports it.

    Attributes:
        name: What breaks, such as ``"missing-file"``.
        error: A regular expression for the class name of what the runner raises; empty where TensorFlow says
            nothing and delivers fewer records.
        match: A regular expression that the exception's text matches.
    """

    name: str
    error: str
    match: str

    @property
    def silent(self) -> bool:
        """Whether plain TensorFlow loses records without an error."""
        return not self.error


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: this stage fails at this record (0-based, in the order of the source, first epoch)."""

    stage: str = ""
    record: int = -1

    def at(self, stage: Stage, record: int) -> bool:
        """Whether `stage` has to fail at `record`."""
        return self.stage == stage.name and self.record == record


NO_FAULT = Fault()

MISSING_FILE = Stage("missing-file", "NotFoundError", "No such file or directory")
DAMAGED_RECORD = Stage("damaged-record", "DataLossError", "corrupted record at")
MISSING_FEATURE = Stage("missing-feature", "InvalidArgumentError", "is required but could not be found")
# The sequence parser's words for a context feature that is not there.
MISSING_CONTEXT = Stage(
    "missing-feature", "InvalidArgumentError", "Inconsistent max number of elements for feature .* found 0"
)
WRONG_TYPE = Stage("wrong-type", "InvalidArgumentError", "Data types don't match")
WRONG_LENGTH = Stage("wrong-length", "InvalidArgumentError", "Input to reshape is a tensor with")
NOT_AN_IMAGE = Stage("not-an-image", "InvalidArgumentError", "(?i)image|png|jpeg")
BAD_FIELD = Stage("bad-field", "InvalidArgumentError", "is not a valid")
FEW_FIELDS = Stage("few-fields", "InvalidArgumentError", "Expect .* fields but have")
# FixedLengthRecordReader drops an incomplete last record of a file without a word.
CUT_FILE = Stage("cut-file", "", "")
PY_FUNC = Stage("py-func-raises", "InvalidArgumentError|UnknownError", "cannot load record")
PYTHON_RAISES = Stage("python-raises", "ValueError", "cannot load record")
ASSERTION = Stage("assertion", "InvalidArgumentError", "assertion failed: .*bad record")
NOT_A_NUMBER = Stage("not-a-number", "InvalidArgumentError", "Tensor had NaN values")
QUEUE_SHAPE = Stage("queue-shape", "InvalidArgumentError", "Shape mismatch in tuple component")


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file that a program reads, and how many source records it holds."""

    path: str
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A TF1 input pipeline on data of its own, and what it must deliver.

    A *batch* is what one ``session.run(fetches)`` returns; a *record* is one example of it, in the structure
    of the fetches without the batch axis. A SparseTensor in a record is ``{"indices", "values"}`` without the
    batch column.

    Attributes:
        build_fn: TF1 code that, called in a fresh ``tf.Graph``, returns the tensors to fetch.
        records: The records of ONE epoch, in source order, after filters.
        epochs: How often the records are delivered; None: without end.
        batch_size: Records in a full batch; None: each run delivers one record, without batch axis.
        keep_remainder: Whether a last, smaller batch is delivered.
        batch_sizes: The sizes of all batches where they do not follow from the three above, or None.
        steps: How many batches to read from an endless program.
        in_flight: Of an endless program that is not ordered: the most records that can wait in its queues.
        files: What it reads from disk; a fault's place in them is given by `where`.
        sources: The number of source records at which a fault can be injected (default: that of `records`).
        threads: The largest number of threads that run one enqueue.
        invariant: Maps a delivered record to the part that no random op changes (which equals an entry of
            `records`); None: the record itself.
        unbatch: Splits one batch into records, where slicing axis 0 does not do (padding to be cut off).
        independent_columns: Only the values of each component are promised, not that they belong together.
        feed: The ``feed_dict`` of step i, by tensor name.
        before_step: ``before_step(session, i)`` has to be called on the main thread before step i.
        feeders: Functions ``(session, coord)``, each to be run by a Python thread of its own.
        hand_written_twin: Called eagerly, returns the `tf.data.Dataset` that delivers the same batches (in
            the same order where `ordered`).
        twin_note: Where the twin is not bit-equal in an ordered program: why.
    """

    build_fn: Callable[[], Any]
    records: tuple[Any, ...]
    epochs: int | None = 1
    batch_size: int | None = None
    keep_remainder: bool = False
    batch_sizes: tuple[int, ...] | None = None
    steps: int = 0
    in_flight: int = 0
    files: tuple[DataFile, ...] = ()
    sources: int | None = None
    threads: int = 1
    invariant: Callable[[Any], Any] | None = None
    unbatch: Callable[[Any], list[Any]] | None = None
    independent_columns: bool = False
    feed: Callable[[int], Mapping[str, Any]] | None = None
    before_step: Callable[[Any, int], None] | None = None
    feeders: tuple[Callable[[Any, Any], None], ...] = ()
    hand_written_twin: Callable[[], Any] | None = None
    twin_note: str = ""
    # Set by Entry.program.
    entry: Entry = field(default=None, repr=False)  # type: ignore[assignment]
    folder: Path = field(default=None, repr=False)  # type: ignore[assignment]
    fault: Fault = NO_FAULT

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def topologies(self) -> tuple[str, ...]:
        return self.entry.topologies

    @property
    def ordered(self) -> bool:
        """Whether the order of the records is defined: one thread, nothing shuffled."""
        return self.entry.ordered

    @property
    def order_note(self) -> str:
        return self.entry.order_note

    @property
    def lowerable(self) -> bool:
        """Whether it can become one Dataset; `why_not` says why not."""
        return self.entry.why_not is None

    @property
    def why_not(self) -> str | None:
        return self.entry.why_not

    @property
    def stages(self) -> tuple[Stage, ...]:
        return self.entry.stages

    @property
    def finite(self) -> bool:
        return self.epochs is not None

    @property
    def expected_sizes(self) -> tuple[int, ...]:
        """The size of every batch that one whole run delivers (of `steps` batches where it is endless)."""
        if self.batch_sizes is not None:
            return self.batch_sizes
        if self.epochs is None:
            return (self.batch_size or 1,) * self.steps
        total = len(self.records) * self.epochs
        if self.batch_size is None:
            return (1,) * total
        full, rest = divmod(total, self.batch_size)
        return (self.batch_size,) * full + ((rest,) if rest and self.keep_remainder else ())

    @property
    def fault_places(self) -> int:
        """How many source records a fault can be injected at."""
        return len(self.records) if self.sources is None else self.sources

    def corrupt(self, stage: str | Stage, record: int) -> Program:
        """The same program on data in which exactly `stage` fails at source record `record`."""
        found = next((s for s in self.stages if s in (stage,) or s.name == stage), None)
        if found is None:
            raise ValueError(f"{self.name} has no stage {stage!r}; it has {[s.name for s in self.stages]}")
        if not 0 <= record < self.fault_places:
            raise ValueError(f"record {record} of {self.name}: it has 0 to {self.fault_places - 1}")
        options = {"epochs": self.epochs} if self.entry.takes_epochs else {}
        target = self.folder.parent / f"{self.folder.name}~{found.name}~{record}"
        return self.entry.make(target, fault=Fault(found.name, record), **options)

    def where(self, record: int) -> tuple[str, int] | None:
        """The file that holds source record `record`, and the record's number in it; None without files."""
        for file in self.files:
            if record < file.records:
                return file.path, record
            record -= file.records
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One program of the gallery before its data is made.

    Attributes:
        name: ``"T1-tfrecord-shuffle"``; unique.
        topologies: The graph shapes it has.
        variants: The variants inside a chain that it shows, in words.
        ordered: Whether the order of its records is defined.
        order_note: Why it is not, or what it depends on.
        why_not: Why it cannot become one Dataset, or None where it can.
        stages: What can be broken in it.
        needs: What plain TensorFlow lacks to run it; None where it runs.
        random_ops: Whether a random op changes the values (with op seeds: the same in every 1-thread run).
        style: The public program whose shape it has, where it was written with one in mind.
        builder: Makes the data and the program.
    """

    name: str
    topologies: tuple[str, ...]
    variants: tuple[str, ...]
    ordered: bool
    order_note: str
    why_not: str | None
    stages: tuple[Stage, ...]
    needs: str | None
    random_ops: bool
    style: str | None
    builder: Callable[..., Program]

    def __str__(self) -> str:
        return self.name

    @property
    def lowerable(self) -> bool:
        return self.why_not is None

    @property
    def takes_epochs(self) -> bool:
        """Whether the number of epochs can be chosen."""
        return "epochs" in inspect.signature(self.builder).parameters

    def program(self, folder: Path | str, **options: Any) -> Program:
        """Makes the program's data in ``folder/<name>``.

        Args:
            folder: An existing folder.
            **options: ``epochs``, where the entry takes it: a number, or None for an endless program.
        """
        return self.make(Path(folder) / self.name, **options)

    def make(self, folder: Path, *, fault: Fault = NO_FAULT, **options: Any) -> Program:
        """As `program`, in exactly this folder and with a fault."""
        folder.mkdir(parents=True, exist_ok=True)
        program = self.builder(folder, fault=fault, **options)
        if program.epochs is None and not program.steps:
            # Long enough to cross the edge of an epoch twice.
            program = replace(program, steps=3 * len(program.records) // (program.batch_size or 1))
        return replace(program, entry=self, folder=folder, fault=fault)


_ENTRIES: dict[str, Entry] = {}


def entry(
    name: str,
    *,
    topology: str | tuple[str, ...],
    variants: tuple[str, ...] = (),
    ordered: bool = False,
    order_note: str = "",
    why_not: str | None = None,
    stages: tuple[Stage, ...] = (),
    needs: str | None = None,
    random_ops: bool = False,
    style: str | None = None,
) -> Callable[[Callable[..., Program]], Callable[..., Program]]:
    """Registers a builder ``(folder, *, epochs=1, fault=NO_FAULT) -> Program``; options: see `Entry`."""

    def register(builder: Callable[..., Program]) -> Callable[..., Program]:
        if name in _ENTRIES:
            raise ValueError(f"the gallery has two programs named {name!r}")
        if not ordered and not order_note:
            raise ValueError(f"{name}: say why its order is not defined")
        _ENTRIES[name] = Entry(
            name=name,
            topologies=(topology,) if isinstance(topology, str) else topology,
            variants=variants,
            ordered=ordered,
            order_note=order_note,
            why_not=why_not,
            stages=stages,
            needs=needs,
            random_ops=random_ops,
            style=style,
            builder=builder,
        )
        return builder

    return register


def registered() -> tuple[Entry, ...]:
    """All entries of the family files imported so far, in the order of registration."""
    return tuple(_ENTRIES.values())
