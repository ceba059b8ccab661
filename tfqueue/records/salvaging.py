"""Keeps of a damaged file every record that can be kept."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

from tfqueue.errors import DamagedRecord, InvalidArgument
from tfqueue.records.damage import Damage, walk
from tfqueue.records.paths import Path, fspath
from tfqueue.records.scan import damaged
from tfqueue.records.verification import Problem
from tfqueue.records.writer import RecordWriter


@dataclass(frozen=True, slots=True)
class Salvage:
    """What ``salvage`` did.

    Attributes:
        source: The damaged file.
        target: The new file.
        whole: How many records were undamaged.
        repaired: How many had damage in their frame only: the payload is proved whole by its own CRC, or only this CRC
            can be what is wrong.
        lost: How many places of damage gave no record; more than one may have been lost at a place.
        bytes_lost: How many bytes of the (decompressed) source went into no record.
        problems: Each place of damage.
    """

    source: str
    target: str
    whole: int
    repaired: int
    lost: int
    bytes_lost: int
    problems: tuple[Problem, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns the same as a dict of numbers, str and lists, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        head = (
            f"{self.whole} whole and {self.repaired} repaired records of {self.source} are in {self.target}; "
            f"{self.lost} places ({self.bytes_lost} bytes) could not be kept"
        )
        return "\n".join([head, *map(str, self.problems)])


def salvage(
    source: Path,
    target: Path,
    *,
    compression: str | None = "auto",
    overwrite: bool = False,
    progress: bool | None = None,
) -> Salvage:
    """Writes every record of a damaged file that can be kept to a new one, in the order of the file.

    Behind damage the next record is found again by its checksums. The payloads of a TFRecord file that is stored in
    a record of the damaged one would be found as well, if the header around them is lost.

    Args:
        source: The damaged file; it is not changed.
        target: The new file; it is compressed if its name ends in ".gz".
        compression: How the source is compressed; "auto" decides by its first bytes.
        overwrite: Whether the target may be replaced.
        progress: True or False to show a progress bar or not; None shows it on a terminal.

    Raises:
        InvalidArgument: Source and target are the same file.
        DamagedRecord: No record at all was found; nothing is written.
        RecordError: The source cannot be read, or the target cannot be written.
    """
    name, new = fspath(source), fspath(target)
    if os.path.exists(new) and os.path.exists(name) and os.path.samefile(name, new):
        raise InvalidArgument(f"source and target are the same file {name!r}; the source is kept as it is")
    whole = repaired = bytes_lost = 0
    problems: list[Problem] = []
    with RecordWriter(new, overwrite=overwrite, progress=progress) as writer:
        for found in walk(name, compression=compression, search=True):
            if not isinstance(found, Damage):
                whole += 1
                writer.write_serialized(found.payload)
                continue
            problems.append(Problem(name, found.record, found.offset, found.kind, found.words))
            if found.payload is not None:
                repaired += 1
                writer.write_serialized(found.payload)
            else:
                bytes_lost += found.end - found.offset
        if problems and not writer.records:
            raise _nothing(problems[0])
    lost = len(problems) - repaired
    return Salvage(name, new, whole, repaired, lost, bytes_lost, tuple(problems))


def _nothing(problem: Problem) -> DamagedRecord:
    return damaged(problem.file, problem.record, problem.offset, f"there is nothing to salvage: {problem.words}")
