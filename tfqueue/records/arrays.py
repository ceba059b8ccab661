"""Arrays whose first axis counts records -> TFRecord files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfqueue.errors import InvalidArgument
from tfqueue.records.encode import Layout
from tfqueue.records.paths import Path
from tfqueue.records.planned import WriteOptions, write_planned
from tfqueue.records.values import Array, is_small_float, is_small_integer

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
    resume: bool = False,
    workers: int = 1,
    processes: bool = False,
    manifest: bool | None = None,
    progress: bool | None = None,
) -> list[str]:
    """Writes arrays of equal first axis, one record for each of its positions.

    Args:
        path: As for ``RecordWriter``.
        arrays: Feature name -> array of shape [records, ...]. Whatever can be sliced by its first axis is read in
            blocks (numpy.memmap, h5py datasets), so that it need not fit in memory; lists become arrays first.
        layout: "bytes" stores each ``array[i]`` so that ``read`` gives it back with dtype and shape; "list" stores it
            as the flat float_list, int64_list or bytes_list that tf.io.FixedLenFeature reads.
        narrow: As for ``RecordWriter``, and so are shards, records_per_shard, bytes_per_shard and compression.
        shards: See above.
        records_per_shard: See above.
        bytes_per_shard: See above.
        compression: See above.
        overwrite: Whether existing files, and all shards written under this name, may be replaced. Old shards are
            removed before the first new one appears.
        resume: Whether shards that an interrupted call has finished stay, and only the others are written. The data and
            all options must be the same. After an error, too, finished shards stay then; else they are removed.
        workers: How many shards are written at the same time; the files are the same for any number.
        processes: Whether the workers are processes instead of threads. Threads do well with large records and with
            compression. Processes import the main module, so a program needs ``if __name__ == "__main__":``.
        manifest: Whether a manifest is written beside the files (see ``manifest``); None writes it for shards only.
        progress: True or False to show a progress bar or not; None shows it on a terminal.

    Returns:
        The paths of the files, in order.

    Raises:
        InvalidArgument: No array, one without a first axis, or first axes of unequal length (all are named).
        RecordError: An array cannot be stored, or the files cannot be written.
    """
    options = WriteOptions(
        shards=shards,
        records_per_shard=records_per_shard,
        bytes_per_shard=bytes_per_shard,
        compression=compression,
        overwrite=overwrite,
        resume=resume,
        workers=workers,
        processes=processes,
        manifest=manifest,
        layout=layout,
        narrow=narrow,
        progress=progress,
    )
    return write_planned(path, ArraySource.of(arrays, layout=layout), options, info={})


@dataclass(frozen=True, slots=True)
class ArraySource:
    """Arrays as a source of records.

    Attributes:
        columns: Feature name -> array.
        start: The first record.
        stop: The record behind the last.
        layout: How they will be stored.
    """

    columns: Mapping[str, Any]
    start: int
    stop: int
    layout: Layout

    @classmethod
    def of(cls, arrays: Mapping[str, Any], *, layout: Layout) -> ArraySource:
        """Returns the source of checked arrays; raises InvalidArgument as ``write_arrays`` does."""
        columns = _columns(arrays)
        return cls(columns, 0, _common_length(columns), layout)

    def __len__(self) -> int:
        return self.stop - self.start

    def part(self, start: int, stop: int) -> ArraySource:
        return ArraySource(self.columns, self.start + start, self.start + stop, self.layout)

    def __getstate__(self) -> tuple[dict[str, Any], int, int, Layout]:
        # Another process gets its own part only.
        columns = {name: np.asarray(column[self.start : self.stop]) for name, column in self.columns.items()}
        return columns, 0, len(self), self.layout

    def __setstate__(self, state: tuple[dict[str, Any], int, int, Layout]) -> None:
        for name, value in zip(("columns", "start", "stop", "layout"), state, strict=True):
            object.__setattr__(self, name, value)

    def rows(self) -> Iterator[dict[str, Any]]:
        names = list(self.columns)
        row_bytes = sum(_row_bytes(column) for column in self.columns.values())
        step = max(1, _BLOCK_BYTES // max(1, row_bytes))
        for low in range(self.start, self.stop, step):
            high = min(low + step, self.stop)
            blocks = [self._block(np.asarray(column[low:high])) for column in self.columns.values()]
            for row in zip(*blocks, strict=True):
                yield dict(zip(names, row, strict=True))

    def _block(self, block: Array) -> Array | list[Any]:
        # In a list a numpy scalar and a Python number are the same, and the latter is faster by far.
        exact = is_small_integer(block.dtype) or is_small_float(block.dtype)
        return block.tolist() if self.layout == "list" and block.ndim == 1 and exact else block

    def fingerprint(self) -> str:
        # Not all of the data, which may be larger than the memory: some rows from end to end.
        digest = hashlib.sha256()
        for name, column in self.columns.items():
            digest.update(repr((name, str(getattr(column, "dtype", None)), tuple(column.shape))).encode())
            for row in {int(place) for place in np.linspace(self.start, self.stop - 1, 64)} if len(self) else ():
                value = np.asarray(column[row : row + 1])
                digest.update(repr(value.tolist()).encode() if value.dtype == object else value.tobytes())
        return digest.hexdigest()


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


def _row_bytes(column: Any) -> int:
    itemsize = getattr(getattr(column, "dtype", None), "itemsize", 8)
    return int(np.prod(column.shape[1:], dtype=np.int64)) * int(itemsize)
