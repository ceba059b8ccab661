"""A stage rewritten to work on a whole batch at once, where that gives the same bits.

Every op of the stage is given inputs with a batch axis in front. That is done only for ops whose result for one
row does not depend on the other rows: parsing, decoding, moving data, and arithmetic that IEEE 754 rounds exactly
(exp, log and the like round differently in the vector and the scalar code of a kernel, so they stay as they are).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf

from tfqueue.engines.stage import StageFunction
from tfqueue.topology.subgraph import GraphView

tf1 = tf.compat.v1

_ELEMENTWISE = frozenset(
    {
        "Abs",
        "Add",
        "AddV2",
        "Cast",
        "Equal",
        "Greater",
        "GreaterEqual",
        "Identity",
        "Less",
        "LessEqual",
        "LogicalAnd",
        "LogicalNot",
        "LogicalOr",
        "Maximum",
        "Minimum",
        "Mul",
        "Neg",
        "NotEqual",
        "StopGradient",
        "StringToNumber",
        "Sub",
    }
)


def vectorize(function: StageFunction, view: GraphView) -> StageFunction | None:
    """The stage on a batch: each input that comes from a cut, and each output, has a batch axis in front.

    Args:
        function: The stage on one element.
        view: The legacy graph, which knows the shapes of single elements.

    Returns:
        The stage on a batch, or None where an op in it has no exact counterpart.
    """
    if function.also or function.counters or function.has_frames:
        return None
    return _Vectorizer(function, view).run()


class _Vectorizer:
    def __init__(self, function: StageFunction, view: GraphView) -> None:
        self.function = function
        self.view = view
        self.nodes = {node.name: node for node in function.graph_def.node}
        self.graph_def = tf1.GraphDef(versions=function.graph_def.versions, library=function.graph_def.library)
        from_cuts = {
            placeholder
            for name, placeholder in function.placeholders.items()
            if name.partition(":")[0] in function.cuts
        }
        # Nodes whose outputs have a batch axis, and the shape of one element where it is no op of the legacy graph.
        self.batched = set(from_cuts)
        self.legacy = {placeholder: name for name, placeholder in function.placeholders.items()}

    def run(self) -> StageFunction | None:
        function = self.function
        # Placeholders are declared without a shape, so they take a batch as well.
        for node in function.graph_def.node:
            data = [name for name in node.input if not name.startswith("^")]
            if not any(self._is_batched(name) for name in data):
                self.graph_def.node.add().CopyFrom(node)
                continue
            new = tf1.NodeDef()
            new.CopyFrom(node)
            if node.op in _ELEMENTWISE:
                done = self._elementwise(new, data)
            else:
                rule = _RULES.get(node.op)
                done = rule is not None and rule(self, new, data)
            if not done:
                return None
            self.graph_def.node.add().CopyFrom(new)
            self.batched.add(node.name)
        batched_outputs = (
            name.partition(":")[0] in self.batched or name.partition(":")[0] in function.cuts
            for name in function.outputs
        )
        if not all(batched_outputs):
            return None
        return replace(function, graph_def=self.graph_def)

    # -- what is known of a tensor ----------------------------------------------------------------------

    def _is_batched(self, name: str) -> bool:
        return name.partition(":")[0] in self.batched

    def _shape(self, name: str) -> list[int | None] | None:
        """The shape of one element."""
        op_name, _, output = name.partition(":")
        if op_name.endswith("/tfqueue_reciprocal"):
            return self._shape(self.nodes[op_name].input[0])
        if op_name in self.legacy:
            op_name, _, output = self.legacy[op_name].partition(":")
        op = self.view.by_name.get(op_name)
        if op is None:
            return None
        shape = op.outputs[int(output or 0)].shape
        return None if shape.rank is None else shape.as_list()

    def _constant(self, name: str) -> Any | None:
        node = self.nodes.get(name.partition(":")[0])
        return tf.make_ndarray(node.attr["value"].tensor) if node is not None and node.op == "Const" else None

    def _new_constant(self, node: Any, at: int, value: Any) -> None:
        """Replace an input of a node by a new constant."""
        name = f"{node.name}/tfqueue_{at}"
        constant = self.graph_def.node.add(op="Const", name=name)
        proto = tf.make_tensor_proto(value)
        constant.attr["dtype"].type = proto.dtype
        constant.attr["value"].tensor.CopyFrom(proto)
        node.input[at] = name

    # -- rules ------------------------------------------------------------------------------------------

    def _elementwise(self, node: Any, data: list[str]) -> bool:
        if len(data) == 1:
            return True
        shapes = [self._shape(name) for name in data]
        ranks = []
        for name, shape in zip(data, shapes, strict=True):
            if shape is None:
                return False
            ranks.append((self._is_batched(name), len(shape)))
        batched = {rank for is_batched, rank in ranks if is_batched}
        # Shapes are aligned at their ends, so the batch axes must be at the same distance from it.
        return len(batched) == 1 and all(is_batched or rank <= min(batched) for is_batched, rank in ranks)

    def _parse_example(self, node: Any, data: list[str]) -> bool:
        # Only dense features have a batch axis in front; the names of records (input 1) are for errors only.
        dense_from = 3 * node.attr["num_sparse"].i
        used = {
            int(name.partition(":")[2] or 0)
            for other in self.nodes.values()
            for name in other.input
            if name.partition(":")[0] == node.name
        } | {int(name.partition(":")[2]) for name in self.function.outputs if name.partition(":")[0] == node.name}
        shapes = node.attr["dense_shapes"].list.shape
        if len(node.attr["ragged_value_types"].list.type) or any(
            dimension.size < 0 for shape in shapes for dimension in shape.dim
        ):
            return False
        return self._shape(data[0]) == [] and all(index >= dense_from for index in used)

    def _scalar_records(self, node: Any, data: list[str]) -> bool:
        return self._shape(data[0]) == [] and not any(self._is_batched(name) for name in data[1:])

    def _reshape(self, node: Any, data: list[str]) -> bool:
        shape = self._constant(data[1])
        if shape is None or shape.ndim != 1:
            return False
        if -1 in shape.tolist():
            known = self._shape(node.name)
            if known is None or None in known:
                return False
            shape = np.array(known, shape.dtype)
        self._new_constant(node, 1, np.concatenate([np.array([-1], shape.dtype), shape]))
        return True

    def _expand_dims(self, node: Any, data: list[str]) -> bool:
        return self._axis_input(node, data, 1)

    def _concat(self, node: Any, data: list[str]) -> bool:
        return all(self._is_batched(name) for name in data[:-1]) and self._axis_input(node, data, len(data) - 1)

    def _axis_input(self, node: Any, data: list[str], at: int) -> bool:
        axis = self._constant(data[at])
        if axis is None or axis.size != 1:
            return False
        if int(axis) >= 0:
            self._new_constant(node, at, axis + np.ones_like(axis))
        return True

    def _pack(self, node: Any, data: list[str]) -> bool:
        if not all(self._is_batched(name) for name in data):
            return False
        if node.attr["axis"].i >= 0:
            node.attr["axis"].i += 1
        return True

    def _squeeze(self, node: Any, data: list[str]) -> bool:
        dims = node.attr["squeeze_dims"].list.i
        if not dims:
            return False
        shifted = [dim + 1 if dim >= 0 else dim for dim in dims]
        del dims[:]
        dims.extend(shifted)
        return True

    def _transpose(self, node: Any, data: list[str]) -> bool:
        order = self._constant(data[1])
        if order is None:
            return False
        self._new_constant(node, 1, np.concatenate([np.array([0], order.dtype), order + np.ones_like(order)]))
        return True

    def _strided_slice(self, node: Any, data: list[str]) -> bool:
        constants = [self._constant(name) for name in data[1:]]
        if any(value is None for value in constants) or node.attr["ellipsis_mask"].i:
            return False
        for at, value in enumerate(constants, start=1):
            assert value is not None
            first = np.array([1 if at == 3 else 0], value.dtype)
            self._new_constant(node, at, np.concatenate([first, value]))
        for mask in ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask"):
            node.attr[mask].i <<= 1
        # The batch axis is taken whole.
        node.attr["begin_mask"].i |= 1
        node.attr["end_mask"].i |= 1
        return True

    def _gather(self, node: Any, data: list[str]) -> bool:
        axis = self._constant(data[2])
        plain = axis is not None and axis.size == 1 and int(axis) == 0 and not node.attr["batch_dims"].i
        return plain and not self._is_batched(data[0])


_RULES: dict[str, Callable[[_Vectorizer, Any, list[str]], bool]] = {
    "ConcatV2": _Vectorizer._concat,
    "DecodeCSV": _Vectorizer._scalar_records,
    "DecodeRaw": _Vectorizer._scalar_records,
    "ExpandDims": _Vectorizer._expand_dims,
    "GatherV2": _Vectorizer._gather,
    "Pack": _Vectorizer._pack,
    "ParseExampleV2": _Vectorizer._parse_example,
    "Reshape": _Vectorizer._reshape,
    "Squeeze": _Vectorizer._squeeze,
    "StridedSlice": _Vectorizer._strided_slice,
    "Transpose": _Vectorizer._transpose,
}
