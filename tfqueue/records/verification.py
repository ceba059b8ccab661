"""Checks every frame of TFRecord files, and says of each damaged one where it is and what is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import google_crc32c

from tfqueue.errors import RecordError
from tfqueue.records.damage import Damage, Kind, walk
from tfqueue.records.framing import FRAME_SIZE
from tfqueue.records.index import load_index
from tfqueue.records.manifest import find_manifest, load_manifest
from tfqueue.records.paths import Paths, expand, open_to_read, set_name
from tfqueue.records.progress import bar
from tfqueue.records.reader import decode


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a file.

    Attributes:
        file: The file.
        record: The 0-based number of the record concerned.
        offset: The byte offset of its frame; of a compressed file, in the decompressed data.
        kind: A stable name of what is wrong (for programs); see ``Damage``. Besides those: "not-example" (a whole
            frame, but no tf.train.Example in it), "missing-records" (the manifest or index says that there were
            more), "changed" (the manifest knows other bytes).
        words: The same in words.
    """

    file: str
    record: int
    offset: int
    kind: Kind
    words: str

    def __str__(self) -> str:
        return f"{self.file}, record {self.record}, byte {self.offset}: {self.words}"


@dataclass(frozen=True, slots=True)
class Verification:
    """What ``verify`` found.

    Attributes:
        files: The files looked at.
        records: How many whole records they hold.
        problems: What is wrong, in the order of the files.
    """

    files: tuple[str, ...]
    records: int
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Returns the same as a dict of numbers, str and lists, for JSON."""
        return {**asdict(self), "ok": self.ok}

    def __str__(self) -> str:
        head = f"{len(self.files)} files, {self.records} whole records, {len(self.problems)} problems"
        return "\n".join([head, *map(str, self.problems)])


def verify(
    paths: Paths, *, compression: str | None = "auto", examples: bool = False, progress: bool | None = None
) -> Verification:
    """Checks every frame of files: the lengths, both CRCs of each record, and that nothing is cut or left over.

    A file that was cut exactly between two records is whole by itself. It is noticed where the manifest that the
    writer left, or an index made before, knows of more records.

    Args:
        paths: One path, a pattern, or a list.
        compression: As for ``read``.
        examples: Whether each record must be a tf.train.Example or SequenceExample too.
        progress: True or False to show a progress bar or not; None shows it on a terminal.

    Returns:
        The problems, each with file, record, byte offset, kind and words.

    Raises:
        RecordError: A file does not exist or cannot be read.
    """
    names = expand(paths)
    problems: list[Problem] = []
    records = 0
    sizes = [os.path.getsize(name) for name in names]
    with bar("verifying", sum(sizes), progress=progress) as advance:
        for name, size in zip(names, sizes, strict=True):
            whole, found = _verify_file(name, compression, examples, size, advance)
            records += whole
            problems += found
    problems += _missing_files(names)
    return Verification(tuple(names), records, tuple(problems))


def _verify_file(
    name: str, compression: str | None, examples: bool, size: int, advance: Callable[[int], None]
) -> tuple[int, list[Problem]]:
    problems: list[Problem] = []
    whole = end = shown = 0
    for found in walk(name, compression=compression):
        if isinstance(found, Damage):
            problems.append(Problem(name, found.record, found.offset, found.kind, found.words))
            continue
        whole += 1
        end = found.offset + FRAME_SIZE + len(found.payload)
        # Of a compressed file the size is known only on disk.
        if shown < end <= size:
            advance(end - shown)
            shown = end
        if examples:
            try:
                decode(found.payload)
            except RecordError as error:
                problems.append(Problem(name, found.record, found.offset, "not-example", str(error)))
    advance(size - shown)
    if not problems:
        expected = _expected(name, whole, end)
        if expected is not None:
            problems.append(expected)
    return whole, problems


def _expected(name: str, records: int, end: int) -> Problem | None:
    """Compares a file whose frames are all whole with what its manifest or an older index knows."""
    manifest = find_manifest(name)
    entry = None if manifest is None else manifest.entry(name)
    if entry is None:
        return _expected_by_index(name, records, end)
    if records < entry.records:
        words = f"the file ends between two records; its manifest says {entry.records} records, {records} are there"
        return Problem(name, records, end, "missing-records", words)
    if (records, os.path.getsize(name)) != (entry.records, entry.size) or file_crc(name) != entry.crc32c:
        return Problem(
            name, 0, 0, "changed", "all frames are whole, but these are not the bytes that its manifest knows"
        )
    return None


def _expected_by_index(name: str, records: int, end: int) -> Problem | None:
    index = load_index(name, None)
    # Only if the file is what the index knows, and then ends: a file that was written anew proves nothing.
    if index is None or len(index) <= records or int(index.offsets[records]) != end:
        return None
    words = f"the file ends between two records; an index made before has {len(index)} records, {records} are there"
    return Problem(name, records, end, "missing-records", words)


def _missing_files(names: list[str]) -> list[Problem]:
    """Looks for files of a set that are not on disk; a single file of a set may be looked at by itself."""
    problems = []
    seen: dict[str, int] = {}
    for name in names:
        if set_name(name) != name:
            manifest = find_manifest(name)
            if manifest is not None:
                seen[manifest.path] = seen.get(manifest.path, 0) + 1
    for path, count in seen.items():
        manifest = load_manifest(path)
        for entry in manifest.files if count > 1 else ():
            name = os.path.join(os.path.dirname(path), entry.name)
            if not os.path.exists(name):
                words = f"the file is missing; the manifest of its set says that it has {entry.records} records"
                problems.append(Problem(name, 0, 0, "missing-records", words))
    return problems


def file_crc(name: str) -> int:
    """Returns the CRC-32C of the bytes of a file on disk.

    Raises:
        RecordError: It cannot be read.
    """
    crc = 0
    with open_to_read(name) as file:
        while block := file.read(1 << 20):
            crc = google_crc32c.extend(crc, block)
    return crc
