"""By how much do the values of paired records differ, feature by feature?"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfqueue.equivalence.align import ValueStats, add_values
from tfqueue.equivalence.evidence import Evidence, listed, number
from tfqueue.equivalence.report import DIFFERENT, NOT_CHECKED, SAME, CheckResult
from tfqueue.equivalence.second_look import mispairs, shared_by_consumers, unstable_features


def check_values(evidence: Evidence) -> CheckResult:
    """The values of records that stand at the same place of both streams, and NaN wherever it stands."""
    aligned = evidence.aligned
    if aligned is None or not aligned.compared:
        return CheckResult("values", NOT_CHECKED, "no pair of records to compare")
    if not evidence.options.equal_nan:
        holders = [view for view in evidence.reference.views if view.nan_records]
        if holders:
            view = holders[0]
            where = evidence.reference.locate(view.first_nan or 0)
            words = (
                f"{view.name} is NaN in {number(view.nan_records, 'record')} of the reference (first: "
                f"{where}), and NaN equals nothing"
            )
            return CheckResult(
                "values",
                DIFFERENT,
                words,
                hint="equal_nan=True takes NaN for equal to NaN",
                evidence={v.name: {"nan_records": v.nan_records} for v in holders},
            )
    if evidence.same_records:
        return CheckResult("values", SAME, "equal bit for bit (-0.0 taken for 0.0)")
    look = evidence.look
    if look is not None and look.within:
        return CheckResult("values", SAME, f"{number(look.within, 'record')} within the tolerance, the others equal")
    if look is not None and look.remainder:
        return CheckResult("values", SAME, "equal bit for bit in every record that both sides have")
    unstable = unstable_features(evidence)
    if unstable:
        words = f"the reference delivers other values of {listed(unstable)} in each run"
        return CheckResult("values", NOT_CHECKED, words)
    if shared_by_consumers(evidence):
        return CheckResult("values", NOT_CHECKED, "the parts of the batch hold each other's records")
    if mispairs(evidence):
        return CheckResult("values", NOT_CHECKED, "the reference itself puts other features together in each run")
    if not aligned.active:
        return _of_matches(evidence)
    drifted = [stats for stats in aligned.stats if stats.records]
    figures: dict[str, Any] = {stats.feature: stats.described() for stats in drifted}
    beyond = [stats for stats in drifted if stats.beyond or stats.incomparable]
    if not beyond:
        words = "; ".join(_words(stats) for stats in drifted) or "equal where both sides have a record"
        return CheckResult("values", SAME, words, evidence=figures)
    return CheckResult("values", DIFFERENT, "; ".join(_words(stats) for stats in beyond), evidence=figures)


def _of_matches(evidence: Evidence) -> CheckResult:
    """The values of records at different places that were recognised as the same record: a sample of them."""
    matches = evidence.look.matches if evidence.look is not None else []
    if not matches:
        return CheckResult(
            "values",
            NOT_CHECKED,
            "records at the same place of both streams are different records, and none could be recognised elsewhere",
            counts=False,
        )
    stats = [ValueStats(name) for name in evidence.reference.names]
    row, far = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=bool)
    for match in matches:
        for index, figures in enumerate(stats):
            if index not in match.equal:
                left, right = match.reference.leaves[index], match.candidate.leaves[index]
                add_values(figures, left, right, row, match.reference.first, evidence.options, far)
    changed = [figures for figures in stats if figures.records]
    words = f"of {number(len(matches), 'record')} recognised at another place: "
    return CheckResult(
        "values",
        DIFFERENT,
        words + "; ".join(_words(figures) for figures in changed),
        evidence={figures.feature: figures.described() for figures in changed},
    )


def _words(stats: ValueStats) -> str:
    if not stats.elements:
        return f"{stats.feature}: {number(stats.incomparable, 'record')} whose values cannot be set against each other"
    share = stats.differing / stats.elements
    words = (
        f"{stats.feature}: {number(stats.records, 'record')}, {stats.differing:,} of their "
        f"{stats.elements:,} values ({share:.2%})"
    )
    if stats.worst is not None and isinstance(stats.worst[2], (int, float)):
        words += f", at most {stats.max_abs:.6g}, on average {stats.sum_abs / max(stats.differing, 1):.6g}"
        if stats.max_ulp:
            words += f", {stats.max_ulp:,} ULP"
    return words
