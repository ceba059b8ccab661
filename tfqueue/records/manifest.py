"""The manifest of a set of files: what was written, so that later a loss can be noticed.

It is a JSON file beside the records, ``train.manifest.json`` for ``train.tfrecord`` and for its shards:

    {"format": "tfqueue-manifest-1", "compression": "", "records": 60000,
     "files": [{"name": "train-00000-of-00002.tfrecord", "records": 30000, "size": 1234567, "crc32c": "0a1b2c3d"}, ...],
     "features": [{"name": "image", "kind": "bytes", ...}, ...], "classes": ["cat", "dog"], ...}

``size`` and ``crc32c`` are those of the bytes on disk; ``features`` describes the first 1000 records (see ``schema``).
Whatever else a writer knows stands beside these, such as the class names of images.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tfqueue.errors import RecordError
from tfqueue.records.atomic import write_whole
from tfqueue.records.framefile import WrittenFile
from tfqueue.records.paths import Path, fspath, manifest_name, set_name
from tfqueue.records.schema import describe

FORMAT: Final = "tfqueue-manifest-1"
_DESCRIBED: Final = 1000


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """What a manifest says of one file.

    Attributes:
        name: Its name, without a folder.
        records: How many records it holds.
        size: Its size on disk, in bytes.
        crc32c: The CRC-32C of its bytes on disk.
    """

    name: str
    records: int
    size: int
    crc32c: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is known of a set of files.

    Attributes:
        path: Where the manifest lies.
        compression: "", "GZIP" or "ZLIB".
        files: Its files, in order.
        info: Everything else, such as "features" and "classes".
    """

    path: str
    compression: str
    files: tuple[ManifestEntry, ...]
    info: Mapping[str, Any] = field(default_factory=dict)

    @property
    def records(self) -> int:
        """How many records the files hold together."""
        return sum(entry.records for entry in self.files)

    def entry(self, path: Path) -> ManifestEntry | None:
        """Returns what is said of a file, or None."""
        base = os.path.basename(fspath(path))
        return next((entry for entry in self.files if entry.name == base), None)


def save_manifest(name: str, written: Sequence[WrittenFile], compression: str, info: Mapping[str, Any]) -> None:
    """Writes the manifest of complete files, in the place of an older one.

    Args:
        name: The name under which the files were made.
        written: The files.
        compression: "", "GZIP" or "ZLIB".
        info: What it says besides.

    Raises:
        RecordError: It cannot be written.
    """
    try:
        schema = describe([file.path for file in written], records=_DESCRIBED, progress=False).to_dict()
    except RecordError:  # records that are no tf.train.Example
        schema = {}
    files = [
        {
            "name": os.path.basename(file.path),
            "records": file.records,
            "size": file.size,
            "crc32c": f"{file.crc32c:08x}",
        }
        for file in written
    ]
    content = {
        "format": FORMAT,
        "compression": compression,
        "records": sum(file.records for file in written),
        "files": files,
        "features": schema.get("features", []),
        "sequences": schema.get("sequences", []),
        **info,
    }
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    write_whole(manifest_name(name), text.encode("utf-8", "surrogateescape"))


def load_manifest(path: Path) -> Manifest:
    """Reads a manifest.

    Raises:
        RecordError: It cannot be read, or is no manifest.
    """
    name = fspath(path)
    try:
        with open(name, "rb") as file:
            content = json.loads(file.read().decode("utf-8", "surrogateescape"))
        if content["format"] != FORMAT:
            raise RecordError(f"{name!r} has the format {content['format']!r}; expected {FORMAT!r}", file=name)
        files = tuple(
            ManifestEntry(str(entry["name"]), int(entry["records"]), int(entry["size"]), int(entry["crc32c"], 16))
            for entry in content["files"]
        )
        compression = str(content["compression"])
    except OSError as error:
        raise RecordError(f"the manifest {name!r} cannot be read: {error.strerror}", file=name) from error
    except (ValueError, KeyError, TypeError) as error:
        raise RecordError(f"{name!r} is no manifest that can be read: {error}", file=name) from error
    known = ("format", "compression", "records", "files")
    return Manifest(name, compression, files, {key: value for key, value in content.items() if key not in known})


def find_manifest(path: Path) -> Manifest | None:
    """Returns the manifest that stands beside a file and names it, or None.

    Raises:
        RecordError: There is one, but it cannot be read.
    """
    name = fspath(path)
    for candidate in {manifest_name(name): None, manifest_name(set_name(name)): None}:
        if os.path.isfile(candidate):
            status = os.stat(candidate)
            manifest = _load_once(candidate, status.st_ino, status.st_mtime_ns, status.st_size)
            if manifest.entry(name) is not None:
                return manifest
    return None


@functools.lru_cache(maxsize=4)
def _load_once(name: str, *state: int) -> Manifest:
    """Loads a manifest once for all the files of its set, as long as it stays as it is."""
    return load_manifest(name)


def cut_between_records(name: str, records: int) -> str | None:
    """Says in words what is missing if a file of ``records`` whole records held more when it was written, else None.

    Such a file is whole by itself; only its manifest tells. One that cannot be read is not ours, and says nothing.
    """
    try:
        manifest = find_manifest(name)
        entry = None if manifest is None else manifest.entry(name)
        # A file of the full size was written anew while it was read.
        if manifest is None or entry is None or records >= entry.records or os.path.getsize(name) >= entry.size:
            return None
    except (RecordError, OSError):
        return None
    return (
        f"the file ends between two records; its manifest {manifest.path!r} says {entry.records} records, {records} "
        "are there (if the file was replaced on purpose, remove the manifest)"
    )
