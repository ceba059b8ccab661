"""Reading records as dicts of numpy arrays, in order or by number, without TensorFlow."""

from __future__ import annotations

import bisect
import operator
import os
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, Literal, overload

import numpy as np

from tfqueue.errors import InvalidArgument, RecordError, TFQueueWarning
from tfqueue.records.damage import Damage, walk
from tfqueue.records.decode import MalformedError, features, parse, plain
from tfqueue.records.framing import FOOTER_SIZE, FRAME_SIZE, HEADER_SIZE, footer, header_length
from tfqueue.records.index import FileIndex, file_index
from tfqueue.records.manifest import Manifest, cut_between_records, find_manifest
from tfqueue.records.paths import Paths, expand, index_name, open_to_read
from tfqueue.records.scan import Source, frames
from tfqueue.records.scan import damaged as damaged_record
from tfqueue.records.schema import Schema, describe
from tfqueue.records.values import Array

if TYPE_CHECKING:
    import tensorflow as tf

_COPIED: Final = 1 << 14


def read(
    paths: Paths,
    *,
    compression: str | None = "auto",
    raw: bool = False,
    damaged: Literal["raise", "skip"] = "raise",
) -> Iterator[dict[str, Any]]:
    """Reads the records of files, one dict a record, in order.

    Args:
        paths: One path, a pattern, or a list.
        compression: "auto" decides for each file by its first bytes; else "GZIP", "ZLIB" or "".
        raw: Whether ``<name>/shape``, ``<name>/dtype`` and ``<name>/row_lengths`` are given as they are stored,
            instead of being used to restore the array ``<name>``.
        damaged: "skip" goes on behind damage with the next whole record, as ``salvage`` does, and ends each damaged
            file with a warning that says how much was skipped and where.

    Returns:
        An iterator of dicts, feature name -> array. A float_list is float32 of shape [n], an int64_list int64 of
        shape [n], a bytes_list an object array of bytes of shape [n]; also if n is 1, because the file does not tell
        a scalar from a list of one. Arrays and numpy scalars written with layout "bytes" come back with their dtype
        and shape. Ragged lists and the steps of a SequenceExample are object arrays of arrays.

    Raises:
        InvalidArgument: ``damaged`` is something else.
        RecordError: A file does not exist, or a record is no tf.train.Example.
        DamagedRecord: The first damage of a file, with file, record and offset. All records before it were given. A
            file that ends between two records is damaged if the manifest beside it says that there were more.
    """
    if damaged not in ("raise", "skip"):
        raise InvalidArgument(f"damaged is {damaged!r}; expected 'raise' or 'skip'")
    names = expand(paths)
    return _read_whole(names, compression, raw) if damaged == "skip" else _read(names, compression, raw)


def _read(names: list[str], compression: str | None, raw: bool) -> Iterator[dict[str, Any]]:
    for name in names:
        records = end = 0
        for index, offset, payload in frames(name, compression=compression):
            yield decode(payload, raw=raw, file=name, record=index, offset=offset)
            records, end = index + 1, offset + FRAME_SIZE + len(payload)
        if words := cut_between_records(name, records):
            raise damaged_record(name, records, end, words)


def _read_whole(names: list[str], compression: str | None, raw: bool) -> Iterator[dict[str, Any]]:
    for name in names:
        skipped: list[Damage] = []
        records = end = 0
        for found in walk(name, compression=compression, search=True):
            if found.payload is None:
                assert isinstance(found, Damage)
                skipped.append(found)
            else:
                yield decode(found.payload, raw=raw, file=name, record=found.record, offset=found.offset)
                records, end = found.record + 1, found.offset + FRAME_SIZE + len(found.payload)
        if not skipped and (words := cut_between_records(name, records)):
            warnings.warn(f"{name!r}, record {records}, byte {end}: {words}", TFQueueWarning, stacklevel=2)
        if skipped:
            size = sum(damage.end - damage.offset for damage in skipped)
            first = skipped[0]
            warnings.warn(
                f"{name!r}: {len(skipped)} damaged places ({size} bytes) were skipped, the first at record "
                f"{first.record}, byte {first.offset}: {first.words}",
                TFQueueWarning,
                stacklevel=2,
            )


def decode(
    payload: bytes,
    *,
    raw: bool = False,
    file: str | None = None,
    record: int | None = None,
    offset: int | None = None,
) -> dict[str, Any]:
    """Returns the features of one serialized record; see ``read``.

    Raises:
        RecordError: It is no tf.train.Example or SequenceExample.
    """
    try:
        message = parse(payload)
        if raw and message.sequences is None:
            return {name: plain(feature) for name, feature in message.context.items()}
        return features(message)
    except MalformedError as error:
        where = f"{file!r}, record {record}, byte {offset}: " if file is not None else ""
        raise RecordError(
            f"{where}the record is no tf.train.Example that can be read: {error}",
            file=file,
            record=record,
            offset=offset,
        ) from error


