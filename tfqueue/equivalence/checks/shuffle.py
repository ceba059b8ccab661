"""Does the candidate mix the records as far as the reference's queue does?"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfqueue.equivalence.evidence import Evidence
from tfqueue.equivalence.mixing import expected_reach, reach
from tfqueue.equivalence.report import DIFFERENT, NOT_CHECKED, SAME, CheckResult

_LEAST = 1000  # records below which chance is too wide


def check_shuffle(evidence: Evidence) -> CheckResult:
    """How far the records move from their places in the source, against what the queue's sizes allow.

    The source's order is learnt by running the reference's graph without shuffling. A queue holds between
    min_after_dequeue and capacity records, as the threads happen to run, so a candidate may mix as much as
    any buffer between the two: less, or more, is a difference.
    """
    left, right = evidence.reference, evidence.candidate
    ordering = left.ordering
    if evidence.aligned is None or not ordering.shuffled:
        return CheckResult("shuffle", NOT_CHECKED, "the reference is not known to shuffle", counts=False)
    if evidence.options.order == "any":
        return CheckResult("shuffle", NOT_CHECKED, "any order was asked for", counts=False)
    source = evidence.look.source if evidence.look is not None else None
    if source is None or not evidence.same_records or not ordering.capacity or ordering.passes_shuffled:
        words = (
            "the order of the source is not known" if source is None else ("several things shuffle, or records differ")
        )
        return CheckResult("shuffle", NOT_CHECKED, words, counts=False)
    least, most = ordering.min_after_dequeue or 1, ordering.capacity
    numbers = source.digests
    count = min(len(numbers), left.count)
    if count >= 16 and least > 1 and np.array_equal(numbers[:count], right.digests[:count]):
        words = "the candidate delivers the records in the order of the source: it does not shuffle"
        return CheckResult("shuffle", DIFFERENT, words, hint=f"shuffle({least})", evidence={"candidate_reach": 0.0})
    if count < _LEAST:
        return CheckResult("shuffle", NOT_CHECKED, f"fewer than {_LEAST:,} records tell too little", counts=False)
    upto = count if left.count <= len(numbers) else len(numbers) // 2
    ours, theirs = reach(numbers, left.digests, upto), reach(numbers, right.digests, upto)
    low, high = expected_reach(numbers, least, upto), expected_reach(numbers, most, upto)
    figures: dict[str, Any] = {
        "reference_reach": ours,
        "candidate_reach": theirs,
        "expected_of_min_after_dequeue": [low.low, low.expected, low.high],
        "expected_of_capacity": [high.low, high.expected, high.high],
    }
    words = (
        f"a quarter of the records come {theirs:,.0f} places early in the candidate, {ours:,.0f} in the "
        f"reference; a "
        f"queue of {least:,} to {most:,} records gives {low.expected:,.0f} to {high.expected:,.0f}"
    )
    if theirs < low.low:
        return CheckResult("shuffle", DIFFERENT, words, hint=f"shuffle({least}) at least", evidence=figures)
    if theirs > high.high:
        return CheckResult("shuffle", DIFFERENT, words, hint=f"shuffle({least})", evidence=figures)
    return CheckResult("shuffle", SAME, words, evidence=figures)
