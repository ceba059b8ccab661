"""Division of files into parts such as train, val and test: each file in exactly one, the same on every machine."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tfqueue.errors import InvalidArgument
from tfqueue.records.imagelist import ImageItem

_PARTS: Final = ("train", "val", "test")


def checked_fractions(split: Any) -> dict[str, float]:
    """Returns the parts and their fractions.

    Args:
        split: A dict such as {"train": 0.7, "val": 0.2, "test": 0.1}, or two or three numbers, which are then train,
            val and test.

    Raises:
        InvalidArgument: It is something else, or the fractions do not add up to 1.
    """
    if isinstance(split, Mapping):
        parts = dict(split)
    elif isinstance(split, Sequence) and not isinstance(split, str) and 2 <= len(split) <= 3:
        parts = dict(zip(_PARTS, split, strict=False))
    else:
        raise InvalidArgument(f"split is {split!r}; expected a dict of part -> fraction, or two or three fractions")
    for name, fraction in parts.items():
        if not isinstance(name, str) or not name or "/" in name:
            raise InvalidArgument(f"the name of a part is {name!r}; expected a str that can be part of a file name")
        if isinstance(fraction, bool) or not isinstance(fraction, (int, float)) or not 0 < fraction < 1:
            raise InvalidArgument(f"the fraction of {name!r} is {fraction!r}; expected a number between 0 and 1")
    total = math.fsum(parts.values())
    if abs(total - 1) > 1e-9:
        raise InvalidArgument(f"the fractions of split add up to {total:g}; expected 1")
    return parts


def divide(
    items: Sequence[ImageItem], fractions: Mapping[str, float], *, seed: int, stratified: bool
) -> dict[str, list[ImageItem]]:
    """Divides files into parts.

    The order in which they are dealt is that of a hash of the seed and the file name. So it depends neither on the
    machine nor on the order of the list, and a file that is added later moves few of the others.

    Args:
        items: The files.
        fractions: Part -> fraction; the sizes are the nearest whole numbers.
        seed: Another number gives another division.
        stratified: Whether each class is divided in these fractions by itself.

    Raises:
        InvalidArgument: A file is listed twice, or a part would get no file.
    """
    _check_once(items)
    dealt = sorted(items, key=lambda item: _hash(item, seed))
    groups = [dealt]
    if stratified:
        labels = sorted({item.label for item in items})
        groups = [[item for item in dealt if item.label == label] for label in labels]
    chosen: dict[str, set[str]] = {name: set() for name in fractions}
    for group in groups:
        start = 0
        reached = 0.0
        for name, fraction in fractions.items():
            reached += fraction
            stop = math.floor(reached * len(group) + 0.5 + 1e-9)
            chosen[name].update(item.path for item in group[start:stop])
            start = stop
    parts = {name: [item for item in dealt if item.path in paths] for name, paths in chosen.items()}
    for name, part in parts.items():
        if not part:
            raise InvalidArgument(f"the part {name!r} ({fractions[name]:g} of {len(items)} images) would be empty")
    return parts


def shuffled(items: Sequence[ImageItem], seed: int) -> list[ImageItem]:
    """Returns the files in an order that depends on their names and the seed only."""
    return sorted(items, key=lambda item: _hash(item, seed))


def _hash(item: ImageItem, seed: int) -> bytes:
    return hashlib.sha256(str(seed).encode() + b"\0" + os.fsencode(item.filename)).digest()


def _check_once(items: Sequence[ImageItem]) -> None:
    seen: dict[str, str] = {}
    for item in items:
        real = os.path.realpath(item.path)
        if real in seen:
            other = seen[real]
            also = "" if other == item.path else f", also as {other!r}"
            raise InvalidArgument(f"{item.path!r} is listed twice{also}; in a split each file may be in one part only")
        seen[real] = item.path
