"""How pictures look: one typographic scale, one palette, and artists that ignore the user's rcParams.

Every colour, size and font is given to the artist itself. So a figure looks the same under any style, and no
style, backend or rcParam of the user is ever changed: figures are made directly on the Agg canvas, without
pyplot.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import font_manager
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.textpath import text_to_path
from numpy.typing import NDArray

from tfqueue.errors import InvalidArgument
from tfqueue.views.text import escaped, is_visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

INK = "#1b1d21"
MUTED = "#5b616b"
FAINT = "#c8ccd2"
PAPER = "#ffffff"
# Okabe and Ito's palette, told apart with every common kind of colour vision (Color Universal Design, 2008).
REFERENCE = "#0072b2"
CANDIDATE = "#d55e00"
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a6d00", "#1b1d21")
ALARM = "#b3261e"
# No photograph is likely to hold this colour in an area, so painted pixels are not taken for content.
NON_FINITE = (255, 0, 200)

TITLE, BODY, SMALL = 13.0, 9.0, 7.0
POINT = 1 / 72
LINE = 1.35
MARGIN = 0.3
DPI = 100
# Letters on the pixel grid are up to a twentieth wider than their outlines, by which text is measured.
_HINTED = 1.05

_FAMILY = "DejaVu Sans"
# Tried in this order for characters that DejaVu Sans lacks (Chinese, Japanese, Korean above all).
_FALLBACKS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Source Han Sans SC",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Droid Sans Fallback",
    "Microsoft YaHei",
    "SimHei",
    "PingFang SC",
    "Hiragino Sans",
    "Arial Unicode MS",
)


class Picture(Figure):
    """A Figure that a notebook shows by itself, whether or not pyplot was ever imported."""

    def _repr_png_(self) -> bytes:
        return png(self)


def new_figure(width: float, height: float, name: str) -> Figure:
    """An empty white figure on the Agg canvas, sizes in inches; ``name`` says what it shows.

    Raises:
        InvalidArgument: It would have more pixels on a side than Agg can draw.
    """
    if max(width, height) * DPI >= 2**16:
        raise InvalidArgument(
            f"the picture would be {width * DPI:.0f} x {height * DPI:.0f} pixels; at most 65535 a side can be drawn"
        )
    figure = Picture(figsize=(width, height), dpi=DPI, facecolor=PAPER, edgecolor=PAPER)
    # rcParams may ask for a layout engine, which would move what is placed here.
    figure.set_layout_engine("none")
    FigureCanvasAgg(figure)
    figure.set_label(name)
    return figure


def picture_axes(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes without ticks for one image; all lengths in inches, ``top`` counted from the upper edge."""
    axes = figure.add_axes(_rectangle(figure, left, top, width, height), frameon=True)
    # Hidden axes have neither ticks nor a grid, whatever rcParams say, and cost no time.
    axes.xaxis.set_visible(False)
    axes.yaxis.set_visible(False)
    axes.set(facecolor=PAPER, anchor="NW")
    for spine in axes.spines.values():
        spine.set(visible=True, color=FAINT, linewidth=0.6)
    return axes


