"""The checks, one a file: each takes the evidence and returns one result."""

from __future__ import annotations

from collections.abc import Callable

from tfqueue.equivalence.checks.batches import check_batches
from tfqueue.equivalence.checks.determinism import check_determinism
from tfqueue.equivalence.checks.dtype import check_dtype
from tfqueue.equivalence.checks.end import check_end
from tfqueue.equivalence.checks.epochs import check_epochs
from tfqueue.equivalence.checks.memory import check_memory
from tfqueue.equivalence.checks.order import check_order
from tfqueue.equivalence.checks.records import check_records
from tfqueue.equivalence.checks.shape import check_shape
from tfqueue.equivalence.checks.shuffle import check_shuffle
from tfqueue.equivalence.checks.structure import check_structure
from tfqueue.equivalence.checks.timing import check_timing
from tfqueue.equivalence.checks.values import check_values
from tfqueue.equivalence.evidence import Evidence
from tfqueue.equivalence.report import CheckResult

__all__ = ["CHECKS", "run_checks"]

CHECKS: tuple[Callable[[Evidence], CheckResult], ...] = (
    check_structure,
    check_dtype,
    check_shape,
    check_records,
    check_values,
    check_batches,
    check_order,
    check_shuffle,
    check_epochs,
    check_end,
    check_determinism,
    check_timing,
    check_memory,
)

# These ask which records come when, not what exactly is in them: rounding must not hide the answer.
_OF_IDENTITY = (check_order, check_shuffle, check_epochs)


def run_checks(evidence: Evidence) -> tuple[CheckResult, ...]:
    """The results of all checks, in the order of `CHECKS`."""
    return tuple(check(evidence.aside or evidence if check in _OF_IDENTITY else evidence) for check in CHECKS)
