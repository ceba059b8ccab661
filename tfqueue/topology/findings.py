"""What a person should know about a pipeline: what is lost, mixed up, unused or without a defined order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tfqueue.topology.model import Dequeue, Enqueue, Producer, Queue, Read, Topology, Transform


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found.

    Attributes:
        kind: A stable name for programs: ``"dead-queue"``, ``"implicit-zip"``, ``"records-dropped"``,
            ``"shared-dequeue"``, ``"order"``, ``"fed-from-outside"`` or ``"not-understood"``.
        message: What it means, in words.
        node: The name of the node concerned.
        source: The user's line that built it.
    """

    kind: str
    message: str
    node: str
    source: str | None = None

    def __str__(self) -> str:
        return f"{self.message} ({self.source})" if self.source else self.message


def findings(topology: Topology) -> tuple[Finding, ...]:
    """Everything worth a word, in the order: lost or mixed records first, then order, then oddities."""
    live = set(topology.live_queues())
    found = [
        *_shared_cuts(topology),
        *_implicit_zips(topology, live),
        *_dropped(topology, live),
        *_order(topology, live),
        *_fed(topology, live),
        *_dead(topology, live),
    ]
    found.extend(Finding("not-understood", warning, "", None) for warning in topology.warnings)
    return tuple(found)


def order_is_defined(topology: Topology) -> bool:
    """True when nothing in the pipeline leaves the order of its records to chance or to thread timing."""
    return not any(_order(topology, set(topology.live_queues())))


def _dead(topology: Topology, live: set[str]) -> Iterator[Finding]:
    for queue in topology.queues:
        if queue.name not in live:
            reader = "nothing reads it" if not queue.dequeues and not queue.reads else "no fetch depends on it"
            yield Finding("dead-queue", f"queue {queue.name} is dead: {reader}", queue.name, queue.source)


def _shared_cuts(topology: Topology) -> Iterator[Finding]:
    cuts: list[Dequeue | Read] = [*topology.dequeues, *topology.reads]
    for cut in cuts:
        branches = [name for name in cut.consumers if topology.transform(name).target is not None]
        if len(branches) > 1:
            what = "dequeue" if isinstance(cut, Dequeue) else "read"
            yield Finding(
                "shared-dequeue",
                f"one {what} ({cut.name}) is shared by {len(branches)} enqueue ops; each of them runs it "
                f"again, so they get different records, though the graph looks as if they used the same one",
                cut.name,
                cut.source,
            )


def _implicit_zips(topology: Topology, live: set[str]) -> Iterator[Finding]:
    for stage in topology.transforms:
        queues = {name: _queue_of(topology, name) for name in stage.inputs}
        if len(stage.inputs) < 2 or (stage.target is not None and stage.target not in live):
            continue
        copies = _copies(topology, stage)
        names = sorted({queue for queue in queues.values() if queue is not None})
        where = f"{len(stage.inputs)} streams ({', '.join(names) or 'of unknown queues'})"
        if copies > 1:
            yield Finding(
                "implicit-zip",
                f"{where} are paired by one enqueue that {copies} threads run: the threads take their parts "
                f"at different times, so records get mixed up; only one thread pairs them right",
                stage.name,
                stage.source,
            )
        shuffles = {
            tuple(sorted((p.shuffle and p.count != 1, p.seed, p.seed2) for p in _producers_behind(topology, name)))
            for name in stage.inputs
        }
        unseeded = any(shuffled and not seed and not seed2 for key in shuffles for shuffled, seed, seed2 in key)
        if len(shuffles) > 1 or (unseeded and len(names) > 1):
            paired = "are paired by position" if stage.target is not None else "are delivered side by side"
            belong = "" if stage.target is not None else "; where their records belong together, that is a mistake"
            yield Finding(
                "implicit-zip",
                f"{where} {paired}, but they are not shuffled alike (same seed, or no shuffle "
                f"at all), so what is paired is up to chance{belong}",
                stage.name,
                stage.source,
            )


def _dropped(topology: Topology, live: set[str]) -> Iterator[Finding]:
    for dequeue in topology.dequeues:
        if dequeue.kind != "dequeue_many" or dequeue.queue not in live or dequeue.batch_size == 1:
            continue
        producers = _producers_behind(topology, dequeue.name)
        if not producers or any(producer.num_epochs is None and _endless(producer) for producer in producers):
            continue
        total = _exact_total(topology, dequeue, producers)
        size = dequeue.batch_size
        if size is None:
            lost = "the records of the last, partial batch are dropped"
        elif total is None:
            few = f"up to {size - 1} records at the end are" if size > 2 else "perhaps the last record is"
            lost = f"{few} dropped (the last, partial batch of {size})"
        elif total % size:
            few = f"the last {total % size} of {total} records are" if total % size > 1 else f"the last of {total} is"
            lost = f"{few} dropped (the last, partial batch of {size})"
        else:
            continue
        yield Finding("records-dropped", f"{lost}; dequeue_up_to would deliver them", dequeue.name, dequeue.source)


