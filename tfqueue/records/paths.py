"""What ``paths`` arguments mean: one path, a pattern, or a list of them; and how shards are named."""

from __future__ import annotations

import glob
import os
import re
import stat
import warnings
from collections.abc import Iterable, Iterator, Sequence
from io import FileIO
from os import PathLike
from typing import TypeAlias

from tfqueue.errors import InvalidArgument, RecordError, TFQueueWarning

Path: TypeAlias = "str | PathLike[str]"
Paths: TypeAlias = "Path | Iterable[Path]"

MANIFEST_SUFFIX = ".manifest.json"
INDEX_SUFFIX = ".tfqindex"
_SHARD = re.compile(r"^(?P<stem>.*)-(?P<shard>\d{5,})-of-(?P<shards>\d{5,})(?P<suffix>.*)$", re.DOTALL)
_SUFFIX = re.compile(r"(\.(tfrecords?|tfrec|records?))?(\.(gz|gzip|zlib|z))?$", re.IGNORECASE)


def expand(paths: Paths) -> list[str]:
    """Returns the files that ``paths`` names, in order.

    Args:
        paths: One path, a pattern (``*``, ``?``, ``[...]``, ``**``), or an iterable of both. A path that
            exists is never taken as a pattern, so that names with brackets work. The matches of a pattern are
            sorted; hidden files, indexes and manifests never match.

    Raises:
        InvalidArgument: ``paths`` is empty, or no path.
        RecordError: A file that does not exist, a folder, or a pattern that matches nothing.
    """
    if isinstance(paths, (str, PathLike)):
        return _expand_one(paths)
    if not isinstance(paths, Iterable):
        raise InvalidArgument(f"paths is {paths!r}; expected a path, a pattern, or a list of them (str or Path)")
    found = [name for path in paths for name in _expand_one(path)]
    if not found:
        raise InvalidArgument("paths is an empty list: there is no file to read")
    return found


def _expand_one(path: Path) -> list[str]:
    name = fspath(path)
    if os.path.isdir(name):
        entries = [os.path.join(name, entry) for entry in sorted(os.listdir(name))]
        files = sum(_wanted(entry) for entry in entries)
        raise RecordError(
            f"{name!r} is a folder with {files} files; name the files in it, for example by the pattern "
            f"{os.path.join(name, '*.tfrecord')!r}",
            file=name,
        )
    if os.path.lexists(name):
        return [name]
    shards = list(existing_shards(name))
    if shards:
        stem, suffix = split_suffix(name)
        pattern = f"{glob.escape(stem)}-*-of-*{glob.escape(suffix)}"
        raise RecordError(
            f"{name!r} does not exist, but {len(shards)} shards of it do, such as {shards[0]!r}; the pattern "
            f"{pattern!r} names them all",
            file=name,
        )
    if not glob.has_magic(name):
        raise RecordError(f"{name!r} does not exist ({_surroundings(name)})", file=name)
    found = sorted(match for match in glob.glob(name, recursive=True) if _wanted(match))
    if not found:
        raise RecordError(f"no file matches {name!r} ({_surroundings(name)})", file=name)
    _warn_of_missing_shards(name, found)
    return found


def _wanted(name: str) -> bool:
    base = os.path.basename(name)
    return not base.startswith(".") and not base.endswith((MANIFEST_SUFFIX, INDEX_SUFFIX)) and os.path.isfile(name)


def _surroundings(name: str) -> str:
    """Says where a name was looked for: the working folder, the nearest folder that exists, its content."""
    folder = os.path.dirname(name)
    while folder and not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    words = "" if os.path.isabs(name) else f"working folder {os.getcwd()!r}, "
    shown = folder or os.curdir
    try:
        entries = sorted(entry for entry in os.listdir(shown) if not entry.startswith("."))
    except OSError as error:
        return f"{words}nearest existing folder {shown!r} cannot be read: {error.strerror}"
    listed = ", ".join(repr(entry) for entry in entries[:3]) + (", ..." if len(entries) > 3 else "")
    count = f"{len(entries)} entries: {listed}" if entries else "nothing"
    return f"{words}nearest existing folder {shown!r} has {count}"


