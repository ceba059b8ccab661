"""Goldens: a stream's digests in a file, to compare with later, elsewhere, or under another TensorFlow.

The format (version 1), byte by byte; all numbers are unsigned and little-endian:

    8 bytes    the text TFQGOLDN
    u32        version of the format, 1
    u32        version of the digests (`tfqueue.equivalence.digest`), 1
    batches    one after the other; each is
        u32        n, the number of records
        for every feature, in the order of the index:
            u8         flags: bit 0 is set if the last slice of every record along its first axis is zeros
            u32        how many records hold a NaN
            u8         r, the rank of one record
            r x u32    the shape of one record (of a sparse or ragged feature: the bounding one)
            n x u64    the digests of the feature
    index      UTF-8 JSON, an object with "features" (a list of {"name", "kind", "dtype"}), "structure",
    "batched",
               "records", "batches", "ended", "name", "ordering" (the attributes of `Ordering`) and "tfqueue"
               (the version that wrote it)
    u64        the offset of the index
    u32        CRC-32 (zlib) of all bytes before this number
    8 bytes    the text TFQGOLDN

The digests of records follow from those of their features, so they are not stored.

Every check is made against a golden, too, but it holds no values: ``values`` tells which features differ and not by
how much, ``timing`` is that of reading the file, ``shuffle`` is not checked where the golden is the reference, and of
the causes only those are found that names, dtypes, shapes, counts and order tell.
"""

from __future__ import annotations

import json
import os
import struct
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from os import PathLike
from typing import IO, Any

import numpy as np

from tfqueue.equivalence import digest
from tfqueue.equivalence.leaves import Digested, Leaf
from tfqueue.equivalence.observe import Observation
from tfqueue.equivalence.ordering import Ordering
from tfqueue.equivalence.pairing import batched
from tfqueue.equivalence.streams import Run, Side, side_of
from tfqueue.errors import InvalidArgument, InvalidStream

FORMAT = 1
_MAGIC = b"TFQGOLDN"
_HEAD = struct.Struct("<8sII")
_TAIL = struct.Struct("<QI8s")


@dataclass(frozen=True, slots=True)
class Golden:
    """What a golden holds.

    Attributes:
        path: The file.
        records: Records in it.
        batches: Batches in it.
        features: Names of the features.
    """

    path: str
    records: int
    batches: int
    features: tuple[str, ...]


def record_golden(stream: Any, path: str | PathLike[str], *, max_records: int | None = None) -> Golden:
    """Record the digests of a stream in a file, to be given as a side of `compare` later.

    Args:
        stream: Any side of a comparison; a function is taken for a build function, as a reference is.
        path: The file to write; it appears whole or not at all, and replaces an older one.
        max_records: Record so many at most; needed for a stream that never ends.

    Returns:
        What was recorded.

    Raises:
        InvalidArgument: A stream that never ends, without ``max_records``.
        InvalidStream: Nothing that delivers batches, or no batch at all.
        PipelineFailed: The stream ended with an error; nothing is written.
    """
    if max_records is not None and (not isinstance(max_records, int) or max_records < 1):
        raise InvalidArgument(f"max_records must be a positive number of records or None; got {max_records!r}")
    side = side_of(stream, "reference")
    target = os.fspath(path)
    with side.open() as run:
        if run.endless and max_records is None:
            raise InvalidArgument("the stream never ends (repeat() without a count); give max_records")
        observation = Observation(side, run, max_records, grouped=False)
        features = observation.peek()
        if features is None:
            if observation.error is not None:
                raise observation.error
            raise InvalidStream("the stream delivered no batch, so there is nothing to record")
        names = tuple(name for name, _ in features)
        observation.prepare(names, batched(features), (None,) * len(names))
        with _appearing(target) as file:
            _write(file, observation)
    return Golden(target, observation.count, observation.batches, names)


