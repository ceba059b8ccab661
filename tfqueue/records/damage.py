"""Damaged TFRecord files: every frame that is whole, and for each place that is not, what is wrong with it.

Behind damage the next frame is found again by its two CRCs: a header whose CRC fits stands by chance at one of 2**32
places, and the CRC of the payload behind it fits as rarely again.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from tfqueue.errors import DamagedRecord
from tfqueue.records.framing import (
    FOOTER_SIZE,
    FRAME_SIZE,
    HEADER_SIZE,
    crc32c,
    crc_changes,
    flipped_length,
    header_length,
    is_header,
    masked_crc,
    wrong_bytes,
)
from tfqueue.records.paths import Path, fspath, open_to_read
from tfqueue.records.scan import Source, open_source, scan
from tfqueue.records.sniffing import sniff_bytes

Kind: TypeAlias = Literal[
    "length",
    "length-checksum",
    "header",
    "payload",
    "payload-checksum",
    "cut-header",
    "cut-payload",
    "cut-checksum",
    "missing-records",
    "junk",
    "compression",
    "not-tfrecord",
    "not-example",
    "changed",
]
_BLOCK: Final = 1 << 20
_HEAD: Final = 4096


@dataclass(frozen=True, slots=True)
class Damage:
    """A place in a file where no whole frame stands.

    Attributes:
        record: The 0-based number of the record that is damaged or missing here.
        offset: Where its frame begins, in the decompressed file.
        end: Where the next frame begins, or the end of the data.
        kind: "length", "length-checksum" or "header" (both or unknown which); "payload" or "payload-checksum";
            "cut-header", "cut-payload" or "cut-checksum" (the file ends there); "junk" (bytes that are no record);
            "compression" (the compressed stream is damaged or cut); "not-tfrecord".
        words: What is wrong.
        payload: The payload, if its own CRC proves that it is whole although its frame is not; or, for
            "payload-checksum", if only the CRC can be what is wrong.
    """

    record: int
    offset: int
    end: int
    kind: Kind
    words: str
    payload: bytes | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """A whole frame.

    Attributes:
        record: The 0-based number of the record.
        offset: Where the frame begins, in the decompressed file.
        payload: The record.
    """

    record: int
    offset: int
    payload: bytes


def walk(path: Path, *, compression: str | None = "auto", search: bool = False) -> Iterator[Frame | Damage]:
    """Yields what a file holds from front to back, through all damage.

    Args:
        path: The file.
        compression: As for ``frames``. A compressed file is decompressed as far as it goes; what stands behind damage
            in its stream can be decompressed only from the next place at which the writer has flushed; RecordWriter
            does that after each megabyte.
        search: Whether to look for records also in a file that begins like one of another kind: a first record without
            its header may begin like anything.

    Yields:
        Whole frames and places of damage, in the order of the file. A place of damage counts as one record, however
        many were there, so that later numbers may be too low.

    Raises:
        RecordError: The file cannot be read.
    """
    name = fspath(path)
    with open_to_read(name) as file:
        try:
            source = open_source(file, name, compression)
        except DamagedRecord as error:
            found = sniff_bytes(file.read(_HEAD))
            file.seek(0)
            if not search or found.kind in ("tfrecord", "gzip", "zlib"):
                kind: Kind = "compression" if found.kind == "tfrecord" else "not-tfrecord"
                yield Damage(0, 0, os.fstat(file.fileno()).st_size, kind, _words(error, name))
                return
            source = Source(file, "")
        record = offset = 0
        try:
            for record, offset, payload in scan(source, name):
                yield Frame(record, offset, payload)
                record, offset = record + 1, offset + FRAME_SIZE + len(payload)
        except DamagedRecord:
            pass
        else:
            return
        with _plain(file, source) as (data, breaks):
            yield from _walk_damaged(data, breaks, record, offset)


def _words(error: DamagedRecord, name: str) -> str:
    return str(error).removeprefix(f"{name!r}, record {error.record}, byte {error.offset}: ")


def _walk_damaged(
    data: mmap.mmap | bytes, breaks: list[tuple[int, str]], record: int, offset: int
) -> Iterator[Frame | Damage]:
    """Yields the rest of a file from its first damage on, at ``offset``.

    Args:
        data: The decompressed file.
        breaks: Where the compressed stream is damaged, and how: there something is missing from ``data``.
        record: The number of the next record.
        offset: Where it begins.
    """
    size = len(data)
    left = deque(breaks)
    while offset < size:
        if left and left[0][0] <= offset:  # between two frames
            yield Damage(record, offset, offset, "compression", left.popleft()[1])
            record += 1
            continue
        length = header_length(data[offset : offset + HEADER_SIZE])
        end = offset + FRAME_SIZE + (length or 0)
        if length is not None and end <= size:
            payload = data[offset + HEADER_SIZE : end - FOOTER_SIZE]
            if data[end - FOOTER_SIZE : end] == _footer(payload):
                yield Frame(record, offset, payload)
                record, offset = record + 1, end
                continue
        damage = _diagnose(data, record, offset, broken=bool(left))
        if left and left[0][0] <= damage.end and damage.payload is None and damage.kind != "not-tfrecord":
            # What looks cut or wrong is so because the compressed stream is.
            words = left[0][1]
            while left and left[0][0] <= damage.end:
                left.popleft()
            damage = Damage(record, offset, damage.end, "compression", words)
        yield damage
        record, offset = record + 1, damage.end
    for _, words in left:
        yield Damage(record, size, size, "compression", words)


def _diagnose(data: mmap.mmap | bytes, record: int, offset: int, *, broken: bool) -> Damage:
    """Says what is wrong with the frame at ``offset``, and where the next one begins.

    Args:
        data: The decompressed file.
        record: The number of the record.
        offset: Where its frame begins.
        broken: Whether bytes may be missing anywhere behind it.
    """
    size = len(data)
    head = data[offset : offset + HEADER_SIZE]
    if len(head) < HEADER_SIZE:
        return _short_end(head, record, offset, size)
    length = header_length(head)
    if length is not None:
        return _damaged_payload(data, record, offset, length, broken=broken)
    return _damaged_header(data, record, offset, head)


def _short_end(rest: bytes, record: int, offset: int, size: int) -> Damage:
    # A length has zeros in its upper half, unless a record is larger than 4 GB.
    if any(rest[4:8]):
        return Damage(record, offset, size, "junk", f"{len(rest)} bytes that are no record stand at the end")
    words = (
        f"the file ends {len(rest)} bytes into a header of {HEADER_SIZE} bytes (it is cut, or junk stands at its end)"
    )
    return Damage(record, offset, size, "cut-header", words)


def _damaged_payload(data: mmap.mmap | bytes, record: int, offset: int, length: int, *, broken: bool) -> Damage:
    size = len(data)
    end = offset + FRAME_SIZE + length
    if end > size:
        # Bytes may be missing in the middle instead of at the end: then whole frames follow, up to the very end.
        found = _next_frame(data, offset + 1, to_the_end=not broken)
        if found is not None:
            words = f"the payload has lost bytes: its {length} bytes would reach over the end of the file"
            return Damage(record, offset, found, "payload", words)
        here = size - offset
        kind: Kind = "cut-payload" if here < HEADER_SIZE + length else "cut-checksum"
        part = "payload" if kind == "cut-payload" else "checksum of the payload"
        words = f"the file ends inside the {part}: of {FRAME_SIZE + length} bytes {here} are there"
        return Damage(record, offset, size, kind, words)
    payload = data[offset + HEADER_SIZE : end - FOOTER_SIZE]
    stored = int.from_bytes(data[end - FOOTER_SIZE : end], "little")
    if wrong_bytes(stored ^ masked_crc(payload)) == 1:
        # A wrong byte in the payload changes one byte of the CRC by chance only, in 1 of 4 million cases.
        return Damage(record, offset, end, "payload-checksum", "the checksum of the payload is wrong", payload)
    words = "the payload does not match its checksum"
    if end == size or _is_frame_start(data, end):
        return Damage(record, offset, end, "payload", words)
    found = _next_frame(data, offset + 1)
    if found is None or found >= end:
        return Damage(record, offset, end, "payload", words)
    return Damage(record, offset, found, "payload", f"{words}, and has lost {end - found} bytes")


def _damaged_header(data: mmap.mmap | bytes, record: int, offset: int, head: bytes) -> Damage:
    size = len(data)
    start = offset + HEADER_SIZE
    flipped = flipped_length(head)
    if flipped is not None:
        length, position = flipped
        end = start + length + FOOTER_SIZE
        if end <= size and (end == size or _is_frame_start(data, end) or _proved_payload(data, start, end) is not None):
            words = f"byte {position} of the length is wrong: it was {length}"
            return Damage(record, offset, end, "length", words, _proved_payload(data, start, end))
    end = start + int.from_bytes(head[:8], "little") + FOOTER_SIZE
    if end <= size and (payload := _proved_payload(data, start, end)) is not None:
        return Damage(record, offset, end, "length-checksum", "the checksum of the length is wrong", payload)
    found = _next_frame(data, offset + 1)
    end = size if found is None else found
    payload = _proved_payload(data, start, end) if end >= start + FOOTER_SIZE else None
    if payload is not None:
        return Damage(record, offset, end, "header", "the header is wrong", payload)
    if flipped is not None and start + flipped[0] + FOOTER_SIZE > size and found is None:
        words = f"byte {flipped[1]} of the length is wrong (it was {flipped[0]}), and the file ends inside the record"
        return Damage(record, offset, size, "cut-payload", words)
    if found is None and record == 0:
        words = f"no record was found in the file; it is {sniff_bytes(data[:_HEAD]).words}"
        return Damage(record, offset, size, "not-tfrecord", words)
    if found is None:
        words = f"the length does not match its checksum, and no whole record is in the last {size - offset} bytes"
        return Damage(record, offset, size, "junk", words)
    return Damage(
        record, offset, found, "header", f"no whole record is in the {found - offset} bytes before byte {found}"
    )


def _footer(payload: bytes) -> bytes:
    return masked_crc(payload).to_bytes(4, "little")


def _payload_at(data: mmap.mmap | bytes, start: int, end: int) -> bytes | None:
    """Returns the payload from ``start`` whose frame ends at ``end``, if its CRC says that it is one."""
    payload = data[start : end - FOOTER_SIZE]
    return payload if data[end - FOOTER_SIZE : end] == _footer(payload) else None


def _proved_payload(data: mmap.mmap | bytes, start: int, end: int) -> bytes | None:
    """Like ``_payload_at``, for a frame without a header that fits: its payload may be the header of the next one.

    A length and its CRC look like a payload of eight bytes and its CRC.
    """
    payload = _payload_at(data, start, end)
    return None if payload is not None and len(payload) == 8 and _is_whole(data, start) else payload


def _is_whole(data: mmap.mmap | bytes, offset: int) -> bool:
    length = header_length(data[offset : offset + HEADER_SIZE])
    if length is None or offset + FRAME_SIZE + length > len(data):
        return False
    return _payload_at(data, offset + HEADER_SIZE, offset + FRAME_SIZE + length) is not None


def _is_frame_start(data: mmap.mmap | bytes, offset: int) -> bool:
    """Says whether a header stands at ``offset``, also one with a single wrong byte, or the beginning of one."""
    head = data[offset : offset + HEADER_SIZE]
    if len(head) < HEADER_SIZE:
        return not any(head[4:8])
    return is_header(head)


def _next_frame(data: mmap.mmap | bytes, start: int, *, to_the_end: bool = False) -> int | None:
    """Returns where the next frame begins at or after ``start``, or None.

    A header whose CRC fits counts if the CRC of its payload fits too, or if a header or the end of the data follows
    the payload.

    Args:
        data: The decompressed file.
        start: Where to begin.
        to_the_end: Whether whole frames must follow one another from there to the very end.
    """
    size = len(data)
    for low in range(start, size - FRAME_SIZE + 1, _BLOCK):
        block = np.frombuffer(data[low : low + _BLOCK + HEADER_SIZE - 1], np.uint8)
        for position in _header_positions(block, size - low - FRAME_SIZE):
            if _is_found(data, low + position, to_the_end):
                return low + position
    return None


def _is_found(data: mmap.mmap | bytes, offset: int, to_the_end: bool) -> bool:
    size = len(data)
    while True:
        length = header_length(data[offset : offset + HEADER_SIZE])
        if length is None or offset + FRAME_SIZE + length > size:
            return False
        end = offset + FRAME_SIZE + length
        whole = _payload_at(data, offset + HEADER_SIZE, end) is not None
        if not to_the_end:
            return whole or end == size or header_length(data[end : end + HEADER_SIZE]) is not None
        if not whole:
            return False
        if end == size:
            return True
        offset = end


def _header_positions(block: npt.NDArray[np.uint8], largest: int) -> list[int]:
    """Returns the positions in ``block`` at which a header with a fitting CRC and a possible length begins.

    Args:
        block: Some bytes.
        largest: The length that a payload at position 0 may have at most.
    """
    count = len(block) - HEADER_SIZE + 1
    if count <= 0:
        return []
    # Lengths have zeros in their upper bytes; this leaves few places to compute CRCs for.
    empty = (block[5 : count + 5] == 0) & (block[6 : count + 6] == 0) & (block[7 : count + 7] == 0)
    places = np.flatnonzero(empty)
    lengths = sum(block[places + byte].astype(np.int64) << 8 * byte for byte in range(5))
    places = places[lengths <= largest - places]
    table = crc_changes()
    crcs = np.full(len(places), crc32c(bytes(8)), np.uint32)
    for byte in range(8):
        crcs ^= table[byte, block[places + byte]]
    stored = sum(block[places + 8 + byte].astype(np.uint32) << np.uint32(8 * byte) for byte in range(4))
    rotated = np.asarray(stored, np.uint32) - np.uint32(0xA282EAD8)
    fitting: list[int] = places[crcs == (rotated >> np.uint32(17) | rotated << np.uint32(15))].tolist()
    return fitting


@contextmanager
def _plain(file: FileIO, source: Source) -> Iterator[tuple[mmap.mmap | bytes, list[tuple[int, str]]]]:
    """Gives the decompressed bytes of a file, and where its compressed stream is damaged and how."""
    file.seek(0)
    if not source.compression:
        with _mapped(file.fileno()) as data:
            yield data, []
        return
    breaks: list[tuple[int, str]] = []
    part_source: Source | None = Source(file, source.compression)
    with tempfile.TemporaryFile() as spool:
        while part_source is not None:
            while part := part_source.inflate(_BLOCK):
                spool.write(part)
            if part_source.damage:
                breaks.append((spool.tell(), part_source.damage))
            part_source = part_source.resumed()
        spool.flush()
        with _mapped(spool.fileno()) as data:
            yield data, breaks


@contextmanager
def _mapped(descriptor: int) -> Iterator[mmap.mmap | bytes]:
    if os.fstat(descriptor).st_size == 0:  # which cannot be mapped
        yield b""
        return
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as data:
        yield data
