"""SparseTensors on their way through a queue.

A TF1 batch function puts a SparseTensor into a map of the session and its number into the queue; after the queue
the numbers are changed back. A dataset carries the SparseTensor itself, serialized as TensorFlow does it: three
strings for its indices, values and shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tfqueue.topology.model import Transform
from tfqueue.topology.subgraph import GraphView

_STORES = {"AddSparseToTensorsMap": False, "AddManySparseToTensorsMap": True}
_TAKES = "TakeManySparseFromTensorsMap"
_SHAPING = ("ExpandDims", "Squeeze", "Identity", "Reshape")


def stored_sparse(view: GraphView, tensor: Any) -> tuple[tuple[Any, ...], bool] | None:
    """Of an enqueued number of a SparseTensor: (indices, values, dense_shape), and whether it is a batch of them.

    A number is not stored where keep_input says that the record is dropped; then its store op is in a tf.cond.
    """
    op = tensor.op
    while op.type in _SHAPING:
        op = op.inputs[0].op
    if op.type in _STORES:
        return tuple(op.inputs), _STORES[op.type]
    if op.type == "Merge":
        for branch in op.inputs:
            if branch.op.type in _STORES:
                parts = (part.op.inputs[0] if part.op.type == "Switch" else part for part in branch.op.inputs)
                return tuple(parts), _STORES[branch.op.type]
    if op.type in ("If", "StatelessIf"):
        return _stored_in_function(view, op)
    return None


def _stored_in_function(view: GraphView, op: Any) -> tuple[tuple[Any, ...], bool] | None:
    attributes = op.node_def.attr
    for name in (attributes["then_branch"].func.name, attributes["else_branch"].func.name):
        definition = view.function(name)
        if definition is None:
            continue
        positions = {argument.name: index for index, argument in enumerate(definition.signature.input_arg, start=1)}
        for node in definition.node_def:
            if node.op in _STORES:
                parts = [part for part in node.input if not part.startswith("^")]
                if all(part in positions for part in parts):
                    return tuple(op.inputs[positions[part]] for part in parts), _STORES[node.op]
    return None


def serialize(indices: Any, values: Any, shape: Any, *, many: bool) -> Any:
    """A SparseTensor as 3 strings, or a batch of N as strings of shape [N, 3]."""
    sparse = tf.SparseTensor(indices, values, shape)
    return tf.io.serialize_many_sparse(sparse) if many else tf.io.serialize_sparse(sparse)


class TakenSparse:
    """The SparseTensors that a stage (None: any op of the graph) takes out of what queues gave it.

    Attributes:
        tensors: The legacy tensors that stand for their parts, and that `restore` gives values for.
        sources: The legacy tensors (outputs of cuts) that hold their numbers.
    """

    def __init__(self, view: GraphView, stage: Transform | None, cut_outputs: frozenset[str]) -> None:
        self._takes: list[tuple[Any, str]] = []
        for op in view.of_type([_TAKES]):
            if stage is None or op.name in stage.ops:
                source = op.inputs[0]
                while source.name not in cut_outputs and source.op.type in _SHAPING:
                    source = source.op.inputs[0]
                if source.name in cut_outputs:
                    self._takes.append((op, source.name))

    @property
    def tensors(self) -> list[Any]:
        return [tensor for op, _ in self._takes for tensor in op.outputs]

    @property
    def sources(self) -> frozenset[str]:
        return frozenset(source for _, source in self._takes)

    def restore(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Values for `tensors`, from the serialized batches that the cuts gave, by name."""
        values: dict[str, Any] = {}
        for op, source in self._takes:
            rank = op.outputs[0].shape.as_list()[1]
            sparse = tf.io.deserialize_many_sparse(tf.reshape(given[source], [-1, 3]), op.get_attr("dtype"), rank)
            for output, part in zip(op.outputs, (sparse.indices, sparse.values, sparse.dense_shape), strict=True):
                values[output.name] = part
        return values
