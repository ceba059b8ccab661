"""Batches, their differences, shuffling and pipelines as matplotlib Figures; pyplot and rcParams stay untouched."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfqueue.views.diff import show_pair
    from tfqueue.views.grid import show_batch
    from tfqueue.views.mixing import plot_mixing
    from tfqueue.views.outcome import plot_report
    from tfqueue.views.stats import plot_stats
    from tfqueue.views.topology import plot_topology

_HOMES = {
    "plot_mixing": "tfqueue.views.mixing",
    "plot_report": "tfqueue.views.outcome",
    "plot_stats": "tfqueue.views.stats",
    "plot_topology": "tfqueue.views.topology",
    "show_batch": "tfqueue.views.grid",
    "show_pair": "tfqueue.views.diff",
}
__all__ = ["plot_mixing", "plot_report", "plot_stats", "plot_topology", "show_batch", "show_pair"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tfqueue.views' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
