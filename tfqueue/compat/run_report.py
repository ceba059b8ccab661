"""The report of a program that was run unmodified: what was found in it, what was delivered, what is to be changed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfqueue.scan.inventory import Inventory

if TYPE_CHECKING:
    from tfqueue.compat.run_imports import Sources
    from tfqueue.compat.run_sessions import Sessions
    from tfqueue.topology.model import Dequeue, Topology

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Delivered:
    """What one dequeue (or read) op gave to the program.

    Attributes:
        op: The op's name; of a program that makes another one in each step, the first one's.
        queue: The queue; None where it cannot be told.
        source: The program's line that made the op, or None.
        steps: How many ``session.run`` calls needed it.
        records: The records in them; None where the size of a batch is not fixed.
        ops: How many ops the same line has made, one after the other, each for steps of its own.
    """

    op: str
    queue: str | None
    source: str | None
    steps: int
    records: int | None
    ops: int = 1


@dataclass(frozen=True, slots=True)
class FoundPipeline:
    """The pipelines of one graph in one session.

    Attributes:
        engine: What ran its queues: the engine that was asked for, or ``"threads"`` in its place.
        cannot: Why the engine tfdata could not run all of them; None where it did.
        text: What they are, as `tfqueue explain` prints it.
        findings: What a person should know about them.
        delivered: What they gave to the program.
        never_read: The queues that were filled, but no step has read.
        ended: Whether the program met the end of the data.
        initialised: Local variables that the program had forgotten to initialise.
        stats: The accounts of the runners in words; empty with the engine tfdata.
    """

    engine: str
    cannot: str | None
    text: str
    findings: tuple[str, ...]
    delivered: tuple[Delivered, ...]
    never_read: tuple[str, ...]
    ended: bool
    initialised: tuple[str, ...]
    stats: str


@dataclass(frozen=True, slots=True)
class Restored:
    """A name that TensorFlow or NumPy lacks, and that the program used.

    Attributes:
        name: The name, ``"tf.pack"``.
        here: What was given for it.
        modern: What to write today; may be empty.
        change: What changes in behaviour then; may be empty.
    """

    name: str
    here: str
    modern: str
    change: str


@dataclass(frozen=True, slots=True)
class RunReport:
    """What `tfqueue run` tells of a program.

    Attributes:
        program: The file that was run.
        engine: The engine.
        exit_code: The program's exit code.
        stopped_after: The steps after which ``--steps`` ended it; None where it ended itself.
        steps: The ``session.run`` calls that took something from a queue.
        pipelines: What was found, by session.
        restored: The names that were given back.
        python2: (file, line, what stands there, what to write) of the Python 2 that was translated in memory.
        left_alive: Threads that did not stop.
        inventory: What `tfqueue scan` finds in the files of the program that were loaded: what to change.
    """

    program: str
    engine: str
    exit_code: int
    stopped_after: int | None
    steps: int
    pipelines: tuple[FoundPipeline, ...]
    restored: tuple[Restored, ...]
    python2: tuple[tuple[str, int, str, str], ...]
    left_alive: tuple[str, ...]
    inventory: Inventory

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data; the keys are the attributes, ``schema`` is the version of this form."""
        plain = {key: value for key, value in asdict(self).items() if key != "inventory"}
        keys = ("path", "line", "found", "write")
        plain["python2"] = [dict(zip(keys, place, strict=True)) for place in self.python2]
        return {"schema": SCHEMA_VERSION, **plain, "inventory": self.inventory.to_dict()}

    def __str__(self) -> str:
        return "\n".join(self._lines(whole=True))

    def summary(self) -> str:
        """The few lines that are printed at the end of a run."""
        return "\n".join(self._lines(whole=False))

    def write(self, folder: str | PathLike[str]) -> None:
        """Write report.json, report.txt and report.html into a folder, which is made if need be."""
        from tfqueue.views.html.page import render

        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        (target / "report.json").write_text(json.dumps(self.to_dict(), indent=2) + "\n", encoding="utf-8")
        (target / "report.txt").write_text(f"{self}\n", encoding="utf-8", errors="backslashreplace")
        (target / "report.html").write_text(
            render("run.html.j2", report=self), encoding="utf-8", errors="backslashreplace"
        )

    def _lines(self, *, whole: bool) -> Iterator[str]:
        stop = f", stopped after {self.stopped_after} steps" if self.stopped_after is not None else ""
        yield f"{self.program}: engine {self.engine}, exit code {self.exit_code}{stop}"
        for pipeline in self.pipelines:
            if pipeline.cannot is not None:
                yield f"  run by the engine {pipeline.engine}: {pipeline.cannot}"
            for given in pipeline.delivered:
                records = "" if given.records is None else f", {_count(given.records, 'record')}"
                end = ", to the end of the data" if pipeline.ended else ""
                built = f" ({given.source})" if given.source else ""
                ops = f" and {given.ops - 1} more such ops" if given.ops > 1 else ""
                yield f"  delivered by {given.op}{ops}{built}: {_count(given.steps, 'step')}{records}{end}"
            for queue in pipeline.never_read:
                yield f"  never read: no step of the program takes anything from queue {queue}"
            for name in pipeline.initialised:
                yield f"  initialised for the program, which forgot it: {name} (run local_variables_initializer)"
            for finding in pipeline.findings:
                yield f"  note: {finding}"
        if not self.pipelines:
            yield "  no queue was used"
        if self.restored:
            shown = self.restored if whole else self.restored[:8]
            more = "" if len(shown) == len(self.restored) else f" and {len(self.restored) - len(shown)} more"
            yield f"  restored: {', '.join(item.name for item in shown)}{more}"
        if self.python2:
            files = len({path for path, *_ in self.python2})
            yield f"  Python 2: {len(self.python2)} places in {_count(files, 'file')} were translated in memory"
        for name in self.left_alive:
            yield f"  a thread did not stop: {name}"
        uses, risks = len(self.inventory.queue_code), len(self.inventory.risks)
        if uses or risks:
            yield f"  to change: {_count(uses, 'use')} of queue code, {_count(risks, 'risk')} (tfqueue scan tells them)"
        if not whole:
            return
        for pipeline in self.pipelines:
            yield from ("", pipeline.text, "", pipeline.stats)
        for item in self.restored:
            change = f" ({item.change})" if item.change else ""
            yield f"restored: {item.name}: {item.here}; today: {item.modern or 'the same'}{change}"
        for path, line, found, write in self.python2:
            yield f"Python 2: {path}:{line}: {found} -> {write}"
        yield ""
        yield str(self.inventory)


