"""Does the candidate mix the records as far as the reference's queue does?"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfqueue.equivalence.evidence import Evidence
from tfqueue.equivalence.mixing import LEAST_TO_TELL, distance, expected_reach, reach
from tfqueue.equivalence.report import DIFFERENT, NOT_CHECKED, SAME, CheckResult

_SPREADS = 4.5  # standard errors; of equal pairs in simulations, three were the most


def check_shuffle(evidence: Evidence) -> CheckResult:
    """How far the records move from their places in the source, against what the queue's sizes allow.

    The source's order is learnt by running the reference's graph without shuffling. A queue holds between
    min_after_dequeue and capacity records, as the threads happen to run, so a candidate may mix as much as
    any buffer between the two: less, or more, is a difference.
    """
    left, right = evidence.reference, evidence.candidate
    ordering = left.ordering
    if evidence.aligned is None or evidence.options.order == "any" or not evidence.same_records:
        words = "any order was asked for" if evidence.options.order == "any" else "the records differ"
        return CheckResult("shuffle", NOT_CHECKED, words, counts=False)
    source = evidence.look.source if evidence.look is not None else None
    if source is None:
        return _by_second_run(evidence)
    if not ordering.capacity or ordering.passes_shuffled:
        return CheckResult("shuffle", NOT_CHECKED, "several things shuffle, which cannot be told apart", counts=False)
    least, most = ordering.min_after_dequeue or 1, ordering.capacity
    numbers = source.digests
    count = min(len(numbers), left.count)
    if count >= 16 and least > 1 and np.array_equal(numbers[:count], right.digests[:count]):
        words = "the candidate delivers the records in the order of the source: it does not shuffle"
        return CheckResult("shuffle", DIFFERENT, words, hint=f"shuffle({least})", evidence={"candidate_reach": 0.0})
    if count < LEAST_TO_TELL:
        return CheckResult(
            "shuffle", NOT_CHECKED, f"fewer than {LEAST_TO_TELL:,} records tell too little", counts=False
        )
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


def _by_second_run(evidence: Evidence) -> CheckResult:
    """Where the source is not known: are the sides as far apart as two runs of the reference are?"""
    left, right = evidence.reference, evidence.candidate
    again = evidence.look.reference_again if evidence.look is not None else None
    if again is None or again.fingerprint != left.fingerprint or np.array_equal(again.digests, left.digests):
        words = "the order of the source is not known, and the reference does not shuffle otherwise in a second run"
        return CheckResult("shuffle", NOT_CHECKED, words, counts=False)
    usual, error = distance(left.digests, again.digests)
    found, other = distance(left.digests, right.digests)
    figures = {"between_runs_of_the_reference": usual, "between_the_sides": found}
    words = (
        f"records stand {found:,.1f} places apart on both sides on average, in two runs of the reference {usual:,.1f}"
    )
    if abs(found - usual) <= _SPREADS * float(np.hypot(error, other)) + 0.5:
        return CheckResult("shuffle", SAME, words, evidence=figures)
    hint = "the candidate mixes " + ("less: a smaller buffer" if found < usual else "more: a larger buffer")
    return CheckResult("shuffle", DIFFERENT, words, hint=hint, evidence=figures)