def _order(topology: Topology, live: set[str]) -> Iterator[Finding]:
    for producer in topology.producers:
        # A list of one is always in the same order.
        shuffled = producer.shuffle and producer.count != 1
        if producer.queue in live and shuffled and not producer.seed and not producer.seed2:
            what = "numbers" if producer.kind == "range" else producer.kind
            yield Finding(
                "order",
                f"order undefined: the {what} are shuffled without a seed",
                producer.name,
                producer.source,
            )
    for queue in topology.queues:
        if queue.name not in live:
            continue
        if queue.kind == "RandomShuffle":
            if not queue.seed and not queue.seed2:
                why = "has no seed"
            elif queue.capacity == queue.min_after_dequeue + 1:
                why = None
            else:
                why = "has a seed, but draws among what is in it at that moment, which depends on thread timing"
            if why:
                yield Finding("order", f"order undefined: queue {queue.name} {why}", queue.name, queue.source)
        if queue.threads > 1:
            ops = len([enqueue for enqueue in queue.enqueues if enqueue.copies])
            several = f" through {ops} enqueue ops" if ops > 1 else ""
            yield Finding(
                "order",
                f"order undefined: {queue.threads} threads fill queue {queue.name}{several}",
                queue.name,
                queue.source,
            )


def _fed(topology: Topology, live: set[str]) -> Iterator[Finding]:
    for queue in topology.queues:
        if queue.name not in live:
            continue
        by_hand = [enqueue for enqueue in queue.enqueues if not enqueue.copies]
        if not queue.enqueues:
            yield Finding(
                "fed-from-outside",
                f"queue {queue.name} is read, but nothing in the graph fills it",
                queue.name,
                queue.source,
            )
        elif by_hand and len(by_hand) == len(queue.enqueues):
            yield Finding(
                "fed-from-outside",
                f"queue {queue.name} has no queue runner: Python code must run {_listed(by_hand)}",
                queue.name,
                queue.source,
            )


def _listed(enqueues: list[Enqueue]) -> str:
    return ", ".join(enqueue.name for enqueue in enqueues)


def _queue_of(topology: Topology, cut: str) -> str | None:
    node = next((d for d in topology.dequeues if d.name == cut), None) or topology.read(cut)
    return None if node is None else node.queue


def _copies(topology: Topology, stage: Transform) -> int:
    return sum(enqueue.copies for enqueue in topology.enqueues if enqueue.transform == stage.name)


def _producers_behind(topology: Topology, cut: str) -> list[Producer]:
    name = _queue_of(topology, cut)
    if name is None:
        return []
    queue = topology.queue(name)
    return [node for node in (*topology.ancestors(queue),) if isinstance(node, Producer)]


def _endless(producer: Producer) -> bool:
    """A producer without a limit goes on for ever, unless Python ends it."""
    return producer.kind not in ("python", "fed")


def _exact_total(topology: Topology, dequeue: Dequeue, producers: list[Producer]) -> int | None:
    """The number of elements that come by a dequeue, where no file must be read to know it: of a range or an array."""
    if len(producers) != 1 or producers[0].kind not in ("range", "array"):
        return None
    return _elements(topology, topology.queue(str(dequeue.queue)), producers[0])


def _elements(topology: Topology, queue: Queue, producer: Producer) -> int | None:
    if queue.name == producer.queue:
        return None if producer.count is None or producer.num_epochs is None else producer.count * producer.num_epochs
    enqueue = queue.enqueues[0] if len(queue.enqueues) == 1 and not queue.enqueues[0].conditional else None
    inputs = () if enqueue is None else topology.transform(enqueue.transform).inputs
    source = next((d for d in topology.dequeues if d.name in inputs), None)
    if enqueue is None or len(inputs) != 1 or source is None or source.queue is None or source.batch_size is None:
        return None
    taken = _elements(topology, topology.queue(source.queue), producer)
    if taken is None:
        return None
    runs = -(-taken // source.batch_size) if source.kind == "dequeue_up_to" else taken // source.batch_size
    shape = enqueue.components[0].shape if enqueue.many else (1,)
    rows = shape[0] if shape else None
    return None if rows is None else runs * rows
