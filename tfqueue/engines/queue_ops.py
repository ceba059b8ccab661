"""Ops that look at, or close, the queues of a graph, whoever made the queues."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import tensorflow as tf

QUEUE_TYPES = frozenset(
    kind + version
    for kind in ("FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue", "PriorityQueue")
    for version in ("", "V2")
)


IN_THIS_THREAD = tf.compat.v1.RunOptions(inter_op_thread_pool=-1)
"""Options of a run that does not need TensorFlow's pool of threads.

Ops that block (a Python function, a full staging area) each hold a thread of the pool, which has as many as the machine
has cores. Once all are held, a run that waits for the pool waits for ever, too.
"""


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


@contextmanager
def reopened(graph: tf.Graph) -> Iterator[None]:
    """A context in which ops can be added to a graph, even to one that was finalized; it is finalized again after it.

    Supervisor and MonitoredSession finalize their graph before they give the session away. Without ops that ask and
    close its queues there would be no word on a stall, no accounts, and no way out for who waits in a queue. There is
    no public way to add them. What makes it unsafe by its name is that sessions are open: but they take new ops up
    as those of a graph that never was finalized, under the graph's own lock.
    """
    if not graph.finalized:
        yield
        return
    graph._unsafe_unfinalize()
    try:
        yield
    finally:
        graph.finalize()


def runs_at_once(session: Any, fetches: Any) -> Callable[[], Any]:
    """A function that runs ``fetches`` in the thread that calls it; see `IN_THIS_THREAD`."""
    call = session.make_callable(fetches, accept_options=True)
    return partial(call, options=IN_THIS_THREAD)


class QueueHandle:
    """One queue of a graph with ops that close it, take from it, tell its size and tell whether it is closed.

    The ops are made at once, so that the graph may be finalized afterwards; see `reopened` for one that is already.
    """

    __slots__ = ("cancel_op", "capacity", "close_op", "is_closed", "name", "operation", "size", "take_op")

    def __init__(self, operation: tf.Operation) -> None:
        self.operation = operation
        self.name: str = operation.name
        raw = tf.raw_ops
        handle = operation.outputs[0]
        self.capacity: int = operation.get_attr("capacity")  # -1 where there is no bound
        dtypes = list(operation.get_attr("component_types"))
        if operation.type.startswith("Priority"):
            dtypes.insert(0, tf.int64)  # the priority comes out with the element, but is not in the attribute
        with apart(operation.graph):
            if operation.type.endswith("V2"):
                self.close_op = raw.QueueCloseV2(handle=handle, cancel_pending_enqueues=False)
                self.take_op = raw.QueueDequeueV2(handle=handle, component_types=dtypes)[0].op
                self.cancel_op = raw.QueueCloseV2(handle=handle, cancel_pending_enqueues=True)
                self.size = raw.QueueSizeV2(handle=handle)
                self.is_closed = raw.QueueIsClosedV2(handle=handle)
            else:  # graphs saved before TensorFlow 1.0 have queues with string handles
                self.close_op = raw.QueueClose(handle=handle, cancel_pending_enqueues=False)
                self.take_op = raw.QueueDequeue(handle=handle, component_types=dtypes)[0].op
                self.cancel_op = raw.QueueClose(handle=handle, cancel_pending_enqueues=True)
                self.size = raw.QueueSize(handle=handle)
                self.is_closed = raw.QueueIsClosed(handle=handle)


class StagingHandle:
    """One staging area of a graph, with ops that wake who waits in it.

    A thread that waits in a staging area cannot be cancelled, not even by closing the session: one that waits for room
    has to be given the room (`clear_op`), one that waits for an element has to be given one (`fill_op`).
    """

    __slots__ = ("clear_op", "fill_op")

    def __init__(self, operation: tf.Operation) -> None:
        attributes = {name: operation.get_attr(name) for name in _STAGING_ATTRIBUTES}
        dtypes = attributes.pop("dtypes")
        with apart(operation.graph):
            self.clear_op = tf.raw_ops.StageClear(dtypes=dtypes, **attributes)
            self.fill_op = tf.raw_ops.Stage(values=[tf.zeros([], dtype) for dtype in dtypes], **attributes)


_STAGING_ATTRIBUTES = ("dtypes", "capacity", "memory_limit", "container", "shared_name")


def staging_operations(graph: tf.Graph) -> list[tf.Operation]:
    """One op that puts into it for each staging area of a graph, ours left out."""
    found = {
        (op.get_attr("container"), op.get_attr("shared_name")): op
        for op in graph.get_operations()
        if op.type == "Stage" and not op.name.startswith("tfqueue/")
    }
    return list(found.values())
