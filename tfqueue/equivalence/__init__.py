"""Says exactly how two streams of batches agree or differ. Names are loaded on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfqueue.equivalence.comparison import assert_equivalent, compare
    from tfqueue.equivalence.golden import Golden, record_golden
    from tfqueue.equivalence.report import Cause, CheckResult, Difference, Location, Report

_HOMES = {
    **dict.fromkeys(("assert_equivalent", "compare"), "comparison"),
    **dict.fromkeys(("Golden", "record_golden"), "golden"),
    **dict.fromkeys(("Cause", "CheckResult", "Difference", "Location", "Report"), "report"),
}
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


def __getattr__(name: str) -> Any:
    # The command line imports this package for its help, which must not wait for numpy.
    if name in _HOMES:
        return getattr(import_module(f"tfqueue.equivalence.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'tfqueue.equivalence' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
