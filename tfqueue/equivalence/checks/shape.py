"""Does every feature have the same shape, batch by batch where the batches can be set side by side?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfqueue.equivalence.evidence import Evidence
from tfqueue.equivalence.feature_view import FeatureView
from tfqueue.equivalence.report import DIFFERENT, NOT_CHECKED, SAME, CheckResult


def check_shape(evidence: Evidence) -> CheckResult:
    """The shapes of one record of each feature, without the batch axis.

    A dimension that does not change must be the same on both sides. Where it changes (padding to the longest
    record of a batch), the shapes are compared batch by batch if the records come in the same order; if not,
    only whether both sides pad no further than to the longest record of the batch, and reach the same
    greatest length.
    """
    if evidence.aligned is None:
        return CheckResult("shape", NOT_CHECKED, "no feature to compare")
    faults: list[str] = []
    figures: dict[str, Any] = {}
    first = evidence.shapes.first
    for one, two in zip(evidence.reference.views, evidence.candidate.views, strict=True):
        figures[one.name] = {"reference": list(one.shape), "candidate": list(two.shape)}
        fault = _fault(evidence, one, two)
        if fault:
            faults.append(fault)
            figures[one.name] |= {
                "reference_range": [one.low, one.high],
                "candidate_range": [two.low, two.high],
            }
    if not faults and first is not None and evidence.same_sequence:
        batch, name, left, right = first
        faults.append(
            f"{name} in batch {batch} is {_words(left)} in the reference, {_words(right)} in the candidate, "
            "though the records are the same: the candidate pads otherwise"
        )
    if faults:
        return CheckResult(
            "shape",
            DIFFERENT,
            "; ".join(faults),
            hint="shapes are those of one record, without the batch axis",
            evidence=figures,
        )
    words = ", ".join(f"{view.name} {_words(view.shape)}" for view in evidence.reference.views)
    words += _static_words(evidence, figures)
    return CheckResult("shape", SAME, words, evidence=figures)


def _static_words(evidence: Evidence, figures: dict[str, Any]) -> str:
    """Static shapes are no part of the data; but code that builds a model may need the ones that the reference has."""
    differing = []
    for one, two in zip(evidence.reference.views, evidence.candidate.views, strict=True):
        left, right = evidence.reference.static.get(one.name), evidence.candidate.static.get(two.name)
        if left is not None and right is not None:
            figures[one.name] |= {"static_reference": left, "static_candidate": right}
            if left != right:
                differing.append(f"{one.name} {left} in the reference, {right} in the candidate")
    return f"; static shapes differ: {'; '.join(differing)}" if differing else ""


def _fault(evidence: Evidence, one: FeatureView, two: FeatureView) -> str | None:
    if len(one.shape) != len(two.shape) or one.rank_changes != two.rank_changes:
        return f"{one.name} is {_words(one.shape)} in the reference, {_words(two.shape)} in the candidate"
    fixed = all(a is not None for a in (*one.shape, *two.shape))
    if fixed or one.kind != "dense" or two.kind != "dense":
        if one.shape != two.shape and fixed:
            return f"{one.name} is {_words(one.shape)} in the reference, {_words(two.shape)} in the candidate"
        return None
    if not evidence.same_records:
        return None  # the records differ, so the lengths may
    if bool(one.idle_tails) != bool(two.idle_tails):
        wide, narrow = ("reference", "candidate") if one.idle_tails else ("candidate", "reference")
        return f"{one.name} is padded further in the {wide} than the longest record of the batch, in the {narrow} not"
    if one.high != two.high:
        return f"{one.name} reaches {_words(one.high)} in the reference, {_words(two.high)} in the candidate"
    return None


def _words(shape: Sequence[int | None]) -> str:
    return "[" + ", ".join("?" if size is None else str(size) for size in shape) + "]"