class RecordReader:
    """The records of files as a sequence: ``len(reader)``, ``reader[7]``, ``reader[-1]``, ``reader[3:9]``, iteration.

    The first use of a number makes an index of each file, in one pass over the headers, and keeps it beside the file
    as a hidden ``.<name>.tfqindex`` (see ``index``); later readers load it. A compressed file is decompressed once
    into an unnamed temporary file for this.

    A reader may be used from several threads, and can be pickled. It holds open files; ``close`` it or use it in a
    ``with`` statement, or leave that to the garbage collector.

    Args:
        paths: One path, a pattern, or a list.
        compression: As for ``read``.
        raw: As for ``read``.
        keep_index: Whether a new index is kept beside its file. If the folder cannot be written it is kept in memory
            only.

    Attributes:
        paths: The files, in order.

    Raises:
        RecordError: A file does not exist.
        DamagedRecord: On first use: a file is damaged, or its manifest says that it held more records.
    """

    def __init__(
        self, paths: Paths, *, compression: str | None = "auto", raw: bool = False, keep_index: bool = True
    ) -> None:
        self.paths = expand(paths)
        self._compression = compression
        self._raw = raw
        self._keep = keep_index
        self._reset()

    def _reset(self) -> None:
        self._stack = ExitStack()
        self._files: dict[int, int] = {}
        self._known: tuple[list[FileIndex], list[int]] | None = None

    def _indexes(self) -> tuple[list[FileIndex], list[int]]:
        """Returns the index of each file, and the number of the first record behind each."""
        if self._known is None:
            indexes = [_whole_index(name, self._compression, keep=self._keep) for name in self.paths]
            ends = np.cumsum([len(index) for index in indexes]).tolist()
            self._known = (indexes, ends)
        return self._known

    def __len__(self) -> int:
        return int(self._indexes()[1][-1])

    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, key: slice) -> list[dict[str, Any]]: ...

    def __getitem__(self, key: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        """Returns a record as a dict of arrays (see ``read``), or the list of them for a slice.

        Raises:
            IndexError: There is no such record.
            TypeError: ``key`` is no int and no slice.
            DamagedRecord: The record is damaged, or the file has changed since the index was made.
            RecordError: It is no tf.train.Example.
        """
        if isinstance(key, slice):
            return [self[number] for number in range(*key.indices(len(self)))]
        name, record, offset, payload = self._get(key)
        return decode(payload, raw=self._raw, file=name, record=record, offset=offset)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return _read(self.paths, self._compression, self._raw)

    def payload(self, number: int) -> bytes:
        """Returns a record as it is stored, serialized; raises as ``reader[number]`` does."""
        return self._get(number)[3]

    def locate(self, number: int) -> tuple[str, int, int]:
        """Returns where a record is: the file, its number in this file, the byte offset of its frame.

        Raises:
            IndexError: There is no such record.
        """
        position, record = self._place(number)
        return self.paths[position], record, int(self._indexes()[0][position].offsets[record])

    def _place(self, number: int) -> tuple[int, int]:
        ends = self._indexes()[1]
        total = ends[-1]
        wanted = operator.index(number)
        if wanted < 0:
            wanted += total
        if not 0 <= wanted < total:
            raise IndexError(f"record {number} of {total} records")
        position = bisect.bisect_right(ends, wanted)
        return position, wanted - (ends[position - 1] if position else 0)

    def _get(self, number: int) -> tuple[str, int, int, bytes]:
        position, record = self._place(number)
        index = self._indexes()[0][position]
        name = self.paths[position]
        offset = int(index.offsets[record])
        end = int(index.offsets[record + 1]) if record + 1 < len(index) else index.size
        descriptor = self._files.get(position)
        if descriptor is None:
            descriptor = self._open(position, index)
        head, payload, foot = _pread_frame(descriptor, offset, end - offset)
        size = end - offset - FRAME_SIZE
        if header_length(head) != size or len(payload) != size or len(foot) != FOOTER_SIZE:
            words = f"no record of {size} bytes begins here; the file is damaged, or has changed since the index "
            raise damaged_record(name, record, offset, f"{words}{index_name(name)!r} was made")
        if footer(payload) != foot:
            raise damaged_record(name, record, offset, "the payload does not match its checksum")
        return name, record, offset, payload

    def _open(self, position: int, index: FileIndex) -> int:
        file = open_to_read(self.paths[position])
        if not index.compression:
            descriptor = self._stack.enter_context(file).fileno()
        else:
            spool = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 (the stack closes it)
            with file:
                source = Source(file, index.compression)
                while part := source.inflate(1 << 20):
                    spool.write(part)
            spool.flush()
            descriptor = spool.fileno()
        self._files[position] = descriptor
        return descriptor

    @property
    def manifest(self) -> Manifest | None:
        """The manifest that the writer left beside the first file, with the names of the classes; None if none is."""
        return find_manifest(self.paths[0])

    def table(self, names: Sequence[str] | None = None) -> dict[str, Array]:
        """Returns all records as one array a feature, of shape [records, ...].

        Features of equal shape and dtype in all records are stacked, lists of one value without their axis. All others
        become an object array with one array a record, None where the feature is missing.

        Args:
            names: The features wanted; None takes all of them.

        Raises:
            InvalidArgument: No record has one of ``names``.
            RecordError: See ``read``.
        """
        columns: dict[str, list[Any]] = {} if names is None else {name: [] for name in names}
        count = 0
        for row in self:
            for name in row if names is None else names:
                if name in row:
                    column = columns.setdefault(name, [])
                    column.extend([None] * (count - len(column)))
                    column.append(row[name])
            count += 1
        for name, column in columns.items():
            if not column and count:
                raise InvalidArgument(f"no record of {self.paths[0]!r} has the feature {name!r}")
            column.extend([None] * (count - len(column)))
        return {name: _stacked(column) for name, column in columns.items()}

    def dataset(self, *, schema: Schema | None = None) -> tf.data.Dataset:
        """Returns a tf.data.Dataset of the records in order, parsed: a dict of tensors an element.

        The spec is derived from all records (see ``describe``), unless a schema is given. Arrays written with layout
        "bytes" come back with their dtype and shape; features that are missing from some records, or vary in length,
        are sparse or ragged. TensorFlow stops without an error where a file ends inside a header; here that raises, as
        the dataset knows how many records there must be.

        Args:
            schema: What is in the records, where that is known; ``describe`` of a part of them is faster, and enough if
                all are alike.

        Raises:
            DamagedRecord: A file is damaged.
            RecordError: The records have no common spec.
        """
        from tfqueue.records.dataset import make_dataset

        indexes, _ = self._indexes()
        known = describe(self.paths, compression=self._compression) if schema is None else schema
        return make_dataset(self.paths, [index.compression for index in indexes], len(self), known, raw=self._raw)

    def close(self) -> None:
        """Closes the files; they are opened again when they are needed."""
        stack, self._stack, self._files = self._stack, ExitStack(), {}
        stack.close()

    def __enter__(self) -> RecordReader:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_stack"):
            self.close()

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        for name in ("_stack", "_files", "_known"):
            del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._reset()

    def __repr__(self) -> str:
        return f"RecordReader({self.paths!r})"


def _pread_frame(descriptor: int, offset: int, size: int) -> tuple[bytes, bytes, bytes]:
    """Reads the header, payload and footer of a frame."""
    if size < _COPIED:
        frame = os.pread(descriptor, size, offset)
        return frame[:HEADER_SIZE], frame[HEADER_SIZE:-FOOTER_SIZE], frame[-FOOTER_SIZE:]
    # Three calls cost less than a copy of a large payload.
    head = os.pread(descriptor, HEADER_SIZE, offset)
    payload = os.pread(descriptor, size - FRAME_SIZE, offset + HEADER_SIZE)
    return head, payload, os.pread(descriptor, FOOTER_SIZE, offset + size - FOOTER_SIZE)


def _whole_index(name: str, compression: str | None, *, keep: bool) -> FileIndex:
    index = file_index(name, compression=compression, keep=keep)
    if words := cut_between_records(name, len(index)):
        raise damaged_record(name, len(index), index.size, words)
    return index


def count(paths: Paths, *, compression: str | None = "auto") -> int:
    """Returns how many records files hold, by their headers (or by their indexes, where those are there and fit).

    Raises:
        DamagedRecord: A header is damaged, or a file ends inside a record, or earlier than its manifest says.
        RecordError: A file does not exist or cannot be read.
    """
    return sum(len(_whole_index(name, compression, keep=False)) for name in expand(paths))


def _stacked(column: list[Any]) -> Array:
    shapes = {None if value is None else (value.shape, value.dtype) for value in column}
    if len(shapes) == 1 and None not in shapes:
        stacked = np.stack(column)
        is_list_of_one = stacked.shape[1:] == (1,)
        return stacked[:, 0] if is_list_of_one else stacked
    array = np.empty(len(column), object)
    for position, value in enumerate(column):
        array[position] = value
    return array
