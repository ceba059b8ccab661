"""How well a stream is shuffled, as a picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from numpy.typing import NDArray

from tfqueue.errors import InvalidArgument
from tfqueue.views import style
from tfqueue.views.orders import Delivery, deliveries

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT = 4.4, 3.4
_LEFT, _GAP = 0.62, 0.75
_MANY = 3000
# Not the colours of the two sides, so that an epoch is not taken for a side.
_EPOCHS = (style.INK, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a6d00")
_CELLS = 110
_MOST_CLASSES, _MOST_COLUMNS = 40, 120
_SHARE = LinearSegmentedColormap.from_list("share", [style.PAPER, "#9ecae1", style.REFERENCE, "#08306b"])


def plot_mixing(
    reference: Any,
    candidate: Any = None,
    path: str | os.PathLike[str] | None = None,
    *,
    source: Any = None,
    key: str | None = None,
    label: str | None = None,
    max_records: int = 100_000,
) -> Figure:
    """Plot the order in which records are delivered against the order in which they lie in the source.

    A full shuffle fills the square of each epoch evenly; a small buffer leaves a band along the diagonal; no
    shuffle is the diagonal itself; epochs that are shuffled together overlap at their edges. Under it stands
    how far records are moved, on both sides, and which labels come in which batch.

    A report knows the source of a shuffled TF1 pipeline, since compare runs that without shuffling to learn it. Of
    streams the source position of a record is: its place in ``source`` (found by the record's digest); or else the
    rank of its ``key``; or else, with two streams and neither, its place in the reference, and only the
    candidate is drawn.

    Args:
        reference: A report of `tfqueue.compare`, which is given alone; or a stream of batches or a golden, as for
            `tfqueue.compare`; or a one-dimensional array of source positions in the order of delivery.
        candidate: A second stream to set beside it, or None.
        path: PNG file to write as well; its folder must exist.
        source: The same records in the order of the source: a stream that does not shuffle.
        key: Name of a feature with one value a record that gives the order of the source.
        label: Name of the feature to follow over the batches; None finds a feature of labels.
        max_records: Read at most so many records of a stream; 16 bytes a record are kept.

    Returns:
        A matplotlib Figure.

    Raises:
        InvalidArgument: A stream is empty, an option does not fit, the source positions cannot be known, or
            ``path`` cannot be written.
        InvalidStream: What was given is no stream of batches.
    """
    target = style.check_path(path)
    if max_records < 2:
        raise InvalidArgument(f"max_records={max_records!r}: expected at least 2")
    sides, words = deliveries(reference, candidate, source=source, key=key, label=label, max_records=max_records)
    figure = _draw(sides, words)
    return style.save(figure, target, "; ".join(f"{side.name}: {', '.join(side.facts())}" for side in sides))


def _draw(sides: Sequence[Delivery], words: str) -> Figure:
    colours = {"reference": style.REFERENCE, "candidate": style.CANDIDATE, "stream": style.REFERENCE}
    labelled = any(side.labels is not None for side in sides)
    line = style.BODY * style.POINT * style.LINE
    small = style.SMALL * style.POINT * style.LINE
    body = _LEFT + len(sides) * _WIDTH + (len(sides) - 1) * _GAP + 0.1
    top_of_order = line + 3 * small + 0.12
    labels_height = 1.25
    below = top_of_order + _HEIGHT + 0.55 + (labels_height + 0.85 if labelled else 0) + 0.3 + 1.5 + 0.2
    records = max(len(side.source) for side in sides)
    facts = f"{records:,} deliveries of {sides[0].size:,} records, {_plural_epochs(sides)}. Source: {words}."
    alarms = [f"{side.name}: {alarm}" for side in sides for alarm in side.alarms()]
    figure, upper = style.header(_heading(sides), facts, alarms, body, below)
    for column, side in enumerate(sides):
        left = style.MARGIN + _LEFT + column * (_WIDTH + _GAP)
        style.write(figure, left, upper, side.name, weight="bold", colour=colours[side.name])
        for number, fact in enumerate(side.facts()):
            style.write(figure, left, upper + line + number * small, fact, size=style.SMALL, colour=style.MUTED)
        axes = style.plot_axes(figure, left, upper + top_of_order, _WIDTH, _HEIGHT)
        axes.set_label(f"order of the {side.name}")
        _draw_order(axes, side)
        _name_axes(axes, "delivered as number", "number in the source" if column == 0 else "")
        if labelled and side.labels is not None:
            axes = style.plot_axes(figure, left, upper + top_of_order + _HEIGHT + 0.75, _WIDTH, labels_height)
            axes.set_label(f"labels of the {side.name}")
            _draw_labels(axes, side.labels, side.batch[: len(side.labels)])
            _name_axes(axes, "batch", "label" if column == 0 else "", names=True)
    start = upper + top_of_order + _HEIGHT + 0.75 + (labels_height + 0.85 if labelled else 0)
    axes = style.plot_axes(figure, style.MARGIN + _LEFT, start, body - _LEFT - 0.1, 1.3)
    axes.set_label("displacements")
    _draw_displacements(axes, sides, colours)
    _name_axes(axes, "places moved: early to the left, late to the right", "records")
    return figure


def _heading(sides: Sequence[Delivery]) -> str:
    words = []
    for side in sides:
        moved = side.displacement
        if not len(moved):
            how = "unknown"
        else:
            how = f"mixed to {side.mixing:.0%} of a full shuffle" if moved.any() else "not shuffled"
        words.append(f"{side.name} {how}")
    return ", ".join(words).capitalize()


def _plural_epochs(sides: Sequence[Delivery]) -> str:
    epochs = max(side.epochs for side in sides)
    return style.plural(epochs, "epoch") + (", a colour for each" if epochs > 1 else "")


def _draw_order(axes: Axes, side: Delivery) -> None:
    known = side.source >= 0
    place, source, epoch = np.flatnonzero(known), side.source[known], side.epoch[known]
    count = max(len(side.source), 1)
    if len(place) <= _MANY:
        colours = np.array([to_rgb(_EPOCHS[number % len(_EPOCHS)]) for number in range(side.epochs)])
        axes.scatter(
            place, source, s=max(3.0, 30 - len(place) / 100), c=colours[epoch], linewidths=0, marker="o", alpha=0.8
        )
    else:
        # So many dots would lie over one another and hide which order most of them have.
        axes.imshow(
            density(place, source, epoch, count, side.size),
            extent=(-0.5, count - 0.5, -0.5, side.size - 0.5),
            origin="lower",
            aspect="auto",
            interpolation="nearest",
        )
    for edge in range(side.size, count, side.size):
        axes.axvline(edge - 0.5, color=style.FAINT, linewidth=0.8, linestyle="-", marker="", zorder=0)
    axes.set_xlim(-0.5, count - 0.5)
    axes.set_ylim(-0.5, side.size - 0.5)


def density(place: Any, source: Any, epoch: Any, count: int, size: int) -> NDArray[np.float64]:
    """How many records lie in each cell of the square, as RGB: white for none, the epoch's colour for many."""
    columns, rows = min(_CELLS, count), min(_CELLS, size)
    column = np.minimum(place * columns // count, columns - 1)
    row = np.minimum(source * rows // size, rows - 1)
    total = np.zeros((rows, columns))
    colour = np.zeros((rows, columns, 3))
    for number in range(int(epoch.max(initial=-1)) + 1):
        here = epoch == number
        counted = np.zeros((rows, columns))
        np.add.at(counted, (row[here], column[here]), 1)
        total += counted
        colour += counted[..., np.newaxis] * to_rgb(_EPOCHS[number % len(_EPOCHS)])
    colour /= np.maximum(total, 1)[..., np.newaxis]
    # A cell that holds what an even spread would give it, or more, is full.
    even = max(len(place) / (rows * columns), 1e-9)
    strength = np.clip(total / (2 * max(even, 1)), 0, 1)[..., np.newaxis]
    return 1 - strength * (1 - colour)


def _draw_labels(axes: Axes, labels: NDArray[Any], batch: NDArray[np.int64]) -> None:
    """The share of each label in each batch."""
    names, number = np.unique(labels.astype("U") if labels.dtype == object else labels, return_inverse=True)
    batches = int(batch.max()) + 1
    rows, columns = min(len(names), _MOST_CLASSES), min(batches, _MOST_COLUMNS)
    shares = np.zeros((rows, columns))
    np.add.at(shares, (number * rows // len(names), batch * columns // batches), 1)
    shares /= np.maximum(shares.sum(axis=0, keepdims=True), 1)
    axes.imshow(
        shares,
        cmap=_SHARE,
        vmin=0,
        vmax=1,
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        extent=(-0.5, batches - 0.5, -0.5, len(names) - 0.5),
    )
    ticks = np.arange(0, len(names), -(-len(names) // 8))
    axes.set_yticks(ticks, [style.literal(style.fit(str(names[tick]), style.SMALL, 0.45)) for tick in ticks])
    for text in axes.get_yticklabels():
        text.set_parse_math(False)


def _draw_displacements(axes: Axes, sides: Sequence[Delivery], colours: dict[str, str]) -> None:
    moved = [side.displacement for side in sides]
    low = min(int(part.min(initial=0)) for part in moved)
    high = max(int(part.max(initial=0)) for part in moved)
    edges = np.linspace(low - 0.5, high + 0.5, min(80, high - low + 1) + 1)
    top = 1
    for side, part in zip(sides, moved, strict=True):
        counts, _ = np.histogram(part, edges)
        top = max(top, int(counts.max()))
        axes.stairs(counts, edges, color=colours[side.name], linewidth=1.4, label=side.name)
        axes.stairs(counts, edges, color=colours[side.name], alpha=0.12, fill=True)
    axes.axvline(0, color=style.FAINT, linewidth=0.8, linestyle="-", marker="", zorder=0)
    margin = 0.02 * (edges[-1] - edges[0])
    axes.set_xlim(edges[0] - margin, edges[-1] + margin)
    axes.set_ylim(0, 1.05 * top)


def _name_axes(axes: Axes, across: str, up: str, *, names: bool = False) -> None:
    axes.set_xlabel(across, fontproperties=style.font(style.SMALL), color=style.MUTED, labelpad=3)
    axes.set_ylabel(up, fontproperties=style.font(style.SMALL), color=style.MUTED, labelpad=3)
    for axis in (axes.xaxis, axes.yaxis):
        if axis is axes.xaxis or not names:
            axis.set_major_locator(MaxNLocator(5, integer=True))
            axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
