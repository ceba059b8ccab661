"""A batch as a labelled grid of its images."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfqueue.errors import InvalidArgument
from tfqueue.views import style
from tfqueue.views.features import Feature, find_label, flatten, label_words, one_per_record, short
from tfqueue.views.images import Pictures, Statistics, find_images, statistics, to_pixels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GAP = 0.18
_TEXT_LINES = 2


def show_batch(
    batch: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    n: int = 64,
    labels: Any = None,
    class_names: Mapping[int, str] | Sequence[str] | None = None,
    image: str | None = None,
    value_range: tuple[float, float] | None = None,
) -> Figure:
    """Show the images of one batch as a grid, each under its label, the other features as short text.

    Args:
        batch: Arrays whose first axis counts records, in any nesting of tuples, namedtuples, lists and dicts.
            Images are [n, height, width, channels] with 1, 3 or 4 channels, or [n, height, width], of any
            real dtype.
        path: PNG file to write as well; its folder must exist.
        n: Show at most so many records.
        labels: One label a record, or the name of the feature that holds them; None finds a feature named as
            such or, in an unnamed structure, the first with one value a record.
        class_names: Name of each class, as a sequence or a mapping from its number.
        image: Name of the feature that holds the images (``"image"``, ``"features.image"``, ``"[0]"``); None
            finds it.
        value_range: Values to show as black and as white. None assumes a range from the values of the whole
            batch (0..255, 0..1, -1..1, standardised, 10, 12 or 16 bits), and the picture says which.

    Returns:
        A matplotlib Figure with one Axes a record, in order. Values that are NaN or infinite are painted
        magenta.

    Raises:
        InvalidImage: There is no image in the batch; the message lists the features with dtype and shape.
        InvalidArgument: The batch is empty, an option does not fit it, or ``path`` cannot be written.
    """
    target = style.check_path(path)
    if n < 1:
        raise InvalidArgument(f"n={n!r}: expected at least 1")
    features = flatten(batch)
    pictures = find_images(features, image=image, value_range=value_range)
    others = [feature for feature in features if feature is not pictures.feature]
    titles, others = _titles(others, len(pictures.images), labels, class_names)
    fitting, unfit = one_per_record(others, len(pictures.images))
    figure = draw_grid(
        pictures, titles, fitting, n=n, notes=[f"not one value a record: {f.describe()}" for f in unfit]
    )
    return style.save(
        figure, target, f"{pictures.feature.title}: {pictures.form}, shown as {pictures.range.words}"
    )


def _titles(
    features: list[Feature], count: int, labels: Any, class_names: Mapping[int, str] | Sequence[str] | None
) -> tuple[list[str] | None, list[Feature]]:
    """The title of each record, and the features that are left to be shown as text."""
    if isinstance(labels, str):
        found = next((feature for feature in features if feature.name == labels), None)
        if found is None:
            known = ", ".join(repr(feature.name) for feature in features) or "none beside the image"
            raise InvalidArgument(f"labels={labels!r}: no such feature; there are {known}")
    elif labels is not None:
        found = flatten(np.asarray(labels, dtype=object) if _mixed(labels) else [np.asarray(labels)])[0]
    else:
        found = find_label(one_per_record(features, count)[0])
        if found is None:
            return None, features
    if not found.values.shape or len(found.values) != count:
        raise InvalidArgument(
            f"labels: expected one label for each of {count} images, found shape {list(found.values.shape)}"
        )
    return label_words(found.values, class_names), [feature for feature in features if feature is not found]


def _mixed(labels: Any) -> bool:
    return len(labels) > 0 and isinstance(labels[0], (str, bytes))


def draw_grid(
    pictures: Pictures,
    titles: Sequence[str] | None,
    features: Sequence[Feature],
    *,
    n: int,
    notes: Sequence[str] = (),
) -> Figure:
    """The grid itself: images in cells of one size, a title over and the other features under each."""
    count = min(n, len(pictures.images))
    images = pictures.images[:count]
    height, width = max(image.shape[0] for image in images), max(image.shape[1] for image in images)
    # Extreme strips would leave no room for anything else; they are shown narrower or flatter than they are.
    aspect = min(12.0, max(1 / 4, width / height))
    columns = _columns(count, aspect)
    side = _side(columns)
    cell_width = min(6.0, max(1.0, side * math.sqrt(aspect)))
    image_height = cell_width / aspect
    line = style.SMALL * style.POINT * style.LINE
    title_line = style.BODY * style.POINT * style.LINE
    values = [statistics(image) for image in images]
    texts = [_texts(features, values[index], index, cell_width) for index in range(count)]
    text_height = line * max((len(text) for text in texts), default=0)
    cell_height = title_line + image_height + 0.04 + text_height
    rows = math.ceil(count / columns)

    body = max(columns * cell_width + (columns - 1) * _GAP, 5.2)
    total = len(pictures.images)
    heading = f"{count} of {total} records" if count < total else plural(count, "record")
    facts = f"{pictures.feature.title}: {pictures.form}. Range assumed: {pictures.range.words}."
    figure, upper = header(
        heading,
        f"{facts} {_summary(values)}",
        [*_alarms(values), *notes],
        body,
        rows * cell_height + (rows - 1) * _GAP,
    )

    most = 2 * math.ceil(max(cell_width, image_height) * style.DPI)
    for index, image in enumerate(images):
        row, column = divmod(index, columns)
        left = style.MARGIN + column * (cell_width + _GAP)
        top = upper + row * (cell_height + _GAP)
        number = f"#{index}"
        title = number if titles is None else titles[index]
        style.write(
            figure, left, top, title, weight="bold", width=cell_width - (0.34 if titles is not None else 0)
        )
        if titles is not None:
            style.write(
                figure,
                left + cell_width,
                top + 0.02,
                number,
                size=style.SMALL,
                colour=style.MUTED,
                align="right",
            )
        axes = style.picture_axes(figure, left, top + title_line, cell_width, image_height)
        axes.set_label(title)
        show_pixels(axes, to_pixels(image, pictures.range, most=most))
        for position, words in enumerate(texts[index]):
            style.write(
                figure,
                left,
                top + title_line + image_height + 0.05 + position * line,
                words,
                size=style.SMALL,
                colour=style.MUTED,
            )
    return figure


def header(
    heading: str, facts: str, notes: Sequence[str], width: float, below: float
) -> tuple[Figure, float]:
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
    line = style.BODY * style.POINT * style.LINE
    lines = [(words, style.MUTED) for words in style.wrap(facts, style.BODY, width, most=3)]
    lines += [(words, style.ALARM) for note in notes for words in style.wrap(note, style.BODY, width, most=3)]
    top = style.MARGIN - 0.08
    start = top + style.TITLE * style.POINT * 1.6
    figure = style.new_figure(
        width + 2 * style.MARGIN, start + len(lines) * line + 0.14 + below + style.MARGIN, heading
    )
    style.write(figure, style.MARGIN, top, heading, size=style.TITLE, weight="bold", width=width)
    for position, (words, colour) in enumerate(lines):
        style.write(figure, style.MARGIN, start + position * line, words, colour=colour)
    return figure, start + len(lines) * line + 0.14


def show_pixels(axes: Any, pixels: Any) -> None:
    """Draw 8-bit RGB pixels into axes: small images as sharp squares, large ones smoothed."""
    box = axes.get_window_extent()
    enlarged = pixels.shape[0] <= box.height and pixels.shape[1] <= box.width
    axes.imshow(
        pixels,
        origin="upper",
        interpolation="nearest" if enlarged else "antialiased",
        interpolation_stage="rgba",
        aspect="equal",
        resample=True,
    )


def _columns(count: int, aspect: float) -> int:
    """Columns that make the whole grid a little wider than high, with few empty cells in its last row."""
    ideal = math.sqrt(count * 1.2 / aspect)

    def unfit(columns: int) -> float:
        empty = -count % columns
        return abs(math.log(columns / ideal)) + 0.4 * empty / columns

    return min(range(1, min(count, 16) + 1), key=unfit)


def _side(columns: int) -> float:
    """Inches of a cell's side: large for few images, small for many."""
    return min(4.5, max(1.15, 11.0 / (columns + 1.5)))


