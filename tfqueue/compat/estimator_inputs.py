"""tf.estimator.inputs: input functions over arrays and data frames, which fill a queue of rows.

The rows come from Python, a block at a time, by an op of the graph that is given the number of the block; so a pipeline
of these functions runs under every engine and from the beginning in every session. It needs no initialiser, as the
functions of TF1 needed none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tfqueue.errors import InvalidArgument

__all__ = ["numpy_input_fn", "pandas_input_fn"]

tf1 = tf.compat.v1

_ENDS = (tf.errors.OutOfRangeError, tf.errors.CancelledError)


def numpy_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Callable[[], Any]:
    """An input function over arrays: batches of their rows through a queue.

    Args:
        x: The features: an array, or a dictionary of arrays, with the same first dimension.
        y: The targets: an array, or a dictionary of arrays, as long as ``x``; None: no targets.
        batch_size: Rows of a batch.
        num_epochs: Passes over the rows, after which the last batch may be smaller; None: without end. Each thread
            makes all the passes.
        shuffle: Begin at a random row and draw from a queue that is a quarter full at least. It must be said.
        queue_capacity: Rows in the queue.
        num_threads: Threads that fill it; with several, rows have no order.

    Returns:
        A function without arguments that gives (features, targets), or the features alone, in the form of ``x`` and
        ``y``.

    Raises:
        InvalidArgument: ``shuffle`` is not said, an array has no rows, or the lengths differ.
    """
    features = _named_arrays("x", x)
    targets = {} if y is None else _named_arrays("y", y)
    both = sorted(set(features) & set(targets)) if isinstance(x, Mapping) and isinstance(y, Mapping) else []
    if both:
        raise InvalidArgument(f"x and y both have {both}")
    columns = [*features.values(), *targets.values()]
    lengths = {name: len(column) for name, column in (*features.items(), *targets.items())}
    if len(set(lengths.values())) > 1:
        raise InvalidArgument(f"x and y must have the same number of rows; got {lengths}")
    _check(batch_size, num_epochs, shuffle, queue_capacity, num_threads)

    def input_fn() -> Any:
        rows = _queued(columns, batch_size, num_epochs, bool(shuffle), queue_capacity, num_threads)
        given = _like(x, features, rows[: len(features)])
        return given if y is None else (given, _like(y, targets, rows[len(features) :]))

    return input_fn


def pandas_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    target_column: str = "target",
) -> Callable[[], Any]:
    """An input function over a data frame of pandas: a dictionary of its columns, and the targets.

    Args:
        x: A ``pandas.DataFrame``.
        y: A ``pandas.Series`` (one target tensor) or ``DataFrame`` (a dictionary) with the index of ``x``, or None.
        batch_size: As of `numpy_input_fn`, and so are the further arguments.
        target_column: The name that a series of targets has among the columns; ``x`` cannot have it, too.

    Raises:
        InvalidArgument: ``x`` is no data frame, the indices differ, and as `numpy_input_fn`.
    """
    if not hasattr(x, "columns") or not hasattr(x, "index"):
        raise InvalidArgument(f"x must be a pandas.DataFrame; got {type(x).__name__}")
    if y is not None and not np.array_equal(x.index, y.index):
        raise InvalidArgument("x and y have different indices")
    features = {str(name): np.asarray(x[name]) for name in x.columns}
    targets: Any = None
    if y is not None and hasattr(y, "columns"):
        targets = {str(name): np.asarray(y[name]) for name in y.columns}
    elif y is not None:
        if target_column in features:
            raise InvalidArgument(f"x has a column {target_column!r}; give another name: target_column=")
        targets = np.asarray(y)
    return numpy_input_fn(features, targets, batch_size, num_epochs, shuffle, queue_capacity, num_threads)


def _named_arrays(argument: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        value = {argument: value}
    if not value:
        raise InvalidArgument(f"{argument} is an empty dictionary")
    arrays = {name: _native(np.asarray(value[name])) for name in sorted(value)}
    for name, array in arrays.items():
        if array.ndim == 0 or len(array) == 0:
            raise InvalidArgument(f"{name!r} has no rows: its shape is {array.shape}")
        if array.dtype.kind == "O" and not all(isinstance(entry, str | bytes) for entry in array.flat):
            raise InvalidArgument(f"{name!r} is an array of objects that are not all strings; give it a dtype")
        if array.dtype.kind not in "OSU":
            try:
                tf.as_dtype(array.dtype)
            except TypeError as error:
                raise InvalidArgument(f"{name!r} has a dtype that TensorFlow lacks: {array.dtype}") from error
    return arrays


def _native(array: Any) -> Any:
    """In the byte order of this machine: TensorFlow takes the bytes of another order as they are."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _check(batch_size: int, num_epochs: int | None, shuffle: Any, capacity: int, threads: int) -> None:
    if not isinstance(shuffle, bool):
        raise InvalidArgument(f"shuffle must be True or False (True is recommended for training); got {shuffle!r}")
    for argument, value in (("batch_size", batch_size), ("queue_capacity", capacity), ("num_threads", threads)):
        if value < 1:
            raise InvalidArgument(f"{argument} must be at least 1; got {value}")
    if num_epochs is not None and num_epochs < 1:
        raise InvalidArgument(f"num_epochs must be at least 1, or None; got {num_epochs}")


