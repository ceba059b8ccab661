"""A report as short text, the most important first."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from tfqueue.equivalence.report import (
    DIFFERENT,
    EQUIVALENT,
    NOT_CHECKED,
    CheckResult,
    Difference,
    Report,
    SideReport,
)

WIDTH = 100
_SHOWN = 2


def render(report: Report) -> str:
    """The report as text: verdict, likely causes, what differs, samples, then what is the same."""
    lines = [_verdict(report)]
    for cause in report.causes:
        feature = f" ({cause.feature})" if cause.feature else ""
        lines += _item(f"likely cause: {cause.name}{feature}: {cause.summary}. {cause.evidence}. {cause.advice}")
    counting = [r for r in report.checks if r.status == DIFFERENT and r.counts]
    for difference in _shown(report):
        lines += _item(describe(difference))
    for result in counting:
        lines += _item(f"{result.name}: different: {result.summary}{_hint(result)}")
    unchecked = [r for r in report.checks if r.status == NOT_CHECKED and r.counts]
    for result in unchecked:
        lines += _item(f"{result.name}: not checked: {result.summary}{_hint(result)}")
    rest = [r for r in report.checks if r not in counting and r not in unchecked]
    alike: dict[tuple[str, str], list[str]] = {}
    for result in rest:
        alike.setdefault((result.status if result.counts else "note", result.summary), []).append(result.name)
    for (status, summary), names in alike.items():
        lines += _item(f"{', '.join(names)}: {status}: {summary}")
    lines += _item(_side(report.reference))
    lines += _item(_side(report.candidate))
    return "\n".join(lines)


def _shown(report: Report) -> list[Difference]:
    """The first differences of each kind; the report itself holds more of them."""
    shown: list[Difference] = []
    for kind in ("changed", "missing", "extra"):
        shown += [d for d in report.differences if d.kind == kind][:_SHOWN]
    return shown


def _verdict(report: Report) -> str:
    counts = _delivered(report.reference)
    if report.verdict == EQUIVALENT:
        return f"equivalent: {counts}"
    if report.verdict == DIFFERENT:
        failed = [r.name for r in report.checks if r.status == DIFFERENT and r.counts]
        return f"different in {', '.join(failed)}"
    return "undecided: too little could be compared"


def _hint(result: CheckResult) -> str:
    return f" [{result.hint}]" if result.hint else ""


def _side(side: SideReport) -> str:
    return f"{side.role}: {side.kind} {side.name}, {_delivered(side)}; {side.order}"


def _delivered(side: SideReport) -> str:
    records = f"{side.records:,} record" + ("" if side.records == 1 else "s")
    return f"{records} in {side.batches:,} " + ("batch" if side.batches == 1 else "batches")


def describe(difference: Difference) -> str:
    """One difference in a sentence."""
    if difference.kind == "missing":
        return f"only in the reference: {difference.reference}{_preview(difference.reference_record)}"
    if difference.kind == "extra":
        return f"only in the candidate: {difference.candidate}{_preview(difference.candidate_record)}"
    place = f"{difference.reference}"
    if difference.candidate is not None and difference.candidate != difference.reference:
        place += f" is {difference.candidate} of the candidate"
    if difference.feature is None:
        return f"{place}: values differ"
    if difference.reference_value is None or difference.candidate_value is None:
        return f"{place}: {', '.join(difference.differing)} differ; a golden holds no values to say how"
    index = "" if not difference.index else "[" + ", ".join(map(str, difference.index)) + "]"
    counts = ", ".join(f"{count:,} in {name}" for name, count in difference.differing.items())
    return (
        f"{place}: {difference.feature}{index} is {show(difference.reference_value)} in the reference, "
        f"{show(difference.candidate_value)} in the candidate (values that differ: {counts})"
    )


def _preview(record: Any) -> str:
    if not record:
        return ""
    return ": " + ", ".join(f"{name}={show(value)}" for name, value in list(record.items())[:6])


def show(value: Any) -> str:
    """A value on one line, cut short."""
    if isinstance(value, bytes):
        text = repr(value[:40].decode("utf-8", "backslashreplace"))
        return text if len(value) <= 40 else f"{text}... ({len(value):,} bytes)"
    if isinstance(value, np.ndarray) and value.ndim:
        if value.size <= 8:
            return "[" + ", ".join(show(v) for v in value.ravel().tolist()) + "]"
        return f"{'string' if value.dtype == object else value.dtype}{list(value.shape)}"
    if isinstance(value, (np.generic, np.ndarray)):
        return show(value.item())
    if isinstance(value, float):
        return f"{value:.9g}"
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _item(text: str) -> list[str]:
    # Names and values come from data: nothing of them may reach a terminal as a command.
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
