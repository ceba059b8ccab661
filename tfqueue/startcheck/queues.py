"""Queues that can never deliver, and queues that deliver something else than one would think."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tfqueue.errors import PipelineFailed
from tfqueue.startcheck.files import stages_that_run
from tfqueue.topology.findings import Finding
from tfqueue.topology.model import FETCHES, Dequeue, Producer, Queue, Topology, Transform

_LISTS = ("files", "range", "array", "variable")


def check_queues(topology: Topology, graph: Any) -> None:
    """Look for queues that can never deliver.

    Raises:
        PipelineFailed: ``"no-elements"``, ``"unequal-lengths"``, ``"capacity"`` or ``"placeholder"``.
    """
    for producer in topology.producers:
        _check_producer(producer)
    for queue in topology.queues:
        if queue.dequeues or queue.reads:
            _check_capacity(queue, topology)
    _check_placeholders(topology, graph)


def queue_findings(topology: Topology, graph: Any) -> Iterator[Finding]:
    """What works, but probably not as it was meant."""
    for queue in topology.queues:
        yield from _small_capacity(queue, topology)
    for stage in stages_that_run(topology):
        if stage.target is not None:
            yield from _mispaired(stage, topology)
    yield from _order(topology)
    for producer in topology.producers:
        yield from _unused_rows(producer)
    yield from _not_filled(topology, graph)


# -- what cannot work --------------------------------------------------------------------------------------------------


def _failed(cause_name: str, message: str, source: str | None, advice: str, stage: str | None = None) -> PipelineFailed:
    words = [message]
    if stage is not None:
        words.append(f"  stage: {stage}")
    if source is not None:
        words.append(f"  built at: {source}")
    words.append(f"  advice: {advice}")
    return PipelineFailed("\n".join(words), cause_name=cause_name, stage=stage, source=source, advice=advice)


def _check_producer(producer: Producer) -> None:
    stage = f"producing {producer.kind} for queue {producer.queue!r}"
    if producer.count == 0:
        raise _failed(
            "no-elements",
            "an input producer was given an empty list: it never produces anything, and TensorFlow waits for ever",
            producer.source,
            "check what the list was made from (a folder, a pattern, a filter)",
            stage,
        )
    lengths = {tensor.shape[0] for tensor in producer.sliced if tensor.shape and tensor.shape[0] is not None}
    counted = producer.count if producer.kind == "range" and _counts_from_zero(producer) else None
    if counted is not None and any(length < counted for length in lengths):
        numbers = " and ".join(map(str, sorted(lengths | {counted})))
        raise _failed(
            "unequal-lengths",
            f"the tensors that slice_input_producer takes its rows from have {numbers} rows; it counts to {counted}",
            producer.source,
            "give it tensors with the same number of rows: are all files there, and all labels?",
            stage,
        )


def _counts_from_zero(producer: Producer) -> bool:
    return producer.elements is not None and len(producer.elements) > 0 and producer.elements[0] == 0


def _check_capacity(queue: Queue, topology: Topology) -> None:
    if queue.capacity is None:
        return
    if queue.capacity == 0:
        raise _failed(
            "capacity",
            f"queue {queue.name!r} has capacity 0: nothing can ever be put in",
            queue.source,
            "give it a capacity of at least one batch",
        )
    if queue.kind == "RandomShuffle" and queue.min_after_dequeue >= queue.capacity:
        raise _failed(
            "capacity",
            f"queue {queue.name!r} must keep {queue.min_after_dequeue} elements (min_after_dequeue), and has room for "
            f"{queue.capacity} (capacity): nothing can ever be taken out",
            queue.source,
            "set capacity to min_after_dequeue + (number of threads + a few) * batch_size",
        )
    if queue.kind == "Priority":
        for dequeue in _dequeues_of(queue, topology):
            # The other kinds gather a batch bit by bit; this one must hold all of it to know the order.
            if dequeue.kind != "dequeue" and (dequeue.batch_size or 0) > queue.capacity:
                raise _failed(
                    "capacity",
                    f"a batch of {dequeue.batch_size} is taken from the priority queue {queue.name!r}, which must hold "
                    f"all of it at once, and has room for {queue.capacity}: the step would wait for ever",
                    dequeue.source,
                    "raise the capacity to at least the batch size",
                )


def _check_placeholders(topology: Topology, graph: Any) -> None:
    plain = _plain_runner_ops(graph)
    for enqueue in topology.enqueues:
        stage = topology.transform(enqueue.transform)
        if stage.placeholders and enqueue.runs in plain:
            name = stage.placeholders[0]
            raise _failed(
                "placeholder",
                f"the placeholder {name!r} lies before queue {enqueue.queue!r}, and a queue runner feeds nothing",
                enqueue.source,
                "feed the enqueue op from a thread of your own (session.run(enqueue, feed_dict=...)), or use a "
                "constant, a variable or tf.placeholder_with_default",
                f"on the way to queue {enqueue.queue!r}",
            )


def _plain_runner_ops(graph: Any) -> set[str]:
    """The ops of runners whose threads just run them; a subclass may feed what it likes."""
    names: set[str] = set()
    for runner in graph.get_collection(tf.compat.v1.GraphKeys.QUEUE_RUNNERS):
        if type(runner) is tf.compat.v1.train.QueueRunner:
            names.update(getattr(op, "op", op).name for op in runner.enqueue_ops)
    return names


# -- what surprises ----------------------------------------------------------------------------------------------------


def _small_capacity(queue: Queue, topology: Topology) -> Iterator[Finding]:
    # One more than min_after_dequeue is what makes a seeded order repeatable, so that is meant.
    if queue.kind != "RandomShuffle" or queue.capacity in (None, queue.min_after_dequeue + 1):
        return
    for dequeue in _dequeues_of(queue, topology):
        if dequeue.kind == "dequeue" or dequeue.batch_size is None or queue.capacity is None:
            continue
        if queue.capacity < queue.min_after_dequeue + dequeue.batch_size:
            yield Finding(
                "small-capacity",
                f"queue {queue.name!r} has room for {queue.capacity} elements: beside the {queue.min_after_dequeue} "
                f"of min_after_dequeue that is less than one batch of {dequeue.batch_size}, so each step waits for the "
                f"threads; set capacity to min_after_dequeue + (number of threads + a few) * batch_size",
                queue.name,
                queue.source,
            )


def _mispaired(stage: Transform, topology: Topology) -> Iterator[Finding]:
    if len(stage.inputs) < 2:
        return
    copies = sum(enqueue.copies for enqueue in topology.enqueues if enqueue.transform == stage.name)
    streams = [_producers_behind(topology, name) for name in stage.inputs]
    if copies > 1:
        yield Finding(
            "mispaired",
            f"{copies} threads run one enqueue that takes from {len(stage.inputs)} streams: each thread takes its "
            f"parts at another time, so that parts of different records come together (an image with the label of "
            f"another); use num_threads=1, or one slice_input_producer for all parts",
            stage.name,
            stage.source,
        )
        return
    lists = [[p for p in producers if p.kind in _LISTS and p.count != 1] for producers in streams]
    shuffles = {(p.shuffle, p.seed, p.seed2) for producers in lists for p in producers}
    if all(lists) and any(shuffle for shuffle, _, _ in shuffles) and (len(shuffles) > 1 or shuffles == {(True, 0, 0)}):
        if len({p.name for producers in lists for p in producers}) < 2:
            return
        yield Finding(
            "mispaired",
            f"one enqueue pairs {len(stage.inputs)} streams by their position, but they are shuffled each in its own "
            f"way: unless any pair is as good as another, use one slice_input_producer for all parts, or the same "
            f"seed for each",
            stage.name,
            stage.source,
        )


def _order(topology: Topology) -> Iterator[Finding]:
    for queue in topology.queues:
        enqueue = next((e for e in queue.enqueues if e.copies > 1), None)
        if enqueue is None or queue.kind in ("RandomShuffle", "Priority") or len(queue.enqueues) > 1:
            continue
        around = [queue, *topology.ancestors(queue), *_below(queue, topology)]
        producers = [node for node in around if isinstance(node, Producer)]
        shuffled = any(isinstance(node, Queue) and node.kind == "RandomShuffle" for node in around)
        asked = producers and all(p.kind in _LISTS and not p.shuffle for p in producers)
        if asked and not shuffled and any(p.count != 1 or p.kind == "files" for p in producers):
            yield Finding(
                "order",
                f"nothing is shuffled, but {enqueue.copies} threads fill queue {queue.name!r}, and the records come in "
                f"the order in which the threads are done; use num_threads=1 where the order counts, shuffle=True "
                f"where it does not",
                queue.name,
                enqueue.source,
            )


def _below(queue: Queue, topology: Topology) -> list[Queue]:
    return [other for other in topology.queues if queue in topology.ancestors(other)]


def _unused_rows(producer: Producer) -> Iterator[Finding]:
    lengths = {tensor.shape[0] for tensor in producer.sliced if tensor.shape and tensor.shape[0] is not None}
    if producer.kind == "range" and len(lengths) > 1:
        yield Finding(
            "unequal-lengths",
            f"the tensors that slice_input_producer takes its rows from have {' and '.join(map(str, sorted(lengths)))} "
            f"rows: those behind row {min(lengths)} of the longer ones are never used",
            producer.name,
            producer.source,
        )


def _not_filled(topology: Topology, graph: Any) -> Iterator[Finding]:
    live = set(topology.live_queues())
    for queue in topology.queues:
        if queue.name not in live or queue.shared_name or queue.enqueues:
            continue
        yield Finding(
            "not-filled",
            f"queue {queue.name!r} is read, but no op of the graph puts anything in: the step will wait for ever, "
            f"unless an enqueue op is added and run",
            queue.name,
            queue.source,
        )
    if topology.fetch_stage is None:
        return
    stepped = set(topology.fetch_stage.ops)
    for queue in topology.queues:
        by_nobody = (
            queue.name in live
            and queue.enqueues
            and all(
                not e.copies and e.name not in stepped and _has_own_source(topology.transform(e.transform))
                for e in queue.enqueues
            )
        )
        if by_nobody:
            yield Finding(
                "not-filled",
                f"queue {queue.name!r} is read, but no queue runner fills it: unless a thread of your own runs "
                f"{queue.enqueues[0].name!r}, the step will wait for ever; add a runner with "
                f"tf.train.add_queue_runner(tf.train.QueueRunner(queue, [enqueue]))",
                queue.name,
                queue.source,
            )


def _has_own_source(stage: Transform) -> bool:
    """Whether the stage gets its data from the graph itself, so that nothing but a runner is missing."""
    return bool(stage.inputs) and not stage.placeholders and stage.name != FETCHES


def _dequeues_of(queue: Queue, topology: Topology) -> list[Dequeue]:
    return [dequeue for dequeue in topology.dequeues if dequeue.queue == queue.name]


def _producers_behind(topology: Topology, cut: str) -> list[Producer]:
    node = topology.node_of(cut)
    if node is None:
        return []
    return [found for found in topology.ancestors(node) if isinstance(found, Producer)]