def plot_axes(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes for a diagram: two quiet spines, small ticks; lengths in inches, ``top`` from the upper edge."""
    axes = figure.add_axes(_rectangle(figure, left, top, width, height), facecolor=PAPER)
    axes.grid(False)
    for side, spine in axes.spines.items():
        spine.set(visible=side in ("left", "bottom"), color=MUTED, linewidth=0.8)
    axes.tick_params(
        which="both", direction="out", length=3, width=0.8, color=MUTED, labelcolor=MUTED, labelsize=SMALL,
        top=False, right=False, left=True, bottom=True, labelfontfamily=_FAMILY,
    )  # fmt: skip
    axes.minorticks_off()
    return axes


def write(
    figure: Figure,
    left: float,
    top: float,
    words: str,
    *,
    size: float = BODY,
    colour: str = INK,
    weight: str = "normal",
    align: str = "left",
    width: float | None = None,
) -> Text:
    """Put one line of text with its upper edge ``top`` inches below the upper edge of the figure.

    Args:
        figure: The figure.
        left: Inches from the left edge to the anchor (see ``align``).
        top: Inches from the upper edge.
        words: The text, taken literally: no mathematics, no TeX, no control characters.
        size: One of TITLE, BODY, SMALL, in points.
        colour: Colour of the text.
        weight: "normal" or "bold".
        align: "left", "center" or "right".
        width: Inches that the text may take; longer text is cut with an ellipsis.
    """
    words = literal(words)
    if width is not None:
        words = fit(words, size, width, weight=weight)
    figure_width, figure_height = figure.get_size_inches()
    return figure.text(
        left / figure_width, 1 - top / figure_height, words, color=colour, horizontalalignment=align,
        verticalalignment="top", parse_math=False, usetex=False, fontproperties=font(size, weight),
    )  # fmt: skip


def font(size: float, weight: str = "normal") -> font_manager.FontProperties:
    """The font of all pictures, with what is installed for characters that it lacks."""
    return font_manager.FontProperties(family=[_FAMILY, *_fallback_fonts()], size=size, weight=weight)


def literal(words: str) -> str:
    """``words`` with everything that cannot be drawn as itself written as an escape, on one line.

    Control characters and the marks that reorder text are removed from effect, not from sight.
    """
    drawable = _drawable()
    shown = []
    for character in words:
        if character in "\n\t\r":
            shown.append(" ")
        elif ord(character) in drawable and is_visible(character):
            shown.append(character)
        else:
            shown.append(escaped(character))
    return "".join(shown).strip()


def fit(words: str, size: float, width: float, *, weight: str = "normal") -> str:
    """``words``, cut with an ellipsis where longer than ``width`` inches."""
    # A glance is enough for text that is far too long; measuring it in full could take seconds.
    words = words[: 8 + int(width * 72 / (size * 0.2))]
    if inches(words, size, weight) <= width:
        return words
    low, high = 0, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        if inches(words[:middle].rstrip() + "…", size, weight) <= width:
            low = middle
        else:
            high = middle - 1
    return words[:low].rstrip() + "…"


def wrap(words: str, size: float, width: float, *, most: int) -> list[str]:
    """``words`` broken into at most ``most`` lines of ``width`` inches; the rest ends in an ellipsis."""
    lines: list[str] = []
    rest = literal(words).split(" ")
    while rest and len(lines) < most:
        taken = 1
        while taken < len(rest) and inches(" ".join(rest[: taken + 1]), size, "normal") <= width:
            taken += 1
        if len(lines) == most - 1:
            taken = len(rest)
        lines.append(fit(" ".join(rest[:taken]), size, width))
        rest = rest[taken:]
    return lines


def header(heading: str, facts: str, notes: Sequence[str], width: float, below: float) -> tuple[Figure, float]:
    """A figure with its heading, what is shown in grey, and what is odd in red.

    Args:
        heading: What is seen, in a few words.
        facts: What it was made from.
        notes: What a reader must know before trusting the picture.
        width: Inches between the margins.
        below: Inches that the picture needs under the header.

    Returns:
        The figure, and the inches from its upper edge to where the picture starts.
    """
    line = BODY * POINT * LINE
    lines = [(words, MUTED) for words in wrap(facts, BODY, width, most=3)]
    lines += [(words, ALARM) for note in notes for words in wrap(note, BODY, width, most=3)]
    top = MARGIN - 0.08
    start = top + TITLE * POINT * 1.6
    figure = new_figure(width + 2 * MARGIN, start + len(lines) * line + 0.14 + below + MARGIN, heading)
    write(figure, MARGIN, top, heading, size=TITLE, weight="bold", width=width)
    for position, (words, colour) in enumerate(lines):
        write(figure, MARGIN, start + position * line, words, colour=colour)
    return figure, start + len(lines) * line + 0.14


def number(value: float) -> str:
    """A value in a few characters: whole numbers in full, others with four digits."""
    return f"{value:.0f}" if abs(value) < 1e7 and value == round(value) else f"{value:.4g}"


def plural(count: int, word: str) -> str:
    """``3 records``, ``1 record``."""
    return f"{count} {word}" + ("" if count == 1 else "s")


def check_path(path: str | os.PathLike[str] | None) -> Path | None:
    """The path that a picture will be written to, looked at before any work is done.

    Raises:
        InvalidArgument: The name does not end in .png, or its folder does not exist.
    """
    if path is None:
        return None
    target = Path(path)
    if target.suffix.lower() != ".png":
        raise InvalidArgument(
            f"path={str(target)!r}: pictures are written as PNG; give a name that ends in .png "
            "(for other formats call savefig on the figure that is returned)"
        )
    # os.path.isdir, unlike Path.is_dir, takes a name too long for the file system for no folder.
    if os.path.isdir(target):
        raise InvalidArgument(f"path={str(target)!r} is a folder; give the name of a file")
    if not os.path.isdir(target.parent):
        raise InvalidArgument(
            f"path={str(target)!r}: the folder {str(target.parent)!r} does not exist; create it first"
        )
    return target


def save(figure: Figure, path: Path | None, description: str = "") -> Figure:
    """Write ``figure`` to ``path`` (if any) as PNG, with its name and ``description`` in the metadata.

    Raises:
        InvalidArgument: The file cannot be written.
    """
    if path is not None:
        content = png(figure, description)
        try:
            path.write_bytes(content)
        except OSError as error:
            raise InvalidArgument(f"path={str(path)!r} cannot be written: {error.strerror or error}") from error
    return figure


def png(figure: Figure, description: str = "") -> bytes:
    """``figure`` as the bytes of a PNG file."""
    from tfqueue import __version__

    metadata = {
        "Software": f"tfqueue {__version__}",
        "Title": str(figure.get_label()),
        "Description": description,
    }
    # PNG text chunks are Latin-1; what does not fit is escaped, so that any label can be described.
    metadata = {key: text.encode("latin-1", "backslashreplace").decode("latin-1") for key, text in metadata.items()}
    buffer = io.BytesIO()
    # All that rcParams could decide is said here.
    figure.savefig(
        buffer,
        format="png",
        dpi=DPI,
        facecolor=PAPER,
        edgecolor=PAPER,
        transparent=False,
        bbox_inches=figure.bbox_inches,
        metadata=metadata,
        # Three quarters of the time of level 6 are saved for a file that is hardly larger.
        pil_kwargs={"compress_level": 3},
    )
    return buffer.getvalue()


def pixels_of(figure: Figure) -> NDArray[np.uint8]:
    """``figure`` as [height, width, 4] RGBA."""
    canvas: Any = figure.canvas
    canvas.draw()
    return np.asarray(canvas.buffer_rgba(), dtype=np.uint8)


def _rectangle(
    figure: Figure, left: float, top: float, width: float, height: float
) -> tuple[float, float, float, float]:
    figure_width, figure_height = figure.get_size_inches()
    return (
        left / figure_width,
        1 - (top + height) / figure_height,
        width / figure_width,
        height / figure_height,
    )


def inches(words: str, size: float, weight: str = "normal") -> float:
    """How wide one line of text is, at most."""
    if not words:
        return 0.0
    points: float = text_to_path.get_text_width_height_descent(words, font(size, weight), ismath=False)[0]
    return points * POINT * _HINTED


@lru_cache(maxsize=1)
def _fallback_fonts() -> tuple[str, ...]:
    installed = {entry.name for entry in font_manager.fontManager.ttflist}
    return tuple(name for name in _FALLBACKS if name in installed)


@lru_cache(maxsize=1)
def _drawable() -> frozenset[int]:
    codes: set[int] = set()
    for family in (_FAMILY, *_fallback_fonts()):
        found: Any = font_manager.get_font(font_manager.findfont(font_manager.FontProperties(family=family)))
        codes.update(found.get_charmap())
    return frozenset(codes)
