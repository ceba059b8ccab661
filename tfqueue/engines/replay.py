"""A tf.data shuffle that gives, element for element, what a RandomShuffleQueue gives in the canonical schedule.

In that schedule the queue is filled to its capacity before each dequeue, so that which element leaves it is a
pure function of the seeds and of how many elements have left before. The dataset keeps the contents of the queue
as the state of a scan; nothing in it is Python, so it can be saved, restored and run elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfqueue.engines import philox
from tfqueue.engines.plain import plain
from tfqueue.errors import InvalidArgument

# Elements that are drawn one by one go through the scan in blocks, since each step of it costs about a millisecond.
_BLOCK = 128
_WORDS_AHEAD = 2048


def replay_shuffle(
    capacity: int,
    min_after_dequeue: int,
    seed: int,
    seed2: int,
    *,
    batch_size: int | None = None,
    drop_remainder: bool = True,
) -> Callable[[Any], Any]:
    """A transformation for ``dataset.apply`` that shuffles as a RandomShuffleQueue does.

    Args:
        capacity: The capacity of the queue.
        min_after_dequeue: What the queue keeps while its input lasts.
        seed: The ``seed`` attribute of the queue's op (the seed of the graph).
        seed2: The ``seed2`` attribute of the queue's op (the seed of the op).
        batch_size: The number of elements that are dequeued together (which decides how full the queue is at
            each draw); the result then consists of batches. None: elements are dequeued one by one.
        drop_remainder: True as ``dequeue_many`` drops a last, smaller batch; False as ``dequeue_up_to`` gives it.

    Returns:
        A function from a dataset to the shuffled dataset. Elements may have any structure of tensors; to be
        batched they must all have the same shape.

    Raises:
        InvalidArgument: The numbers fit no queue, or no queue that can serve a batch at once.
    """
    if not 0 <= min_after_dequeue < capacity:
        raise InvalidArgument(f"capacity must be larger than min_after_dequeue; got {capacity} and {min_after_dequeue}")
    if not seed and not seed2:
        raise InvalidArgument("a queue whose seed and seed2 are both 0 is not seeded, so it has no order to replay")
    if batch_size is not None and not 1 <= batch_size <= capacity - min_after_dequeue:
        raise InvalidArgument(
            f"batch_size is {batch_size}, but a queue of capacity {capacity} that keeps {min_after_dequeue} can give "
            f"1 to {capacity - min_after_dequeue} at once"
        )

    def transform(dataset: Any) -> Any:
        queue = _Contents(dataset.element_spec, capacity, seed, seed2)
        flat = dataset.map(plain(queue.store))
        if batch_size is None:
            shuffled = _one_by_one(flat, queue).unbatch()
        else:
            shuffled = _in_batches(flat, queue, batch_size, drop_remainder)
        if batch_size is None:
            return shuffled.map(plain(queue.restore))
        rows = batch_size if drop_remainder else None
        return shuffled.map(plain(lambda *values: queue.restore_batch(rows, *values)))

    return transform


class _Contents:
    """How the elements of a dataset are kept in tensors with a row for each place in the queue."""

    def __init__(self, spec: Any, capacity: int, seed: int, seed2: int) -> None:
        self.spec = spec
        self.capacity = capacity
        self.seed = seed
        self.seed2 = seed2
        self.leaves: list[Any] = tf.nest.flatten(spec)
        if any(not isinstance(leaf, tf.TensorSpec) for leaf in self.leaves):
            raise InvalidArgument(
                f"only tensors can be shuffled here; got {spec}; serialize a SparseTensor with tf.io.serialize_sparse"
            )
        # Elements of any shape are kept as strings.
        self.fixed = [leaf.shape.is_fully_defined() for leaf in self.leaves]
        self.parts = [
            (leaf.dtype, leaf.shape.as_list()) if fixed else (tf.string, [])
            for leaf, fixed in zip(self.leaves, self.fixed, strict=True)
        ]

    def store(self, *element: Any) -> tuple[Any, ...]:
        values = tf.nest.flatten(element if len(element) != 1 else element[0])
        return tuple(
            value if fixed else tf.io.serialize_tensor(value) for value, fixed in zip(values, self.fixed, strict=True)
        )

    def restore(self, *values: Any) -> Any:
        leaves = [
            value if fixed else tf.ensure_shape(tf.io.parse_tensor(value, leaf.dtype), leaf.shape)
            for value, fixed, leaf in zip(values, self.fixed, self.leaves, strict=True)
        ]
        return tf.nest.pack_sequence_as(self.spec, leaves)

    def restore_batch(self, rows: int | None, *values: Any) -> Any:
        leaves = [
            tf.ensure_shape(
                value if fixed else _parsed(value, leaf.dtype), None if leaf.shape.rank is None else [rows, *leaf.shape]
            )
            for value, fixed, leaf in zip(values, self.fixed, self.leaves, strict=True)
        ]
        return tf.nest.pack_sequence_as(self.spec, leaves)

    def empty_rows(self) -> tuple[Any, ...]:
        """No elements, one tensor for each component."""
        return tuple(tf.zeros([0, *shape], dtype) for dtype, shape in self.parts)

    def empty(self) -> _Buffer:
        """The queue before the first element."""
        lists = tuple(
            tf.raw_ops.TensorListReserve(
                element_shape=tf.constant(shape, tf.int32), num_elements=self.capacity, element_dtype=dtype
            )
            for dtype, shape in self.parts
        )
        return _Buffer(lists, tf.range(self.capacity, dtype=tf.int64), tf.constant(0, tf.int64))

    def put(self, lists: tuple[Any, ...], slots: Any, values: list[Any]) -> tuple[Any, ...]:
        """Store elements in slots."""
        places = tf.cast(slots, tf.int32)
        return tuple(
            tf.raw_ops.TensorListScatterIntoExistingList(input_handle=kept, tensor=value, indices=places)
            for kept, value in zip(lists, values, strict=True)
        )

    def take(self, lists: tuple[Any, ...], slots: Any, *, behind: list[Any] | None = None) -> list[Any]:
        """The elements of slots; slots from ``capacity`` on are the rows of ``behind``."""
        out = []
        here = slots < self.capacity
        places = tf.cast(slots if behind is None else tf.boolean_mask(slots, here), tf.int32)
        for number, (kept, (dtype, shape)) in enumerate(zip(lists, self.parts, strict=True)):
            value = tf.raw_ops.TensorListGather(
                input_handle=kept, indices=places, element_shape=tf.constant(shape, tf.int32), element_dtype=dtype
            )
            value = tf.ensure_shape(value, [None, *shape])
            if behind is not None:
                after = tf.gather(behind[number], tf.boolean_mask(slots, tf.logical_not(here)) - self.capacity)
                order = tf.concat([tf.where(here), tf.where(tf.logical_not(here))], axis=0)[:, 0]
                value = tf.gather(tf.concat([value, after], axis=0), tf.math.invert_permutation(order))
            out.append(value)
        return out

    def words(self, first: Any, count: Any) -> Any:
        return philox.words(self.seed, self.seed2, first, count)


def _parsed(batch: Any, dtype: Any) -> Any:
    """A batch of serialized tensors as one tensor."""
    return tf.map_fn(lambda item: tf.io.parse_tensor(item, dtype), batch, fn_output_signature=dtype)


def _chunks(flat: Any, queue: _Contents, size: int) -> Any:
    """The elements in chunks of ``size``; after the last, which is smaller or empty, empty ones without end."""
    empty = tf.data.Dataset.from_tensors(queue.empty_rows()).repeat()
    return flat.batch(size).concatenate(empty)


@dataclass(frozen=True, slots=True)
class _Buffer:
    """What is in the queue.

    The elements stay where they are; what is drawn and moved are the numbers of their slots. A tensor of all elements
    would be copied in every step, a list of them is not.

    Attributes:
        lists: For each component the variant of a list of tensors, one for each slot.
        slots: int64 of shape [capacity]: the slot of the element at each position of the queue; behind the last
            element the slots that are free.
        size: The number of elements, an int64 scalar.
    """

    lists: tuple[Any, ...]
    slots: Any
    size: Any

    def state(self) -> tuple[Any, ...]:
        """The same as tensors."""
        return self.lists, self.slots, self.size


def _fill(queue: _Contents, buffer: _Buffer, incoming: list[Any]) -> tuple[_Buffer, list[Any]]:
    """Enqueue as many of the incoming elements as there is room for; returns the others, too."""
    count = tf.minimum(queue.capacity - buffer.size, tf.shape(incoming[0], out_type=tf.int64)[0])
    free = buffer.slots[buffer.size : buffer.size + count]
    lists = queue.put(buffer.lists, free, [value[:count] for value in incoming])
    return _Buffer(lists, buffer.slots, buffer.size + count), [value[count:] for value in incoming]


def _draw(queue: _Contents, buffer: _Buffer, words: Any) -> tuple[_Buffer, list[Any]]:
    """Dequeue as many elements as there are random words."""
    size, slots, count = buffer.size, buffer.slots, tf.size(words, out_type=tf.int64)
    taken, holes, fillers = philox.drawn_positions(words, size)
    leaving = tf.gather(slots, taken)
    places = tf.concat([holes, tf.range(size - count, size)], axis=0)
    slots = tf.tensor_scatter_nd_update(
        slots, places[:, tf.newaxis], tf.concat([tf.gather(slots, fillers), leaving], axis=0)
    )
    return _Buffer(buffer.lists, slots, size - count), queue.take(buffer.lists, leaving)


def _in_batches(flat: Any, queue: _Contents, batch: int, drop_remainder: bool) -> Any:
    """Dequeue ``batch`` elements at a time from a queue that is filled up before."""
    zero = tf.constant(0, tf.int64)
    # Random words for several batches cost no more than those for one.
    ahead = batch * max(1, _WORDS_AHEAD // batch)

    def step(state: Any, chunk: Any) -> Any:
        contents, drawn, waiting, (words, first) = state
        ended = tf.shape(chunk[0])[0] < batch
        incoming = [tf.concat(pair, axis=0) for pair in zip(waiting, chunk, strict=True)]
        buffer, left = _fill(queue, _Buffer(*contents), incoming)
        size = buffer.size
        closed = tf.logical_and(ended, size < queue.capacity)
        available = tf.where(
            closed,
            tf.minimum(size, batch),
            tf.where(tf.equal(size, queue.capacity), tf.constant(batch, tf.int64), zero),
        )
        if drop_remainder:
            available = tf.where(available < batch, zero, available)
        some = available > 0
        goes_on = tf.logical_or(some, tf.logical_not(closed))
        words, first = tf.cond(
            drawn + available > first + ahead,
            plain(lambda: (queue.words(drawn, ahead), drawn)),
            plain(lambda: (words, first)),
        )
        buffer, out = _draw(queue, buffer, words[drawn - first : drawn - first + available])
        return (buffer.state(), drawn + available, tuple(left), (words, first)), (goes_on, some, tuple(out))

    state = (queue.empty().state(), zero, queue.empty_rows(), (queue.words(zero, ahead), zero))
    # Functions that only choose among their arguments cost next to nothing.
    steps = _chunks(flat, queue, batch).scan(state, plain(step))
    steps = steps.take_while(plain(lambda goes_on, some, out: goes_on))
    return steps.filter(plain(lambda goes_on, some, out: some)).map(plain(lambda goes_on, some, out: out))


def _one_by_one(flat: Any, queue: _Contents) -> Any:
    """Dequeue single elements from a queue that is filled up before each; gives them in blocks."""
    zero = tf.constant(0, tf.int64)
    last = queue.capacity - 1

    def step(state: Any, chunk: Any) -> Any:
        contents, drawn, finished = state
        ended = tf.shape(chunk[0])[0] < _BLOCK
        buffer, left = _fill(queue, _Buffer(*contents), list(chunk))
        # While the input lasts: each draw is from a full queue, and a new element comes in behind it. The draw at
        # a place moves the last element there; what is last at draw k is the element that came in before it.
        count = tf.shape(left[0], out_type=tf.int64)[0]
        at = queue.words(drawn, count) % queue.capacity
        draw = tf.range(count)
        is_last = tf.equal(at, last)
        previous, is_final = philox.equal_neighbours(at)
        # Elements by number: those in the queue by their slots, those that come in behind them.
        source = tf.where(is_last, draw, previous)
        coming = tf.concat([buffer.slots[last:], queue.capacity + draw], axis=0)
        leaving = tf.where(source >= 0, tf.gather(coming, tf.maximum(source, 0)), tf.gather(buffer.slots, at))
        out = queue.take(buffer.lists, leaving, behind=left)
        final = tf.logical_and(is_final, tf.logical_not(is_last))
        places = tf.concat([tf.boolean_mask(at, final), [last]], axis=0)
        fillers = tf.gather(coming, tf.concat([tf.boolean_mask(draw, final), [count]], axis=0))
        # What came in and stays gets a slot that has become free.
        came = fillers >= queue.capacity
        free = tf.boolean_mask(leaving, leaving < queue.capacity)
        lists = queue.put(
            buffer.lists, free, [tf.gather(new, tf.boolean_mask(fillers, came) - queue.capacity) for new in left]
        )
        stay = tf.tensor_scatter_nd_update(fillers, tf.where(came), free)
        slots = tf.tensor_scatter_nd_update(buffer.slots, places[:, tf.newaxis], stay)
        buffer = _Buffer(lists, slots, buffer.size)
        drawn += count
        # At the end of the input what is left is drawn from a queue that gets shorter.
        rest = tf.where(ended, buffer.size, zero)
        buffer, tail = _draw(queue, buffer, queue.words(drawn, rest))
        out = [tf.concat(pair, axis=0) for pair in zip(out, tail, strict=True)]
        return (buffer.state(), drawn + rest, ended), (finished, tuple(out))

    state = (queue.empty().state(), zero, tf.constant(False))
    steps = _chunks(flat, queue, _BLOCK).scan(state, plain(step))
    return steps.take_while(plain(lambda finished, _: tf.logical_not(finished))).map(plain(lambda _, out: out))
