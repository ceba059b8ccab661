"""How many records a batch has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from tfqueue.stats import last_dequeue
from tfqueue.topology.model import Topology

_KEEP_ROWS = ("Cast", "Identity")
_GIVE_SPARSE_ROWS = ("DeserializeManySparse", "TakeManySparseFromTensorsMap")


def rows_of(topology: Topology, fetches: Any) -> Callable[[Any], int | None]:
    """A function that tells the number of records of a batch, as cheaply as it can be told; None where it cannot.

    Args:
        topology: The topology of the pipeline, with its fetches.
        fetches: What a step fetches, a nest of tensors; a batch has the same structure.
    """
    last = last_dequeue(topology)
    if last is None:
        return unknown_rows
    if last.kind == "dequeue":
        return lambda batch: 1
    if last.kind == "dequeue_many" and last.batch_size is not None:
        size = last.batch_size
        return lambda batch: size
    path = next((path for path, leaf in _leaves(fetches, ()) if _has_a_row_a_record(leaf, last.name)), None)
    if path is None:
        return unknown_rows

    def rows(batch: Any) -> int:
        for key in path:
            batch = batch[key]
        return int(batch.dense_shape[0]) if hasattr(batch, "dense_shape") else len(batch)

    return rows


def unknown_rows(batch: Any) -> None:
    """The number of records where it cannot be told: None."""


def _leaves(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """(keys that lead to it, leaf) of a nest."""
    if isinstance(value, dict):
        for key in value:
            yield from _leaves(value[key], (*path, key))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, index))
    else:
        yield path, value


def _has_a_row_a_record(leaf: Any, dequeue: str) -> bool:
    """Whether a fetched tensor has its first dimension from the dequeue op; one computed from a batch may have any."""
    if isinstance(leaf, tf.SparseTensor):
        return leaf.indices.op.type in _GIVE_SPARSE_ROWS
    if not isinstance(leaf, tf.Tensor):
        return False
    op = leaf.op
    while op.type in _KEEP_ROWS:
        op = op.inputs[0].op
    return bool(op.name == dequeue)
