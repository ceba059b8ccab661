"""Causes that show in strings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tfqueue.equivalence.evidence import Evidence
from tfqueue.equivalence.leaves import STRING, Dense

Named = tuple[str, str, str | None]
_MOST = 0.9  # of the matched records; a few may be matched wrongly


def text_causes(evidence: Evidence) -> Iterator[Named]:
    """Likely causes for the features that hold strings on one side or on both, in records recognised on both."""
    for index, name in enumerate(evidence.reference.names):
        pairs = _pairs(evidence, index)
        if not pairs:
            continue
        found = _padded(pairs) or _cut(pairs) or _mapped(pairs)
        if found is not None:
            yield *found, name


def _pairs(evidence: Evidence, index: int) -> list[tuple[list[Any], list[Any]]]:
    """The values of a feature in the records where it differs, in the order of the array; empty if none are strings."""
    found = []
    for match in evidence.look.matches if evidence.look is not None else ():
        left, right = match.reference.leaves[index], match.candidate.leaves[index]
        if index in match.equal:
            continue
        if not (isinstance(left, Dense) and isinstance(right, Dense)) or STRING not in (left.dtype, right.dtype):
            return []
        found.append((np.ravel(left.array[0]).tolist(), np.ravel(right.array[0]).tolist()))
    return found


def _padded(pairs: list[tuple[list[Any], list[Any]]]) -> tuple[str, str] | None:
    """Strings that are filled up with another text than ''."""
    fills: set[Any] = set()
    for left, right in pairs:
        one = list(left)
        while one and one[-1] == b"":
            one.pop()
        rest = set(right[len(one) :])
        fills |= rest if right[: len(one)] == one and len(rest) == 1 and len(right) > 1 else {None}
    if len(fills) == 1 and None not in fills:
        return "padding-value", f"the candidate fills up with {fills.pop()!r}"
    return None


def _cut(pairs: list[tuple[list[Any], list[Any]]]) -> tuple[str, str] | None:
    """Lists of strings of which only the first are there, and strings of which only the beginning is."""
    cut = [len(b) < len(a) and a[: len(b)] == b and any(a[len(b) :]) for a, b in pairs]
    if np.mean(cut) >= _MOST:
        return "truncated", f"the candidate's strings are the first {len(pairs[0][1])} of the reference's"
    texts = [both for a, b in pairs if len(a) == len(b) for both in zip(a, b, strict=True) if both[0] != both[1]]
    if texts and all(isinstance(b, bytes) and isinstance(a, bytes) and b and a.startswith(b) for a, b in texts):
        return "truncated", f"the candidate's strings are the beginning of the reference's, such as {texts[0][1]!r}"
    return None


def _mapped(pairs: list[tuple[list[Any], list[Any]]]) -> tuple[str, str] | None:
    """Single strings that each become always the same other one, or the same number."""
    if any(len(left) != 1 or len(right) != 1 for left, right in pairs) or len(pairs) < 8:
        return None
    both = {(left[0], right[0]) for left, right in pairs}
    sources, targets = {a for a, _ in both}, {b for _, b in both}
    if len(both) != len(sources) or len(both) != len(targets) or len(both) > len(pairs) / 2:
        return None
    text, other = min(both, key=str)
    return "labels-mapped", f"each of {len(both)} values becomes always the same other one, such as {text!r} {other!r}"
