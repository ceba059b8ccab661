"""Do the records come in the same order, where their order is defined?"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfqueue.equivalence.evidence import Evidence, fraction_kept
from tfqueue.equivalence.report import DIFFERENT, NOT_CHECKED, SAME, CheckResult

_KEPT = 0.5  # of two streams in an order of their own, far fewer neighbours stay together; see benchmarks


def check_order(evidence: Evidence) -> CheckResult:
    """The order of the records that both sides have."""
    if evidence.aligned is None or not evidence.aligned.compared:
        return CheckResult("order", NOT_CHECKED, "no records to compare")
    left, right = evidence.reference.digests, evidence.candidate.digests
    ordering, wanted = evidence.reference.ordering, evidence.options.order
    if evidence.same_sequence:
        return CheckResult("order", SAME, "the records come in the same order")
    missing, extra = evidence.surplus
    if len(missing) or len(extra):
        if evidence.aligned.active and len(missing) == len(extra) == evidence.aligned.unequal:
            return CheckResult("order", SAME, "the records come in the same order, apart from those that differ")
        left, right = np.delete(left, missing), np.delete(right, extra)
        if not len(left):
            return CheckResult(
                "order", NOT_CHECKED, "no record is equal on both sides, so their order cannot be compared"
            )
        if np.array_equal(left, right):
            return CheckResult("order", SAME, f"the {len(left):,} records that both sides have come in the same order")
    kept = fraction_kept(left, right)
    first = evidence.aligned.first
    figures: dict[str, Any] = {
        "neighbours_kept": kept,
        "first_position": first,
        "reference_order": evidence.reference.ordering.reason,
        "candidate_order": evidence.candidate.ordering.reason,
    }
    moved = int(np.count_nonzero(left != right))
    words = f"{moved:,} of {len(left):,} records stand at another place ({kept:.0%} of neighbours stay together)"
    if first is not None:
        words += f"; first at {evidence.reference.locate(first)}"
    if wanted == "any":
        return CheckResult("order", NOT_CHECKED, "any order was asked for: " + words, counts=False, evidence=figures)
    if wanted == "strict":
        return CheckResult("order", DIFFERENT, words, evidence=figures)
    if ordering.defined is False:
        words = f"free, because of the reference ({ordering.reason}): {words}"
        return CheckResult("order", DIFFERENT, words, counts=False, evidence=figures)
    if ordering.defined:
        hint = f"the reference's order is defined: {ordering.reason}; order='any' allows any order"
        return CheckResult("order", DIFFERENT, words, hint=hint, evidence=figures)
    if kept >= _KEPT or _dithers(evidence):
        hint = "most of the order is kept, so it seems to be meant; order='any' allows any order"
        return CheckResult("order", DIFFERENT, words, hint=hint, evidence=figures)
    words = f"taken for free, as nothing defines it ({ordering.reason}): {words}"
    return CheckResult(
        "order",
        DIFFERENT,
        words,
        counts=False,
        hint="order='strict' demands the same order",
        evidence=figures,
    )


def _dithers(evidence: Evidence) -> bool:
    """Whether at least half of the records stand exactly where they should, whatever happens in between."""
    return evidence.aligned is not None and evidence.aligned.equal >= evidence.aligned.compared / 2
