"""Everything that one comparison saw, for the checks and the causes to judge."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfqueue.equivalence.align import Aligned
from tfqueue.equivalence.digest import Words
from tfqueue.equivalence.observe import Observation
from tfqueue.equivalence.options import Options
from tfqueue.equivalence.pairing import Pairing

if TYPE_CHECKING:
    from tfqueue.equivalence.second_look import SecondLook

Indices = npt.NDArray[np.int64]


@dataclass(slots=True)
class BatchShapes:
    """The shapes of features, batch against batch, as long as both sides deliver batches of the same size.

    Attributes:
        compared: Batches compared.
        first: (batch, feature, shape in the reference, shape in the candidate) of the first difference, or
            None.
    """

    compared: int = 0
    first: tuple[int, str, tuple[int, ...], tuple[int, ...]] | None = None


@dataclass
class Evidence:
    """What was seen of both sides.

    Attributes:
        reference: The reference, after its run.
        candidate: The candidate, after its run.
        pairing: Which feature answers to which; None if a side delivered no batch.
        aligned: The comparison position by position; None if a side delivered no batch.
        shapes: The shapes batch against batch.
        options: The options of the comparison.
        look: What the second look found, where the records differ.
        aside: The same with rounding put aside, where values differ by rounding; else None.
        made: How the reference and the candidate were made, where they tell.
    """

    reference: Observation
    candidate: Observation
    pairing: Pairing | None
    aligned: Aligned | None
    shapes: BatchShapes
    options: Options
    look: SecondLook | None = None
    aside: Evidence | None = None
    made: tuple[Any, Any] = (None, None)

    @cached_property
    def same_sequence(self) -> bool:
        """True if both sides delivered the same records in the same order."""
        return (
            self.aligned is not None
            and self.reference.count == self.candidate.count == self.aligned.compared
            and self.aligned.equal == self.aligned.compared
        )

    @cached_property
    def same_records(self) -> bool:
        """True if both sides delivered the same records, each as often."""
        return self.same_sequence or (
            self.reference.count == self.candidate.count and self.reference.fingerprint == self.candidate.fingerprint
        )

    @property
    def nothing_lost(self) -> bool:
        """True if both sides delivered the same records, but for those that a dropped last batch leaves to chance."""
        return self.same_records or (self.look is not None and self.look.remainder is not None)

    @property
    def close_in_place(self) -> bool:
        """True if every record is equal to, or within the tolerance of, the one at the same place."""
        aligned, count = self.aligned, self.reference.count
        return aligned is not None and aligned.active and aligned.equal + aligned.close == count == self.candidate.count

    @cached_property
    def surplus(self) -> tuple[Indices, Indices]:
        """The numbers of the records that only the reference has, and of those that only the candidate has.

        Of a record that one side delivers more often than the other, the deliveries are counted to which the
        other side has no equal at the same place, and the last ones first.
        """
        if self.same_records:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        left, right = self.reference.digests, self.candidate.digests
        return _surplus(left, right), _surplus(right, left)


def _surplus(one: Words, other: Words) -> Indices:
    """Positions in ``one`` of the digests that it holds more often than ``other``, in ascending order."""
    common = min(len(one), len(other))
    apart = np.ones(len(one), dtype=bool)
    apart[:common] = one[:common] != other[:common]
    order = np.lexsort((apart, one))
    ordered = one[order]
    there = np.sort(other)
    # The k-th copy of a digest (k from 0) is surplus if the other side holds k copies or fewer.
    copy = np.arange(len(ordered)) - np.searchsorted(ordered, ordered, side="left")
    count = np.searchsorted(there, ordered, side="right") - np.searchsorted(there, ordered, side="left")
    return np.sort(order[copy >= count])


def fraction_kept(left: Words, right: Words) -> float:
    """The share of neighbours of one sequence that are neighbours in the other, from 0 to 1.

    For sequences in which records occur more than once, a pair counts as often as both have it.
    """
    if len(left) < 2 or len(right) < 2:
        return 1.0 if np.array_equal(left, right) else 0.0
    pairs_left, pairs_right = (s[:-1] * np.uint64(0x9E3779B97F4A7C15) ^ s[1:] for s in (left, right))
    return 1.0 - len(_surplus(pairs_left, pairs_right)) / len(pairs_left)


def number(count: int, noun: str) -> str:
    """``3 records``, ``1 record``."""
    plural = {"batch": "batches", "pass": "passes"}.get(noun, noun + "s")
    return f"{count:,} {noun if count == 1 else plural}"


def listed(names: Any, limit: int = 5) -> str:
    """The first few of some names, in words."""
    items = [str(name) for name in names]
    rest = len(items) - limit
    return ", ".join(items[:limit]) + (f" and {rest} more" if rest > 0 else "")