@contextmanager
def _appearing(target: str) -> Iterator[IO[bytes]]:
    """A file under a temporary name, renamed to its own when all is written."""
    folder = os.path.dirname(target) or "."
    try:
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".tfqueue-", suffix=".tmp")
    except OSError as error:
        raise InvalidArgument(f"cannot write {target}: {error.strerror}: {folder}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _write(file: IO[bytes], observation: Observation) -> None:
    checksum = 0
    offset = 0

    def put(data: bytes) -> None:
        nonlocal checksum, offset
        checksum = zlib.crc32(data, checksum)
        offset += len(data)
        file.write(data)

    put(_HEAD.pack(_MAGIC, FORMAT, digest.VERSION))
    while True:
        nans = [view.nan_records for view in observation.views]
        tails = [view.idle_tails for view in observation.views]
        chunk = observation.pull()
        if chunk is None:
            break
        parts = [struct.pack("<I", chunk.size)]
        for view, leaf, digests, nan, tail in zip(
            observation.views, chunk.leaves, chunk.features, nans, tails, strict=True
        ):
            shape = leaf.row_shape
            parts.append(struct.pack("<BIB", view.idle_tails > tail, view.nan_records - nan, len(shape)))
            parts.append(struct.pack(f"<{len(shape)}I", *shape))
            parts.append(digests.astype("<u8").tobytes())
        put(b"".join(parts))
    if observation.error is not None:
        raise observation.error
    start = offset
    put(json.dumps(_index(observation), ensure_ascii=True).encode("ascii"))
    put(struct.pack("<Q", start))
    file.write(struct.pack("<I8s", checksum, _MAGIC))


def _index(observation: Observation) -> dict[str, Any]:
    from tfqueue import __version__

    return {
        "features": [
            {"name": view.name, "kind": view.kind, "dtype": "/".join(view.dtypes)} for view in observation.views
        ],
        "structure": observation.structure,
        "batched": observation.batched,
        "records": observation.count,
        "batches": observation.batches,
        "ended": observation.ended,
        "name": observation.side.name,
        "ordering": asdict(observation.ordering),
        "tfqueue": __version__,
    }


def read_index(path: str | PathLike[str]) -> dict[str, Any]:
    """The index of a golden, after its checksum was verified.

    Raises:
        InvalidStream: The file is no golden, is damaged, or has a version that this tfqueue does not read.
    """
    with _opened(path) as file:
        return _verified(file, os.fspath(path))[0]


@contextmanager
def _opened(path: str | PathLike[str]) -> Iterator[IO[bytes]]:
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below; only the opening may fail in this way
    except OSError as error:
        raise InvalidStream(f"cannot read the golden {os.fspath(path)}: {error.strerror}") from error
    with file:
        yield file


def _verified(file: IO[bytes], name: str) -> tuple[dict[str, Any], int]:
    size = os.fstat(file.fileno()).st_size
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size or head[:8] != _MAGIC:
        raise InvalidStream(f"{name} is no golden: it does not start with {_MAGIC.decode()}; record_golden writes them")
    _, version, digests = _HEAD.unpack(head)
    if (version, digests) != (FORMAT, digest.VERSION):
        raise InvalidStream(
            f"{name} is a golden of format {version} with digests {digests}; this tfqueue reads format "
            f"{FORMAT} with "
            f"digests {digest.VERSION}: record it anew"
        )
    if size < _HEAD.size + _TAIL.size:
        raise InvalidStream(f"the golden {name} is cut: it has {size} bytes")
    file.seek(size - _TAIL.size)
    start, checksum, end = _TAIL.unpack(file.read(_TAIL.size))
    if end != _MAGIC or not _HEAD.size <= start <= size - _TAIL.size:
        raise InvalidStream(f"the golden {name} is cut: its end is missing")
    file.seek(0)
    actual, rest = 0, size - _TAIL.size + 8
    while rest:
        data = file.read(min(rest, 1 << 20))
        actual, rest = zlib.crc32(data, actual), rest - len(data)
    if actual != checksum:
        raise InvalidStream(f"the golden {name} is damaged: its checksum is {actual:08x}, it should be {checksum:08x}")
    file.seek(start)
    index: dict[str, Any] = json.loads(file.read(size - _TAIL.size - start))
    return index, start


@contextmanager
def _run_golden(path: str) -> Iterator[Run]:
    with _opened(path) as file:
        index, end = _verified(file, path)
        file.seek(_HEAD.size)
        known = {item.name for item in fields(Ordering)}  # a later tfqueue may know more of an order
        ordering = Ordering(**{name: value for name, value in index["ordering"].items() if name in known})
        yield Run(_batches(file, index, end), ordering, skeleton=index["structure"])


def _batches(file: IO[bytes], index: dict[str, Any], end: int) -> Iterator[dict[str, Leaf]]:
    while file.tell() < end:
        (count,) = struct.unpack("<I", file.read(4))
        batch: dict[str, Leaf] = {}
        for feature in index["features"]:
            tail, nan, rank = struct.unpack("<BIB", file.read(6))
            shape = struct.unpack(f"<{rank}I", file.read(4 * rank))
            digests = np.frombuffer(file.read(8 * count), dtype="<u8").astype(np.uint64)
            batch[feature["name"]] = Digested(feature["kind"], feature["dtype"], shape, digests, nan, bool(tail))
        yield batch


def golden_side(path: str, role: str) -> Side:
    """The side that a golden is.

    Raises:
        InvalidStream: The file is no golden or is damaged.
    """
    read_index(path)
    return Side(role, "golden", path, lambda: _run_golden(path), True)
