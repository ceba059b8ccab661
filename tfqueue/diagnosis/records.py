"""The records of a data file as each kind of TF1 reader delivers them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from tfqueue.records import scan
from tfqueue.records.compression import Compression
from tfqueue.records.framing import HEADER_SIZE, header_length
from tfqueue.records.paths import open_to_read
from tfqueue.topology.model import Reader

COMPRESSED = ("GZIP", "ZLIB")


@dataclass(frozen=True, slots=True)
class Payload:
    """One record: the key and the value that a reader delivers."""

    key: bytes
    data: bytes


def payloads(reader: Reader, file: str, *, limit: int | None = None) -> Iterator[Payload]:
    """The records of a file, in order; none of a pipe or device, whose data can be read only once.

    Args:
        reader: The reader that would read it.
        file: The file.
        limit: Stop at a record of more bytes than this, unread.

    Raises:
        DamagedRecord: A TFRecord file is damaged.
        RecordError, OSError: The file cannot be read.
    """
    if not os.path.isfile(file):
        return
    name = os.fsencode(file)
    if reader.kind == "TFRecord":
        if limit is not None and _first_length(file, reader.compression) > limit:
            return
        for _, offset, payload in scan.frames(file, compression=reader.compression):
            yield Payload(b"%b:%d" % (name, offset), payload)
    elif reader.kind == "TextLine":
        with open(file, "rb") as stream:
            number = 0
            while line := stream.readline(-1 if limit is None else limit):
                number += 1
                if limit is not None and len(line) == limit:
                    return
                if number > (reader.skip_header_lines or 0):
                    yield Payload(b"%b:%d" % (name, number), line.rstrip(b"\n").removesuffix(b"\r"))
    elif reader.kind == "FixedLengthRecord":
        yield from _fixed_length(reader, file, name, limit)
    elif reader.kind == "WholeFile" and (limit is None or os.path.getsize(file) <= limit):
        with open(file, "rb") as stream:
            yield Payload(name, stream.read())


def _first_length(file: str, compression: str) -> int:
    with open_to_read(file) as opened:
        head = scan.open_source(opened, file, compression).fill(b"", HEADER_SIZE)[:HEADER_SIZE]
    return header_length(head) or 0


def _fixed_length(reader: Reader, file: str, name: bytes, limit: int | None) -> Iterator[Payload]:
    size = reader.record_bytes or 0
    if not size or (limit is not None and size > limit):
        return
    hop = reader.hop_bytes or size
    footer = reader.footer_bytes or 0
    number, buffer, skip = 0, b"", reader.header_bytes or 0
    with open_to_read(file) as opened:
        source = scan.Source(opened, cast(Compression, reader.compression if reader.compression in COMPRESSED else ""))
        while True:
            buffer = source.fill(buffer, skip + size + footer)
            if len(buffer) < skip + size + footer:
                return
            yield Payload(b"%b:%d" % (name, number), buffer[skip : skip + size])
            buffer, skip = buffer[skip:], hop
            number += 1
