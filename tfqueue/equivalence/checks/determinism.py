"""Does each side deliver the same records when it is run again? For information only."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfqueue.equivalence.evidence import Evidence, listed
from tfqueue.equivalence.observe import Observation
from tfqueue.equivalence.report import DIFFERENT, NOT_CHECKED, SAME, CheckResult
from tfqueue.equivalence.second_look import unstable_features


def check_determinism(evidence: Evidence) -> CheckResult:
    """Two runs of each side; the second is made only where the sides differ, to tell which of them is odd."""
    look = evidence.look
    told = []
    for side, again in (
        (evidence.reference, look.reference_again if look is not None else None),
        (evidence.candidate, look.candidate_again if look is not None else None),
    ):
        told.append(_of(evidence, side, again))
    figures = {
        side.side.role: what for side, (_, what, _) in zip((evidence.reference, evidence.candidate), told, strict=True)
    }
    states = [status for status, _, _ in told]
    if states[0] == states[1] and told[0][1] == told[1][1]:
        words = told[0][2].replace("the reference", "each side")
    else:
        words = "; ".join(words for _, _, words in told)
    status = DIFFERENT if DIFFERENT in states else SAME if SAME in states else NOT_CHECKED
    hint = "seed its random ops to compare values" if any(what == "other values" for _, what, _ in told) else None
    return CheckResult("determinism", status, words, counts=False, hint=hint, evidence=figures)


def _of(evidence: Evidence, side: Observation, again: Observation | None) -> tuple[str, str, str]:
    """(status, what was found, the same as a sentence) of one side."""
    role: Any = side.side.role
    if again is None:
        if side.side.repeatable:
            return NOT_CHECKED, "run once", f"the {role} was run once"
        return NOT_CHECKED, "can be read once only", f"the {role} can be read once only"
    unstable = unstable_features(evidence, role)
    if unstable:
        return DIFFERENT, "other values", f"two runs of the {role} deliver other values of {listed(unstable)}"
    if again.fingerprint != side.fingerprint:
        return DIFFERENT, "other records", f"two runs of the {role} deliver other records"
    if np.array_equal(again.digests, side.digests):
        return SAME, "same order", f"two runs of the {role} deliver the same records, in the same order"
    return SAME, "other order", f"two runs of the {role} deliver the same records, in another order"
