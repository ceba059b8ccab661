"""What the lockstep engine knows of queues, of the enqueues that fill them, and of what these take."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from tfqueue.engines.queue_ops import apart, runs_at_once
from tfqueue.topology.model import Dequeue, Enqueue, Queue, Read

tf1 = tf.compat.v1


class Pending:
    """The elements of an enqueue_many, of which some may still wait for room."""

    __slots__ = ("count", "position", "values")

    def __init__(self, values: list[Any]) -> None:
        self.values = values
        self.position = 0
        self.count = len(values[0])


class QueueState:
    """One queue: how many elements are in it, who fills it, whether it is closed.

    Args:
        graph: The graph, to which ops are added.
        model: The queue.
        demand: The largest batch that is taken from it, which bounds the filling of a queue without capacity.
    """

    def __init__(self, graph: tf.Graph, model: Queue, demand: int) -> None:
        self.model = model
        self.name = model.name
        self.capacity = model.capacity if model.capacity is not None else model.min_after_dequeue + demand
        self.lanes: list[Lane] = []
        self.next_lane = 0
        self.pending: Pending | None = None
        self.external = not model.enqueues
        self.changes = 0  # how often its size was changed or asked for
        self.coming = self.going = 0  # what runs that others do not wait for will add and take
        self.steps: dict[threading.Thread, int] = {}  # what the steps of other threads take, counted when they begin
        self._closed = False
        self._size: int | None = None
        self._graph = graph
        self._handle = graph.get_operation_by_name(model.name).outputs[0]
        # Graphs saved before TensorFlow 1.0 have queues with string handles, and ops of their own for them.
        self._version = "V2" if model.op_type.endswith("V2") else ""
        with apart(graph):
            self._size_tensor = self.size_op()
            self._closed_tensor = (
                tf.raw_ops.QueueIsClosedV2(handle=self._handle) if self._version else tf.constant(False)
            )
            self._close_op = self._raw("QueueClose")(handle=self._handle, cancel_pending_enqueues=False)
        self._slices: list[Any] = []
        self._slice_op: Any = None
        self._piece_size: Any = None
        self._pieces: list[Any] = []
        self._single: list[Any] = []
        if model.dequeues:
            self._prepare_pieces()
        self._ask_size: Callable[[], Any] = _not_connected
        self._ask_closed: Callable[[], Any] = _not_connected
        self._close: Callable[[], Any] = _not_connected
        self._enqueue_slice: Callable[..., Any] = _not_connected
        self._dequeue_piece: Callable[..., Any] = _not_connected
        self._dequeue_single: Callable[..., Any] = _not_connected

    # -- ops --------------------------------------------------------------------------------------------

    def _raw(self, name: str) -> Any:
        return getattr(tf.raw_ops, name + self._version)

    def size_op(self) -> Any:
        """A new op that tells the size, in the context of the caller."""
        return self._raw("QueueSize")(handle=self._handle)

    def prepare_slices(self) -> None:
        """Make the op that enqueues some elements of an enqueue_many."""
        if self._slice_op is None:
            with apart(self._graph):
                self._slices = [tf1.placeholder(component.dtype) for component in self.model.components]
                self._slice_op = self._raw("QueueEnqueueMany")(handle=self._handle, components=self._slices)

    def _prepare_pieces(self) -> None:
        """Make the ops that dequeue a part of a batch."""
        types = [component.dtype for component in self.model.components]
        with apart(self._graph):
            self._piece_size = tf1.placeholder(tf.int32, [])
            self._single = list(self._raw("QueueDequeue")(handle=self._handle, component_types=types))
            many = self._raw("QueueDequeueMany")
            self._pieces = list(many(handle=self._handle, n=self._piece_size, component_types=types))

    def connect(self, session: Any) -> None:
        """Bind the ops to a session."""
        self._ask_size = session.make_callable(self._size_tensor)
        self._ask_closed = session.make_callable(self._closed_tensor)
        self._close = runs_at_once(session, self._close_op)
        if self._slice_op is not None:
            self._enqueue_slice = _fed_call(session, self._slice_op, self._slices)
        if self._single:
            self._dequeue_single = session.make_callable(self._single)
            self._dequeue_piece = _fed_call(session, self._pieces, [self._piece_size])

    # -- state ------------------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether nothing can be enqueued any more."""
        if self.external and not self._closed:
            self._closed = bool(self._ask_closed())
        return self._closed

    def close(self) -> None:
        """Remember that the queue was closed."""
        self._closed = True

    def close_again(self) -> None:
        """Run a close op, which wakes whoever waits for a queue that is closed."""
        with suppress(tf.errors.CancelledError):
            self._close()

    def size(self) -> int:
        """The number of elements in the queue; what a step under way takes may still be among them."""
        if self._size is not None and not self.external:
            return self._size
        keep = not self.steps  # asked first: a step may take what it does, and be over, while the size is on its way
        size = int(self._ask_size())
        self.changes += 1
        # Kept, it would count for ever what such a step takes, and a later step would wait for it in vain.
        self._size = size if keep else None
        return size

    def know_size(self, size: int) -> None:
        """Set the size to what TensorFlow told."""
        self._size = size

    def step_begins(self, count: int) -> None:
        """A step of this thread, which others do not wait for, will take so many elements."""
        self.take(count)
        me = threading.current_thread()
        self.steps[me] = self.steps.get(me, 0) + count

    def step_ended(self, *, failed: bool) -> None:
        """The step of this thread is over; a failed one may have taken nothing."""
        if self.steps.pop(threading.current_thread(), None) is not None and failed:
            self._size = None

    def forget_size(self) -> None:
        """Ask TensorFlow for the size before it is used next."""
        self._size = None

    def add(self, count: int) -> None:
        """Count elements that came in."""
        self.changes += 1
        if self._size is not None:
            self._size += count

    def take(self, count: int) -> None:
        """Count elements that went out: fewer where a closed queue had no more."""
        self.changes += 1
        if self._size is not None:
            self._size = max(self._size - count, 0)

    def room(self) -> int:
        """How many elements can be enqueued, those on their way counted as if they were there."""
        return self.capacity - self.size() - self.coming

    def available(self) -> int:
        """How many elements can be dequeued: an open shuffle queue keeps its min_after_dequeue."""
        in_steps = sum(tuple(self.steps.values()))
        left = self.size() - self.going
        if self._size is None:  # it was asked for while steps were under way
            left -= in_steps
        return left if self.closed else left - self.model.min_after_dequeue

    def in_turn(self) -> Iterator[Lane]:
        """The lanes that have not ended, beginning with the one whose turn it is."""
        count = len(self.lanes)
        for index in range(count):
            lane = self.lanes[(self.next_lane + index) % count]
            if not lane.ended and not lane.busy:
                yield lane

    # -- moving elements --------------------------------------------------------------------------------

    def flush(self) -> None:
        """Enqueue as many of the waiting elements as there is room for, in their order."""
        pending = self.pending
        if pending is None:
            return
        count = min(self.room(), pending.count - pending.position)
        if count > 0:
            end = pending.position + count
            self._enqueue_slice(*(value[pending.position : end] for value in pending.values))
            pending.position = end
            self.add(count)
        if pending.position == pending.count:
            self.pending = None

    def dequeue(self, count: int, *, batched: bool) -> list[list[Any]]:
        """Take ``count`` elements, in pieces: one array for each component, with a batch axis if ``batched``."""
        if not batched:
            pieces = [self._dequeue_single() for _ in range(count)]
        elif self.model.kind == "PaddingFIFO":
            # One by one, since all must be padded to the longest of the whole batch.
            pieces = [[np.asarray(value)[np.newaxis] for value in self._dequeue_single()] for _ in range(count)]
        else:
            pieces = [self._dequeue_piece(count)]
        self.add(-count)
        return pieces


