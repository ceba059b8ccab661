"""Reading records as dicts of numpy arrays, without TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tfqueue.errors import RecordError
from tfqueue.records.decode import MalformedError, features, parse, plain
from tfqueue.records.paths import Paths, expand
from tfqueue.records.scan import frames


def read(paths: Paths, *, compression: str | None = "auto", raw: bool = False) -> Iterator[dict[str, Any]]:
    """Reads the records of files, one dict a record, in order.

    Args:
        paths: One path, a pattern, or a list.
        compression: "auto" decides for each file by its first bytes; else "GZIP", "ZLIB" or "".
        raw: Whether ``<name>/shape``, ``<name>/dtype`` and ``<name>/row_lengths`` are given as they are
            stored, instead of being used to restore the array ``<name>``.

    Returns:
        An iterator of dicts, feature name -> array. A float_list is float32 of shape [n], an int64_list int64
        of shape [n], a bytes_list an object array of bytes of shape [n]; also if n is 1, because the file
        does not tell a scalar from a list of one. Arrays and numpy scalars written with layout "bytes" come
        back with their dtype and shape. Ragged lists and the steps of a SequenceExample are object arrays of
        arrays.

    Raises:
        RecordError: A file does not exist, or a record is no tf.train.Example.
        DamagedRecord: The first damage of a file, with file, record and offset. All records before it were
            given.
    """
    names = expand(paths)
    return _read(names, compression, raw)


def _read(names: list[str], compression: str | None, raw: bool) -> Iterator[dict[str, Any]]:
    for name in names:
        for index, offset, payload in frames(name, compression=compression):
            yield decode(payload, raw=raw, file=name, record=index, offset=offset)


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
