"""Arrays whose first axis counts records -> TFRecord files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tfqueue.errors import InvalidArgument
from tfqueue.records.encode import Layout
from tfqueue.records.paths import Path
from tfqueue.records.values import Array
from tfqueue.records.writer import RecordWriter

_BLOCK_BYTES = 1 << 24


def write_arrays(
    path: Path,
    arrays: Mapping[str, Any],
    *,
    layout: Layout = "bytes",
    narrow: bool = False,
    shards: int | None = None,
    records_per_shard: int | None = None,
    bytes_per_shard: int | None = None,
    compression: str | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
) -> list[str]:
    """Writes arrays of equal first axis, one record for each of its positions.

    Args:
        path: As for ``RecordWriter``.
        arrays: Feature name -> array of shape [records, ...]. Whatever can be sliced by its first axis is
            read in blocks (numpy.memmap, h5py datasets), so that it need not fit in memory; lists become
            arrays first.
        layout: "bytes" stores each ``array[i]`` so that ``read`` gives it back with dtype and shape; "list"
            stores it as the flat float_list, int64_list or bytes_list that tf.io.FixedLenFeature reads.
        narrow: As for ``RecordWriter``.
        shards: As for ``RecordWriter``, and so all that follow.
        records_per_shard: See above.
        bytes_per_shard: See above.
        compression: See above.
        overwrite: See above.
        progress: See above.

    Returns:
        The paths of the files, in order.

    Raises:
        InvalidArgument: No array, one without a first axis, or first axes of unequal length (all are named).
        RecordError: An array cannot be stored, or the files cannot be written.
    """
    columns = _columns(arrays)
    records = _common_length(columns)
    with RecordWriter(
        path,
        shards=shards,
        records_per_shard=records_per_shard,
        bytes_per_shard=bytes_per_shard,
        expected_records=records,
        compression=compression,
        overwrite=overwrite,
        layout=layout,
        narrow=narrow,
        progress=progress,
    ) as writer:
        for features in _rows(columns, 0, records):
            writer.write(features)
    return writer.paths


def _columns(arrays: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(arrays, Mapping):
        raise InvalidArgument(f"arrays is {type(arrays).__name__}; expected a dict of name -> array")
    if not arrays:
        raise InvalidArgument("arrays is empty: there is nothing to write")
    columns = {}
    for name, array in arrays.items():
        if not (hasattr(array, "shape") and hasattr(array, "__getitem__")):
            try:
                array = np.asarray(array)
            except ValueError as error:
                raise InvalidArgument(
                    f"array {name!r} is not rectangular ({error}); write ragged data with RecordWriter.write"
                ) from error
        if not tuple(array.shape):
            raise InvalidArgument(f"array {name!r} has no axis; expected shape [records, ...]")
        columns[name] = array
    return columns


def _common_length(columns: Mapping[str, Any]) -> int:
    lengths = {name: int(column.shape[0]) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
        raise InvalidArgument(f"the arrays differ in the length of their first axis: {listed}")
    return next(iter(lengths.values()))


def _rows(columns: Mapping[str, Any], start: int, stop: int) -> Iterator[dict[str, Any]]:
    """Yields the records from ``start`` to ``stop`` as features."""
    names = list(columns)
    row_bytes = sum(_row_bytes(column) for column in columns.values())
    step = max(1, _BLOCK_BYTES // max(1, row_bytes))
    for low in range(start, stop, step):
        blocks: list[Array] = [np.asarray(column[low : min(low + step, stop)]) for column in columns.values()]
        for row in zip(*blocks, strict=True):
            yield dict(zip(names, row, strict=True))


def _row_bytes(column: Any) -> int:
    itemsize = getattr(getattr(column, "dtype", None), "itemsize", 8)
    return int(np.prod(column.shape[1:], dtype=np.int64)) * int(itemsize)