@dataclass(frozen=True, slots=True)
class Part:
    """What one enqueue of a tf.cond or tf.group adds to its queue.

    Attributes:
        state: The queue.
        tensors: The components.
        keeps: A bool tensor that says whether it is enqueued at all, or None.
        many: Whether the components are batches of elements.
    """

    state: QueueState
    tensors: list[Any]
    keeps: Any | None
    many: bool


class Cut:
    """A dequeue or read of a stage: where it takes from, how much, and what was taken in advance.

    Args:
        node: The dequeue or read.
        queues: The queues it may take from.
    """

    def __init__(self, node: Dequeue | Read, queues: list[QueueState]) -> None:
        self.node = node
        self.queues = queues
        self._gathered: list[list[Any]] = []
        self._count = 0
        self.is_read = isinstance(node, Read)
        self.certain = isinstance(node, Dequeue) and len(queues) == 1 and not node.conditional
        self.queue = queues[0] if len(queues) == 1 else None
        self.batch_size: int | None = node.batch_size if isinstance(node, Dequeue) else 1
        self.size_tensor: Any | None = None
        self.fed = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing of the next batch was taken in advance."""
        return self._count == 0

    @property
    def batched(self) -> bool:
        return isinstance(self.node, Dequeue) and self.node.kind != "dequeue"

    @property
    def may_wait(self) -> bool:
        """Whether a run can have to wait: for another file name, or for elements from Python code."""
        return self.is_read or any(state.external for state in self.queues)

    @property
    def is_too_large(self) -> bool:
        """Whether the queue, while open, cannot give as much at once."""
        if not self.certain or self.queue is None or self.batch_size is None:
            return False
        return self.batch_size > self.queue.capacity - self.queue.model.min_after_dequeue

    def ready(self) -> bool:
        """Whether a run would not have to wait: the elements are there, or the end is."""
        if self.fed:
            return self.is_complete() or self.at_end()
        wanted = 1 if self.is_read or self.batch_size is None else self.batch_size
        return all(state.closed or state.available() >= wanted for state in self.queues)

    def is_complete(self) -> bool:
        """Whether what was taken in advance is a whole batch."""
        if self._count == self.batch_size:
            return True
        partial = isinstance(self.node, Dequeue) and self.node.kind == "dequeue_up_to"
        return partial and self._count > 0 and self._source.closed and self._source.size() == 0

    def at_end(self) -> bool:
        """Whether the queue is closed and cannot give a batch any more."""
        if not self._source.closed or self.is_complete():
            return False
        left = self._source.size()
        if isinstance(self.node, Dequeue) and self.node.kind == "dequeue_up_to":
            return left == 0
        return self._count + left < (self.batch_size or 1)

    def pull(self) -> bool:
        """Take what the queue can give of the missing elements; False if that is nothing."""
        if self.is_complete() or self.at_end():
            return False
        count = min(self._source.available(), (self.batch_size or 1) - self._count)
        if count <= 0:
            return False
        self._gathered.extend(self._source.dequeue(count, batched=self.batched))
        self._count += count
        return True

    def take(self) -> list[Any]:
        """The values of the whole batch, one for each component; forgets them."""
        pieces, self._gathered, self._count = self._gathered, [], 0
        if not self.batched:
            return list(pieces[0])
        return [_joined([piece[index] for piece in pieces]) for index in range(len(pieces[0]))]

    def account(self) -> None:
        """After a run: count what it took."""
        if self.fed:
            return
        if not self.certain or self.batch_size is None:
            self.forget_sizes()
        elif self.queue is not None:
            self.queue.take(self.batch_size)

    def step_begins(self) -> None:
        """Before a step of this thread: count what it will take."""
        if self.fed:
            return
        for state in self.queues:
            if self.certain and self.batch_size is not None:
                state.step_begins(self.batch_size)
            else:  # unknown, and perhaps asked for before it is taken
                state.forget_size()
                state.step_begins(0 if self.batch_size is None else self.batch_size)

    def forget_sizes(self) -> None:
        """Ask TensorFlow for the sizes before they are used next."""
        for state in self.queues:
            state.forget_size()

    @property
    def _source(self) -> QueueState:
        assert self.queue is not None, "only a cut of one known queue is served in pieces"
        return self.queue


class Lane:
    """One enqueue op of a queue, run as long as its input lasts.

    Args:
        enqueue: The enqueue.
        targets: The queues that its run fills, its own first.
        cuts: What its stage takes from other queues.
    """

    def __init__(self, enqueue: Enqueue, targets: list[QueueState], cuts: list[Cut]) -> None:
        self.enqueue = enqueue
        self.targets = targets
        self.queue = targets[0]
        self.cuts = cuts
        self.many = enqueue.many
        self.certain = not enqueue.conditional
        self.ended = False
        self.busy = False
        self.static_count: int | None = None
        # Where a tf.cond or tf.group enqueues several elements, they are computed first and enqueued apart.
        self.parts: list[Part] = []
        self.besides: list[Any] = []
        self.sizes: Any = None
        self.run: Callable[..., Any] = _not_connected
        self.values: Callable[..., Any] = _not_connected
        # The queues whose size is asked for in the run itself, since only TensorFlow knows it.
        asked = {id(state): state for cut in cuts if not cut.certain for state in cut.queues}
        if not self.certain:
            asked.update({id(state): state for state in targets})
        self.asked = list(asked.values())
        # The queues whose sizes a run changes.
        self.touched = list({id(s): s for s in (*targets, *(s for cut in cuts for s in cut.queues))}.values())

    @property
    def may_wait(self) -> bool:
        """Whether a run can have to wait for something that is not in the schedule."""
        return any(cut.may_wait for cut in self.cuts)

    @contextmanager
    def under_way(self, *, direct: bool) -> Iterator[None]:
        """While open, what a run will add and take is kept for it: another thread's step may run other lanes meanwhile.

        Args:
            direct: Whether the run itself enqueues; else it computes an unknown number of elements to be enqueued.
        """
        added = (self.static_count or 0) if self.many else 1
        coming = [(state, added if direct else state.capacity) for state in self.targets]
        going = [(c.queue, c.batch_size) for c in self.cuts if c.certain and not c.fed and c.queue and c.batch_size]
        for state, count in coming:
            state.coming += count
        for state, count in going:
            state.going += count
        try:
            yield
        finally:
            for state, count in coming:
                state.coming -= count
            for state, count in going:
                state.going -= count

    def has_room(self) -> bool:
        """Whether its next element fits into every queue that it fills."""
        return all(state.room() > 0 and not state.closed and state.pending is None for state in self.targets)

    def added(self, values: list[Any]) -> Iterator[tuple[QueueState, list[Any]]]:
        """The elements that a run adds to each queue, of the values that it gave."""
        if not self.parts:
            if len(values[0]):
                yield self.queue, values
            return
        for part, (components, keeps) in zip(self.parts, values, strict=True):
            rows = components if part.many else [np.asarray(value)[np.newaxis] for value in components]
            if (part.keeps is None or keeps) and len(rows[0]):
                yield part.state, rows

    def ready(self) -> bool:
        """Whether a run would not have to wait for data."""
        return all(cut.ready() for cut in self.cuts)

    def pull_fed_cuts(self) -> bool:
        """Take a part of a batch that its queue cannot give at once; False if there is nothing to take."""
        return any(cut.fed and cut.pull() for cut in self.cuts)

    def waits_outside(self) -> bool:
        """Whether nothing but Python code brings what it waits for.

        What it was waiting for a moment ago may be there by now: then, too, it is Python code that has brought it.
        """
        outside = [any(state.external for state in cut.queues) for cut in self.cuts]
        return any(outside) and all(found or cut.ready() for cut, found in zip(self.cuts, outside, strict=True))


def _joined(arrays: list[Any]) -> Any:
    """Pieces of a batch put together; shorter ones are padded as a PaddingFIFOQueue does it."""
    if len(arrays) == 1:
        return arrays[0]
    if len({array.shape[1:] for array in arrays}) > 1:
        shape = np.max([array.shape[1:] for array in arrays], axis=0)
        fill: Any = b"" if arrays[0].dtype == object else 0
        padded = np.full((sum(len(array) for array in arrays), *shape), fill, dtype=arrays[0].dtype)
        row = 0
        for array in arrays:
            place = (slice(row, row + len(array)), *(slice(0, size) for size in array.shape[1:]))
            padded[place] = array
            row += len(array)
        return padded
    return np.concatenate(arrays)


def _fed_call(session: Any, fetches: Any, feeds: list[Any]) -> Callable[..., Any]:
    # The class's own run: the one of the object may have been replaced by the engine.
    run = type(session).run
    return lambda *values: run(session, fetches, dict(zip(feeds, values, strict=True)))


def _not_connected(*_: Any) -> Any:
    raise RuntimeError("the engine has not been started")