def _like(given: Any, arrays: Mapping[str, Any], tensors: list[Any]) -> Any:
    return dict(zip(arrays, tensors, strict=True)) if isinstance(given, Mapping) else tensors[0]


def _queued(
    columns: list[Any], batch_size: int, num_epochs: int | None, shuffle: bool, capacity: int, threads: int
) -> list[Any]:
    """Batches of the columns' rows, out of a queue that runners of the graph fill."""
    dtypes = [tf.string if column.dtype.kind in "OSU" else tf.as_dtype(column.dtype) for column in columns]
    shapes = [column.shape[1:] for column in columns]
    with tf1.name_scope("enqueue_input"):
        kept_back = capacity // 4 if shuffle else 0
        if shuffle:
            queue: Any = tf1.RandomShuffleQueue(capacity, kept_back, dtypes, shapes)
        else:
            queue = tf1.FIFOQueue(capacity, dtypes, shapes)
        enqueues = []
        for thread in range(threads):
            begin = _first_row(len(columns[0]), thread) if shuffle else 0
            blocks = _Blocks(columns, begin, batch_size, num_epochs)
            number = tf1.train.range_input_producer(blocks.count, shuffle=False, name="blocks").dequeue()
            block = tf.numpy_function(blocks.rows, [number], dtypes)
            block = list(block) if isinstance(block, list | tuple) else [block]
            for tensor, shape in zip(block, shapes, strict=True):
                tensor.set_shape([None, *shape])
            enqueues.append(queue.enqueue_many(block))
        tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, enqueues, queue_closed_exception_types=_ENDS))
        filled = tf.cast(tf.maximum(0, queue.size() - kept_back), tf.float32)
        tf1.summary.scalar(f"fraction_over_{kept_back}_of_{capacity - kept_back}_full", filled / (capacity - kept_back))
        taken = queue.dequeue_many(batch_size) if num_epochs is None else queue.dequeue_up_to(batch_size)
    return list(taken) if isinstance(taken, list | tuple) else [taken]


def _first_row(rows: int, thread: int) -> int:
    """Drawn from the seed of the graph, where it has one."""
    seed = tf1.get_default_graph().seed
    return int(np.random.default_rng(None if seed is None else [abs(seed), thread]).integers(rows))


class _Blocks:
    """Blocks of rows in a circle from row ``begin``, also over the end of a pass; the last one may be smaller."""

    def __init__(self, columns: list[Any], begin: int, size: int, num_epochs: int | None) -> None:
        self._columns = columns
        self._begin = begin
        self._size = size
        self._length = len(columns[0])
        self._total = None if num_epochs is None else num_epochs * self._length
        # Of numbers that begin again after the last: one more, which is the end; or until the circle closes.
        self.count = (
            self._length // math.gcd(self._length, size) if self._total is None else -(-self._total // size) + 1
        )

    def rows(self, number: Any) -> list[Any]:
        """The rows of a block; after the last, the end of an iterator, which ends an op as a closed queue does."""
        start = int(number) * self._size
        count = self._size if self._total is None else min(self._size, self._total - start)
        if count <= 0:
            raise StopIteration
        rows = (self._begin + start + np.arange(count)) % self._length
        return [np.ascontiguousarray(column[rows]) for column in self._columns]
