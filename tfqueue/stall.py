"""Why nothing moves: from the sizes of the queues and the state of the runners to the reason, in words.

A pure function of what was seen; who looks, and when, is in `watchdog`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tfqueue.errors import PipelineStalled
from tfqueue.topology.model import Enqueue, Queue, Topology

WORKING = "stage-busy"
"""The cause name where a stage is at work, however slowly: not a stall, unless it goes on for ever."""
COMPUTING = "not-a-queue"
"""The cause name where the step waits for no queue: it is none of our business how long that takes."""


@dataclass(frozen=True, slots=True)
class QueueState:
    """What a queue looked like.

    Attributes:
        size: The number of elements in it.
        closed: Whether it was closed.
    """

    size: int
    closed: bool


@dataclass(frozen=True, slots=True)
class RunnerState:
    """What a runner thread looked like.

    Attributes:
        enqueue_op: The op it runs.
        thread: The name of the thread.
        alive: Whether the thread was alive.
        enqueued: How often it had run its op; None where nobody has counted.
    """

    enqueue_op: str
    thread: str
    alive: bool
    enqueued: int | None


@dataclass(frozen=True, slots=True)
class Finding:
    """Why nothing moves.

    Attributes:
        cause_name: The stable name of the reason.
        certain: True when no thread can go on by itself; False when one may just be slow.
        queue: The queue that the reason is about, or None.
        words: The reason, in words.
        advice: One line on what to do.
    """

    cause_name: str
    certain: bool
    queue: str | None
    words: str
    advice: str


def find(
    topology: Topology,
    queues: Mapping[str, QueueState],
    runners: Iterable[RunnerState],
    *,
    in_python_function: bool,
    other_threads: bool,
) -> Finding:
    """The reason why nothing moves, judged by one look at a pipeline that has not moved for a while.

    Args:
        topology: The topology of the graph, traced with what the waiting step fetches.
        queues: The queues by name; those that could not be asked are absent.
        runners: The runner threads.
        in_python_function: Whether some thread runs a function given to py_func.
        other_threads: Whether the process has Python threads besides that might feed a queue.
    """
    runners = list(runners)
    if in_python_function:
        return Finding(
            WORKING,
            False,
            None,
            "a function given to py_func is running",
            "make the function faster, or give the pipeline more threads; raise stall_timeout if it may take so long",
        )
    busy = [r for r in runners if r.alive and not _waits(topology, queues, r)]
    root = _root(topology, queues)
    if root is not None and not any(_fills(topology, r, root) for r in runners if r.alive):
        return _unfed(topology, root, runners, other_threads)
    if busy:
        names = ", ".join(sorted({r.enqueue_op for r in busy}))
        return Finding(
            WORKING,
            False,
            None,
            f"{names}: its thread has input and room, so it is working",
            "a stage is slow: give it more threads, or raise stall_timeout if it may take so long",
        )
    if root is not None:
        return Finding(
            "waiting-in-a-circle",
            True,
            root.name,
            f"queue {root.name!r} is starved, and every runner that fills it waits for another queue",
            "two producers with different numbers of elements, or a queue that feeds itself? See explain",
        )
    return Finding(
        COMPUTING,
        False,
        None,
        "no queue is starved: the step is computing, or waits for something that is no queue",
        "look at the fetched ops; raise stall_timeout if a step may take so long",
    )


def report(
    finding: Finding,
    topology: Topology,
    queues: Mapping[str, QueueState],
    runners: Iterable[RunnerState],
    seconds: float,
) -> PipelineStalled:
    """The error that says what was found."""
    runners = list(runners)
    alive = tuple(r.thread for r in runners if r.alive)
    lines = [f"nothing has moved for {seconds:.3g} s: {finding.words}"]
    for queue in topology.queues:
        state = queues.get(queue.name)
        if state is None:
            continue
        capacity = "no bound" if queue.capacity is None else queue.capacity
        source = f", built at {queue.source}" if queue.source else ""
        closed = ", closed" if state.closed else ""
        lines.append(f"  queue {queue.name}: {state.size} of {capacity} elements{closed}{source}")
    for runner in runners:
        if runner.alive:
            lines.append(f"  alive: {runner.enqueue_op} ({_waiting_words(topology, queues, runner)})")
        else:
            runs = (
                "" if runner.enqueued is None else f", after {runner.enqueued} run{'' if runner.enqueued == 1 else 's'}"
            )
            lines.append(f"  ended: {runner.enqueue_op}{runs}")
    if not runners:
        lines.append("  no runner thread of this session is known")
    lines.append(f"  advice: {finding.advice}")
    return PipelineStalled(
        "\n".join(lines),
        cause_name=finding.cause_name,
        queue=finding.queue,
        size=None if finding.queue is None else queues[finding.queue].size,
        alive=alive,
        advice=finding.advice,
    )


def _unfed(topology: Topology, queue: Queue, runners: list[RunnerState], other_threads: bool) -> Finding:
    enqueue_ops = {op for e in queue.enqueues for op in (e.name, e.runs)}
    known = [r for r in runners if r.enqueue_op in enqueue_ops]
    if known:
        return Finding(
            "runner-ended",
            True,
            queue.name,
            f"queue {queue.name!r} is starved, its runner has ended, and the queue is still open",
            "the runner ended without closing its queue: was its error caught by code of your own?",
        )
    has_runner = bool(queue.runners)
    return Finding(
        "runners-not-started" if has_runner else "no-runner",
        not other_threads or has_runner,
        queue.name,
        f"queue {queue.name!r} is empty and none of its runner threads is alive: "
        + ("its queue runner was not started in this session" if has_runner else "no queue runner fills it"),
        "start the runners (start_queue_runners for this session, or tfqueue.queue_runners)"
        if has_runner
        else "add a QueueRunner for it (tf.train.add_queue_runner), or feed it from a thread of your own",
    )


def _root(topology: Topology, queues: Mapping[str, QueueState]) -> Queue | None:
    """The starved queue that is nearest to the source, among those that the fetches depend on."""
    live = set(topology.live_queues())
    return next((q for q in topology.queues if q.name in live and _starved(topology, queues, q)), None)


def _starved(topology: Topology, queues: Mapping[str, QueueState], queue: Queue) -> bool:
    state = queues.get(queue.name)
    return state is not None and not state.closed and state.size < _needed(topology, queue)


def _needed(topology: Topology, queue: Queue) -> int:
    """The size at which a dequeue of an open queue can go on; 0 for a queue that nothing reads.

    A dequeue of many takes what is there and waits for more, so one element is enough for it to go on.
    """
    read = queue.reads or any(d.queue == queue.name for d in topology.dequeues)
    return queue.min_after_dequeue + 1 if read else 0


def _enqueue_of(topology: Topology, runner: RunnerState) -> Enqueue | None:
    return next((e for e in topology.enqueues if runner.enqueue_op in (e.name, e.runs)), None)


def _fills(topology: Topology, runner: RunnerState, queue: Queue) -> bool:
    return any(runner.enqueue_op in (e.name, e.runs) for e in queue.enqueues)


def _sources(topology: Topology, enqueue: Enqueue) -> list[Queue]:
    names = set()
    for cut in topology.transform(enqueue.transform).inputs:
        read = topology.read(cut)
        if read is not None:
            names.add(read.queue)
        names.update(d.queue for d in topology.dequeues if d.name == cut)
    return [q for q in topology.queues if q.name in names]


def _waits(topology: Topology, queues: Mapping[str, QueueState], runner: RunnerState) -> bool:
    """Whether a runner thread cannot go on: no room in its queue, or nothing in one that it reads."""
    enqueue = _enqueue_of(topology, runner)
    if enqueue is None:
        return False
    return _full(topology, queues, enqueue.queue) or bool(_empty_sources(topology, queues, enqueue))


def _full(topology: Topology, queues: Mapping[str, QueueState], name: str) -> bool:
    state = queues.get(name)
    capacity = topology.queue(name).capacity
    return state is not None and capacity is not None and state.size >= capacity


def _empty_sources(topology: Topology, queues: Mapping[str, QueueState], enqueue: Enqueue) -> list[str]:
    return [q.name for q in _sources(topology, enqueue) if _starved(topology, queues, q)]


def _waiting_words(topology: Topology, queues: Mapping[str, QueueState], runner: RunnerState) -> str:
    enqueue = _enqueue_of(topology, runner)
    if enqueue is None:
        return "not known"
    if _full(topology, queues, enqueue.queue):
        return f"waits for room in {enqueue.queue}"
    empty = _empty_sources(topology, queues, enqueue)
    return f"waits for {', '.join(empty)}" if empty else "working"
