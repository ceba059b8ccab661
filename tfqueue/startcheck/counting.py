"""How many elements a pipeline can deliver, and how many bytes its full queues need."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tfqueue.topology.findings import Finding
from tfqueue.topology.model import Dequeue, Queue, Topology

LARGE_BUFFER = 1 << 30
"""Bytes above which a queue is worth a word, or half of the memory that is free, if that is less."""


def count_findings(topology: Topology, counts: Mapping[str, int]) -> Iterator[Finding]:
    """Batches that are never full.

    Args:
        topology: The topology.
        counts: The number of records of one epoch, by read op, where it is known.
    """
    for dequeue in topology.dequeues:
        size = dequeue.batch_size
        if dequeue.kind != "dequeue_many" or dequeue.queue is None or size is None or dequeue.conditional:
            continue
        total = elements_of(topology.queue(dequeue.queue), topology, counts)
        if total is not None and total < size:
            yield Finding(
                "too-few-records",
                f"there are {total} records in all, which is less than one batch of {size}: no batch is delivered; "
                f"make the batch smaller, set allow_smaller_final_batch=True, or raise num_epochs",
                dequeue.name,
                dequeue.source,
            )


def elements_of(queue: Queue, topology: Topology, counts: Mapping[str, int]) -> int | None:
    """The number of elements that pass through a queue until its end; None when it is not known, or has no end."""
    total = 0
    sources: list[str | None] = []
    for enqueue in queue.enqueues:
        producer = next((p for p in topology.producers if p.name == enqueue.name), None)
        if producer is not None:
            if producer.num_epochs is None or producer.count is None or len(queue.enqueues) > 1:
                return None
            return producer.count * producer.num_epochs
        stage = topology.transform(enqueue.transform)
        if enqueue.many or enqueue.conditional or len(stage.inputs) != 1:
            return None
        sources.append(stage.inputs[0])
    # Several branches may share a read or a queue: each element of it passes once, through one of them.
    for origin in dict.fromkeys(_origin(name, topology) for name in sources):
        passed = None if origin is None else _passed(origin, topology, counts)
        if passed is None:
            return None
        total += passed
    return total if sources else None


def _origin(cut: str | None, topology: Topology) -> str | None:
    """The queue that a cut op takes from, or None when it takes more than one element, or nobody knows."""
    node: Any = next((d for d in topology.dequeues if d.name == cut), None)
    if isinstance(node, Dequeue):
        return node.queue if node.kind == "dequeue" and not node.conditional else None
    read = topology.read(cut) if cut is not None else None
    return read.queue if read is not None and not read.many else None


def _passed(name: str, topology: Topology, counts: Mapping[str, int]) -> int | None:
    queue = topology.queue(name)
    if not queue.reads:
        return elements_of(queue, topology, counts)
    producers = [p for p in topology.producers if p.queue == name]
    known = {counts[read] for read in queue.reads if read in counts}
    if len(producers) != 1 or len(queue.enqueues) != 1 or len(known) != 1 or producers[0].num_epochs is None:
        return None
    return known.pop() * producers[0].num_epochs


def buffer_findings(topology: Topology, elements: Mapping[str, tuple[Any, ...]]) -> Iterator[Finding]:
    """Queues that, when full, need much memory.

    Args:
        topology: The topology.
        elements: The first element of each queue, where it is known: it tells the size of strings and open shapes.
    """
    free = free_memory()
    limit = LARGE_BUFFER if free is None else min(LARGE_BUFFER, free // 2)
    for queue in topology.queues:
        if queue.capacity is None or not queue.threads:
            continue
        one, guessed = _element_bytes(queue, elements.get(queue.name))
        holds = min(queue.capacity, _most(queue, topology))
        if one is not None and one * holds > limit:
            about = "about " if guessed else ""
            of_free = f", of {_words(free)} that are free" if free is not None else ""
            yield Finding(
                "memory",
                f"queue {queue.name!r} will need {about}{_words(one * holds)} ({one * holds:,} bytes) when it is full: "
                f"{holds:,} elements of {about}{one:,} bytes{of_free}; lower capacity and min_after_dequeue, or "
                f"shuffle the serialized records before they are decoded",
                queue.name,
                queue.source,
            )


def _most(queue: Queue, topology: Topology) -> int:
    """The most elements that can be in a queue because there are no more."""
    found = elements_of(queue, topology, {})
    return 1 << 62 if found is None else found


def _element_bytes(queue: Queue, element: tuple[Any, ...] | None) -> tuple[int | None, bool]:
    """Bytes of an element, and whether that was judged by the first one."""
    if queue.element_bytes is not None:
        return queue.element_bytes, False
    if element is None:
        return None, True
    return sum(nbytes(value) for value in element), True


def nbytes(value: Any) -> int:
    """Bytes of a value as TensorFlow holds it: the numbers, or the strings."""
    if isinstance(value, (bytes, str)):
        return len(value)
    array = np.asarray(value)
    return sum(map(len, array.ravel().tolist())) if array.dtype.kind == "O" else int(array.nbytes)


def free_memory() -> int | None:
    """Bytes of memory that programs can still have, or None where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _words(size: int) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size:,} bytes"
