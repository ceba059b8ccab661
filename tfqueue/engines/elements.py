"""The pieces that a lowered pipeline is put together from: element streams, stage inputs, batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf

from tfqueue.engines.plain import plain
from tfqueue.engines.reading import count_records
from tfqueue.errors import CannotLower
from tfqueue.topology.model import Queue, Reader


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of a queue, or the records of a reader.

    Attributes:
        dataset: A dataset of flat tuples, one tensor for each component.
        sparse: For each component whether it is a serialized SparseTensor.
    """

    dataset: Any
    sparse: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Inputs:
    """What runs of a stage take from its cuts.

    Attributes:
        names: The names of the legacy tensors.
        dataset: A dataset of flat tuples, one value for each name; one element a run.
        sparse: Those of the names that hold serialized SparseTensors.
    """

    names: tuple[str, ...]
    dataset: Any
    sparse: frozenset[str]


def assigned_names(names: Any, readers: Sequence[Reader]) -> Any:
    """(number of the reader, file name), of several readers that take file names from one queue.

    The readers read in turns, a record each; the one that first comes to the end of its file takes the next name.
    """
    count = len(readers)

    def count_of(name: Any, owner: Any) -> Any:
        if len({replace(reader, name="", reads=(), source=None) for reader in readers}) == 1:
            return count_records(name, readers[0])
        branches = [lambda reader=reader: count_records(name, reader) for reader in readers]
        return tf.switch_case(tf.cast(owner, tf.int32), branches)

    def assign(read: Any, name: Any) -> tuple[Any, tuple[Any, Any]]:
        # The first to be done is the one that has read least, the earlier in turn of equals.
        owner = tf.argmin(read)
        return tf.tensor_scatter_nd_add(read, [[owner]], [count_of(name, owner)]), (owner, name)

    return names.scan(tf.zeros([count], tf.int64), plain(assign))


def batched(dataset: Any, queue: Queue, sparse: Sequence[bool], size: int, *, keep: bool) -> Any:
    if queue.kind == "PaddingFIFO":
        shapes = tuple(
            tf.TensorShape([3]) if flag else tf.TensorShape(component.shape)
            for component, flag in zip(queue.components, sparse, strict=True)
        )
        return dataset.padded_batch(size, padded_shapes=shapes, drop_remainder=not keep)
    return dataset.batch(size, drop_remainder=not keep)


def split_batches(dataset: Any, queue: Queue, parts: Sequence[tuple[str, int]]) -> Any:
    """Several dequeues of one queue in one run: each takes the next elements."""
    if queue.kind == "PaddingFIFO":
        raise CannotLower(
            f"a step takes several padded batches from {words_of(queue)}, each padded to its own longest element",
            op=queue.name,
            source=queue.source,
            advice="take once and split, or iterate with get_next several times",
        )

    def split(*values: Any) -> tuple[Any, ...]:
        taken: list[Any] = []
        start = 0
        for kind, size in parts:
            taken.extend(value[start] if kind == "dequeue" else value[start : start + size] for value in values)
            start += size
        return tuple(taken)

    return dataset.map(plain(split))


def words_of(queue: Queue) -> str:
    return f"the queue {queue.name}" + (f" ({queue.source})" if queue.source else "")


def shaped(value: Any, shape: Any) -> Any:
    return tf.ensure_shape(value, shape) if tf.TensorShape(shape).rank is not None else value
