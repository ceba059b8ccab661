"""Do both sides cut the stream into the same batches?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tfqueue.equivalence.evidence import Evidence, number
from tfqueue.equivalence.observe import Observation
from tfqueue.equivalence.report import DIFFERENT, NOT_CHECKED, SAME, CheckResult


def check_batches(evidence: Evidence) -> CheckResult:
    """Batch sizes from first to last; where a stream was cut or failed, up to there."""
    left, right = evidence.reference, evidence.candidate
    if evidence.aligned is None:
        return CheckResult("batches", NOT_CHECKED, "no batches to compare")
    figures: dict[str, Any] = {
        "reference": {"batches": left.batches, "sizes": left.sizes[:20], "batched": left.batched},
        "candidate": {"batches": right.batches, "sizes": right.sizes[:20], "batched": right.batched},
    }
    if left.batched != right.batched:
        plain, other = ("candidate", "reference") if left.batched else ("reference", "candidate")
        words = f"the {plain} delivers single records, the {other} batches of them"
        return CheckResult("batches", DIFFERENT, words, hint="Dataset.batch is missing, or too much", evidence=figures)
    first = _first_difference(left, right)
    if first is None:
        return CheckResult("batches", SAME, f"the same on both sides: {_sizes(left)}", evidence=figures)
    if left.ordering.defined is False and _histogram(left) == _histogram(right):
        # Whole batches that several threads put into a queue, as buckets by length do, overtake each other.
        words = f"as many of each size, in another order, which is free ({left.ordering.reason}): {_sizes(left)}"
        return CheckResult("batches", SAME, words, evidence=figures)
    batch, one, two = first
    figures["first_difference"] = {"batch": batch, "reference": one, "candidate": two}
    if one is None or two is None:
        longer, rest = ("candidate", two) if one is None else ("reference", one)
        words = (
            f"the {longer} has {number(abs(left.batches - right.batches), 'batch')} more ({left.batches} "
            f"and {right.batches}); "
            f"the first of them, batch {batch}, holds {number(rest or 0, 'record')}"
        )
        hint = "look at drop_remainder, allow_smaller_final_batch and the number of epochs"
        return CheckResult("batches", DIFFERENT, words, hint=hint, evidence=figures)
    words = (
        f"batch {batch} holds {number(one, 'record')} in the reference, {two:,} in the candidate "
        f"(reference: {_sizes(left)}; candidate: {_sizes(right)})"
    )
    return CheckResult("batches", DIFFERENT, words, evidence=figures)


def _first_difference(left: Observation, right: Observation) -> tuple[int, int | None, int | None] | None:
    """The first batch whose size differs, None standing for a batch that is not there."""
    if left.sizes == right.sizes:
        return None
    # A stream that was cut or failed ends where it was left, not where its batches end.
    open_ended = {left.ended, right.ended} - {"clean"}
    one, two = _runs(left.sizes), _runs(right.sizes)
    batch = 0
    a = b = (0, 0)
    while True:
        a = a if a[1] else next(one, (0, 0))
        b = b if b[1] else next(two, (0, 0))
        if not a[1] or not b[1]:
            if not a[1] and not b[1]:
                return None
            cut = left.ended != "clean" if not a[1] else right.ended != "clean"
            return None if cut else (batch, a[0] if a[1] else None, b[0] if b[1] else None)
        if a[0] != b[0]:
            last = batch + 1 in (left.batches, right.batches)
            return None if open_ended and last and "cut" in open_ended else (batch, a[0], b[0])
        step = min(a[1], b[1])
        batch += step
        a, b = (a[0], a[1] - step), (b[0], b[1] - step)


def _histogram(side: Observation) -> dict[int, int]:
    """How many batches of each size there are."""
    counts: dict[int, int] = {}
    for size, count in side.sizes:
        counts[size] = counts.get(size, 0) + count
    return counts


def _runs(sizes: Iterable[list[int]]) -> Iterator[tuple[int, int]]:
    return ((size, count) for size, count in sizes)


def _sizes(side: Observation) -> str:
    shown = [f"{number(count, 'batch')} of {size:,}" for size, count in side.sizes[:3]]
    return ", ".join(shown) + (", ..." if len(side.sizes) > 3 else "")
