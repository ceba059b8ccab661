"""Says exactly how two streams of batches agree or differ."""

from tfqueue.equivalence.comparison import assert_equivalent, compare
from tfqueue.equivalence.golden import Golden, record_golden
from tfqueue.equivalence.report import Cause, CheckResult, Difference, Location, Report

__all__ = [
    "Cause",
    "CheckResult",
    "Difference",
    "Golden",
    "Location",
    "Report",
    "assert_equivalent",
    "compare",
    "record_golden",
]
