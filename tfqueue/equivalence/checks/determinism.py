"""Does the reference deliver the same records when it is run again? For information only."""

from __future__ import annotations

import numpy as np

from tfqueue.equivalence.evidence import Evidence, listed
from tfqueue.equivalence.report import DIFFERENT, NOT_CHECKED, SAME, CheckResult
from tfqueue.equivalence.second_look import unstable_features


def check_determinism(evidence: Evidence) -> CheckResult:
    """Two runs of the reference; the second is made only where the sides differ, to tell which of them is
    odd.
    """
    look = evidence.look
    again = look.reference_again if look is not None else None
    if again is None:
        words = (
            "the reference was run once"
            if evidence.reference.side.repeatable
            else ("the reference can be read once only")
        )
        return CheckResult("determinism", NOT_CHECKED, words, counts=False)
    unstable = unstable_features(evidence)
    if unstable:
        words = f"two runs of the reference deliver other values of {listed(unstable)}"
        return CheckResult("determinism", DIFFERENT, words, counts=False, hint="seed its random ops to compare values")
    if again.fingerprint != evidence.reference.fingerprint:
        words = "two runs of the reference deliver other records"
        return CheckResult("determinism", DIFFERENT, words, counts=False)
    ordered = np.array_equal(again.digests, evidence.reference.digests)
    words = ("two runs of the reference deliver the same records, ") + (
        "in the same order" if ordered else "in another order"
    )
    return CheckResult("determinism", SAME, words, counts=False)
