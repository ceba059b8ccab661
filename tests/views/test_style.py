"""Pictures look the same under any style of the user, and leave it as it was."""

from __future__ import annotations

import matplotlib
import matplotlib.style
import numpy as np
import pytest

from tests.views import gallery, pictures
from tfqueue import errors
from tfqueue.views import style

STRANGE = {
    "figure.dpi": 50,
    "savefig.dpi": 30,
    "savefig.bbox": "tight",
    "savefig.transparent": True,
    "figure.constrained_layout.use": True,
    "image.origin": "lower",
    "image.interpolation": "bicubic",
    "image.aspect": "auto",
    "image.cmap": "jet",
    "axes.grid": True,
    "axes.spines.left": False,
    "axes.xmargin": 0.4,
    "axes.ymargin": 0.4,
    "axes.formatter.use_mathtext": True,
    "axes.labelsize": 30,
    "text.color": "red",
    "font.size": 30,
    "font.family": "serif",
    "lines.linewidth": 9,
    "lines.marker": "o",
    "lines.linestyle": "--",
    "patch.linewidth": 9,
    "xtick.direction": "in",
    "xtick.labelsize": 30,
    "ytick.minor.visible": True,
    "xtick.top": True,
    "scatter.marker": "x",
    "hatch.color": "red",
}


@pytest.mark.parametrize("name", gallery.FIGURES)
def test_no_setting_of_matplotlib_is_obeyed_or_changed(name):
    plain = pictures.rendered(gallery.FIGURES[name]())
    with matplotlib.style.context(["dark_background", STRANGE]):
        before = dict(matplotlib.rcParams)
        figure = gallery.FIGURES[name]()
        styled = pictures.rendered(figure)
        saved = style.png(figure)
        assert dict(matplotlib.rcParams) == before
    np.testing.assert_array_equal(styled, plain)
    assert saved.startswith(b"\x89PNG")


def test_text_is_cut_to_its_room():
    assert style.fit("short", style.BODY, 3.0) == "short"
    cut = style.fit("w" * 100, style.BODY, 1.0)
    assert cut.endswith("…")
    assert style.inches(cut, style.BODY) <= 1.0 < style.inches(cut[:-1] + "ww", style.BODY)
    assert style.fit("a" * 10_000_000, style.BODY, 1.0).endswith("…")


def test_text_is_wrapped_and_its_end_is_cut():
    lines = style.wrap("one two three four five six seven eight nine ten", style.BODY, 0.8, most=3)
    assert len(lines) == 3
    assert all(style.inches(line, style.BODY) <= 0.8 for line in lines)
    assert lines[-1].endswith("…")
    assert style.wrap("one two", style.BODY, 5.0, most=3) == ["one two"]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("plain", "plain"),
        ("two\nlines\tand\rmore", "two lines and more"),
        ("\x1b[31m", r"\x1b[31m"),
        ("a\u202eb", r"a\u202eb"),
        ("\x00", r"\x00"),
        ("\ud800", r"\ud800"),
        ("café ✓ ×", "café ✓ ×"),
    ],
)
def test_literal_text(words, shown):
    assert style.literal(words) == shown


def test_a_figure_larger_than_can_be_drawn_is_refused():
    with pytest.raises(errors.InvalidArgument, match="500 x 70000 pixels; at most 65535 a side"):
        style.new_figure(5, 700, "tower")


def test_neither_backend_nor_pyplot_is_touched(run_python):
    # None of these needs TensorFlow, whose Keras loads pyplot itself.
    run_python(
        "import sys, matplotlib\n"
        "matplotlib.use('svg')\n"
        "from tests.views import gallery\n"
        "for name in ('grey_batch', 'audio', 'pair_of_changes', 'mixing_of_two'):\n"
        "    gallery.FIGURES[name]()._repr_png_()\n"
        "assert matplotlib.get_backend() == 'svg'\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
