"""Hops from header to header of a TFRecord file, payloads unread, until the end, a damage, or the end of the time."""

from __future__ import annotations

import os
import time

from tfqueue.records import scan
from tfqueue.records.framing import FRAME_SIZE, HEADER_SIZE
from tfqueue.records.scan import checked_length, cut

_WHOLE = 1 << 22  # up to this size a file is read at once
_LOOK = 256  # records between two looks at the clock


def count_records(path: str, compression: str, deadline: float) -> int | None:
    """The number of records of a file whose headers are all sound.

    TensorFlow ends normally where a file ends inside a header, or holds a few bytes of junk; this does not.

    Args:
        path: The file.
        compression: "GZIP", "ZLIB" or "".
        deadline: The value of `time.monotonic` at which to give up.

    Returns:
        The number, or None when the time was up.

    Raises:
        DamagedRecord: The first damaged header, or a record that is cut.
        OSError: The file cannot be read.
    """
    if compression:
        return _count_compressed(path, compression, deadline)
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(_WHOLE) if size <= _WHOLE else None
        position = count = 0
        known: dict[bytes, int] = {}
        while position < size:
            if data is not None:
                head = data[position : position + HEADER_SIZE]
            else:
                head = os.pread(file.fileno(), HEADER_SIZE, position)
            length = known.get(head)
            if length is None:
                length = known[head] = checked_length(head, path, count, position)
            if position + FRAME_SIZE + length > size:
                raise cut(path, count, position, length, size - position)
            position += FRAME_SIZE + length
            count += 1
            if not count % _LOOK and time.monotonic() > deadline:
                return None
    return count


def _count_compressed(path: str, compression: str, deadline: float) -> int | None:
    if os.path.getsize(path) > _WHOLE // 16:
        return None
    count = 0
    for _ in scan.frames(path, compression=compression, check_payload=False):
        count += 1
        if not count % _LOOK and time.monotonic() > deadline:
            return None
    return count
