"""The pieces that a lowered pipeline is put together from: element streams, stage inputs, batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf

from tfqueue.engines.plain import plain
from tfqueue.engines.reading import counted
from tfqueue.engines.stage_call import Call
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
class Steps:
    """A dataset, a stage over it, and perhaps a batch after that.

    Attributes:
        source: The dataset.
        call: The stage, or None.
        batch: From the dataset of what the stage gives to that of its batches, or None.
    """

    source: Any
    call: Call | None
    batch: Callable[[Any], Any] | None

    def dataset(self) -> Any:
        """All of it as one dataset."""
        done = self.source if self.call is None else self.call.map(self.source)
        return done if self.batch is None else self.batch(done)


@dataclass(frozen=True, slots=True)
class Inputs:
    """What runs of a stage take from its cuts.

    Attributes:
        names: The names of the legacy tensors.
        dataset: A dataset of flat tuples, one value for each name; one element a run.
        sparse: Those of the names that hold serialized SparseTensors.
        steps: How the dataset is made, where what follows may be made part of it.
    """

    names: tuple[str, ...]
    dataset: Any
    sparse: frozenset[str]
    steps: Steps | None = None


def assigned_names(names: Any, readers: Sequence[Reader]) -> Any:
    """(number of the reader, file name), of several readers that take file names from one queue.

    The readers read in turns, a record each; the one that first comes to the end of its file takes the next name.
    """
    kinds = [replace(reader, name="", reads=(), source=None) for reader in readers]
    distinct = list(dict.fromkeys(kinds))
    kind_of = tf.constant([distinct.index(kind) for kind in kinds])

    def with_counts(name: Any) -> Any:
        counts = tf.data.Dataset.zip(tuple(counted(name, reader) for reader in distinct))
        return counts.map(plain(lambda *values: (name, tf.stack(values))))

    def assign(read: Any, named: Any) -> tuple[Any, tuple[Any, Any]]:
        name, counts = named
        # The first to be done is the one that has read least, the earlier in turn of equals.
        owner = tf.argmin(read)
        taken = tf.gather(counts, tf.gather(kind_of, owner))
        return tf.tensor_scatter_nd_add(read, [[owner]], [taken]), (owner, name)

    return names.flat_map(plain(with_counts)).scan(tf.zeros([len(readers)], tf.int64), plain(assign))


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
    """A value of which at least this shape is known."""
    shape = tf.TensorShape(shape)
    # An op that tells nothing new would cost as much as any other in each step.
    return value if value.shape.is_subtype_of(shape) else tf.ensure_shape(value, shape)
