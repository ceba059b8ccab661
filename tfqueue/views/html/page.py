"""What all pages share: the template engine, the style sheet, the content security policy."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from tfqueue.views.html.words import visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def render(name: str, **values: Any) -> str:
    """The template ``name`` with ``values``; everything but our own style and script is escaped."""
    sheet, script = _part("report.css"), _part("report.js")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_part),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name).render(
        policy=_policy(sheet, script),
        sheet=Markup(sheet),
        script=Markup(script),
        **values,
    )


def alt_text(figure: Figure) -> str:
    """What a figure shows, for those who cannot see it: its heading and the lines under it."""
    texts = [text.get_text() for text in figure.texts if text.get_text()]
    return visible(". ".join([str(figure.get_label()), *texts[1:6]]), 600)


def _part(name: str) -> str:
    return files("tfqueue.views.html").joinpath(name).read_text(encoding="utf-8")


def _policy(sheet: str, script: str) -> str:
    """A content security policy that lets the page's own style and script run, and nothing else, from nowhere."""

    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")

    return (
        "default-src 'none'; img-src data:; "
        f"style-src 'sha256-{digest(sheet)}'; script-src 'sha256-{digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
