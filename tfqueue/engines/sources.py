"""Producers whose elements are constants of the graph: a list of file names, unshuffled."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tfqueue.engines.stage import COUNTER_TYPES, VARIABLE_TYPES
from tfqueue.topology.model import Queue, Topology
from tfqueue.topology.subgraph import GraphView

# With these ops alone every run of a producer gives the same.
_CONSTANT = frozenset({"Assert", "Const", "Greater", "Identity"})
_LIMITED = COUNTER_TYPES | VARIABLE_TYPES


def constant_elements(view: GraphView, topology: Topology, queue: Queue) -> Any | None:
    """The elements of a queue that one producer of constants fills, as a dataset of single tensors; else None."""
    if len(queue.enqueues) != 1 or len(queue.components) != 1 or queue.kind != "FIFO":
        return None
    enqueue = queue.enqueues[0]
    producer = next((found for found in topology.producers if found.name == enqueue.name), None)
    if producer is None or producer.shuffle or not enqueue.many or enqueue.conditional:
        return None
    ops = [view.by_name[name] for name in producer.ops if name != enqueue.name]
    if any(op.type not in _CONSTANT | _LIMITED or not _holds(op) for op in ops):
        return None
    tensor = view.by_name[enqueue.name].inputs[1]
    while tensor.op.type == "Identity":
        tensor = tensor.op.inputs[0]
    values = tf.get_static_value(tensor)
    if values is None:
        return None
    return tf.data.Dataset.from_tensor_slices(tf.constant(values, tensor.dtype)).repeat(producer.num_epochs)


def _holds(op: Any) -> bool:
    """False for an assertion that fails, or of which that cannot be told."""
    if op.type != "Greater":
        return bool(op.type != "Assert" or op.inputs[0].op.type == "Greater")
    left, right = (tf.get_static_value(tensor) for tensor in op.inputs)
    return left is not None and right is not None and bool(np.all(left > right))
