"""A batch as a labelled grid of its images."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tfqueue.errors import InvalidArgument, InvalidImage
from tfqueue.views import overlays, strips, style
from tfqueue.views.features import (
    ClassNames,
    Feature,
    boxed,
    check_class_names,
    find_class_text,
    find_label,
    holds_bytes,
    label_words,
    one_per_record,
    short,
)
from tfqueue.views.images import Pictures, find_images
from tfqueue.views.inputs import Taken, take
from tfqueue.views.pairs import show_pixels
from tfqueue.views.pixels import Statistics, statistics, to_pixels
from tfqueue.views.style import header, plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST = 64
# A picture of more records would be higher than the 65,535 pixels that Agg can draw.
_LIMIT = 1000
_GAP = 0.18
_TEXT_LINES = 2
_STRIPS = 2
_STRIP_HEIGHT = 0.36


def show_batch(
    source: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    n: int | None = None,
    labels: Any = None,
    class_names: ClassNames | None = None,
    image: str | None = None,
    value_range: tuple[float, float] | None = None,
    box_order: str = "yxyx",
    histograms: bool = False,
) -> Figure:
    """Show the images of a batch as a grid, each under its label, with what else is known of the record.

    Images are found in any structure: arrays [n, height, width, channels] or [n, channels, height, width]
    with 1 to 4 channels, or [n, height, width], of any real dtype; encoded JPEG, PNG, BMP and the like; raw
    bytes and flat numbers, with height and width (or a shape) in other features, or else with a square shape
    that is guessed and said. Boxes and masks lie over the images; sequences are drawn as lines and audio as
    waveforms under them; the rest is short text. Where there is audio and no image, the waveforms are the
    pictures.

    Args:
        source: A batch or record (arrays in any nesting of tuples, namedtuples, lists and dicts); an iterable
            of batches or records; a QueuePipeline, entered or not; a tf.data.Dataset; a function that returns
            one of these or builds a TF1 pipeline; or the path or pattern of TFRecord files.
        path: PNG file to write as well; its folder must exist.
        n: Show at most so many records, up to 1,000. None shows up to 64 records of a batch, or the first batch or 25
            records of a stream.
        labels: One label a record, or the name of the feature that holds them; None finds a feature named as
            such or, in an unnamed structure, the first with one value a record.
        class_names: Name of each class, as a sequence or a mapping from its number.
        image: Name of the feature to show (``"image"``, ``"features.image"``, ``"[0]"``), also one of
            sequences; None finds it.
        value_range: Values to show as black and as white. None assumes a range from the values of the whole
            batch (0..255, 0..1, -1..1, standardised, 10, 12 or 16 bits), and the picture says which.
        box_order: What the four numbers of a box are: "yxyx" (TensorFlow's), "xyxy", or "xywh".
        histograms: Draw a histogram of its values under each image, with their range and mean.

    Returns:
        A matplotlib Figure whose first axes are the records in order. Values that are NaN or infinite are
        magenta.

    Raises:
        InvalidImage: There is no image (or none that can be decoded); the message lists the features with
            dtype and shape.
        InvalidArgument: The source is empty or cannot be read, an option does not fit it, or ``path`` cannot
            be written.
    """
    target = style.check_path(path)
    if n is not None and not 1 <= n <= _LIMIT:
        raise InvalidArgument(f"n={n!r}: expected 1 to {_LIMIT} records in one picture")
    check_class_names(class_names)
    taken = take(source, n)
    class_names = taken.class_names if class_names is None else class_names
    wave = _wave(taken.features, image)
    if wave is not None:
        figure = _draw_waves(taken, wave, n or _MOST, labels, class_names)
        return style.save(figure, target, f"{wave.describe()}")
    try:
        pictures = find_images(taken.features, image=image, value_range=value_range, n=n or _MOST)
    except InvalidImage as error:
        lines = [] if image is not None else strips.find_strips(taken.features, 1)
        if not lines:
            raise
        raise InvalidImage(f"{error}; image={lines[0].feature.name!r} draws that feature as lines") from error
    figure = _draw_images(taken, pictures, labels, class_names, box_order, histograms)
    return style.save(figure, target, f"{pictures.feature.name}: {pictures.form}, shown as {pictures.range.words}")


def _wave(features: Sequence[Feature], image: str | None) -> Feature | None:
    """The sequences that are the picture: those asked for, or audio where there is no image."""
    if image is not None:
        named = [feature for feature in features if feature.name == image]
        try:
            find_images(features, image=image, n=1)
        except InvalidImage:
            return next((f for f in named if strips.as_strip(f, 1) is not None), None)
        return None
    try:
        find_images(features, n=1)
    except InvalidImage:
        return next((s.feature for s in strips.find_strips(features, 1) if s.audio), None)
    return None


@dataclass(frozen=True, slots=True)
class _Cells:
    """What a grid shows.

    Attributes:
        count: Number of cells.
        aspect: Width through height of a picture.
        draw: Draws picture ``i`` into axes.
        titles: Title of each cell, or None.
        numbers: What each record is called.
        texts: Lines under each picture.
        below: Diagrams under each picture: draws number ``j`` of cell ``i`` into axes.
        strips: Number of those diagrams.
        alarms: Words in red in place of the texts, by cell.
    """

    count: int
    aspect: float
    draw: Callable[[Any, int, int], None]
    titles: Sequence[str] | None
    numbers: Sequence[str]
    texts: Callable[[int, float], list[str]]
    below: Callable[[Any, int, int, int], None]
    strips: int
    alarms: dict[int, str] = field(default_factory=dict)


def _draw_images(
    taken: Taken,
    pictures: Pictures,
    labels: Any,
    class_names: ClassNames | None,
    box_order: str,
    histograms: bool,
) -> Figure:
    images, count = pictures.images, len(pictures.images)
    others = [f for f in taken.features if f is not pictures.feature and f.name not in pictures.used]
    titles, others = _titles(others, pictures.total, labels, class_names)
    fitting, unfit = one_per_record(others, pictures.total)
    over = overlays.find_overlays(fitting, images, box_order)
    fitting = [feature for feature in fitting if feature.name not in over.used]
    lines = strips.find_strips(fitting, count)[:_STRIPS]
    common, fitting = _lift_common(fitting, count)
    values = [statistics(picture) for index, picture in enumerate(images) if index not in pictures.failures]

    def draw(axes: Any, index: int, most: int) -> None:
        picture = images[index]
        if index in pictures.failures:
            axes.set_facecolor("#e9ebee")
            axes.set_aspect("equal")
            return
        pixels = to_pixels(picture, pictures.range, most=most)
        if over.masks is not None:
            pixels = overlays.tint(pixels, over.masks[index])
        show_pixels(axes, pixels)
        if over.boxes is not None:
            scale = (pixels.shape[0] / picture.shape[0], pixels.shape[1] / picture.shape[1])
            overlays.draw_boxes(axes, over.boxes[index], scale)

    def below(axes: Any, index: int, number: int, width: int) -> None:
        if number < len(lines):
            strips.draw_strip(axes, lines[number], index, width)
            axes.set_label(f"{lines[number].feature.name} #{index}")
        else:
            strips.draw_histogram(axes, images[index], pictures.range.low, pictures.range.high)
            axes.set_label(f"histogram #{index}")

    def texts(index: int, room: float) -> list[str]:
        of_values = [style.fit(_summary([statistics(images[index])]), style.SMALL, room)] if histograms else []
        return of_values + _texts(fitting, index, room, taken.files)

    height, width = max(picture.shape[0] for picture in images), max(picture.shape[1] for picture in images)
    cells = _Cells(
        count=count,
        # Extreme strips would leave no room for anything else.
        aspect=min(12.0, max(1 / 4, width / height)),
        draw=draw,
        titles=titles,
        numbers=taken.numbers or [f"#{index}" for index in range(count)],
        texts=texts,
        below=below,
        strips=len(lines) + histograms,
        alarms=dict(pictures.failures),
    )
    facts = [
        f"{pictures.feature.name}: {pictures.form}.",
        f"Range assumed: {pictures.range.words}.",
        _summary(values),
    ]
    facts += [*over.notes, common, f"From {taken.source}." if taken.source else ""]
    notes = [*pictures.notes, *_alarms(values), *(f"not one value a record: {f.describe()}" for f in unfit)]
    if pictures.failures:
        notes.insert(0, f"{plural(len(pictures.failures), 'image')} cannot be decoded.")
    return draw_grid(cells, pictures.total, facts, notes)


def _draw_waves(taken: Taken, wave: Feature, n: int, labels: Any, class_names: ClassNames | None) -> Figure:
    total = len(wave.values)
    count = min(n, total)
    titles, others = _titles([f for f in taken.features if f is not wave], total, labels, class_names)
    fitting, _ = one_per_record(others, total)
    strip = strips.as_strip(wave, count)
    assert strip is not None, "chosen because it is one"
    row = np.asarray(wave.values[0])
    facts = [f"{wave.name}: {row.dtype}{list(row.shape)}, values {strip.low:.4g} to {strip.high:.4g}."]
    cells = _Cells(
        count=count,
        aspect=3.0,
        draw=lambda axes, index, most: strips.draw_strip(axes, strip, index, most // 2),
        titles=titles,
        numbers=taken.numbers or [f"#{index}" for index in range(count)],
        texts=lambda index, room: _texts(fitting, index, room, taken.files),
        below=lambda axes, index, number, width: None,
        strips=0,
    )
    return draw_grid(cells, total, [*facts, f"From {taken.source}." if taken.source else ""], [])


def _titles(
    features: list[Feature], count: int, labels: Any, class_names: ClassNames | None
) -> tuple[list[str] | None, list[Feature]]:
    """The title of each record, and the features that are left to be shown as text."""
    if isinstance(labels, str):
        found = next((feature for feature in features if feature.name == labels), None)
        if found is None:
            known = ", ".join(repr(feature.name) for feature in features) or "none beside the image"
            raise InvalidArgument(f"labels={labels!r}: no such feature; there are {known}")
    elif labels is not None:
        items = list(labels)
        textual = any(isinstance(item, (str, bytes)) for item in items)
        found = Feature("labels", boxed(items) if textual else np.asarray(items))
    else:
        found = find_label(one_per_record(features, count)[0])
        if found is None:
            return None, features
    if not found.values.shape or len(found.values) != count:
        raise InvalidArgument(
            f"labels: expected one label for each of {count} images, found shape {list(found.values.shape)}"
        )
    rest = [feature for feature in features if feature is not found]
    words = label_words(found.values, class_names)
    text = find_class_text(one_per_record(rest, count)[0]) if class_names is None and labels is None else None
    if text is None or holds_bytes(found.values):
        return words, rest
    texts = [short(value) for value in text.values.reshape(count)]
    named = [f"{word} {name}" for word, name in zip(words, texts, strict=True)]
    return named, [feature for feature in rest if feature is not text]


def draw_grid(cells: _Cells, total: int, facts: Sequence[str], notes: Sequence[str]) -> Figure:
    """The grid itself: pictures in cells of one size, a title over and what else is known under each."""
    columns = _columns(cells.count, cells.aspect)
    side = min(4.5, max(1.15, 11.0 / (columns + 1.5)))
    width = min(6.0, max(1.0, side * math.sqrt(cells.aspect)))
    height = width / cells.aspect
    line = style.SMALL * style.POINT * style.LINE
    title_line = style.BODY * style.POINT * style.LINE
    texts = [_under(cells, index, width) for index in range(cells.count)]
    strips_top = title_line + height + 0.05
    text_top = strips_top + cells.strips * (_STRIP_HEIGHT + 0.03)
    pitch = text_top + line * max(len(text) for text in texts) + _GAP
    rows = math.ceil(cells.count / columns)
    heading = f"{cells.count} of {total} records" if cells.count < total else plural(total, "record")
    body = max(columns * width + (columns - 1) * _GAP, 5.2)
    figure, upper = header(heading, " ".join(filter(None, facts)), notes, body, rows * pitch - _GAP)

    most = 2 * math.ceil(max(width, height) * style.DPI)
    places = [
        (style.MARGIN + (index % columns) * (width + _GAP), upper + (index // columns) * pitch)
        for index in range(cells.count)
    ]
    # The pictures first, so that axes[i] is record i.
    for index, (left, top) in enumerate(places):
        axes = style.picture_axes(figure, left, top + title_line, width, height)
        axes.set_label(cells.numbers[index] if cells.titles is None else cells.titles[index])
        cells.draw(axes, index, most)
    for index, (left, top) in enumerate(places):
        _write_title(figure, cells, index, left, top, width)
        for number in range(cells.strips):
            if index not in cells.alarms:
                strip_top = top + strips_top + number * (_STRIP_HEIGHT + 0.03)
                axes = style.picture_axes(figure, left, strip_top, width, _STRIP_HEIGHT)
                cells.below(axes, index, number, math.ceil(width * style.DPI))
        for position, words in enumerate(texts[index]):
            style.write(
                figure,
                left,
                top + text_top + position * line,
                words,
                size=style.SMALL,
                colour=style.ALARM if index in cells.alarms else style.MUTED,
            )
    return figure


def _write_title(figure: Figure, cells: _Cells, index: int, left: float, top: float, width: float) -> None:
    number = cells.numbers[index]
    if cells.titles is None:
        style.write(figure, left, top, number, weight="bold", width=width)
        return
    room = style.inches(number, style.SMALL)
    room = min(room, width / 2)
    style.write(figure, left, top, cells.titles[index], weight="bold", width=width - room - 0.06)
    style.write(
        figure,
        left + width,
        top + 0.02,
        number,
        size=style.SMALL,
        colour=style.MUTED,
        align="right",
        width=room + 0.01,
    )


def _columns(count: int, aspect: float) -> int:
    """Columns that make the whole grid a little wider than high, with few empty cells in its last row."""
    ideal = math.sqrt(count * 1.2 / aspect)

    def unfit(columns: int) -> float:
        empty = -count % columns
        return abs(math.log(columns / ideal)) + 0.4 * empty / columns

    return min(range(1, min(count, 16) + 1), key=unfit)


def _under(cells: _Cells, index: int, width: float) -> list[str]:
    if index in cells.alarms:
        return style.wrap(cells.alarms[index], style.SMALL, width, most=2)
    return cells.texts(index, width)


def _lift_common(features: list[Feature], count: int) -> tuple[str, list[Feature]]:
    """What is the same in all records shown, to be said once, and the features that are not."""
    if count < 2:
        return "", features
    words = {feature.name: {short(feature.values[index]) for index in range(count)} for feature in features}
    common = [f"{name} {next(iter(said))}" for name, said in words.items() if len(said) == 1]
    rest = [feature for feature in features if len(words[feature.name]) > 1]
    return (f"In all: {', '.join(common)}." if common else ""), rest


def _texts(features: Sequence[Feature], index: int, width: float, files: Sequence[str] | None) -> list[str]:
    parts = [files[index]] if files is not None else []
    parts += [f"{feature.name} {short(feature.values[index])}" for feature in features]
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
    # What rounding leaves of a mean of 0 is no figure to read.
    mean = 0.0 if abs(mean) < 1e-6 * max(abs(low), abs(high)) else mean
    return f"Values {style.number(low)} to {style.number(high)}, mean {mean:.4g}."


def _alarms(values: Sequence[Statistics]) -> list[str]:
    nan, infinite = sum(value.nan for value in values), sum(value.infinite for value in values)
    if not nan and not infinite:
        return []
    records = sum(1 for value in values if value.nan or value.infinite)
    return [f"{nan} NaN and {infinite} infinite values in {plural(records, 'record')}, painted magenta."]
