"""Ops that look at, or close, the queues of a graph, whoever made the queues."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import tensorflow as tf

QUEUE_TYPES = frozenset(
    kind + version
    for kind in ("FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue", "PriorityQueue")
    for version in ("", "V2")
)


def queue_operations(graph: tf.Graph) -> list[tf.Operation]:
    """All queues of a graph, in the order in which they were made."""
    return [op for op in graph.get_operations() if op.type in QUEUE_TYPES]


@contextmanager
def apart(graph: tf.Graph) -> Iterator[None]:
    """A context in which new ops depend on nothing but their inputs, whatever the caller has entered."""
    with ExitStack() as stack:
        stack.enter_context(graph.as_default())
        stack.enter_context(graph.control_dependencies(None))
        stack.enter_context(graph.device(None))
        stack.enter_context(graph.name_scope("tfqueue/"))
        yield


class QueueHandle:
    """One queue of a graph with ops that close it, tell its size and tell whether it is closed.

    The ops are made at once, so that the graph may be finalized afterwards.
    """

    __slots__ = ("cancel_op", "is_closed", "name", "operation", "size")

    def __init__(self, operation: tf.Operation) -> None:
        self.operation = operation
        self.name: str = operation.name
        raw = tf.raw_ops
        handle = operation.outputs[0]
        with apart(operation.graph):
            if operation.type.endswith("V2"):
                self.cancel_op = raw.QueueCloseV2(handle=handle, cancel_pending_enqueues=True)
                self.size = raw.QueueSizeV2(handle=handle)
                self.is_closed = raw.QueueIsClosedV2(handle=handle)
            else:  # graphs saved before TensorFlow 1.0 have queues with string handles
                self.cancel_op = raw.QueueClose(handle=handle, cancel_pending_enqueues=True)
                self.size = raw.QueueSize(handle=handle)
                self.is_closed = raw.QueueIsClosed(handle=handle)


def existing_cancel_ops(graph: tf.Graph) -> list[tf.Operation]:
    """The ops already in a graph that close a queue and cancel its pending enqueues."""
    return [
        op
        for op in graph.get_operations()
        if op.type in ("QueueClose", "QueueCloseV2") and op.get_attr("cancel_pending_enqueues")
    ]
