"""Passes over the data: how many, and how they follow each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tfqueue.equivalence.digest import Words
from tfqueue.equivalence.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Passes:
    """How often the data were read.

    Attributes:
        records: How many different records there are on both sides together.
        reference: The most deliveries of one record in the reference.
        candidate: The same in the candidate.
    """

    records: int
    reference: int
    candidate: int


def passes(evidence: Evidence) -> Passes:
    """How often each side delivers a record at most, and how many different ones there are."""
    if evidence.same_records:
        records, times = _counted(evidence.reference.digests)
        return Passes(records, times, times)
    left, right = evidence.reference.digests, evidence.candidate.digests
    records, _ = _counted(np.concatenate([left, right]))
    return Passes(records, _counted(left)[1], _counted(right)[1])


def _counted(digests: Words) -> tuple[int, int]:
    """(different digests, how often the median one comes); one sort, as np.unique takes several times the
    memory.
    """
    ordered = np.sort(digests)
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(ordered) else ordered
    if len(starts) == len(ordered):
        return len(ordered), min(1, len(ordered))
    return len(starts), int(np.median(np.diff(np.append(starts, len(ordered)))))


def repeats_within(digests: Words, length: int) -> int:
    """How many records come twice within blocks of ``length``: 0 where each pass is complete."""
    blocks = [digests[i : i + length] for i in range(0, len(digests), length)]
    return int(sum(len(block) - len(np.unique(block)) for block in blocks))


def same_every_pass(digests: Words, length: int) -> bool:
    """Whether all passes have the order of the first."""
    first = digests[:length]
    return (
        length >= 4
        and len(digests) > length
        and all(
            np.array_equal(digests[i : i + length], first[: len(digests) - i])
            for i in range(length, len(digests), length)
        )
    )
