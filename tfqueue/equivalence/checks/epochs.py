"""How often do both sides read the data, and do passes reach into each other alike?"""

from __future__ import annotations

from typing import Any

from tfqueue.equivalence.evidence import Evidence, number
from tfqueue.equivalence.mixing import whole_passes_by_chance
from tfqueue.equivalence.passes import passes, repeats_within, same_every_pass
from tfqueue.equivalence.report import DIFFERENT, NOT_CHECKED, SAME, CheckResult

# So many records reach into the next pass on one side that none on the other is no accident (e**-15 if Poisson).
_CLEAR = 15
_CHANCE = 1e-6


def check_epochs(evidence: Evidence) -> CheckResult:
    """The number of passes over the data, and how passes follow each other.

    A queue reads on over the end of a pass, so that shuffled passes blur: among as many records as there are
    different ones, some come twice. A Dataset that shuffles before it repeats completes each pass.
    """
    left, right = evidence.reference, evidence.candidate
    if evidence.aligned is None or not left.count or not right.count:
        return CheckResult("epochs", NOT_CHECKED, "no records to compare", counts=False)
    times = passes(evidence)
    figures: dict[str, Any] = {
        "different_records": times.records,
        "reference_passes": times.reference,
        "candidate_passes": times.candidate,
    }
    if not evidence.nothing_lost:
        return CheckResult("epochs", NOT_CHECKED, "the records differ", counts=False, evidence=figures)
    if left.count < 2 * times.records - max(size for size, _ in left.sizes):
        return CheckResult("epochs", SAME, f"{number(times.reference, 'pass')} on both sides", evidence=figures)
    one, two = (repeats_within(side.digests, times.records) for side in (left, right))
    figures |= {"reference_blurred": one, "candidate_blurred": two}
    words = (
        f"{number(times.reference, 'pass')} on both sides; {one:,} records reach into the next pass in the "
        f"reference, "
        f"{two:,} in the candidate"
    )
    if evidence.options.order != "any" and left.ordering.shuffled:
        size = left.ordering.min_after_dequeue  # of few records, a buffer keeps passes apart by chance
        chance = 0.0 if size is None else whole_passes_by_chance(max(1, size), times.reference - 1)
        if (one >= _CLEAR and two == 0 and chance < _CHANCE) or (two >= _CLEAR and one == 0):
            return CheckResult(
                "epochs", DIFFERENT, words, hint="look at the order of shuffle and repeat", evidence=figures
            )
        if same_every_pass(right.digests, times.records) and not same_every_pass(left.digests, times.records):
            words = "the candidate has the same order in every pass, the reference has not"
            return CheckResult("epochs", DIFFERENT, words, hint="reshuffle_each_iteration=True", evidence=figures)
    return CheckResult("epochs", SAME, words, evidence=figures)
