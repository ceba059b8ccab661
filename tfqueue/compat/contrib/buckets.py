"""tf.contrib.training.bucket and bucket_by_sequence_length: one queue a bucket, and one for the finished batches."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import tensorflow as tf

from tfqueue.compat.contrib.tensors import Element, element
from tfqueue.errors import InvalidArgument

tf1 = tf.compat.v1

_ENDS = (tf.errors.OutOfRangeError, tf.errors.CancelledError)


def bucket(
    tensors: Any,
    which_bucket: Any,
    batch_size: Any,
    num_buckets: int,
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Sort single elements into buckets and give batches that come from one bucket each.

    Args:
        tensors: A list or dictionary of tensors, one element; SparseTensors are allowed.
        which_bucket: int32 scalar in [0, ``num_buckets``); an element with another number is dropped.
        batch_size: Elements of a batch, or one number for each bucket.
        num_buckets: How many buckets, at least 2.
        num_threads: Threads that put elements into the buckets.
        capacity: Finished batches that wait, and elements in each bucket.
        bucket_capacities: Elements in each bucket, where they differ.
        shapes: The shapes of one element's tensors, where they are not known.
        dynamic_pad: Pad what is shorter than the longest of its batch with zeros (empty strings).
        allow_smaller_final_batch: At the end of the data, give what is left in each bucket; without, it is dropped.
        keep_input: bool scalar; an element for which it is false is dropped.
        shared_name: A prefix of the queues' names that other sessions can share.
        name: A name for the ops.

    Returns:
        The number of the bucket (int32 scalar), and the batch: a list or dictionary as ``tensors`` is.

    Raises:
        InvalidArgument: The arguments do not fit each other, or a shape is unknown without ``dynamic_pad``.
    """
    return _bucket(
        tensors,
        which_bucket,
        batch_size,
        num_buckets,
        num_threads,
        capacity,
        bucket_capacities,
        shapes,
        dynamic_pad,
        allow_smaller_final_batch,
        keep_input,
        shared_name,
        name,
        always_inside=False,
    )


