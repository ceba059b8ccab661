"""The accounts of a run: what each stage took in and gave out, what was delivered, dropped or fetched elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tfqueue.engines.threads import RunnerThreads
from tfqueue.stall import QueueState
from tfqueue.topology.model import FETCHES, Dequeue, Enqueue, Topology

_HISTORY = 2000
_INTERVALS = 1000


@dataclass(frozen=True, slots=True)
class StageStats:
    """What one enqueue op did.

    Attributes:
        name: The enqueue op.
        queue: The queue that it fills.
        threads: The number of its threads.
        alive: How many of them are alive.
        runs: How often it ran to its end. For a producer, that is the number of epochs begun; for a runner of a class
            of the user's own with a loop of its own, how often that asked whether to go on.
        records: The elements that it enqueued; None where a run may enqueue any number.
        epochs: True for a producer with enqueue_many, whose runs are epochs.
        source: The user's line that built it, or None.
    """

    name: str
    queue: str
    threads: int
    alive: int
    runs: int
    records: int | None
    epochs: bool
    source: str | None


@dataclass(frozen=True, slots=True)
class QueueStats:
    """How full one queue was.

    Attributes:
        name: The queue.
        capacity: The most elements it holds; None when it is not bounded.
        size: The elements in it at the last look.
        fullest: The most elements seen in it.
        mean: The mean of the sizes seen, one look about every half second and one at the end.
        min_after_dequeue: What a dequeue leaves in a shuffling queue until the end of its input; 0 for other queues.
    """

    name: str
    capacity: int | None
    size: int
    fullest: int
    mean: float
    min_after_dequeue: int = 0


@dataclass(frozen=True, slots=True)
class StepsStats:
    """The waiting of some steps in a row.

    Attributes:
        at: Seconds from the start of the run to the end of the last of them.
        steps: Their number.
        seconds: The time spent waiting in all of them.
        longest: The longest of them, in seconds.
    """

    at: float
    steps: int
    seconds: float
    longest: float


@dataclass(frozen=True, slots=True)
class PipelineStats:
    """The accounts of a run so far; ``print(stats)`` shows a small table.

    Attributes:
        steps: The steps that were iterated.
        delivered: The records in them; None where a step's records cannot be counted.
        ended: Whether the end of the data was reached.
        dropped: The records left behind at the end; None before the end, or where they cannot be counted.
        dropped_why: Why, in words; None when nothing was dropped.
        fetched_elsewhere: The records that left the last queue, but not through the iteration (a second fetch of the
            same step, another `session.run`); None before the end, or where they cannot be counted.
        step_seconds: The time spent waiting in all steps together.
        longest_step_seconds: The longest of them.
        stages: The enqueue ops.
        queues: The queues.
        history: (seconds since the start, sizes in the order of ``queues``) of the looks at the queues.
        step_history: The waiting over time: every step of a short run, and at most 1,000 equal groups of the steps of a
            long one.
    """

    steps: int
    delivered: int | None
    ended: bool
    dropped: int | None
    dropped_why: str | None
    fetched_elsewhere: int | None
    step_seconds: float
    longest_step_seconds: float
    stages: tuple[StageStats, ...]
    queues: tuple[QueueStats, ...]
    history: tuple[tuple[float, tuple[int, ...]], ...]
    step_history: tuple[StepsStats, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data for JSON."""
        return asdict(self)

    def _repr_png_(self) -> bytes | None:
        """The accounts as a picture, for notebooks; None before there is anything to draw."""
        if not self.history or not self.queues:
            return None
        from tfqueue.views import plot_stats
        from tfqueue.views.style import png

        return png(plot_stats(self))

    def __str__(self) -> str:
        records = "" if self.delivered is None else f", {_count(self.delivered, 'record')}"
        lines = []
        if self.steps or self.delivered is not None:  # the owner of a session runs the steps unseen
            end = ", to the end of the data" if self.ended else ""
            lines.append(f"delivered: {_count(self.steps, 'step')}{records}{end}")
        if self.dropped:
            lines.append(f"dropped: {_count(self.dropped, 'record')}: {self.dropped_why}")
        if self.fetched_elsewhere:
            lines.append(
                f"fetched elsewhere: {_count(self.fetched_elsewhere, 'record')}, by another run of the fetches"
            )
        if self.steps:
            mean = 1000 * self.step_seconds / self.steps
            lines.append(f"waited: {mean:.3g} ms a step, {1000 * self.longest_step_seconds:.3g} ms at most")
        rows: list[tuple[str, ...]] = [("stage", "threads", "runs", "records")]
        for stage in self.stages:
            runs = _count(stage.runs, "epoch") if stage.epochs else f"{stage.runs:,}"
            records = "?" if stage.records is None else f"{stage.records:,}"
            if stage.threads:
                rows.append((stage.name, f"{stage.alive}/{stage.threads} alive", runs, records))
            else:  # another engine, or a thread of the user's, runs it uncounted
                rows.append((stage.name, "none", "?", records))
        lines += _table(rows)
        rows = [("queue", "capacity", "size now", "fullest", "mean")]
        for queue in self.queues:
            capacity = "none" if queue.capacity is None else f"{queue.capacity:,}"
            rows.append((queue.name, capacity, f"{queue.size:,}", f"{queue.fullest:,}", f"{queue.mean:.1f}"))
        return "\n".join(lines + _table(rows))


