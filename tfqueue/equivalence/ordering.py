"""What is known about the order in which a side delivers its records."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Ordering:
    """What the code of a side says about its order.

    Attributes:
        defined: True if the program fixes the order, False if it leaves it to chance or to threads, None if
            unknown.
        reason: Why, in a few words.
        capacity: Capacity of the last shuffling queue, or None.
        min_after_dequeue: Its min_after_dequeue, or the size of a Dataset's shuffle buffer, or None.
        shuffled: True if it is known to shuffle.
        passes_shuffled: True if a producer shuffles whole passes (of files or records), or several threads
            read.
        random_ops: True if the graph makes random numbers apart from shuffling.
        producer: What a producer shuffles as a whole before the queues: ``"records"``, ``"files"`` or nothing.
        threads: The most threads that fill one queue.
        racing: True if different ops fill one queue, so that no order of the source is defined.
    """

    defined: bool | None = None
    reason: str = "nothing is known about the order"
    capacity: int | None = None
    min_after_dequeue: int | None = None
    shuffled: bool = False
    passes_shuffled: bool = False
    random_ops: bool = False
    producer: str = ""
    threads: int = 1
    racing: bool = False


def of_graph(graph: Any) -> Ordering:
    """The order of a queue-runner graph, read from its ops and queue runners.

    Args:
        graph: A tf.Graph with its QueueRunners in the collections.
    """
    tf = sys.modules["tensorflow"]
    queues, producer, random = [], None, False
    for op in graph.get_operations():
        if op.type.startswith("RandomShuffleQueue"):
            queues.append(op)
        elif op.type == "RandomShuffle":
            producer = op
        elif op.type in _RANDOM:
            random = True
    runners = graph.get_collection(tf.compat.v1.GraphKeys.QUEUE_RUNNERS)
    threads = max((len(runner.enqueue_ops) for runner in runners), default=0)
    many = producer is not None or threads > 1
    shuffles = "" if producer is None else _unit(graph)
    racing = any(len({op.name for op in runner.enqueue_ops}) > 1 for runner in runners)
    if queues:
        capacity = sum(op.get_attr("capacity") for op in queues)
        least = queues[-1].get_attr("min_after_dequeue")
        words = f"shuffled by {queues[-1].name} (capacity {queues[-1].get_attr('capacity')}, min_after_dequeue {least})"
        return Ordering(False, words, capacity, least, True, many, random, shuffles, threads, racing)
    if producer is not None:
        words = f"the producer shuffles ({producer.name})"
        return Ordering(False, words, None, None, True, True, random, shuffles, threads, racing)
    if threads > 1:
        busiest = max(runners, key=lambda runner: len(runner.enqueue_ops))
        words = f"{threads} threads fill {busiest.name}"
        return Ordering(False, words, passes_shuffled=True, random_ops=random, threads=threads, racing=racing)
    if not runners:
        return Ordering(None, "the graph has no queue runner", random_ops=random)
    return Ordering(True, "no shuffling, one thread a queue", random_ops=random)


def _unit(graph: Any) -> str:
    """What a producer that shuffles shuffles: files, if a reader takes several records from each, else records."""
    readers = {op.type for op in graph.get_operations() if "Reader" in op.type and not op.type.startswith("ReaderRead")}
    return "files" if any(not kind.startswith("WholeFileReader") for kind in readers) else "records"


_RANDOM = (
    "RandomUniform",
    "RandomUniformInt",
    "RandomStandardNormal",
    "TruncatedNormal",
    "Multinomial",
    "SampleDistortedBoundingBox",
    "SampleDistortedBoundingBoxV2",
    "StatelessRandomUniform",
    "StatelessRandomUniformV2",
    "RandomCrop",
    "StatelessRandomUniformInt",
    "StatelessRandomUniformIntV2",
    "StatelessRandomNormal",
    "StatelessRandomNormalV2",
    "StatelessTruncatedNormal",
    "StatelessTruncatedNormalV2",
    "StatelessSampleDistortedBoundingBox",
    "StatefulUniform",
    "StatefulStandardNormalV2",
    "StatefulUniformInt",
)


def of_dataset(dataset: Any) -> Ordering:
    """The order of a tf.data.Dataset, read from the chain of its transformations.

    A Dataset tells its element_spec and cardinality but not how it was made, so this reads
    `Dataset._inputs()` and the names of the classes; where they are missing, nothing is claimed.
    """
    pending, seen, found = [dataset], 0, None
    while pending and seen < 1000:
        node = pending.pop()
        seen += 1
        kind = type(node).__name__
        if "Shuffle" in kind:
            size = getattr(node, "_buffer_size", None)
            try:
                size = None if size is None else int(size)
            except (TypeError, ValueError):
                size = None
            return Ordering(False, f"Dataset.shuffle({'' if size is None else size})", None, size, True)
        if kind in ("_ParallelMapDataset", "_ParallelInterleaveDataset") and _undetermined(node):
            found = Ordering(False, f"{kind.strip('_')} with deterministic=False")
        inputs = getattr(node, "_inputs", None)
        try:
            pending.extend(inputs() if callable(inputs) else [])
        except (AttributeError, NotImplementedError, TypeError):
            return Ordering()
    return found or Ordering(None, "a Dataset without shuffle")


def makes_random_numbers(dataset: Any) -> bool:
    """Whether the functions of a Dataset make random numbers; False where it cannot be written out as a graph."""
    tf = sys.modules["tensorflow"]
    try:
        written = tf.raw_ops.DatasetToGraphV2(
            input_dataset=tf.data.experimental.to_variant(dataset),
            external_state_policy=1,
            strip_device_assignment=True,
        )
        graph = tf.compat.v1.GraphDef.FromString(written.numpy())
    except (tf.errors.OpError, AttributeError, TypeError, ValueError):
        return False
    nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    return any(node.op in _RANDOM for node in nodes)


def _undetermined(node: Any) -> bool:
    value = getattr(node, "_deterministic", None)
    return value is False or value == "false"
