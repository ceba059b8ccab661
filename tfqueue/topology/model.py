"""The topology: what a queue-runner graph does, as plain data (names, numbers, strings; no TF object).

A graph is cut at its ``ReaderRead*``, ``QueueDequeue*`` and ``QueueEnqueue*`` ops:

    Producer -> Queue -> Dequeue | Reader -> Transform -> Queue -> Dequeue -> Transform (the fetches)

A ``Transform`` is one stage: the ops between the cuts that one enqueue, or the fetches, need.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from tfqueue.topology.nodes import (
    FETCHES,
    Decode,
    Dequeue,
    Enqueue,
    Feature,
    ParseSpec,
    Producer,
    Queue,
    Read,
    Reader,
    Runner,
    TensorInfo,
    Transform,
    Unknown,
)

__all__ = [
    "FETCHES",
    "Decode",
    "Dequeue",
    "Enqueue",
    "Feature",
    "Node",
    "ParseSpec",
    "Producer",
    "Queue",
    "Read",
    "Reader",
    "Runner",
    "TensorInfo",
    "Topology",
    "Transform",
    "Unknown",
]

Node: TypeAlias = Producer | Reader | Transform | Queue | Dequeue | Unknown


@dataclass(frozen=True, slots=True)
class Topology:
    """The data-flow of one graph.

    Attributes:
        queues: All queues, in an order from source to sink.
        producers, readers, transforms, dequeues: The other nodes; the stage of the fetches is the last.
        runners: The queue runners of all collections.
        fetches: What the user fetches, flattened; empty when the graph was traced without fetches.
        unknown: Parts that could not be understood.
        warnings: What was odd in the graph, in words.
    """

    queues: tuple[Queue, ...]
    producers: tuple[Producer, ...]
    readers: tuple[Reader, ...]
    transforms: tuple[Transform, ...]
    dequeues: tuple[Dequeue, ...]
    runners: tuple[Runner, ...]
    fetches: tuple[TensorInfo, ...]
    unknown: tuple[Unknown, ...] = ()
    warnings: tuple[str, ...] = ()
    _index: dict[str, Node] = field(init=False, repr=False, compare=False)

    def _repr_png_(self) -> bytes | None:
        """The pipeline as a picture, for notebooks; None where there is nothing to draw."""
        if not self.nodes:
            return None
        from tfqueue.views import plot_topology
        from tfqueue.views.style import png

        return png(plot_topology(self))

    def __post_init__(self) -> None:
        index: dict[str, Node] = {}
        # The last one wins: an op of several stages is found as a cut first, then as the earliest stage.
        stages: tuple[Node, ...] = (*reversed(self.transforms), *reversed(self.producers))
        cuts: tuple[Node, ...] = (*self.unknown, *self.readers, *self.dequeues, *self.queues)
        for node in (*stages, *cuts):
            index.update(dict.fromkeys(node.ops, node))
        object.__setattr__(self, "_index", index)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes."""
        return (
            *self.producers,
            *self.queues,
            *self.readers,
            *self.dequeues,
            *self.transforms,
            *self.unknown,
        )

    @property
    def enqueues(self) -> tuple[Enqueue, ...]:
        """The distinct enqueue ops of all queues, from source to sink."""
        return tuple(enqueue for queue in self.queues for enqueue in queue.enqueues)

    @property
    def reads(self) -> tuple[Read, ...]:
        """The read ops of all readers."""
        return tuple(read for reader in self.readers for read in reader.reads)

    @property
    def fetch_stage(self) -> Transform | None:
        """The stage of the fetches; None when the graph was traced without fetches."""
        return next((stage for stage in self.transforms if stage.name == FETCHES), None)

    def node_of(self, op_name: str) -> Node | None:
        """The node that an op belongs to (a cut op: its reader, dequeue or queue), or None."""
        return self._index.get(_op_name(op_name))

    def stages_of(self, op_name: str) -> tuple[Transform, ...]:
        """Every stage that runs an op, its cut ops included (branches may share ops)."""
        name = _op_name(op_name)
        return tuple(s for s in self.transforms if name in s.ops or name in s.inputs)

    def stage_of(self, op_name: str) -> Transform | None:
        """The first stage that runs an op, or None."""
        return next(iter(self.stages_of(op_name)), None)

    def queue(self, name: str) -> Queue:
        """The queue with this op name.

        Raises:
            KeyError: There is none.
        """
        for queue in self.queues:
            if queue.name == _op_name(name):
                return queue
        raise KeyError(f"no queue {name!r}; the queues are {[queue.name for queue in self.queues]}")

    def transform(self, name: str) -> Transform:
        """The stage with this name (that of its enqueue op, or ``"fetches"``).

        Raises:
            KeyError: There is none.
        """
        for transform in self.transforms:
            if transform.name == name:
                return transform
        raise KeyError(f"no stage {name!r}; the stages are {[stage.name for stage in self.transforms]}")

    def read(self, name: str) -> Read | None:
        """The read with this op name, or None."""
        return next((read for read in self.reads if read.name == name), None)

    def upstream(self, node: Node) -> tuple[Node, ...]:
        """The nodes that a node takes its data from, directly."""
        found: list[Node] = []
        if isinstance(node, Queue):
            producers = {producer.name: producer for producer in self.producers}
            for enqueue in node.enqueues:
                found.append(producers.get(enqueue.name) or self.transform(enqueue.transform))
        elif isinstance(node, Dequeue):
            found.extend(self.queue(name) for name in node.candidates)
        elif isinstance(node, Reader):
            found.extend(self.queue(read.queue) for read in node.reads if read.queue is not None)
        elif isinstance(node, Transform):
            found.extend(self._index[name] for name in node.inputs if name in self._index)
        return _unique(found)

    def downstream(self, node: Node) -> tuple[Node, ...]:
        """The nodes that take their data from a node, directly."""
        return tuple(other for other in self.nodes if any(node is source for source in self.upstream(other)))

    def ancestors(self, node: Node) -> tuple[Node, ...]:
        """All nodes upstream of a node, the nearest first, each once (the node itself is not among them)."""
        return _unique(self._walk(node))

    def live_queues(self) -> tuple[str, ...]:
        """The queues that the fetches depend on; without fetches, those that are read by anything."""
        stage = self.fetch_stage
        if stage is None:
            return tuple(queue.name for queue in self.queues if queue.dequeues or queue.reads)
        names = {node.name for node in self.ancestors(stage) if isinstance(node, Queue)}
        return tuple(queue.name for queue in self.queues if queue.name in names)

    def _walk(self, node: Node) -> Iterator[Node]:
        seen = {id(node)}
        waiting = [node]
        while waiting:
            for source in self.upstream(waiting.pop(0)):
                if id(source) not in seen:
                    seen.add(id(source))
                    waiting.append(source)
                    yield source


def _op_name(name: str) -> str:
    """The op's name of a tensor or op name, as TensorFlow writes them (``^op``, ``op:0``, ``op``)."""
    return name.removeprefix("^").partition(":")[0]


def _unique(nodes: Iterator[Node] | list[Node]) -> tuple[Node, ...]:
    return tuple({id(node): node for node in nodes}.values())