class Accounts:
    """Keeps the accounts of one run."""

    def __init__(self, runners: RunnerThreads) -> None:
        self._runners = runners
        self._start = time.monotonic()
        self.steps = 0
        self.step_seconds = 0.0
        self.longest = 0.0
        self._counted: int | None = 0
        self.ended = False
        self._queues: dict[str, tuple[int, int, int, int]] = {}  # last, fullest, sum, number of looks
        self._history: list[tuple[float, dict[str, int]]] = []
        self._stride = 1
        self._looks = 0
        # Plain tuples (at, steps, seconds, longest): this is done in every step.
        self._step_history: list[tuple[float, int, float, float]] = []
        self._group = 1  # steps in each of them
        self._open = (0.0, 0, 0.0, 0.0)  # the group that is not full

    def sampled(self, queues: Mapping[str, QueueState]) -> None:
        """Take the sizes of a look at the queues into account."""
        for name, state in queues.items():
            _, fullest, total, number = self._queues.get(name, (0, 0, 0, 0))
            self._queues[name] = (state.size, max(fullest, state.size), total + state.size, number + 1)
        if self._looks % self._stride == 0:
            sizes = {name: state.size for name, state in queues.items()}
            self._history.append((time.monotonic() - self._start, sizes))
            if len(self._history) >= _HISTORY:  # however long the run, so many looks are kept
                self._history = self._history[::2]
                self._stride *= 2
        self._looks += 1

    def stepped(self, seconds: float, rows: int | None) -> None:
        """Take a step into account that took so long and delivered so many records (None: that cannot be told)."""
        self.steps += 1
        self.step_seconds += seconds
        if seconds > self.longest:
            self.longest = seconds
        _, steps, total, longest = self._open
        self._open = (time.monotonic() - self._start, steps + 1, total + seconds, max(longest, seconds))
        if steps + 1 >= self._group:
            self._close_group()
        self._counted = None if rows is None or self._counted is None else self._counted + rows

    def _close_group(self) -> None:
        self._step_history.append(self._open)
        self._open = (0.0, 0, 0.0, 0.0)
        if len(self._step_history) >= _INTERVALS:  # however long the run, so many groups are kept
            pairs = zip(self._step_history[::2], self._step_history[1::2], strict=True)
            self._step_history = [(b[0], a[1] + b[1], a[2] + b[2], max(a[3], b[3])) for a, b in pairs]
            self._group *= 2

    def stats(self, topology: Topology) -> PipelineStats:
        """The accounts as they stand."""
        last = last_dequeue(topology)
        delivered = self._counted if last is not None else None
        dropped, why, elsewhere = self._remainder(topology, last, delivered)
        names = [queue.name for queue in topology.queues if queue.name in self._queues]
        return PipelineStats(
            steps=self.steps,
            delivered=delivered,
            ended=self.ended,
            dropped=dropped,
            dropped_why=why,
            fetched_elsewhere=elsewhere,
            step_seconds=self.step_seconds,
            longest_step_seconds=self.longest,
            stages=tuple(self._stage(topology, e) for e in topology.enqueues if not e.name.startswith("tfqueue/")),
            queues=tuple(self._queue(topology, name) for name in names),
            history=tuple((at, tuple(sizes.get(name, 0) for name in names)) for at, sizes in self._history),
            step_history=tuple(StepsStats(*group) for group in (*self._step_history, self._open) if group[1]),
        )

    def _stage(self, topology: Topology, enqueue: Enqueue) -> StageStats:
        threads = [t for t in self._runners.threads if t.enqueue_op in (enqueue.name, enqueue.runs)]
        runs = sum(thread.enqueued for thread in threads)
        each = _elements_of_a_run(topology, enqueue)
        producer = next((p for p in topology.producers if p.name == enqueue.name), None)
        return StageStats(
            name=enqueue.name,
            queue=enqueue.queue,
            threads=len(threads),
            alive=sum(thread.thread.is_alive() for thread in threads),
            runs=runs,
            # Without threads of its own (lockstep, a thread of the user's) nobody has counted.
            records=each * runs if each is not None and threads and all(t.counted for t in threads) else None,
            epochs=producer is not None and enqueue.many,
            source=enqueue.source,
        )

    def _queue(self, topology: Topology, name: str) -> QueueStats:
        size, fullest, total, number = self._queues[name]
        queue = topology.queue(name)
        return QueueStats(name, queue.capacity, size, fullest, total / number, queue.min_after_dequeue)

    def _remainder(
        self, topology: Topology, last: Dequeue | None, delivered: int | None
    ) -> tuple[int | None, str | None, int | None]:
        """(records dropped, why, records fetched elsewhere), which are known only when nothing is enqueued any more."""
        if not self.ended or last is None or last.queue is None or delivered is None:
            return None, None, None
        if last.queue not in self._queues:
            return None, None, None
        left = self._queues[last.queue][0]
        why = None
        if left:
            why = f"the last batch would not be full (batch size {last.batch_size}, no allow_smaller_final_batch)"
        enqueued = [self._stage(topology, e).records for e in topology.queue(last.queue).enqueues]
        known = [records for records in enqueued if records is not None]
        elsewhere = sum(known) - left - delivered if known and len(known) == len(enqueued) else None
        return left, why, elsewhere


def last_dequeue(topology: Topology) -> Dequeue | None:
    """The one dequeue op that the fetched tensors come from; None when there is none, or more than one."""
    found = [dequeue for dequeue in topology.dequeues if FETCHES in dequeue.consumers]
    return found[0] if len(found) == 1 else None


def _elements_of_a_run(topology: Topology, enqueue: Enqueue) -> int | None:
    if enqueue.conditional:
        return None
    if not enqueue.many:
        return 1
    lengths = {component.shape[0] for component in enqueue.components if component.shape}
    if len(lengths) == 1 and None not in lengths:
        return lengths.pop()
    return next((p.count for p in topology.producers if p.name == enqueue.name), None)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    if len(rows) == 1:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
