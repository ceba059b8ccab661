"""The report of a comparison as one self-contained HTML file."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfqueue.views.html.render import frame, render_report, write_report

__all__ = ["frame", "render_report", "write_report"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("tfqueue.views.html.render"), name)
    raise AttributeError(f"module 'tfqueue.views.html' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
