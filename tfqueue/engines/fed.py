"""Batches of tf.data for the steps of a session that somebody else runs.

What the dequeue ops of the graph would give is fed to each `session.run` that needs it. The graph stays as it is: its
ops cannot be given other inputs (`rewire`) once the session has run anything, be it the initialisers, since
TensorFlow does not look at them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from tfqueue.engines.feeding import fed_names
from tfqueue.engines.lowered import Source, refuse_changing_variables
from tfqueue.engines.queue_ops import QueueHandle, apart, queue_operations
from tfqueue.engines.rewire import outputs_of, sinks_of
from tfqueue.engines.tfdata import to_dataset
from tfqueue.errors import CannotLower, InvalidArgument
from tfqueue.topology.subgraph import GraphView
from tfqueue.topology.trace import fetch_elements, trace

# By dequeue op: the copies of what it gives that are fed as well, and which of its values each is.
_Needs = dict[str, dict[Any, int]]


class Fed:
    """Feeds the steps of a session from datasets, in place of its queues; the queue runners must not be started.

    Args:
        graph: The graph.
        session: A session of it, initialised.
        shuffle: As for `to_dataset`.

    Attributes:
        source: Where the batches come from.

    Raises:
        CannotLower: A queue has no exact counterpart in tf.data.
        InvalidArgument: Nothing is taken from a queue, or the queues have been used in this session before.
    """

    def __init__(self, graph: tf.Graph, session: Any, *, shuffle: str) -> None:
        self._graph, self._session = graph, session
        topology = trace(graph)
        self._view = view = GraphView(graph)
        sinks = sinks_of(view, topology)
        if not sinks:
            raise InvalidArgument("no step of this graph takes anything from a queue, so there is nothing to feed")
        refuse_changing_variables(topology, view)
        self._outputs: dict[str, tuple[int, list[Any]]] = {}
        for index, dequeues in enumerate(sinks.values()):
            for dequeue in dequeues:
                self._outputs[dequeue.name] = (index, outputs_of(view, dequeue))
        # Of each tensor that is fed: the dequeue op that it stands for, and its place in what that op gives.
        self._fed = {
            tensor.name: (name, place)
            for name, (_, outputs) in self._outputs.items()
            for place, tensor in enumerate(outputs)
        }
        self._needs: dict[tuple[object, ...], tuple[list[Any], _Needs]] = {}

        def make() -> Sequence[Any]:
            return [
                to_dataset(graph, tuple(self._outputs[dequeues[0].name][1]), session=session, shuffle=shuffle)
                for dequeues in sinks.values()
            ]

        self.source = Source(make)

    @contextmanager
    def attached(self) -> Iterator[None]:
        """While open, each `run` of the session, and what its `make_callable` makes, is fed what it needs."""
        session = self._session
        run, make_callable = session.run, session.make_callable

        def fed_run(fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
            feeds = self.feeds(fetches, feed_dict)
            if feeds:
                feed_dict = {**feeds, **(feed_dict or {})}
            return run(fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata)

        def fed_callable(fetches: Any, feed_list: Any = None, accept_options: bool = False) -> Callable[..., Any]:
            if not self._needed(fetches, frozenset()):
                call: Callable[..., Any] = make_callable(fetches, feed_list, accept_options)
                return call
            return lambda *values, **options: fed_run(
                fetches, dict(zip(feed_list or (), values, strict=True)), **options
            )

        session.run, session.make_callable = fed_run, fed_callable  # on this object only; its class stays as it is
        try:
            yield
        finally:
            del session.run, session.make_callable

    def feeds(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> dict[Any, Any]:
        """What a `session.run` must be fed besides ``feed_dict``; takes a batch for each dequeue op that it needs.

        Raises:
            CannotLower: The step needs a dequeue op itself, and not only what it gives.
        """
        given = fed_names(feed_dict)
        found: dict[Any, Any] = {}
        for name, copies in self._needed(fetches, given).items():
            index, outputs = self._outputs[name]
            values = self.source.take(index)
            found.update(zip(outputs, values, strict=True))
            found.update((copy, values[place]) for copy, place in copies.items())
        return {tensor: value for tensor, value in found.items() if tensor.name not in given}

    def _needed(self, fetches: Any, given: frozenset[str]) -> _Needs:
        elements = fetch_elements(self._graph, fetches)
        key = (*(id(element) for element in elements), *sorted(given))
        if key not in self._needs:
            # The elements are kept, so that their ids stay theirs.
            self._needs[key] = (elements, self._walk(elements, given))
        return self._needs[key][1]

    def _walk(self, elements: Sequence[Any], given: frozenset[str]) -> _Needs:
        """What a step that is fed ``given`` needs of the dequeue ops."""
        needs: _Needs = {}
        waiting: list[Any] = []
        seen: set[str] = set()

        def visit(tensor: Any) -> None:
            copied = tensor if tensor.name in self._fed else self._copied(tensor)
            if tensor.name in given:
                return
            if copied is None:
                waiting.append(tensor.op)
                return
            name, place = self._fed[copied.name]
            copies = needs.setdefault(name, {})
            if copied is not tensor:
                copies[tensor] = place

        for element in elements:
            if isinstance(element, tf.Operation):
                waiting.append(element)
            else:
                visit(element)
        while waiting:
            op = waiting.pop()
            if op.name in seen:
                continue
            seen.add(op.name)
            if op.name in self._outputs:
                source = self._view.source_of(op)
                raise CannotLower(
                    f"the step waits for {op.name} ({source}) itself, by a control dependency or a fetch of the op, "
                    f"and not only for what it gives, which could be fed",
                    op=op.name,
                    source=source,
                    advice="call tfqueue.rewire(graph) before the session is made, which moves such dependencies",
                )
            for tensor in op.inputs:
                visit(tensor)
            waiting.extend(op.control_inputs)
        return needs

    def _copied(self, tensor: Any) -> Any | None:
        """Of a copy that also waits for the dequeue op (tf.train.batch makes them of sparse batches): the original."""
        op = tensor.op
        if op.type != "Identity" or not op.control_inputs or op.inputs[0].name not in self._fed:
            return None
        name, _ = self._fed[op.inputs[0].name]
        takes = {name, *(output.op.name for output in self._outputs[name][1])}
        return op.inputs[0] if all(other.name in takes for other in op.control_inputs) else None


def refuse_used_queues(graph: tf.Graph, session: Any) -> dict[str, QueueHandle]:
    """Raise InvalidArgument where the queues or readers of a session have been used already.

    Returns:
        The queues, by name; none of a finalized graph, which cannot be given the ops that would ask them.
    """
    if graph.finalized:
        return {}
    handles = [QueueHandle(op) for op in queue_operations(graph)]
    readers = [op for op in graph.get_operations() if op.type.endswith("ReaderV2") and op.outputs]
    with apart(graph):
        read = [tf.raw_ops.ReaderNumRecordsProducedV2(reader_handle=op.outputs[0]) for op in readers]
    sizes, closed, counts = session.run([[h.size for h in handles], [h.is_closed for h in handles], read])
    advice = (
        "open a new session and enter queue_runners before anything is started or fetched in it; for a session that "
        "starts the runners itself (MonitoredTrainingSession, Supervisor), call tfqueue.rewire(graph) before it is made"
    )
    for handle, size, is_closed in zip(handles, sizes, closed, strict=True):
        if size or is_closed:
            state = "is closed" if is_closed else f"holds {size} elements"
            raise InvalidArgument(f"too late for engine='tfdata': the queue {handle.name} {state} already; {advice}")
    for op, count in zip(readers, counts, strict=True):
        if count:
            raise InvalidArgument(f"too late for engine='tfdata': {op.name} has read {count} records already; {advice}")
    return {handle.name: handle for handle in handles}