def report_of(
    sessions: Sessions, sources: Sources, *, program: str, exit_code: int, stopped_after: int | None
) -> RunReport:
    """Make the report of a run that has ended."""
    from tfqueue.compat import names

    return RunReport(
        program=program,
        engine=sessions.engine,
        exit_code=exit_code,
        stopped_after=stopped_after,
        steps=sessions.steps_taken,
        pipelines=tuple(_pipelines(sessions)),
        restored=tuple(Restored(row.name, row.here, row.modern, row.change) for row in names.restored_so_far()),
        python2=tuple((path, p.line, p.found, p.write) for path, places in sources.python2.items() for p in places),
        left_alive=tuple(sessions.left_alive),
        inventory=_inventory(sources),
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _pipelines(sessions: Sessions) -> Iterator[FoundPipeline]:
    from tfqueue.topology.explain import explain

    for session in sessions.sessions:
        added = session.state.look_at_the_end()
        topology = session.state.topology
        if topology is None:
            continue
        told = explain(topology)
        dequeues = {**added, **{dequeue.name: dequeue for dequeue in topology.dequeues}}
        steps = session.steps
        of_graph = [takes for other in sessions.sessions if other.state is session.state for takes in other.steps]
        # What fills another queue is read by a runner; what is left is for the steps of the program.
        for_steps = {d.queue for d in topology.dequeues if not d.consumers and d.queue is not None}
        unread = {q.name for q in topology.queues if not q.dequeues and not q.reads}
        tried = {dequeues[name].queue for takes in of_graph for name in takes if name in dequeues}
        stats = session.stats
        yield FoundPipeline(
            engine=session.state.engine,
            cannot=str(session.state.cannot) if session.state.engine != sessions.engine else None,
            text=str(told),
            findings=tuple(str(finding) for finding in told.findings),
            delivered=tuple(_delivered(topology, dequeues, steps)),
            never_read=tuple(sorted((for_steps | unread) - tried)),
            ended=session.ended,
            initialised=tuple(session.initialised),
            stats="" if stats is None else str(stats),
        )


def _delivered(
    topology: Topology, dequeues: Mapping[str, Dequeue], steps: Mapping[tuple[str, ...], int]
) -> Iterator[Delivered]:
    """What each op gave; those that one line has made, each for steps of its own, are told together."""
    reads = {read.name: read for reader in topology.readers for read in reader.reads}
    counts: dict[str, int] = {}
    together: set[tuple[str | None, str | None]] = set()  # queues and lines of which one step takes by several ops
    groups: dict[tuple[str | None, str | None], list[str]] = {}

    def place(name: str) -> tuple[str | None, str | None]:
        found = dequeues.get(name) or reads.get(name)
        return (name, None) if found is None or found.source is None else (found.queue, found.source)

    for takes, times in steps.items():
        places = [place(name) for name in takes]
        together.update(found for found in places if places.count(found) > 1)
        for name, found in zip(takes, places, strict=True):
            if times:
                groups.setdefault(found, []).extend([] if name in counts else [name])
                counts[name] = counts.get(name, 0) + times
    for found, names in groups.items():
        for ops in [[name] for name in names] if found in together else [names]:
            dequeue, read = dequeues.get(ops[0]), reads.get(ops[0])
            size = 1 if read is not None and not read.many else None
            if dequeue is not None:
                size = _records_of(topology, dequeue)
            node = dequeue or read
            times = sum(counts[name] for name in ops)
            yield Delivered(
                op=ops[0],
                queue=node.queue if node is not None else None,
                source=node.source if node is not None else None,
                steps=times,
                records=None if size is None else size * times,
                ops=len(ops),
            )


def _records_of(topology: Topology, dequeue: Dequeue) -> int | None:
    """How many records one run of a dequeue op gives; None where that is not fixed."""
    each = {"dequeue": 1, "dequeue_many": dequeue.batch_size}.get(dequeue.kind)
    behind = {d.name: d for d in topology.dequeues if d.kind != "dequeue"}
    for enqueue in topology.enqueues:
        if enqueue.queue != dequeue.queue:
            continue
        # A queue of whole batches (prefetch_queue, bucketing): each element is as many records as the batch before it.
        for batch in (behind[name] for name in topology.transform(enqueue.transform).inputs if name in behind):
            if enqueue.many or batch.kind != "dequeue_many" or batch.batch_size is None or each is None:
                return None
            return each * batch.batch_size
    return each


def _inventory(sources: Sources) -> Inventory:
    from tfqueue.scan import scan

    parts = [scan(path) for path in dict.fromkeys(sources.files) if path.endswith(".py")]
    return Inventory(
        files=sum(part.files for part in parts),
        uses=tuple(use for part in parts for use in part.uses),
        pipelines=tuple(pipeline for part in parts for pipeline in part.pipelines),
        risks=tuple(risk for part in parts for risk in part.risks),
        python2=tuple(place for part in parts for place in part.python2),
        problems=tuple(problem for part in parts for problem in part.problems),
    )
