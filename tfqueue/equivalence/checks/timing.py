"""How long did each side take? For information only."""

from __future__ import annotations

from tfqueue.equivalence.evidence import Evidence
from tfqueue.equivalence.report import NOT_CHECKED, CheckResult


def check_timing(evidence: Evidence) -> CheckResult:
    """Seconds that the comparison waited for each side; both ran at the same time and shared the machine."""
    left, right = evidence.reference, evidence.candidate
    words = f"waited {left.seconds:.2f} s for the reference, {right.seconds:.2f} s for the candidate"
    figures = {"reference_seconds": round(left.seconds, 4), "candidate_seconds": round(right.seconds, 4)}
    return CheckResult("timing", NOT_CHECKED, words, counts=False, evidence=figures)
