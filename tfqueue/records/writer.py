"""Writing records: one file or a set of shards, which appear whole or not at all."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any

from tfqueue.errors import RecordError
from tfqueue.records.compression import normalise
from tfqueue.records.encode import ExampleEncoder, Layout
from tfqueue.records.framefile import WrittenFile
from tfqueue.records.manifest import find_manifest, save_manifest
from tfqueue.records.paths import Path, existing_shards, fspath
from tfqueue.records.progress import bar
from tfqueue.records.shards import check_sharding, open_output


class RecordWriter:
    """Writes records to one TFRecord file or to a set of shards.

    Nothing appears under the final names before the end of the ``with`` block; if it is left by an exception,
    nothing appears at all. Records keep their order: shard 0 holds the first ones.

        with RecordWriter("train.tfrecord") as writer:
            writer.write({"image": jpeg_bytes, "label": 3, "x": array})

    Args:
        path: The file; or, with any of the next three arguments, the name from which
            ``train-00000-of-00008.tfrecord`` is made.
        shards: The number of shards; their sizes differ by one record at most. Without ``expected_records``
            all records first go to one temporary file in the same folder, since the sizes are known only at
            the end.
        records_per_shard: The number of records in each shard but the last.
        bytes_per_shard: The size that no shard exceeds, before compression, unless by a single larger record.
        expected_records: How many records will be written, if that is known; ``close`` raises if it was
            wrong.
        compression: "GZIP", "ZLIB", "" (none), or None: GZIP if ``path`` ends in ".gz", else none.
        overwrite: Whether existing files, and all shards written under this name, may be replaced.
        layout: How numpy arrays are stored; see ``ExampleEncoder``.
        narrow: Whether float64 and uint64 may be narrowed in lists; see ``ExampleEncoder``.
        progress: True or False to show a progress bar or not; None shows it on a terminal.
        manifest: Whether a manifest is written beside the files (see ``manifest``); None writes it for shards only.
        info: What the manifest says besides; something that JSON can hold.
        first_record: The number of the first record in error messages.

    Attributes:
        path: The path given.
        records: How many records have been written.
        paths: The files, once they have appeared.
        written: The same with their sizes and checksums.

    Raises:
        InvalidArgument: Arguments that contradict each other.
        RecordError: The folder does not exist or cannot be written, or a file exists and ``overwrite`` is
            False.
    """

    def __init__(
        self,
        path: Path,
        *,
        shards: int | None = None,
        records_per_shard: int | None = None,
        bytes_per_shard: int | None = None,
        expected_records: int | None = None,
        compression: str | None = None,
        overwrite: bool = False,
        layout: Layout = "bytes",
        narrow: bool = False,
        progress: bool | None = False,
        manifest: bool | None = None,
        info: Mapping[str, Any] | None = None,
        first_record: int = 0,
    ) -> None:
        self._open = False  # first of all, because __del__ looks at it
        check_sharding(shards=shards, records_per_shard=records_per_shard, bytes_per_shard=bytes_per_shard)
        self.path = fspath(path)
        self.records = 0
        self.paths: list[str] = []
        self.written: list[WrittenFile] = []
        self._expected = expected_records
        self._encoder = ExampleEncoder(layout=layout, narrow=narrow)
        self._first = first_record
        self._info = info or {}
        self._compression = normalise(compression, name=self.path)
        sharded = shards is not None or records_per_shard is not None or bytes_per_shard is not None
        self._manifest = sharded if manifest is None else manifest
        self._overwrite = overwrite
        self._old = list(existing_shards(self.path)) if sharded else []
        self._old_manifest = _manifest_of(self._old, self.path)
        if self._old and not overwrite:
            raise RecordError(
                f"{len(self._old)} shards of {self.path!r} exist already, such as {self._old[0]!r}; pass "
                "overwrite=True to replace them",
                file=self.path,
            )
        self._output = open_output(
            self.path,
            shards=shards,
            records_per_shard=records_per_shard,
            bytes_per_shard=bytes_per_shard,
            expected_records=expected_records,
            compression=self._compression,
            overwrite=overwrite,
        )
        self._bar = bar(f"writing {os.path.basename(self.path)}", expected_records, progress=progress)
        self._advance = self._bar.__enter__()
        self._open = True

    def write(self, features: Mapping[str, Any], *, sequences: Mapping[str, Iterable[Any]] | None = None) -> None:
        """Writes one record.

        Args:
            features: Feature name -> value; ``ExampleEncoder`` says what a value may be.
            sequences: Feature name -> one value a step; with it the record is a tf.train.SequenceExample.

        Raises:
            RecordError: A value cannot be stored (the error names feature and record), or the disk failed.
                After a value that cannot be stored the writer can go on with the next record.
        """
        if sequences is None:
            payload = self._encoder.encode(features, record=self._first + self.records)
        else:
            payload = self._encoder.encode_sequence(features, sequences, record=self._first + self.records)
        self.write_serialized(payload)

    def write_serialized(self, payload: bytes) -> None:
        """Writes one record that is serialized already, whatever it holds.

        Raises:
            RecordError: It is no bytes object, it is too large, or the disk failed.
        """
        if not self._open:
            raise RecordError(f"the writer of {self.path!r} is closed", file=self.path)
        if type(payload) is not bytes:
            payload = _as_bytes(payload, self._first + self.records)
        self._output.write(payload)
        self.records += 1
        self._advance(1)

    def flush(self) -> None:
        """Hands what was written to the operating system; it still has its temporary name."""
        if self._open:
            self._output.flush()

    def close(self) -> None:
        """Makes the files appear; a second call does nothing.

        Raises:
            RecordError: Not ``expected_records`` were written, a file has appeared meanwhile, or the disk
                failed. A single file has not appeared then; of a set, the shards that have their names
                already keep them.
        """
        if not self._open:
            return
        try:
            if self._expected is not None and self.records != self._expected:
                raise RecordError(
                    f"{self.records} records were written to {self.path!r}, expected {self._expected}",
                    file=self.path,
                )
            self._output.prepare()
            self._remove_old()
            self.written = self._output.commit()
        except BaseException:
            self.discard()
            raise
        self._open = False
        self._bar.__exit__(None, None, None)
        self.paths = [file.path for file in self.written]
        if self._manifest:
            save_manifest(self.path, self.written, self._compression, self._info)

    def _remove_old(self) -> None:
        """Removes what is to be replaced: half old and half new shards, or an old manifest, would tell lies."""
        # Without overwrite only what was there at the start: since then another writer may have been faster.
        manifest = _manifest_of(self._old, self.path) if self._overwrite else self._old_manifest
        for name in self._old if manifest is None else [manifest, *self._old]:
            with suppress(FileNotFoundError):
                os.unlink(name)

    def discard(self) -> None:
        """Drops everything that was written; no file appears."""
        if self._open:
            self._open = False
            self._bar.__exit__(None, None, None)
            self._output.discard()

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        if self._open:
            warnings.warn(
                f"the writer of {self.path!r} was never closed: nothing was written; use a with statement",
                ResourceWarning,
                stacklevel=2,
            )
            self.discard()


def _manifest_of(shards: list[str], path: str) -> str | None:
    """Returns the name of the manifest of the files to be replaced, or None."""
    with suppress(RecordError):  # one that cannot be read is not ours
        manifest = find_manifest(shards[0] if shards else path)
        return None if manifest is None else manifest.path
    return None


def _as_bytes(payload: Any, record: int) -> bytes:
    if isinstance(payload, (bytes, bytearray, memoryview)):
        return bytes(payload)
    raise RecordError(
        f"record {record} is {type(payload).__name__}; expected bytes (use write for a dict of features, or "
        "SerializeToString() for a message)",
        record=record,
    )
