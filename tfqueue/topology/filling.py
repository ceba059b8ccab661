"""What fills the queues of a graph: its enqueue ops, and the queue runners that run them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfqueue.topology.model import Enqueue, Runner
from tfqueue.topology.subgraph import (
    CALL_TYPES,
    CUT_TYPES,
    ENQUEUE_TYPES,
    QUEUE_KINDS,
    READER_KINDS,
    GraphView,
    describe_tensor,
)

# What reading an attribute of a strange op may raise.
STRANGE = (ValueError, TypeError, KeyError, IndexError, AttributeError, tf.errors.OpError)


class Filling:
    """Reads enqueue ops and queue runners.

    Args:
        view: The graph.
        add_unknown: Told of ops that cannot be understood, with the reason.
        warnings: Gets what is odd, in words.
    """

    def __init__(self, view: GraphView, add_unknown: Callable[[Any, str], None], warnings: list[str]) -> None:
        self.view = view
        self.add_unknown = add_unknown
        self.warnings = warnings

    def enqueue_ops(self) -> dict[str, list[Any]]:
        """The ops that enqueue, directly or inside a function they call, with the queues they may fill."""
        found = {op.name: self.view.queues_behind(op.inputs[0]) for op in self.view.of_type(ENQUEUE_TYPES)}
        for op in self.view.of_type(CALL_TYPES):
            queues = captured_queues(self.view, op)
            if queues and self.view.called_types(op) & ENQUEUE_TYPES.keys():
                found[op.name] = queues
        return found

    def runners(self, enqueue_ops: dict[str, list[Any]]) -> tuple[list[Runner], dict[str, list[tuple[int, str]]]]:
        """All runners, and of each enqueue op the (runner, op that the runner runs), once for each thread."""
        runners: list[Runner] = []
        drivers: dict[str, list[tuple[int, str]]] = {}
        seen: set[int] = set()
        graph = self.view.graph
        for key in graph.get_all_collection_keys():
            for item in graph.get_collection(key):
                if id(item) in seen or not (hasattr(item, "enqueue_ops") and hasattr(item, "queue")):
                    continue
                seen.add(id(item))
                try:
                    runner = self._runner(item, str(key))
                except STRANGE as error:
                    self.warnings.append(f"a queue runner in collection {key!r} could not be read: {error}")
                    continue
                triggered = {name: self._triggered(name, enqueue_ops) for name in set(runner.enqueue_ops)}
                for name in runner.enqueue_ops:
                    for enqueue in triggered[name]:
                        drivers.setdefault(enqueue, []).append((len(runners), name))
                for name in sorted(name for name, enqueues in triggered.items() if not enqueues):
                    op = self.view.by_name.get(name)
                    self.add_unknown(op, f"queue runner {runner.name!r} runs it, but it fills no queue of the graph")
                runners.append(runner)
        return runners, drivers

    def _runner(self, item: Any, key: str) -> Runner:
        queue_ref = getattr(item.queue, "queue_ref", None)
        behind = [] if queue_ref is None else self.view.queues_behind(queue_ref)
        close_op = getattr(item, "close_op", None)
        return Runner(
            name=str(getattr(item, "name", "")),
            queue=behind[0].name if len(behind) == 1 else None,
            enqueue_ops=tuple(_op_of(op).name for op in item.enqueue_ops or ()),
            close_op=None if close_op is None else _op_of(close_op).name,
            closes=() if close_op is None else self._closed_by(_op_of(close_op)),
            cancel_op=None if getattr(item, "cancel_op", None) is None else _op_of(item.cancel_op).name,
            closed_exceptions=tuple(
                getattr(kind, "__name__", str(kind)) for kind in getattr(item, "queue_closed_exception_types", ())
            ),
            collection=key,
        )

    def _closed_by(self, op: Any) -> tuple[str, ...]:
        ops, _ = self.view.closure([op], stop=is_cut_or_handle)
        closing = [other for other in ops if other.type.startswith("QueueClose")]
        return tuple(queue.name for other in closing for queue in self.view.queues_behind(other.inputs[0]))

    def _triggered(self, name: str, enqueue_ops: dict[str, list[Any]]) -> list[str]:
        """The enqueue ops that running an op runs."""
        op = self.view.by_name.get(name)
        if op is None:
            return []
        ops, _ = self.view.closure([op], stop=is_cut)
        return [other.name for other in ops if other.name in enqueue_ops]

    def in_runner_order(self, enqueue_ops: dict[str, list[Any]], drivers: dict[str, Any]) -> list[Any]:
        """The enqueue ops in the order of the queue runners, then those that no runner knows."""
        names = [name for name in drivers if name in enqueue_ops]
        names.extend(name for name in enqueue_ops if name not in drivers)
        return [self.view.by_name[name] for name in names]

    def enqueues_of(self, op: Any, queues: list[Any], drivers: list[tuple[int, str]] | None) -> list[Enqueue]:
        """One enqueue op, once for each queue that it may fill."""
        source = self.view.source_of(op)
        in_function = op.type in CALL_TYPES
        if not queues:
            self.add_unknown(op, "it enqueues, but its queue could not be told")
        elif len(queues) > 1 and not in_function:
            self.warnings.append(
                f"{op.name} ({source}) fills one of several queues, chosen while running: "
                f"{', '.join(queue.name for queue in queues)}"
            )
        types = self.view.called_types(op) if in_function else {op.type}
        return [
            Enqueue(
                name=op.name,
                queue=queue.name,
                many=any(ENQUEUE_TYPES.get(op_type, False) for op_type in types),
                components=() if in_function else tuple(describe_tensor(tensor) for tensor in op.inputs[1:]),
                runs=drivers[0][1] if drivers else op.name,
                copies=len(drivers or ()),
                conditional=in_function or op.inputs[0].op.type in ("Switch", "RefSwitch"),
                runner=drivers[0][0] if drivers else None,
                transform=op.name,
                source=source,
            )
            for queue in queues
        ]


def captured_queues(view: GraphView, op: Any) -> list[Any]:
    """The queues whose handles an op takes, as one that calls functions does."""
    queues: dict[str, Any] = {}
    for tensor in op.inputs:
        if tensor.dtype == tf.resource:
            queues.update({queue.name: queue for queue in view.queues_behind(tensor)})
    return view.sorted(queues.values())


def is_cut(op: Any) -> bool:
    """Whether a stage ends at an op: it dequeues or reads."""
    return op.type in CUT_TYPES


def is_cut_or_handle(op: Any) -> bool:
    """Whether a stage ends at an op: it dequeues or reads, or is the queue or reader itself."""
    return op.type in CUT_TYPES or op.type in QUEUE_KINDS or op.type in READER_KINDS


def _op_of(item: Any) -> Any:
    """The op of an op or tensor (a runner's list holds either)."""
    return item.op if isinstance(item, tf.Tensor) else item
