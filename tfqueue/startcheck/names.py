"""The file names that a graph holds: constants, variables and patterns, followed to the op that reads the files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfqueue.topology.model import Producer, Topology
from tfqueue.topology.subgraph import DEQUEUE_KINDS, READ_TYPES, constant_values

_PASSES = frozenset({"Identity", "Reshape", "Squeeze", "Snapshot", "StopGradient", "EnsureShape"})
_GATHERS = frozenset({"Gather", "GatherV2", "ResourceGather"})
_VARIABLES = frozenset({"VarHandleOp", "VariableV2", "Variable"})
_JOINS = frozenset({"StringJoin", "Add", "AddV2"})
_DEPTH = 20


def names_of_producer(producer: Producer, graph: Any, session: Any) -> list[str] | None:
    """The file names that a producer gives in one epoch, unshuffled; None when they are not known."""
    if producer.elements is not None:
        return [str(name) for name in producer.elements]
    if producer.variable is not None:
        return _variable_value(graph.get_operation_by_name(producer.variable), session)
    if producer.pattern is not None and "://" not in producer.pattern:
        return [name for pattern in producer.pattern.split("\n") for name in sorted(tf.io.gfile.glob(pattern))]
    return None


def file_names(tensor: Any, topology: Topology, graph: Any, session: Any) -> list[str] | None:
    """All values that a string tensor takes, one after the other, in one epoch; None when they are not known."""
    return _Values(topology, graph, session).of(tensor, _DEPTH)


class _Values:
    def __init__(self, topology: Topology, graph: Any, session: Any) -> None:
        self.topology, self.graph, self.session = topology, graph, session

    def of(self, tensor: Any, depth: int) -> list[str] | None:
        op = tensor.op
        if op.type in _VARIABLES or op.type == "ReadVariableOp":
            return _variable_value(op.inputs[0].op if op.inputs else op, self.session)
        if not depth or tensor.dtype.base_dtype != tf.string:
            return None
        if op.type in _PASSES:
            return self.of(op.inputs[0], depth - 1)
        if op.type in _GATHERS:
            return self._gathered(op, depth)
        if op.type in _JOINS:
            return self._joined(op, depth)
        if op.type in READ_TYPES:
            return self._read(op, tensor.value_index)
        if op.type in DEQUEUE_KINDS:
            return self._dequeued(op, tensor.value_index, depth)
        values = constant_values(tensor)
        return None if values is None else [str(value) for value in values]

    def _gathered(self, op: Any, depth: int) -> list[str] | None:
        # Only where the index runs over the rows: other indices may leave some out.
        index = op.inputs[1].op
        dequeue = next((node for node in self.topology.dequeues if node.name == index.name), None)
        producers = [p for p in self.topology.producers if dequeue is not None and p.queue == dequeue.queue]
        if len(producers) != 1 or producers[0].kind != "range" or producers[0].count is None:
            return None
        first = producers[0].elements[0] if producers[0].elements else None
        names = self.of(op.inputs[0], depth - 1)
        return names[: producers[0].count] if names is not None and first == 0 else None

    def _joined(self, op: Any, depth: int) -> list[str] | None:
        parts = [self.of(tensor, depth - 1) for tensor in op.inputs]
        known = [part for part in parts if part]
        many = [part for part in known if len(part) > 1]
        if len(known) < len(parts) or len(many) > 1:
            return None
        separator = op.get_attr("separator").decode() if op.type == "StringJoin" else ""
        rows = len(many[0]) if many else 1
        return [separator.join(part[row if len(part) > 1 else 0] for part in known) for row in range(rows)]

    def _read(self, op: Any, output: int) -> list[str] | None:
        # Only an IdentityReader gives the names themselves.
        reader = next((r for r in self.topology.readers if op.name in r.ops), None)
        read = self.topology.read(op.name)
        producers = [p for p in self.topology.producers if read is not None and p.queue == read.queue]
        if reader is None or reader.kind != "Identity" or output != 1 or len(producers) != 1:
            return None
        return names_of_producer(producers[0], self.graph, self.session)

    def _dequeued(self, op: Any, component: int, depth: int) -> list[str] | None:
        dequeue = next((node for node in self.topology.dequeues if node.name == op.name), None)
        if dequeue is None or dequeue.queue is None:
            return None
        names: list[str] = []
        for enqueue in self.topology.queue(dequeue.queue).enqueues:
            if enqueue.conditional or component >= len(enqueue.components):
                return None
            producer = next((p for p in self.topology.producers if p.name == enqueue.name), None)
            if producer is not None and producer.kind == "files" and len(enqueue.components) == 1:
                found = names_of_producer(producer, self.graph, self.session)
            else:
                tensor = self.graph.get_tensor_by_name(enqueue.components[component].name)
                found = self.of(tensor, depth - 1)
            if found is None:
                return None
            names.extend(found)
        return names


def _variable_value(op: Any, session: Any) -> list[str] | None:
    """The strings in an initialised variable; None when it has no value, or no strings."""
    tensor = op.outputs[0]
    if op.type == "VarHandleOp":
        users = (user for user in tensor.consumers() if user.type == "ReadVariableOp" and not user.control_inputs)
        read = next(users, None)
        if read is None:
            return None
        tensor = read.outputs[0]
    if tensor.dtype.base_dtype != tf.string:
        return None
    try:
        value: Sequence[bytes] = session.run(tensor).ravel().tolist()
    except (tf.errors.OpError, AttributeError):
        return None
    return [os.fsdecode(name) for name in value]
