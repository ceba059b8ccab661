"""Figures as one self-contained page."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tfqueue.errors import InvalidArgument
from tfqueue.views import style
from tfqueue.views.html.embed import data_uri
from tfqueue.views.html.page import alt_text, render
from tfqueue.views.html.words import visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_figures(path: str | os.PathLike[str], figures: Mapping[str, Figure]) -> None:
    """Write figures under their headings as one HTML page that needs nothing else.

    Args:
        path: The file to write, ending in .html or .htm; its folder must exist. It appears whole or not at all.
        figures: The figures by heading; the first heading is the title.

    Raises:
        InvalidArgument: ``path`` cannot be written, or there is no figure.
    """
    target = check_html_path(path)
    if not figures:
        raise InvalidArgument("figures is empty: there is nothing to show")
    shown = [
        {"heading": visible(heading), "uri": data_uri("png", style.png(figure)), "alt": alt_text(figure)}
        for heading, figure in figures.items()
    ]
    write_page(target, render("gallery.html.j2", figures=shown))


def check_html_path(path: str | os.PathLike[str]) -> str:
    """The path that a page will be written to, looked at before any work is done.

    Raises:
        InvalidArgument: The name does not end in .html or .htm, or its folder does not exist.
    """
    target = os.fspath(path)
    if not target.lower().endswith((".html", ".htm")):
        raise InvalidArgument(f"path={target!r}: expected a name that ends in .html")
    folder = os.path.dirname(target) or "."
    if not os.path.isdir(folder):
        raise InvalidArgument(f"path={target!r}: the folder {folder!r} does not exist; create it first")
    return target


def write_page(target: str, page: str) -> None:
    """Write a page, whole or not at all.

    Raises:
        InvalidArgument: It cannot be written.
    """
    from tfqueue.equivalence.jsonform import write

    try:
        write(target, page)
    except OSError as error:
        raise InvalidArgument(f"path={target!r} cannot be written: {error.strerror or error}") from error
