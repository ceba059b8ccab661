"""Puts tf.data iterators in the place of the queues of a graph, under a training script that stays as it is.

The ops that used what a dequeue gave are given what an iterator gives. Changing the inputs of ops that exist is not
in TensorFlow's public API; the three private methods of tf.Operation that do it are used in this file only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfqueue.engines.queue_ops import apart
from tfqueue.engines.sparse import TakenSparse
from tfqueue.engines.tfdata import to_dataset
from tfqueue.errors import CannotLower, InvalidArgument
from tfqueue.topology.model import Dequeue, Topology
from tfqueue.topology.subgraph import GraphView
from tfqueue.topology.trace import trace

tf1 = tf.compat.v1


@dataclass(frozen=True, slots=True)
class Rewired:
    """What was replaced by what.

    Attributes:
        tensors: Of each tensor that a dequeue op gave, by name, the tensor that an iterator gives now.
        datasets: The dataset of each queue that was replaced, by the queue's name.
        initializers: Ops that must run before the first step; they are among those of ``tables_initializer``. Empty
            in the usual case, where the iterators need none.
        runners: The queue runners that were taken out of the graph's collection.
    """

    tensors: Mapping[str, Any]
    datasets: Mapping[str, Any]
    initializers: tuple[Any, ...]
    runners: tuple[Any, ...]

    def stand_in(self, tensor: Any) -> Any:
        """What to fetch instead of a tensor: what a dequeue op gives itself would wait for ever.

        Anything computed from a batch can be fetched as before, and is returned as it is.
        """
        return self.tensors.get(tensor.name, tensor)

    def extend(self) -> None:
        """Let ops that were added since, and take what a dequeue op gave, take what the iterator gives, too."""
        for name, new in self.tensors.items():
            _give(new.graph.get_tensor_by_name(name), new)


def rewire(graph: tf.Graph, *, shuffle: str = "native", session: Any | None = None) -> Rewired:
    """Let the consumers of a graph's last queues read tf.data iterators; call it before the first step.

    The queue runners of the graph are taken out of its collection, so that ``start_queue_runners`` starts none of
    them. Where several dequeue ops read one queue (a tower each), their consumers share one iterator and take batch
    after batch from it.

    Args:
        graph: The graph, with everything built; it must not be finalized.
        shuffle: As for ``to_dataset``: ``"native"`` or ``"replay"``.
        session: As for ``to_dataset``.

    Returns:
        What stands for what.

    Raises:
        CannotLower: A queue has no exact counterpart in tf.data; the graph is as it was.
        InvalidArgument: The graph is finalized, or nothing is taken from any of its queues.
    """
    if graph.finalized:
        raise InvalidArgument("the graph is finalized; rewire it before the session (or Supervisor) is made")
    topology = trace(graph)
    view = GraphView(graph)
    sinks = sinks_of(view, topology)
    if not sinks:
        raise InvalidArgument("no step of this graph takes anything from a queue, so there is nothing to replace")
    # All datasets first: if one cannot be made, no op has been changed.
    plans = [_Plan(view, topology, name, dequeues, shuffle, session) for name, dequeues in sinks.items()]
    tensors: dict[str, Any] = {}
    initializers: list[Any] = []
    for plan in plans:
        tensors.update(plan.replace(graph))
        initializers.extend(plan.initializers)
    runners = graph.get_collection_ref(tf1.GraphKeys.QUEUE_RUNNERS)
    taken_out = tuple(runners)
    runners.clear()
    return Rewired(tensors, {plan.queue: plan.dataset for plan in plans}, tuple(initializers), taken_out)


def sinks_of(view: GraphView, topology: Topology) -> dict[str, list[Dequeue]]:
    """The dequeue ops that no other queue is filled from, by queue.

    Raises:
        CannotLower: A step takes from one of several queues, or reads records without a queue.
    """
    for read in topology.reads:
        used = any(tensor.consumers() for tensor in view.by_name[read.name].outputs)
        if used and not read.consumers:
            raise CannotLower(
                f"a step reads from {read.name} itself, without a queue behind it",
                op=read.name,
                source=read.source,
                advice="put a queue behind it (tf.train.batch), or use to_dataset, which can lower it",
            )
    sinks: dict[str, list[Dequeue]] = {}
    for dequeue in topology.dequeues:
        if dequeue.consumers:
            continue
        if dequeue.queue is None or dequeue.conditional:
            raise CannotLower(
                f"{dequeue.name} takes from one of several queues, chosen while running: "
                f"{', '.join(dequeue.candidates)}",
                op=dequeue.name,
                source=dequeue.source,
                advice="choose between the batches, not between the queues",
            )
        sinks.setdefault(dequeue.queue, []).append(dequeue)
    for queue, dequeues in sinks.items():
        if len({(dequeue.kind, dequeue.batch_size) for dequeue in dequeues}) > 1:
            raise CannotLower(
                f"steps take batches of different sizes from the queue {queue}: "
                f"{', '.join(f'{d.name} takes {d.batch_size}' for d in dequeues)}",
                op=dequeues[1].name,
                source=dequeues[1].source,
                advice="take batches of one size and split them",
            )
    return sinks


def outputs_of(view: GraphView, dequeue: Dequeue) -> list[Any]:
    """The tensors to replace: the outputs of a dequeue, and the SparseTensors that are made from them."""
    outputs = list(view.by_name[dequeue.name].outputs)
    taken = TakenSparse(view, None, frozenset(tensor.name for tensor in outputs))
    return [tensor for tensor in outputs if tensor.name not in taken.sources] + taken.tensors


class _Plan:
    """One queue, its dataset, and the dequeue ops that it stands for."""

    def __init__(
        self,
        view: GraphView,
        topology: Topology,
        queue: str,
        dequeues: list[Dequeue],
        shuffle: str,
        session: Any | None,
    ) -> None:
        self.queue = queue
        self.dequeues = dequeues
        self.outputs = [outputs_of(view, dequeue) for dequeue in dequeues]
        with apart(view.graph):
            self.dataset = to_dataset(view.graph, tuple(self.outputs[0]), shuffle=shuffle, session=session)
        self.initializers: list[Any] = []

    def replace(self, graph: tf.Graph) -> dict[str, Any]:
        """Give the consumers what the iterator gives."""
        with apart(graph):
            try:
                iterator = tf1.data.make_one_shot_iterator(self.dataset)
            except ValueError:
                # It uses a resource (a lookup table), which is there only once the program has initialised it.
                iterator = tf1.data.make_initializable_iterator(self.dataset)
                self.initializers.append(iterator.initializer)
                graph.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
            tensors: dict[str, Any] = {}
            for dequeue, outputs in zip(self.dequeues, self.outputs, strict=True):
                news = tf.nest.flatten(iterator.get_next())
                for old, new in zip(outputs, news, strict=True):
                    _give(old, new)
                    tensors[old.name] = new
                replaced = {old.op.name for old in outputs} | {dequeue.name}
                _release(graph, replaced, news[0].op)
        return tensors


def _give(old: Any, new: Any) -> None:
    """Let all consumers of one tensor take another."""
    for consumer in old.consumers():
        for index, tensor in enumerate(consumer.inputs):
            if tensor is old:
                consumer._update_input(index, new)


def _release(graph: tf.Graph, replaced: set[str], get_next: Any) -> None:
    """Let what waits for a replaced op wait for the iterator instead."""
    for op in graph.get_operations():
        waits_for = op.control_inputs
        kept = [other for other in waits_for if other.name not in replaced]
        if len(kept) < len(waits_for) and op.name not in replaced:
            op._remove_all_control_inputs()
            op._add_control_inputs([*kept, get_next])
