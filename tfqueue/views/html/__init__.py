"""The report of a comparison as one self-contained HTML file."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfqueue.views.html.figures import figures_of
    from tfqueue.views.html.gallery import write_figures
    from tfqueue.views.html.render import frame, render_report, write_report

_HOMES = {
    "figures_of": "tfqueue.views.html.figures",
    "frame": "tfqueue.views.html.render",
    "render_report": "tfqueue.views.html.render",
    "write_figures": "tfqueue.views.html.gallery",
    "write_report": "tfqueue.views.html.render",
}
__all__ = ["figures_of", "frame", "render_report", "write_figures", "write_report"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tfqueue.views.html' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
