"""Does every feature have the same dtype?"""

from __future__ import annotations

from tfqueue.equivalence.evidence import Evidence
from tfqueue.equivalence.report import DIFFERENT, NOT_CHECKED, SAME, CheckResult


def check_dtype(evidence: Evidence) -> CheckResult:
    """The dtypes of the features that both sides have."""
    if evidence.aligned is None:
        return CheckResult("dtype", NOT_CHECKED, "no feature to compare")
    pairs = list(zip(evidence.reference.views, evidence.candidate.views, strict=True))
    faults = [(a.name, "/".join(a.dtypes), "/".join(b.dtypes)) for a, b in pairs if a.dtypes != b.dtypes]
    if faults:
        words = "; ".join(
            f"{name} is {left} in the reference, {right} in the candidate" for name, left, right in faults
        )
        return CheckResult(
            "dtype",
            DIFFERENT,
            words,
            hint="the values below are compared in the reference's dtype; tf.cast the candidate to it",
            evidence={name: {"reference": left, "candidate": right} for name, left, right in faults},
        )
    words = ", ".join(f"{a.name} {'/'.join(a.dtypes)}" for a, _ in pairs)
    return CheckResult("dtype", SAME, words, evidence={a.name: "/".join(a.dtypes) for a, _ in pairs})
