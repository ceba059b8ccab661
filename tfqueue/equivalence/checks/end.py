"""Do both sides end in the same way?"""

from __future__ import annotations

import re

from tfqueue.equivalence.evidence import Evidence, number
from tfqueue.equivalence.observe import Observation
from tfqueue.equivalence.report import DIFFERENT, NOT_CHECKED, SAME, CheckResult
from tfqueue.errors import PipelineFailed

_WORDS = 300
_INSIDE = re.compile(r"\{\{function_node .*?\}\} ?|\[Op:\w+\]( name:)?")  # of TensorFlow's own workings


def check_end(evidence: Evidence) -> CheckResult:
    """A clean end, or the same error, at both sides."""
    left, right = evidence.reference, evidence.candidate
    figures = {"reference": left.ended, "candidate": right.ended}
    if left.ended == right.ended == "clean":
        return CheckResult("end", SAME, "both end cleanly", evidence=figures)
    if "not read" in (left.ended, right.ended):
        return CheckResult(
            "end", NOT_CHECKED, "the sides have no feature in common, so they were not read", evidence=figures
        )
    if left.ended == right.ended == "cut":
        return CheckResult("end", NOT_CHECKED, "both were cut at max_records", counts=False, evidence=figures)
    if left.error is not None and right.error is not None:
        same = _kind(left.error) is _kind(right.error)
        words = f"both fail with {_kind(left.error).__name__}: {_both(left.error, right.error)}"
        words = words if same else f"{_how(left)}; {_how(right)}"
        return CheckResult("end", SAME if same else DIFFERENT, words, evidence=figures)
    if "cut" in (left.ended, right.ended) and left.error is None and right.error is None:
        ending = left if right.ended == "cut" else right
        if ending.count == max(left.count, right.count):
            return CheckResult("end", SAME, f"the {ending.side.role} ends where the other was cut", evidence=figures)
    return CheckResult("end", DIFFERENT, f"{_how(left)}; {_how(right)}", evidence=figures)


def _kind(error: BaseException) -> type[BaseException]:
    """The class of an error; of one that a pipeline wraps, that of what it wraps."""
    return type(error.__cause__) if isinstance(error, PipelineFailed) and error.__cause__ is not None else type(error)


def _text(error: BaseException) -> str:
    return " ".join(_INSIDE.sub("", str(error)).split())[:_WORDS]


def _both(left: BaseException, right: BaseException) -> str:
    """The words of two errors of one class, once where they are the same."""
    one, other = _text(left), _text(right)
    return one if one == other else f"{one}; in the candidate: {other}"


def _how(side: Observation) -> str:
    done = f"{number(side.batches, 'batch')} ({number(side.count, 'record')})"
    if side.error is not None:
        return f"the {side.side.role} failed after {done}: {type(side.error).__name__}: {_text(side.error)}"
    if side.ended == "going on":
        return f"the {side.side.role} was still delivering after {done}, when it was left"
    if side.ended == "cut":
        return f"the {side.side.role} was cut at max_records, after {done}"
    return f"the {side.side.role} ended cleanly after {done}"
