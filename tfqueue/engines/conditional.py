"""What an enqueue op puts into its queue, and under which condition (tf.cond and tf.switch_case around it)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfqueue.errors import CannotLower
from tfqueue.topology.model import Enqueue
from tfqueue.topology.subgraph import CALL_TYPES, ENQUEUE_TYPES, GraphView

_SWITCHES = ("Switch", "RefSwitch")


@dataclass(frozen=True, slots=True)
class Enqueued:
    """What one run of an enqueue op adds to a queue.

    Attributes:
        tensors: The legacy tensors of the components.
        condition: The legacy tensor that decides, or None when it always enqueues.
        keeps: From the value of the condition to a bool: whether this run enqueues.
        also: Ops that the enqueue waits for.
    """

    tensors: tuple[Any, ...]
    condition: Any | None
    keeps: Callable[[Any], Any]
    also: tuple[Any, ...]


def enqueued(view: GraphView, enqueue: Enqueue) -> Enqueued:
    """Read what an enqueue adds to its queue.

    Raises:
        CannotLower: The components are computed inside the branch of a tf.cond.
    """
    op = view.by_name[enqueue.name]
    if op.type in CALL_TYPES:
        return _in_functions(view, op, enqueue)
    if op.inputs[0].op.type in _SWITCHES:
        return _in_switch(view, op, enqueue)
    return Enqueued(tuple(op.inputs[1:]), None, lambda _: tf.constant(True), tuple(op.control_inputs))


def _in_switch(view: GraphView, op: Any, enqueue: Enqueue) -> Enqueued:
    """Inside a tf.cond of the time before functions: every tensor comes through a Switch."""
    handle = op.inputs[0]
    taken = handle.value_index == 1
    tensors = []
    for tensor in op.inputs[1:]:
        if tensor.op.type not in _SWITCHES:
            raise _computed_inside(view, op, enqueue)
        tensors.append(tensor.op.inputs[0])
    return Enqueued(tuple(tensors), handle.op.inputs[1], lambda value: tf.equal(value, taken), ())


def _in_functions(view: GraphView, op: Any, enqueue: Enqueue) -> Enqueued:
    """Inside the functions of a tf.cond or tf.switch_case: components are arguments of the function."""
    attributes = op.node_def.attr
    if op.type in ("If", "StatelessIf"):
        branches: list[tuple[Any, str]] = [
            (True, attributes["then_branch"].func.name),
            (False, attributes["else_branch"].func.name),
        ]
    elif op.type in ("Case", "StatelessCase"):
        branches = [(index, function.name) for index, function in enumerate(attributes["branches"].list.func)]
    else:
        raise _computed_inside(view, op, enqueue)
    arguments = list(op.inputs[1:])
    found: dict[Any, tuple[Any, ...]] = {}
    for value, name in branches:
        definition = view.function(name)
        if definition is None:
            raise _computed_inside(view, op, enqueue)
        positions = {argument.name: index for index, argument in enumerate(definition.signature.input_arg)}
        for node in definition.node_def:
            if node.op not in ENQUEUE_TYPES:
                continue
            data = [name for name in node.input if not name.startswith("^")]
            if any(name not in positions for name in data):
                raise _computed_inside(view, op, enqueue)
            handle, *tensors = (arguments[positions[name]] for name in data)
            if [queue.name for queue in view.queues_behind(handle)] == [enqueue.queue]:
                if value in found:
                    raise _computed_inside(view, op, enqueue)
                found[value] = tuple(tensors)
    if not found or len({tuple(t.name for t in tensors) for tensors in found.values()}) > 1:
        raise _computed_inside(view, op, enqueue)
    values = list(found)

    def keeps(value: Any) -> Any:
        return tf.reduce_any([tf.equal(value, tf.constant(each, value.dtype)) for each in values])

    return Enqueued(next(iter(found.values())), op.inputs[0], keeps, tuple(op.control_inputs))


def _computed_inside(view: GraphView, op: Any, enqueue: Enqueue) -> CannotLower:
    source = view.source_of(op)
    return CannotLower(
        f"{op.name} ({source}) enqueues inside a branch of a tf.cond what is also computed there",
        op=op.name,
        source=source,
        advice="compute the tensors before the tf.cond, and only enqueue inside it (as maybe_batch does)",
    )