def bucket_by_sequence_length(
    input_length: Any,
    tensors: Any,
    batch_size: Any,
    bucket_boundaries: Sequence[int],
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Batches of sequences of about equal length.

    An element of length n goes to the bucket b with boundaries[b - 1] <= n < boundaries[b].

    Args:
        input_length: int32 scalar, the length of the element.
        tensors: A list or dictionary of tensors, one element.
        batch_size: As of `bucket`.
        bucket_boundaries: Increasing integers; there is one bucket more than boundaries.
        num_threads: As of `bucket`, and so are all further arguments.

    Returns:
        The lengths of the elements of the batch (int32 vector), and the batch as `bucket` gives it.

    Raises:
        InvalidArgument: The boundaries are no increasing integers, and as `bucket`.
    """
    boundaries = list(bucket_boundaries)
    if not boundaries or any(not isinstance(edge, Integral) for edge in boundaries):
        raise InvalidArgument(f"bucket_boundaries must be a list of integers that is not empty; got {boundaries}")
    if any(right <= left for left, right in itertools.pairwise(boundaries)):
        raise InvalidArgument(f"bucket_boundaries must increase; got {boundaries}")
    for argument, values in (("batch_size", batch_size), ("bucket_capacities", bucket_capacities)):
        if isinstance(values, list | tuple) and len(values) != len(boundaries) + 1:
            raise InvalidArgument(
                f"{argument} has {len(values)} numbers; {len(boundaries)} boundaries make {len(boundaries) + 1} buckets"
            )
    with tf1.name_scope(name, "bucket_by_sequence_length", [input_length]):
        length = tf.cast(tf.convert_to_tensor(input_length), tf.int32)
        which = tf.reduce_sum(tf.cast(length >= tf.constant(boundaries, tf.int32), tf.int32))
        given = element(tensors)
        all_shapes = None if shapes is None else [[], *shapes]
        _, batch = _bucket(
            [length, *given.components],
            which,
            batch_size,
            len(boundaries) + 1,
            num_threads,
            capacity,
            bucket_capacities,
            all_shapes,
            dynamic_pad,
            allow_smaller_final_batch,
            keep_input,
            shared_name,
            None,
            always_inside=True,
        )
        return batch[0], given.batch(batch[1:])


def _bucket(
    tensors: Any,
    which_bucket: Any,
    batch_size: Any,
    num_buckets: int,
    num_threads: int,
    capacity: int,
    bucket_capacities: Sequence[int] | None,
    shapes: Any,
    dynamic_pad: bool,
    allow_smaller_final_batch: bool,
    keep_input: Any,
    shared_name: str | None,
    name: str | None,
    *,
    always_inside: bool,
) -> tuple[Any, Any]:
    if num_buckets < 2:
        raise InvalidArgument(f"num_buckets must be at least 2; got {num_buckets}")
    sizes = _for_each_bucket("batch_size", batch_size, num_buckets)
    capacities = _for_each_bucket("bucket_capacities", bucket_capacities or capacity, num_buckets)
    given = element(tensors)
    queue_class = tf1.PaddingFIFOQueue if dynamic_pad else tf1.FIFOQueue
    element_shapes = _shapes(given, shapes, dynamic_pad)
    dtypes = [component.dtype for component in given.components]
    with tf1.name_scope(name, "bucket", list(given.components)):
        buckets = [
            queue_class(
                most,
                dtypes,
                element_shapes,
                shared_name=None if shared_name is None else f"{shared_name}_{i}",
                name=f"bucket_queue_{i}",
            )
            for i, most in enumerate(capacities)
        ]
        finished = tf1.FIFOQueue(capacity, [tf.int32, *dtypes], shared_name=shared_name, name="top_queue")
        put = _put(buckets, given, which_bucket, keep_input, always_inside=always_inside)
        tf1.train.add_queue_runner(
            tf1.train.QueueRunner(
                buckets[0],
                [put] * num_threads,
                close_op=tf.group(*[queue.close() for queue in buckets]),
                cancel_op=tf.group(*[queue.close(cancel_pending_enqueues=True) for queue in buckets]),
                queue_closed_exception_types=_ENDS,
            )
        )
        enqueues = []
        for i, (queue, size) in enumerate(zip(buckets, sizes, strict=True)):
            take = queue.dequeue_up_to(size) if allow_smaller_final_batch else queue.dequeue_many(size)
            taken = take if isinstance(take, list | tuple) else [take]
            enqueues.append(finished.enqueue([tf.constant(i), *taken], name=f"enqueue_from_{i}"))
        tf1.train.add_queue_runner(tf1.train.QueueRunner(finished, enqueues, queue_closed_exception_types=_ENDS))
        for queue in (*buckets, finished):
            filled = tf.cast(queue.size(), tf.float32)
            tf1.summary.scalar(f"{queue.name.rpartition('/')[2]}/size", filled)
        number, *outputs = finished.dequeue(name="dequeue_top")
        rows = None if allow_smaller_final_batch or len(set(map(str, sizes))) > 1 else _static(sizes[0])
        for output, shape in zip(outputs, element_shapes, strict=True):
            output.set_shape(tf.TensorShape([rows]).concatenate(shape))
        return number, given.batch(outputs)


def _put(
    buckets: Sequence[Any], given: Element, which_bucket: Any, keep_input: Any, *, always_inside: bool
) -> tf.Operation:
    """The op that puts one element into its bucket, or nowhere."""

    def into(queue: Any) -> Any:
        with tf.control_dependencies([queue.enqueue(list(given.components))]):
            return tf.constant(0)

    which = tf.cast(tf.convert_to_tensor(which_bucket), tf.int32)
    branches = [lambda queue=queue: into(queue) for queue in buckets]
    kept = tf.get_static_value(tf.convert_to_tensor(keep_input, tf.bool))
    if kept is None or not kept:
        which = tf.where(keep_input, which, -1)
    elif always_inside:
        return tf.switch_case(which, branches, name="put").op
    return tf.switch_case(which, branches, default=lambda: tf.constant(0), name="put").op


def _for_each_bucket(argument: str, value: Any, num_buckets: int) -> list[Any]:
    if isinstance(value, Iterable) and not tf.is_tensor(value):
        values = list(value)
        if len(values) != num_buckets:
            raise InvalidArgument(f"{argument} has {len(values)} numbers for {num_buckets} buckets")
        return values
    return [value] * num_buckets


def _shapes(given: Element, shapes: Any, dynamic_pad: bool) -> list[tf.TensorShape]:
    found = [component.shape for component in given.components]
    if shapes is not None:
        if len(shapes) != len(found):
            raise InvalidArgument(f"shapes has {len(shapes)} entries for {len(found)} tensors")
        found = [tf.TensorShape(shape) for shape in shapes]
    for component, shape in zip(given.components, found, strict=True):
        if dynamic_pad and shape.rank is None:
            raise InvalidArgument(
                f"the number of dimensions of {component.name} is not known; give shapes=, or call set_shape first"
            )
        if not dynamic_pad and not shape.is_fully_defined():
            raise InvalidArgument(
                f"the shape of {component.name} is {shape}: all shapes must be known without dynamic_pad=True; "
                f"give shapes=, or pad"
            )
    return found


def _static(size: Any) -> int | None:
    value = tf.get_static_value(size) if tf.is_tensor(size) else size
    return None if value is None else int(value)
