"""What queue-runner code is left in a codebase, read from its sources: nothing is imported or executed.

``tfqueue scan PATH`` on the command line, `scan` in Python.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfqueue.scan.inventory import Inventory, Pipeline, Problem, Risk, Use
    from tfqueue.scan.scanning import scan

__all__ = ["Inventory", "Pipeline", "Problem", "Risk", "Use", "scan"]


def __getattr__(name: str) -> Any:  # lazily: the command line reads this package on every start
    if name in __all__:
        return getattr(import_module(f"tfqueue.scan.{'scanning' if name == 'scan' else 'inventory'}"), name)
    raise AttributeError(f"module 'tfqueue.scan' has no attribute {name!r}")
