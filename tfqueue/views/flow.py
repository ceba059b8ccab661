"""Drawing a data flow: boxes in levels from the sources at the top to what is delivered, with arrows between them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from tfqueue.views import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Light grounds of Okabe and Ito's colours: black text on them has a contrast above 10.
SOURCE = ("#e3f1ec", "#009e73")
BUFFER = ("#e2eef6", style.REFERENCE)
READER = ("#fbeedb", "#b27700")
STAGE = ("#f1f2f4", style.MUTED)
BATCH = ("#f7e8f0", "#a85584")
UNKNOWN = ("#fbe4e2", style.ALARM)

_WIDTH, _GAP, _LEVEL = 3.3, 0.35, 0.42
_PADDING = 0.09


@dataclass(frozen=True, slots=True)
class Step:
    """One box.

    Attributes:
        key: What other steps call it by.
        name: What it is called in the program.
        title: What it is.
        lines: What else is known of it.
        colours: Ground and edge.
        sources: The keys of the steps that it takes its data from, and what is written beside each arrow.
    """

    key: Hashable
    name: str
    title: str
    lines: Sequence[str]
    colours: tuple[str, str]
    sources: Sequence[tuple[Hashable, str]]

    @property
    def height(self) -> float:
        body = len(self.lines) * style.SMALL * style.POINT * style.LINE
        return style.BODY * style.POINT * style.LINE + body + 2 * _PADDING


def draw_flow(steps: Sequence[Step], heading: str, facts: str, warnings: Sequence[str]) -> Figure:
    """A figure with one Axes, in which every step is a labelled patch, and every arrow too."""
    levels = _levels({step.key: step for step in steps})
    rows: dict[int, list[Step]] = {}
    for step in steps:
        rows.setdefault(levels[step.key], []).append(step)
    heights = {level: max(step.height for step in row) for level, row in rows.items()}
    widest = max(len(row) for row in rows.values())
    body = max(widest * _WIDTH + (widest - 1) * _GAP, 5.2)
    below = sum(heights.values()) + _LEVEL * (len(rows) - 1)
    figure, top = style.header(heading, facts, warnings, body, below + 0.02)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_label("pipeline")
    axes.set_xlim(0, body + 2 * style.MARGIN)
    axes.set_ylim(float(figure.get_figheight()), 0)
    places: dict[Hashable, tuple[float, float, float]] = {}
    for level in sorted(rows):
        row = rows[level]
        start = style.MARGIN + (body - len(row) * _WIDTH - (len(row) - 1) * _GAP) / 2
        for column, step in enumerate(row):
            left = start + column * (_WIDTH + _GAP)
            _draw_box(figure, axes, step, left, top)
            places[step.key] = (left + _WIDTH / 2, top, top + step.height)
        top += heights[level] + _LEVEL
    names = {step.key: step.name for step in steps}
    for step in steps:
        for source, words in step.sources:
            _draw_arrow(figure, axes, f"{names[source]} -> {step.name}", words, places[source], places[step.key])
    return figure


def _levels(steps: Mapping[Hashable, Step]) -> dict[Hashable, int]:
    """The row of every step: under all that it takes from, and as near as can be to those that take from it."""
    levels: dict[Hashable, int] = {}

    def level(key: Hashable, above: frozenset[Hashable]) -> int:
        # A graph of queues may hold a circle (a queue that is filled from itself); it is cut where it closes.
        if key not in levels:
            sources = [source for source, _ in steps[key].sources if source not in above]
            levels[key] = 1 + max((level(source, above | {key}) for source in sources), default=-1)
        return levels[key]

    for key in steps:
        level(key, frozenset())
    takers: dict[Hashable, list[Hashable]] = {key: [] for key in steps}
    for step in steps.values():
        for source, _ in step.sources:
            takers[source].append(step.key)
    for key in sorted(steps, key=lambda key: -levels[key]):
        # A short branch stands beside the end of a long one, not at its top.
        under = [levels[taker] for taker in takers[key] if levels[taker] > levels[key]]
        levels[key] = min(under, default=levels[key] + 1) - 1
    return levels


def _draw_box(figure: Figure, axes: Axes, step: Step, left: float, top: float) -> None:
    ground, edge = step.colours
    shape = FancyBboxPatch(
        (left, top),
        _WIDTH,
        step.height,
        boxstyle="round,pad=0,rounding_size=0.06",
        facecolor=ground,
        edgecolor=edge,
        linewidth=1.0,
    )
    shape.set_label(step.name)
    axes.add_patch(shape)
    title_line = style.BODY * style.POINT * style.LINE
    room = _WIDTH - 2 * _PADDING
    style.write(figure, left + _PADDING, top + _PADDING, step.title, weight="bold", width=room)
    for number, words in enumerate(step.lines):
        under = top + _PADDING + title_line + number * style.SMALL * style.POINT * style.LINE
        style.write(figure, left + _PADDING, under, words, size=style.SMALL, colour=style.MUTED, width=room)


def _draw_arrow(
    figure: Figure,
    axes: Axes,
    label: str,
    words: str,
    start: tuple[float, float, float],
    end: tuple[float, float, float],
) -> None:
    arrow = FancyArrowPatch(
        (start[0], start[2]),
        (end[0], end[1]),
        arrowstyle="-|>",
        mutation_scale=9,
        color=style.MUTED,
        linewidth=1.1,
        shrinkA=1,
        shrinkB=1,
        connectionstyle="arc3,rad=0",
    )
    arrow.set_label(label)
    arrow.set_zorder(0.5)  # an arrow past other boxes runs behind them
    axes.add_patch(arrow)
    if words and abs(start[0] - end[0]) < 0.01:
        beside = (start[2] + end[1]) / 2 - 0.065
        style.write(figure, start[0] + 0.1, beside, words, size=style.SMALL, colour=style.MUTED)
