"""Seeded random ops as functions of the number of the run, so that every pass over a dataset draws the same.

A stateful random op keeps its place in the stream of its Philox generator (see philox.py) from run to run, also from
one pass over a dataset to the next, and no iterator can save it. Each run takes 256 blocks for each value it gives,
so the block that run i begins with is known, and the stateless op of the same distribution gives the same bits from
there (tested against the kernels).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

_STATELESS = {
    "RandomUniform": "StatelessRandomUniformV2",
    "RandomStandardNormal": "StatelessRandomNormalV2",
    "TruncatedNormal": "StatelessTruncatedNormalV2",
    "RandomUniformInt": "StatelessRandomUniformIntV2",
}
_BLOCKS_A_VALUE = 256
_PHILOX = 1


def can_be_numbered(op: Any) -> bool:
    """Whether the values of an op follow from its seeds and the number of the run."""
    if op.type not in _STATELESS or not op.outputs[0].shape.is_fully_defined():
        return False
    return bool(op.get_attr("seed") or op.get_attr("seed2"))


def add_numbered(graph_def: Any, op: Any, inputs: list[str], run: str) -> None:
    """Add the stateless stand-in of a random op to a GraphDef, under the op's name.

    Args:
        graph_def: What to add to.
        op: The op, of which `can_be_numbered` holds.
        inputs: The names of its inputs in ``graph_def``.
        run: The name of a node that gives the number of the run, an int64 scalar.
    """

    def constant(name: str, value: Any, dtype: Any) -> str:
        node = graph_def.node.add(op="Const", name=f"{op.name}/tfqueue_{name}")
        node.attr["dtype"].type = dtype.as_datatype_enum
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(np.array(value, dtype.as_numpy_dtype)))
        return str(node.name)

    def add(kind: str, name: str, *sources: str, **types: Any) -> str:
        node = graph_def.node.add(op=kind, name=f"{op.name}/tfqueue_{name}", input=sources)
        for key, dtype in types.items():
            node.attr[key].type = dtype.as_datatype_enum
        return str(node.name)

    values = op.outputs[0].shape.num_elements()
    seed, seed2 = (op.get_attr(name) % 2**64 for name in ("seed", "seed2"))
    number = add("Cast", "number", run, SrcT=tf.int64, DstT=tf.uint64)
    step = constant("step", values * _BLOCKS_A_VALUE, tf.uint64)
    first = add("Mul", "first", number, step, T=tf.uint64)
    counter = add("Pack", "counter", first, constant("seed2", seed2, tf.uint64), T=tf.uint64)
    graph_def.node[-1].attr["N"].i = 2
    key = constant("key", [seed], tf.uint64)
    algorithm = constant("algorithm", _PHILOX, tf.int32)
    node = graph_def.node.add(op=_STATELESS[op.type], name=op.name)
    node.input.extend([inputs[0], key, counter, algorithm, *inputs[1:]])
    node.attr["Tshape"].type = op.get_attr("T").as_datatype_enum
    dtype = op.get_attr("Tout" if op.type == "RandomUniformInt" else "dtype")
    node.attr["dtype"].type = dtype.as_datatype_enum
