"""Puts tf.data iterators in the place of the queues of a graph, under a training script that stays as it is.

The ops that used what a dequeue gave are given what an iterator gives. Changing the inputs of ops that exist is not
in TensorFlow's public API; the three private methods of tf.Operation that do it are used in this file only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    _plans: Mapping[str, _Plan] = field(default_factory=dict, repr=False, compare=False)

    def stand_in(self, tensor: Any) -> Any:
        """What to fetch instead of a tensor, or of a dequeue op: what a dequeue op gives itself would wait for ever.

        Anything computed from a batch can be fetched as before, and is returned as it is.
        """
        if isinstance(tensor, tf.Operation):
            found = self.tensors.get(f"{tensor.name}:0")
            return tensor if found is None else found.op
        return self.tensors.get(tensor.name, tensor)

    def extend(self) -> Rewired:
        """Let what was added to the graph since read tf.data, too; call it before the session runs any of it.

        That is: ops that take what a dequeue op gave, more dequeue ops of the same queues, and whole pipelines.

        Returns:
            What stands for what, the earlier included.

        Raises:
            CannotLower: A new pipeline has no exact counterpart in tf.data, or a new dequeue op takes batches of
                another size than those before; what was replaced before stays replaced.
        """
        graph = next(iter(self.tensors.values())).graph
        for name, new in self.tensors.items():
            _give(graph.get_tensor_by_name(name), new)
        _release(graph, {name.rpartition(":")[0]: new.op for name, new in self.tensors.items()})
        topology = trace(graph)
        view = GraphView(graph)
        sinks = sinks_of(view, topology)
        read = {node.name for name in self._plans for node in topology.ancestors(topology.queue(name))} | {*self._plans}
        for name, dequeues in sinks.items():
            above = {node.name for node in topology.ancestors(topology.queue(name))} & read
            if above and name not in self._plans:
                raise CannotLower(
                    f"the queue {name} takes from {min(above)}, in whose place tf.data had been put before {name} was "
                    f"built",
                    op=dequeues[0].name,
                    source=dequeues[0].source,
                    advice="build every pipeline before the first session.run",
                )
        first = next(iter(self._plans.values()))
        plans = {
            name: _Plan(view, topology, name, dequeues, first.shuffle, first.session)
            for name, dequeues in sinks.items()
            if name not in self._plans
        }
        more = [
            (plan, dequeue, outputs_of(view, dequeue))
            for name, plan in self._plans.items()
            for dequeue in sinks.get(name, ())
            if not any(output.name in self.tensors for output in view.by_name[dequeue.name].outputs)
        ]
        tensors = dict(self.tensors)
        for plan, dequeue, outputs in more:
            tensors.update(plan.give_next(graph, dequeue, outputs))
        return _replaced(graph, tensors, plans, before=self)


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
    plans = {name: _Plan(view, topology, name, dequeues, shuffle, session) for name, dequeues in sinks.items()}
    return _replaced(graph, {}, plans, before=None)


def _replaced(
    graph: tf.Graph, tensors: dict[str, Any], plans: Mapping[str, _Plan], *, before: Rewired | None
) -> Rewired:
    """Carry out the plans, and take the runners out of the collection."""
    for plan in plans.values():
        tensors.update(plan.replace(graph))
    runners = graph.get_collection_ref(tf1.GraphKeys.QUEUE_RUNNERS)
    taken_out = tuple(runners)
    runners.clear()
    if before is not None:
        plans = {**before._plans, **plans}
        taken_out = (*before.runners, *taken_out)
    datasets = {name: plan.dataset for name, plan in plans.items()}
    initializers = tuple(initializer for plan in plans.values() for initializer in plan.initializers)
    return Rewired(tensors, datasets, initializers, taken_out, plans)


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
        self.shuffle = shuffle
        self.session = session
        self.outputs = [outputs_of(view, dequeue) for dequeue in dequeues]
        self._iterator: Any = None
        with apart(view.graph):
            self.dataset = to_dataset(view.graph, tuple(self.outputs[0]), shuffle=shuffle, session=session)
        self.initializers: list[Any] = []

    def replace(self, graph: tf.Graph) -> dict[str, Any]:
        """Give the consumers what the iterator gives."""
        with apart(graph):
            try:
                self._iterator = tf1.data.make_one_shot_iterator(self.dataset)
            except ValueError:
                # It uses a resource (a lookup table), which is there only once the program has initialised it.
                self._iterator = tf1.data.make_initializable_iterator(self.dataset)
                self.initializers.append(self._iterator.initializer)
                graph.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, self._iterator.initializer)
        tensors: dict[str, Any] = {}
        for dequeue, outputs in zip(self.dequeues, self.outputs, strict=True):
            tensors.update(self.give_next(graph, dequeue, outputs))
        return tensors

    def give_next(self, graph: tf.Graph, dequeue: Dequeue, outputs: list[Any]) -> dict[str, Any]:
        """Give the consumers of one dequeue op what the iterator gives; returns what stands for its outputs."""
        with apart(graph):
            news = tf.nest.flatten(self._iterator.get_next())
        tensors: dict[str, Any] = {}
        for old, new in zip(outputs, news, strict=True):
            _give(old, new)
            tensors[old.name] = new
        _release(graph, dict.fromkeys([dequeue.name, *(old.op.name for old in outputs)], news[0].op))
        return tensors


def _give(old: Any, new: Any) -> None:
    """Let all consumers of one tensor take another."""
    for consumer in old.consumers():
        for index, tensor in enumerate(consumer.inputs):
            if tensor is old:
                consumer._update_input(index, new)


def _release(graph: tf.Graph, replaced: Mapping[str, Any]) -> None:
    """Let what waits for a replaced op wait for what stands for it instead."""
    for op in graph.get_operations():
        waits_for = op.control_inputs
        if op.name not in replaced and any(other.name in replaced for other in waits_for):
            op._remove_all_control_inputs()
            op._add_control_inputs([replaced.get(other.name, other) for other in waits_for])