def _warn_of_missing_shards(pattern: str, names: Sequence[str]) -> None:
    for set_name, (present, shards) in _shard_sets(names).items():
        missing = sorted(set(range(shards)) - present)
        if missing:
            listed = ", ".join(map(str, missing[:5])) + (", ..." if len(missing) > 5 else "")
            warnings.warn(
                f"{pattern!r} matches {len(present)} of {shards} shards of {set_name!r}; missing: {listed}"
                ". Name the files in a list if only a part is meant.",
                TFQueueWarning,
                stacklevel=5,  # the caller of read, describe, ...
            )


def _shard_sets(names: Iterable[str]) -> dict[str, tuple[set[int], int]]:
    sets: dict[str, tuple[set[int], int]] = {}
    for name in names:
        match = _SHARD.match(name)
        if match:
            shards = int(match["shards"])
            key = f"{match['stem']}-?????-of-{match['shards']}{match['suffix']}"
            sets.setdefault(key, (set(), shards))[0].add(int(match["shard"]))
    return sets


def fspath(path: Path) -> str:
    """Returns ``path`` as a str.

    Raises:
        InvalidArgument: It is no str and no Path, or it is empty.
    """
    try:
        name = os.fspath(path)
    except TypeError:
        raise InvalidArgument(f"a path is a str or a Path, not {type(path).__name__}: {path!r}") from None
    if not isinstance(name, str):
        raise InvalidArgument(f"a path is a str or a Path of str, not bytes: {path!r}")
    if not name:
        raise InvalidArgument("a path is the empty string")
    if "\0" in name:
        raise InvalidArgument(f"a path holds a NUL character: {name!r}")
    return name


def open_to_read(name: str) -> FileIO:
    """Opens a file without a buffer.

    Raises:
        RecordError: It does not exist or cannot be read.
    """
    try:
        file = FileIO(name, "r")
    except OSError as error:
        raise RecordError(f"{name!r} cannot be read: {error.strerror}", file=name) from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise RecordError(f"{name!r} is no regular file, so its size is unknown; copy it into one", file=name)
    return file


def split_suffix(name: str) -> tuple[str, str]:
    """Splits a file name before its suffix: ``a/train.tfrecord.gz`` into ``a/train`` and ``.tfrecord.gz``."""
    folder, base = os.path.split(name)
    match = _SUFFIX.search(base)
    suffix = match[0] if match else ""
    if not suffix:
        suffix = os.path.splitext(base)[1]
    if suffix == base:  # a name like ".tfrecord" has no stem left to number
        suffix = ""
    return os.path.join(folder, base[: len(base) - len(suffix)]), suffix


def shard_name(name: str, shard: int, shards: int) -> str:
    """Returns the name of a shard, such as ``train-00000-of-00008.tfrecord`` for ``train.tfrecord``."""
    stem, suffix = split_suffix(name)
    return f"{stem}-{shard:05d}-of-{shards:05d}{suffix}"


def manifest_name(name: str) -> str:
    """Returns the name of the manifest of a set: ``train.tfrecord`` has ``train.manifest.json``."""
    return split_suffix(name)[0] + MANIFEST_SUFFIX


def index_name(name: str) -> str:
    """Returns the name of the index of one file; hidden, so that no pattern takes it for data."""
    folder, base = os.path.split(name)
    return os.path.join(folder, f".{base}{INDEX_SUFFIX}")


def existing_shards(name: str) -> Iterator[str]:
    """Yields the shards on disk, of any number, that were written under the name ``name``."""
    stem, suffix = split_suffix(name)
    for found in sorted(glob.glob(f"{glob.escape(stem)}-*-of-*{glob.escape(suffix)}")):
        match = _SHARD.match(found)
        if match and match["stem"] == stem and match["suffix"] == suffix:
            yield found


def set_name(name: str) -> str:
    """Returns the name from which that of a shard was made; another name is returned as it is."""
    match = _SHARD.match(name)
    return match["stem"] + match["suffix"] if match else name
