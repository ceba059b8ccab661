"""The command ``tfqueue show``."""

from __future__ import annotations

import glob
import os
import sys
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from tfqueue.errors import InvalidArgument

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DEFAULT_OUT = "tfqueue-show.png"


def add_parser(subparsers: Any) -> None:
    """Add ``show`` to the sub-parsers of the command line."""
    parser = subparsers.add_parser(
        "show",
        help="show records or batches as a picture: images with labels, boxes, masks, sequences, audio",
        description="Draws the first records of TFRecord files, or of what a function builds (a TF1 pipeline, a "
        "tf.data Dataset). A module:function argument executes the code of its module.",
    )
    parser.add_argument(
        "target",
        metavar="PATH|module:function",
        help="TFRecord file or pattern, or module:function or file.py:function",
    )
    parser.add_argument("--n", type=int, default=25, metavar="N", help="number of records (default: %(default)s)")
    parser.add_argument(
        "--out",
        metavar="FILE",
        help=f"picture (.png) or page (.html) to write (default: {_DEFAULT_OUT}, or none with --window)",
    )
    parser.add_argument("--window", action="store_true", help="open a window, where there is a display")
    parser.add_argument("--image", metavar="NAME", help="feature that holds the images (default: found)")
    parser.add_argument("--labels", metavar="NAME", help="feature that holds the labels (default: found)")
    parser.add_argument(
        "--class-names", metavar="FILE", help="text file with the name of class 0, 1, 2 ... on its lines"
    )
    parser.add_argument("--histograms", action="store_true", help="draw a histogram of the values under each image")
    parser.set_defaults(run=run)


def run(arguments: Namespace) -> int:
    """Run ``show``; returns the exit code."""
    from tfqueue.views import style
    from tfqueue.views.html.gallery import check_html_path, write_figures

    out: str | None = arguments.out or (None if arguments.window else _DEFAULT_OUT)
    page = out if out is not None and out.lower().endswith((".html", ".htm")) else None
    picture = None if page else style.check_path(out)
    if page:
        check_html_path(page)
    if arguments.window:
        _check_display()
    figure = _figure(arguments)
    if page:
        write_figures(page, {arguments.target: figure})
    style.save(figure, picture, arguments.target)
    if out is not None:
        print(f"{figure.get_label()} of {arguments.target}: {out}")
    if arguments.window:
        _open_window(figure)
    return 0


def _figure(arguments: Namespace) -> Figure:
    from tfqueue.views import show_batch

    return show_batch(
        _source(arguments.target),
        n=arguments.n,
        image=arguments.image,
        labels=arguments.labels,
        class_names=_class_names(arguments.class_names),
        histograms=arguments.histograms,
    )


def _source(target: str) -> Any:
    """The path as it is, or the function that ``module:function`` names."""
    if os.path.lexists(target) or glob.has_magic(target) or ":" not in target:
        return target
    from tfqueue.targets import load_function

    return load_function(target)


def _class_names(path: str | None) -> list[str] | None:
    if path is None:
        return None
    try:
        with open(path, encoding="utf-8-sig") as file:
            return file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"--class-names {path!r} cannot be read as UTF-8 text: {error}") from error


def _check_display() -> None:
    """Refuse a window where there is no display, before any work is done.

    Raises:
        InvalidArgument: There is none.
    """
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        raise InvalidArgument(
            "--window: there is no display (neither DISPLAY nor WAYLAND_DISPLAY is set); use --out FILE"
        )


def _open_window(figure: Figure) -> None:
    """Show the picture in a window until it is closed. This process is ours, so pyplot may choose its backend."""
    import matplotlib
    from matplotlib import pyplot

    from tfqueue.views import style

    if matplotlib.get_backend().lower() in ("agg", "pdf", "svg", "ps", "cairo", "template"):
        raise InvalidArgument(
            f"--window: matplotlib uses the backend {matplotlib.get_backend()!r}, which has no window; install a "
            "toolkit (tkinter, PyQt6 ...) or use --out FILE"
        )
    width, height = figure.get_size_inches()
    window = pyplot.figure(str(figure.get_label()), figsize=(float(width), float(height)), dpi=style.DPI)
    axes = window.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.imshow(style.pixels_of(figure), aspect="equal", interpolation="antialiased")
    pyplot.show()
