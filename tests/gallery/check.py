"""Did these batches come from that program? One checker for every engine that runs the gallery."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import cycle, islice
from typing import Any

import numpy as np
import tensorflow as tf

from .registry import Program


def split(program: Program, batch: Any) -> list[Any]:
    """The records of one batch.

    Raises:
        ValueError: The components of the batch have different sizes.
    """
    if program.unbatch is not None:
        return program.unbatch(batch)
    if program.batch_size is None:
        return [batch]
    sizes = set(_sizes(batch))
    if len(sizes) != 1:
        raise ValueError(f"the components of one batch have the sizes {sorted(sizes)}")
    return [_row(batch, i) for i in range(sizes.pop())]


def fingerprint(record: Any) -> Any:
    """A hashable value, equal for records that are equal in structure, dtype, shape and every bit."""
    if isinstance(record, dict):
        return tuple((key, fingerprint(record[key])) for key in sorted(record))
    if isinstance(record, (tuple, list)):
        return tuple(fingerprint(value) for value in record)
    array = np.asarray(record)
    if array.dtype.kind in "OSU":
        return (
            "bytes",
            array.shape,
            tuple(v.encode() if isinstance(v, str) else bytes(v) for v in array.ravel()),
        )
    return array.dtype.str, array.shape, array.tobytes()


def problems(program: Program, batches: Iterable[Any], *, complete: bool = True) -> list[str]:
    """What is wrong with the batches of one whole run (of ``program.steps`` batches where it is endless).

    Sizes, number, values, and the order where the program defines one. No problem: an empty list.

    Args:
        program: What was run.
        batches: What it delivered, as numpy values.
        complete: False for a run that was stopped or broken off: fewer batches are no problem then.
    """
    found: list[str] = []
    sizes: list[int] = []
    delivered: list[Any] = []
    for number, batch in enumerate(batches):
        try:
            records = split(program, batch)
        except ValueError as error:
            return [f"batch {number}: {error}"]
        sizes.append(len(records))
        delivered += records
    expected_sizes = list(program.expected_sizes)
    # Several bucket queues give their smaller last batches in any order.
    same = sizes == expected_sizes if program.ordered else sorted(sizes) == sorted(expected_sizes)
    if complete and not same:
        found.append(f"batch sizes {sizes}, expected {expected_sizes}")
    if program.invariant is not None:
        delivered = [program.invariant(record) for record in delivered]
    if program.independent_columns:
        for column, wanted in enumerate(zip(*program.records, strict=True)):
            got = [record[column] for record in delivered]
            found += [f"component {column}: {p}" for p in _values(program, got, wanted, complete)]
        return found
    return found + _values(program, delivered, program.records, complete)


def _values(program: Program, delivered: Sequence[Any], epoch: Sequence[Any], complete: bool) -> list[str]:
    got = [fingerprint(record) for record in delivered]
    one_epoch = [fingerprint(record) for record in epoch]
    if program.ordered:
        length = sum(program.expected_sizes)
        wanted = list(islice(cycle(one_epoch), length))
        for position, (a, b) in enumerate(zip(got, wanted, strict=False)):
            if a != b:
                return [f"record {position} is {delivered[position]!r}, expected {epoch[position % len(epoch)]!r}"]
        return _count(len(got), length, complete)
    if program.epochs is None:
        # A source that goes round has read each record at most this often, whatever waits in the queues.
        most = -(-(len(got) + program.in_flight) // len(one_epoch))
        allowed = Counter({key: count * most for key, count in Counter(one_epoch).items()})
    else:
        allowed = Counter({key: count * program.epochs for key, count in Counter(one_epoch).items()})
    found = []
    for key, count in Counter(got).items():
        if count > allowed[key]:
            first = delivered[got.index(key)]
            found.append(f"{first!r} was delivered {count} times, at most {allowed[key]} expected")
    return found + _count(len(got), sum(program.expected_sizes), complete)


def _count(got: int, expected: int, complete: bool) -> list[str]:
    right = got == expected if complete else got <= expected
    return [] if right else [f"{got} records, expected {expected}"]


def _is_sparse(value: Any) -> bool:
    return isinstance(value, (tf.compat.v1.SparseTensorValue, tf.SparseTensor))


def _sizes(batch: Any) -> list[int]:
    if _is_sparse(batch):
        return [int(np.asarray(batch.dense_shape)[0])]
    if isinstance(batch, dict):
        return [size for value in batch.values() for size in _sizes(value)]
    if isinstance(batch, (tuple, list)):
        return [size for value in batch for size in _sizes(value)]
    return [np.asarray(batch).shape[0]]


def _row(batch: Any, row: int) -> Any:
    if _is_sparse(batch):
        indices, values = np.asarray(batch.indices), np.asarray(batch.values)
        mine = indices[:, 0] == row
        return {"indices": indices[mine, 1:], "values": values[mine]}
    if isinstance(batch, dict):
        return {key: _row(value, row) for key, value in batch.items()}
    if isinstance(batch, (tuple, list)):
        return tuple(_row(value, row) for value in batch)
    return np.asarray(batch)[row]
