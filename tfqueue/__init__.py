"""tfqueue: run TF1 queue-runner input pipelines on today's TensorFlow, and prove that their twin is equal.

Names are loaded on first use, so that ``import tfqueue`` imports no TensorFlow.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfqueue import errors, records, views
    from tfqueue.engines.lockstep_hook import LockstepHook
    from tfqueue.engines.replay import replay_shuffle
    from tfqueue.engines.rewire import rewire
    from tfqueue.engines.tfdata import to_dataset
    from tfqueue.equivalence import Report, assert_equivalent, compare, record_golden
    from tfqueue.pipeline import QueuePipeline, queue_runners
    from tfqueue.topology.explain import explain
    from tfqueue.topology.trace import trace

__version__ = "0.1.0"
_MODULES = ("errors", "records", "views")
_HOMES = {
    **dict.fromkeys(("Report", "assert_equivalent", "compare", "record_golden"), "tfqueue.equivalence"),
    **dict.fromkeys(("QueuePipeline", "queue_runners"), "tfqueue.pipeline"),
    "explain": "tfqueue.topology.explain",
    "LockstepHook": "tfqueue.engines.lockstep_hook",
    "replay_shuffle": "tfqueue.engines.replay",
    "rewire": "tfqueue.engines.rewire",
    "to_dataset": "tfqueue.engines.tfdata",
    "trace": "tfqueue.topology.trace",
}
__all__ = [
    "LockstepHook",
    "QueuePipeline",
    "Report",
    "assert_equivalent",
    "compare",
    "errors",
    "explain",
    "queue_runners",
    "record_golden",
    "records",
    "replay_shuffle",
    "rewire",
    "to_dataset",
    "trace",
    "views",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"tfqueue.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tfqueue' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
