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
    """

    defined: bool | None = None
    reason: str = "nothing is known about the order"
    capacity: int | None = None
    min_after_dequeue: int | None = None
    shuffled: bool = False


def of_graph(graph: Any) -> Ordering:
    """The order of a queue-runner graph, read from its ops and queue runners.

    Args:
        graph: A tf.Graph with its QueueRunners in the collections.
    """
    tf = sys.modules["tensorflow"]
    queues, other = [], None
    for op in graph.get_operations():
        if op.type.startswith("RandomShuffleQueue"):
            queues.append(op)
        elif op.type == "RandomShuffle":
            other = op
    if queues:
        op = queues[-1]
        capacity, least = op.get_attr("capacity"), op.get_attr("min_after_dequeue")
        words = f"shuffled by {op.name} (capacity {capacity}, min_after_dequeue {least})"
        return Ordering(False, words, capacity, least, True)
    if other is not None:
        return Ordering(False, f"the producer shuffles ({other.name})", shuffled=True)
    runners = graph.get_collection(tf.compat.v1.GraphKeys.QUEUE_RUNNERS)
    for runner in runners:
        threads = len(runner.enqueue_ops)
        if threads > 1:
            return Ordering(False, f"{threads} threads fill {runner.name}")
    if not runners:
        return Ordering(None, "the graph has no queue runner")
    return Ordering(True, "no shuffling, one thread a queue")


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


def _undetermined(node: Any) -> bool:
    value = getattr(node, "_deterministic", None)
    return value is False or value == "false"