def _texts(features: Sequence[Feature], values: Statistics, index: int, width: float) -> list[str]:
    parts = [f"{feature.name} {short(feature.values[index])}" for feature in features]
    lines = [style.fit(style.literal(part), style.SMALL, width) for part in parts[:_TEXT_LINES]]
    if len(parts) > _TEXT_LINES:
        lines[-1] = style.fit(style.literal(" · ".join(parts[_TEXT_LINES - 1 :])), style.SMALL, width)
    return lines


def _summary(values: Sequence[Statistics]) -> str:
    known = [value for value in values if not np.isnan(value.low)]
    if not known:
        return "No value is finite."
    low, high = min(value.low for value in known), max(value.high for value in known)
    mean = sum(value.mean for value in known) / len(known)
    return f"Values {low:.4g} to {high:.4g}, mean {mean:.4g}."


def _alarms(values: Sequence[Statistics]) -> list[str]:
    nan, infinite = sum(value.nan for value in values), sum(value.infinite for value in values)
    if not nan and not infinite:
        return []
    records = sum(1 for value in values if value.nan or value.infinite)
    return [f"{nan} NaN and {infinite} infinite values in {plural(records, 'record')}, painted magenta."]


def plural(count: int, word: str) -> str:
    return f"{count} {word}" + ("" if count == 1 else "s")
