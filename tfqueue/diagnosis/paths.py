"""Words about paths and names that are not there."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from pathlib import Path


def nearest_existing_folder(path: str | os.PathLike[str]) -> Path:
    """The deepest existing folder on the way to ``path``, which may be a pattern."""
    folder = Path(os.path.abspath(path)).parent
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    return folder


def about_missing_path(path: str) -> str:
    """Where one would look for a path that does not exist: its nearest folder, what is in it, the working folder."""
    folder = nearest_existing_folder(path)
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        names = []
    parts = [f"nearest existing folder: {folder} ({_listing(names)})"]
    # Without the suffix, which all files of a folder may share and which would make any two names look alike.
    stems = {os.path.splitext(name)[0]: name for name in names}
    similar = most_similar(os.path.splitext(os.path.basename(path))[0], stems)
    if similar is not None:
        parts.append(f"did you mean {stems[similar]!r}?")
    if not os.path.isabs(path):
        parts.append(f"the path is relative to {os.getcwd()}")
    return "; ".join(parts)


def most_similar(wanted: str, known: Iterable[str]) -> str | None:
    """The name among ``known`` that was most likely meant by ``wanted``, or None when none resembles it."""
    names = list(known)
    close = difflib.get_close_matches(wanted, names, n=1, cutoff=0.6)
    # 'image' for 'img': the same consonants; 'image/encoded' for 'image': one inside the other
    close = close or [name for name in names if _skeleton(wanted) and _skeleton(name) == _skeleton(wanted)]
    close = close or [name for name in names if wanted and name and (wanted in name or name in wanted)]
    return close[0] if close else None


def _skeleton(name: str) -> str:
    return "".join(dict.fromkeys(c for c in name.lower() if c.isalnum() and c not in "aeiou"))[:3]


def _listing(names: list[str]) -> str:
    if not names:
        return "empty"
    shown = ", ".join(names[:3])
    return f"{len(names)} entries: {shown}{', ...' if len(names) > 3 else ''}"
