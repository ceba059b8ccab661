"""The readers of a queue graph as datasets: (key, value) of every record of a stream of file names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfqueue.engines.plain import plain
from tfqueue.errors import CannotLower
from tfqueue.topology.model import Reader

_BLOCK, _ALL = 1024, 2**31


def read_records(names: Any, reader: Reader, *, up_to: int | None, with_keys: bool) -> Any:
    """The records that a reader gives of the files named by a dataset.

    Args:
        names: A dataset of scalar strings.
        reader: The reader.
        up_to: The most records of one ``read_up_to``, which never crosses the end of a file; None for ``read``.
        with_keys: Whether the keys are needed (to compute those of TFRecords costs a step a record).

    Returns:
        A dataset of (key, value): scalar strings, or vectors of them where ``up_to`` is given. The keys are
        empty strings where they are not needed.

    Raises:
        CannotLower: tf.data has nothing that reads such files.
    """
    if reader.kind == "Identity":
        return _in_vectors(names.map(plain(lambda name: (name, name))), up_to)
    if reader.kind == "WholeFile":
        return _in_vectors(
            names.map(plain(lambda name: (name, tf.io.read_file(name))), num_parallel_calls=tf.data.AUTOTUNE), up_to
        )
    if reader.kind == "TFRecord" and up_to is None and not with_keys:
        records = tf.data.TFRecordDataset(names, compression_type=reader.compression)
        return records.map(plain(lambda value: (tf.constant(b""), value)))
    open_file = _open_file(reader, with_keys)
    return names.flat_map(plain(lambda name: _in_vectors(open_file(name), up_to)))


def read_values(names: Any, reader: Reader, *, up_to: int | None) -> Any:
    """As `read_records`, without the keys: a dataset of the records alone."""
    if reader.kind == "TFRecord":
        records = tf.data.TFRecordDataset(names, compression_type=reader.compression)
        if up_to is None:
            return records
    elif reader.kind == "WholeFile" and up_to is None:
        return names.map(plain(tf.io.read_file), num_parallel_calls=tf.data.AUTOTUNE)
    elif reader.kind == "TextLine" and up_to is None and not reader.skip_header_lines:
        return tf.data.TextLineDataset(names)
    elif reader.kind == "FixedLengthRecord" and up_to is None and _is_gapless(reader):
        sizes = (reader.record_bytes or 0, reader.header_bytes or 0, reader.footer_bytes or 0)
        return tf.data.FixedLengthRecordDataset(names, *sizes)
    pairs = read_records(names, reader, up_to=up_to, with_keys=False)
    return pairs.map(plain(lambda _, value: value))


def _is_gapless(reader: Reader) -> bool:
    return (reader.hop_bytes or 0) in (0, reader.record_bytes) and not reader.compression


def counted(name: Any, reader: Reader) -> Any:
    """A dataset of one int64: the number of records of a file, which is read for it.

    Made of datasets alone: an iterator whose functions reduce a dataset cannot be saved.
    """
    if reader.kind in ("Identity", "WholeFile"):
        return tf.data.Dataset.from_tensors(tf.constant(1, tf.int64))
    ones = _open_file(reader, False)(name).map(plain(lambda *_: tf.constant(1, tf.int64)))
    blocks = ones.batch(_BLOCK).map(plain(tf.reduce_sum))
    # The zero is for a file without records.
    return (
        blocks.concatenate(tf.data.Dataset.from_tensors(tf.constant(0, tf.int64))).batch(_ALL).map(plain(tf.reduce_sum))
    )


def _in_vectors(records: Any, up_to: int | None) -> Any:
    return records if up_to is None else records.batch(up_to)


def _open_file(reader: Reader, with_keys: bool) -> Callable[[Any], Any]:
    """A function from one file name to the (key, value) pairs of the file."""
    if reader.kind == "TFRecord":

        def open_file(name: Any) -> Any:
            records = tf.data.TFRecordDataset(name, compression_type=reader.compression)
            if not with_keys:
                return records.map(plain(lambda value: (tf.constant(b""), value)))
            # The key is the offset of the record: 8 bytes of length, 4 + 4 of checksums, and the record.
            return records.scan(
                tf.constant(0, tf.int64),
                plain(
                    lambda offset, value: (
                        offset + 16 + tf.cast(tf.strings.length(value), tf.int64),
                        (_key(name, offset), value),
                    )
                ),
            )

    elif reader.kind == "TextLine":
        skip = reader.skip_header_lines or 0

        def open_file(name: Any) -> Any:
            lines = tf.data.TextLineDataset(name).enumerate(start=1).skip(skip)
            return lines.map(plain(lambda number, line: (_key(name, number), line)))

    elif reader.kind == "FixedLengthRecord":

        def open_file(name: Any) -> Any:
            return _fixed_length(name, reader).enumerate().map(plain(lambda number, value: (_key(name, number), value)))

    else:
        raise CannotLower(
            f"tf.data has no reader for what a {reader.kind} reader reads: {reader.name} ({reader.source})",
            op=reader.name,
            source=reader.source,
            advice="convert the records to TFRecord files once, and read those",
        )
    return open_file


def _fixed_length(name: Any, reader: Reader) -> Any:
    size, hop = reader.record_bytes or 0, reader.hop_bytes or 0
    header, footer = reader.header_bytes or 0, reader.footer_bytes or 0
    if _is_gapless(reader):
        return tf.data.FixedLengthRecordDataset(name, size, header, footer)
    # Records that overlap or leave gaps, or a compressed file: cut out of the whole file.
    whole = tf.io.read_file(name)
    if reader.compression:
        whole = tf.io.decode_compressed(whole, reader.compression)
    last = tf.strings.length(whole) - footer - size
    starts = tf.data.Dataset.range(header, tf.cast(last, tf.int64) + 1, hop or size)
    return starts.map(plain(lambda start: tf.strings.substr(whole, tf.cast(start, tf.int32), size)))


def _key(name: Any, number: Any) -> Any:
    return tf.strings.join([name, tf.strings.as_string(number)], separator=":")
