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
    counts = []
    for side in (evidence.reference, evidence.candidate):
        values, times = np.unique(side.digests, return_counts=True)
        counts.append((values, int(np.median(times)) if len(times) else 0))
    both = np.union1d(counts[0][0], counts[1][0])
    return Passes(len(both), counts[0][1], counts[1][1])


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
