"""Do both sides deliver the same features under the same names?"""

from __future__ import annotations

from tfqueue.equivalence.evidence import Evidence, listed, number
from tfqueue.equivalence.report import DIFFERENT, NOT_CHECKED, SAME, CheckResult


def check_structure(evidence: Evidence) -> CheckResult:
    """Names and kinds of the features. Tuples, lists and named tuples of equal length are the same
    structure.
    """
    pairing = evidence.pairing
    left, right = evidence.reference.structure, evidence.candidate.structure
    figures = {"reference": left, "candidate": right}
    if pairing is None:
        side = "reference" if not evidence.reference.batches else "candidate"
        return CheckResult("structure", NOT_CHECKED, f"the {side} delivered no batch", evidence=figures)
    faults = []
    if pairing.missing:
        faults.append(f"the candidate lacks {listed(pairing.missing)}")
    if pairing.extra:
        faults.append(f"the candidate adds {listed(pairing.extra)}")
    if pairing.renamed:
        faults.append("the candidate calls " + listed(f"{a} {b}" for a, b in pairing.renamed))
    if pairing.moved:
        faults.append(
            "the candidate holds the features in another order: " + listed(f"{a} is {b}" for a, b in pairing.pairs)
        )
    views = zip(evidence.reference.views, evidence.candidate.views, strict=True)
    faults += [
        f"{a.name} is {a.kind} in the reference, {b.kind} in the candidate" for a, b in views if a.kind != b.kind
    ]
    if faults:
        return CheckResult(
            "structure",
            DIFFERENT,
            "; ".join(faults),
            hint=f"the reference delivers {left}, the candidate {right}",
            evidence=figures
            | {
                "missing": list(pairing.missing),
                "extra": list(pairing.extra),
                "renamed": dict(pairing.renamed),
            },
        )
    words = f"{number(len(pairing.pairs), 'feature')}: {listed(name for name, _ in pairing.pairs)}"
    return CheckResult("structure", SAME, words, evidence=figures)
