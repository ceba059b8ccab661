"""Do both sides deliver the same records, each as often, in whatever order?"""

from __future__ import annotations

from typing import Any

from tfqueue.equivalence.evidence import Evidence, listed, number
from tfqueue.equivalence.report import DIFFERENT, NOT_CHECKED, SAME, CheckResult
from tfqueue.equivalence.second_look import mispairs, shared_by_consumers, unstable_features


def check_records(evidence: Evidence) -> CheckResult:
    """The multisets of records, by their digests; a record is equal if every feature is, within the
    tolerances.
    """
    left, right = evidence.reference, evidence.candidate
    figures: dict[str, Any] = {"reference": left.count, "candidate": right.count}
    if evidence.pairing is not None and not evidence.pairing.pairs:
        return CheckResult("records", NOT_CHECKED, "the sides have no feature in common", evidence=figures)
    if not left.count and not right.count:
        return CheckResult(
            "records",
            NOT_CHECKED,
            "neither side delivered a record, so there is nothing to compare",
            hint="look at the file names and filters; an empty pipeline equals nothing",
            evidence=figures,
        )
    if not left.count or not right.count or evidence.aligned is None:
        empty, full = (left, right) if not left.count else (right, left)
        words = f"the {empty.side.role} delivered no record, the {full.side.role} {number(full.count, 'record')}"
        return CheckResult("records", DIFFERENT, words, evidence=figures)
    if evidence.same_records:
        words = f"all {number(left.count, 'record')} are the same"
        return CheckResult("records", SAME, words, evidence=figures)
    aligned = evidence.aligned
    if evidence.close_in_place:
        words = f"{number(left.count, 'record')}: {aligned.equal:,} equal, {aligned.close:,} within the tolerance"
        return CheckResult("records", SAME, words, evidence=figures | {"within_tolerance": aligned.close})
    if evidence.look is not None and evidence.look.remainder:
        return CheckResult("records", SAME, evidence.look.remainder, evidence=figures)
    if evidence.look is not None and evidence.look.doubt:
        hint = "compare all records (no dropped remainder), or sides that shuffle otherwise in each run"
        return CheckResult("records", NOT_CHECKED, evidence.look.doubt, hint=hint, evidence=figures)
    missing, extra = evidence.surplus
    within = evidence.look.within if evidence.look is not None else 0
    if within and within == len(missing) == len(extra):
        words = f"{number(left.count, 'record')}: {left.count - within:,} equal, {within:,} within the tolerance"
        return CheckResult("records", SAME, words, evidence=figures | {"within_tolerance": within})
    unstable = unstable_features(evidence)
    if unstable and left.count == right.count:
        views = zip(left.views, right.views, strict=True)
        others = [a.name for a, b in views if a.name not in unstable and a.fingerprint != b.fingerprint]
        if not others:
            words = (
                f"the reference delivers other values of {listed(unstable)} in each run, so that its "
                f"records cannot be "
                "compared; the other features have the same values on both sides"
            )
            return CheckResult("records", NOT_CHECKED, words, hint="seed its random ops", evidence=figures)
    if shared_by_consumers(evidence):
        words = "each feature has the same values over all parts of the batch, but other parts have them"
        hint = "the parts are consumers of one queue, which race; fetch and compare one of them at a time"
        return CheckResult("records", NOT_CHECKED, words, hint=hint, evidence=figures)
    if mispairs(evidence):
        words = (
            "the reference itself puts other features together in each run; each feature alone is the "
            "same on both sides"
        )
        return CheckResult("records", NOT_CHECKED, words, evidence=figures)
    figures |= {"missing": len(missing), "extra": len(extra), "equal": left.count - len(missing)}
    faults = []
    if left.count != right.count:
        faults.append(f"the reference delivers {left.count:,}, the candidate {right.count:,}")
    if len(missing):
        where = left.locate(int(missing[0]))
        figures["first_missing"] = _place(where)
        faults.append(f"{number(len(missing), 'record')} only in the reference (first: {where})")
    if len(extra):
        where = right.locate(int(extra[0]))
        figures["first_extra"] = _place(where)
        faults.append(f"{number(len(extra), 'record')} only in the candidate (first: {where})")
    return CheckResult("records", DIFFERENT, "; ".join(faults), evidence=figures)


def _place(where: Any) -> dict[str, int]:
    return {"batch": where.batch, "row": where.row, "record": where.record}
