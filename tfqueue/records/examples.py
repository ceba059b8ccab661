"""Records from an iterable: dicts of features, tf.train.Example messages, or bytes that are serialized already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from typing import Any, TypeAlias

from tfqueue.errors import RecordError
from tfqueue.records.encode import Layout
from tfqueue.records.framing import MAX_PAYLOAD
from tfqueue.records.paths import Path
from tfqueue.records.writer import RecordWriter

Example: TypeAlias = "Mapping[str, Any] | bytes | Any"


def write_examples(
    path: Path,
    examples: Iterable[Example],
    *,
    layout: Layout = "bytes",
    narrow: bool = False,
    shards: int | None = None,
    records_per_shard: int | None = None,
    bytes_per_shard: int | None = None,
    compression: str | None = None,
    overwrite: bool = False,
    manifest: bool | None = None,
    progress: bool | None = None,
) -> list[str]:
    """Writes the records of an iterable, one after the other; only one is in memory at a time.

    Args:
        path: As for ``RecordWriter``.
        examples: Dicts as for ``RecordWriter.write``, messages with ``SerializeToString`` (tf.train.Example,
            tf.train.SequenceExample), or bytes. It may be a generator.
        layout: As for ``RecordWriter``, and so all that follow.
        narrow: See above.
        shards: See above.
        records_per_shard: See above.
        bytes_per_shard: See above.
        compression: See above.
        overwrite: See above.
        manifest: See above.
        progress: See above.

    Returns:
        The paths of the files, in order.

    Raises:
        RecordError: A record cannot be stored (it is named by its number), or the files cannot be written.
    """
    with RecordWriter(
        path,
        shards=shards,
        records_per_shard=records_per_shard,
        bytes_per_shard=bytes_per_shard,
        expected_records=len(examples) if isinstance(examples, Sized) else None,
        compression=compression,
        overwrite=overwrite,
        layout=layout,
        narrow=narrow,
        manifest=manifest,
        progress=progress,
    ) as writer:
        for example in examples:
            if isinstance(example, Mapping):
                writer.write(example)
            else:
                writer.write_serialized(_serialized(example, writer.records))
    return writer.paths


def _serialized(example: Any, record: int) -> bytes:
    if not hasattr(example, "SerializeToString"):
        payload: bytes = example  # checked by the writer
        return payload
    size = example.ByteSize()
    if size > MAX_PAYLOAD:
        raise RecordError(
            f"record {record} would have {size} bytes; a protobuf message holds at most {MAX_PAYLOAD}", record=record
        )
    serialized: bytes = example.SerializeToString()
    return serialized
