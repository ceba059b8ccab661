"""Two batches side by side: reference, candidate, and what lies between them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, Normalize
from numpy.typing import NDArray

from tfqueue.errors import InvalidArgument
from tfqueue.views import style
from tfqueue.views.features import Feature, find_label, flatten, label_words, one_per_record
from tfqueue.views.grid import show_pixels
from tfqueue.views.images import Pictures, find_images
from tfqueue.views.pixels import to_pixels
from tfqueue.views.style import header, plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GAP = 0.15
_BLOCK_GAP = 0.45
_SIDE = 2.1
_COLUMNS = (("reference", style.REFERENCE), ("candidate", style.CANDIDATE), ("difference", style.INK))
# From paper to ink through the candidate's colour: no difference is white, in print as on screen.
_DIFFERENCE = LinearSegmentedColormap.from_list(
    "difference", [style.PAPER, "#fbd3a8", style.CANDIDATE, "#5c1a00", "#000000"]
)


@dataclass(frozen=True, slots=True)
class ImageDifference:
    """How far one image is from another.

    Attributes:
        index: The record's position in its batch.
        largest: Largest absolute difference of values that are finite on both sides, in the units of the
            reference.
        mean: Mean absolute difference of those values.
        unlike: Number of values that are NaN or infinite on one side and not the same on the other; all of
            the values where the shapes differ.
        words: What is written over the picture.
    """

    index: int
    largest: float
    mean: float
    unlike: int
    words: str

    @property
    def differs(self) -> bool:
        return self.largest > 0 or self.unlike > 0


def show_pair(
    reference: Any,
    candidate: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    n: int = 8,
    labels: str | None = None,
    class_names: Mapping[int, str] | Sequence[str] | None = None,
    image: str | None = None,
    value_range: tuple[float, float] | None = None,
    scale: float | None = None,
) -> Figure:
    """Show a reference batch beside a candidate batch and their difference, worst records first.

    Records are paired by position. Differences are absolute, taken in the values' own units (without
    wrap-around), the largest over the channels of a pixel. They are drawn from white (none) to black
    (``scale``). The worst records are those whose shape or label differs, then those that are not finite on
    one side only, then by mean difference.

    Args:
        reference: A batch, as for `show_batch`.
        candidate: Its counterpart; the image feature is taken from the same place in its structure if it has
            that.
        path: PNG file to write as well; its folder must exist.
        n: Show at most so many records.
        labels: Name of the feature that titles the records; None finds it.
        class_names: Name of each class, as a sequence or a mapping from its number.
        image: Name of the feature that holds the images; None finds it in the reference.
        value_range: Values to show as black and as white; None assumes a range from the reference. Both sides
            are drawn in the same range, so that a difference in scale is seen.
        scale: Difference that is drawn in black; None takes the largest of each record, so that the smallest
            change is seen.

    Returns:
        A matplotlib Figure with three Axes a record: reference, candidate, difference.

    Raises:
        InvalidImage: A side holds no image; the message lists its features with dtype and shape.
        InvalidArgument: A side is empty, an option does not fit, or ``path`` cannot be written.
    """
    target = style.check_path(path)
    if n < 1:
        raise InvalidArgument(f"n={n!r}: expected at least 1")
    if scale is not None and not scale > 0:
        raise InvalidArgument(f"scale={scale!r}: expected a difference above 0")
    mine = _side("reference", reference, image, value_range, label=labels, class_names=class_names)
    if labels is not None and mine.label_name is None:
        known = ", ".join(repr(f.name) for f in mine.features if f is not mine.pictures.feature) or "none"
        raise InvalidArgument(f"labels={labels!r}: no such feature with one value a record; there are {known}")
    names = [feature.name for feature in flatten(candidate)]
    place = mine.pictures.feature.name
    other = _side(
        "candidate",
        candidate,
        place if place in names else None,
        value_range,
        label=mine.label_name if mine.label_name in names else None,
        class_names=class_names,
    )
    figure = _draw(mine, other, n, scale)
    return style.save(figure, target, f"{mine.pictures.feature.name}: {mine.pictures.form}")


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two batches: its features, its images, and the label of each record."""

    features: Sequence[Feature]
    pictures: Pictures
    label_name: str | None
    labels: Sequence[str] | None


def _side(
    name: str,
    batch: Any,
    image: str | None,
    value_range: tuple[float, float] | None,
    *,
    label: str | None,
    class_names: Mapping[int, str] | Sequence[str] | None,
) -> _Side:
    try:
        features = flatten(batch)
        pictures = find_images(features, image=image, value_range=value_range)
    except InvalidArgument as error:
        raise type(error)(f"{name}: {error}") from error
    fitting, _ = one_per_record([f for f in features if f is not pictures.feature], len(pictures.images))
    found = find_label(fitting) if label is None else next((f for f in fitting if f.name == label), None)
    if found is None:
        return _Side(features, pictures, None, None)
    return _Side(features, pictures, found.name, label_words(found.values, class_names))


def image_difference(index: int, reference: NDArray[Any], candidate: NDArray[Any]) -> ImageDifference:
    """Largest and mean absolute difference of two images; NaN equals NaN, infinity only itself."""
    if reference.shape != candidate.shape:
        words = f"shape {_shape(reference)} became {_shape(candidate)}"
        return ImageDifference(index, 0.0, 0.0, reference.size, words)
    change = absolute_difference(reference, candidate)
    finite = np.isfinite(change)
    unlike = change.size - int(finite.sum())
    if unlike:
        change = change[finite]
    largest, mean = float(change.max(initial=0)), float(change.mean()) if change.size else 0.0
    parts = [f"{unlike} NaN or infinite on one side"] * bool(unlike)
    parts += [f"max {largest:.4g}, mean {mean:.3g}"] * bool(largest)
    return ImageDifference(index, largest, mean, unlike, "; ".join(parts) or "equal")


def absolute_difference(reference: NDArray[Any], candidate: NDArray[Any]) -> NDArray[Any]:
    """``|candidate - reference|`` without wrap-around; inf where one side is finite or infinities differ."""
    wide = np.float32 if max(reference.dtype.itemsize, candidate.dtype.itemsize) <= 2 else np.float64
    with np.errstate(invalid="ignore"):
        change: NDArray[Any] = np.abs(candidate.astype(wide) - reference.astype(wide))
    if reference.dtype.kind == "f" or candidate.dtype.kind == "f":
        odd = ~np.isfinite(change)
        same = (reference == candidate) | (np.isnan(reference) & np.isnan(candidate))
        change[odd] = np.where(same[odd], 0.0, np.inf)
    return change


def _shape(picture: NDArray[Any]) -> str:
    return "×".join(map(str, picture.shape))


def _notes(mine: _Side, other: _Side) -> list[str]:
    """What is unlike in the two batches beside the pixels."""
    notes = []
    left, right = mine.pictures, other.pictures
    if left.form != right.form:
        notes.append(f"Reference images are {left.form}, candidate images are {right.form}.")
    if left.range.words != right.range.words:
        notes.append(
            f"Range assumed: reference {left.range.words}, candidate {right.range.words}; both drawn as the reference."
        )
    if len(left.images) != len(right.images):
        fewer = min(len(left.images), len(right.images))
        notes.append(
            f"Reference holds {plural(len(left.images), 'record')}, candidate {len(right.images)}: "
            f"the first {fewer} of each are compared."
        )
    names, other_names = [f.name for f in mine.features], [f.name for f in other.features]
    missing, added = [n for n in names if n not in other_names], [n for n in other_names if n not in names]
    if missing or added:
        parts = [f"only in the reference: {', '.join(missing)}"] * bool(missing)
        parts += [f"only in the candidate: {', '.join(added)}"] * bool(added)
        notes.append("The features are not the same; " + "; ".join(parts) + ".")
    return notes


def _heading(differing: int, mislabelled: int, total: int, shown: int) -> str:
    if not differing:
        words = f"All {total} images are equal" if total > 1 else "The image is equal"
    elif total == 1:
        words = "The image differs"
    else:
        words = f"All {total} images differ" if differing == total else f"{differing} of {total} images differ"
    if mislabelled:
        words += f", {plural(mislabelled, 'label')} differ" + "s" * (mislabelled == 1)
    if shown < max(differing, mislabelled):
        words += f"; the worst {shown} shown"
    elif shown < total:
        words += f"; {shown} shown"
    return words


def _draw(mine: _Side, other: _Side, n: int, scale: float | None) -> Figure:
    left, right = mine.pictures, other.pictures
    total = min(len(left.images), len(right.images))
    differences = [image_difference(index, left.images[index], right.images[index]) for index in range(total)]
    wrong = {
        index
        for index in range(total)
        if mine.labels is not None and other.labels is not None and mine.labels[index] != other.labels[index]
    }
    worst = sorted(
        differences,
        key=lambda item: (
            not (item.unlike and not item.largest),
            item.index not in wrong,
            -item.unlike,
            -item.mean,
            item.index,
        ),
    )[:n]
    heading = _heading(sum(item.differs for item in differences), len(wrong), total, len(worst))
    shapes = [left.images[item.index].shape for item in worst]
    aspect = min(4.0, max(1 / 4, max(s[1] for s in shapes) / max(s[0] for s in shapes)))
    width = max(1.5, min(3.2, _SIDE * math.sqrt(aspect)))
    height = width / aspect
    # Few records leave room for larger pictures; many stand in two blocks side by side.
    blocks = 2 if len(worst) > 4 else 1
    rows = math.ceil(len(worst) / blocks)
    block_width = 3 * width + 2 * _GAP
    body = max(blocks * block_width + (blocks - 1) * _BLOCK_GAP, 5.2)
    line = style.BODY * style.POINT * style.LINE
    pitch = line + height + 0.2
    below = rows * pitch + line + 0.08 + (0.32 if any(item.largest for item in worst) else 0)
    facts = f"{left.feature.name}: {left.form}. Range assumed: {left.range.words}."
    figure, upper = header(heading, facts, _notes(mine, other), body, below)
    for block in range(blocks):
        for column, (words, colour) in enumerate(_COLUMNS):
            start = style.MARGIN + block * (block_width + _BLOCK_GAP) + column * (width + _GAP)
            style.write(figure, start, upper, words, colour=colour, weight="bold")
    upper += line + 0.08
    for position, item in enumerate(worst):
        block, row = divmod(position, rows)
        start, top = style.MARGIN + block * (block_width + _BLOCK_GAP), upper + row * pitch
        _draw_record(figure, mine, other, item, scale, (start, top, width, height))
    if any(item.largest for item in worst):
        _draw_scale(figure, scale, style.MARGIN, upper + rows * pitch, 2.4)
    return figure


def _draw_record(
    figure: Figure,
    mine: _Side,
    other: _Side,
    item: ImageDifference,
    scale: float | None,
    place: tuple[float, float, float, float],
) -> None:
    """One record at ``place``: left, top, width and height of its first picture, in inches."""
    start, top, width, height = place
    line = style.BODY * style.POINT * style.LINE
    most = 2 * math.ceil(max(width, height) * style.DPI)
    number = f"#{item.index}"
    pictures = (mine.pictures.images[item.index], other.pictures.images[item.index])
    label, other_label = (None if side.labels is None else side.labels[item.index] for side in (mine, other))
    same_label = label is None or other_label is None or label == other_label
    for column, words in enumerate([number if label is None else label, other_label or "", item.words]):
        left = start + column * (width + _GAP)
        small = column == 2
        colour = (
            style.INK,
            style.MUTED if same_label else style.ALARM,
            style.INK if item.differs else style.MUTED,
        )[column]
        bold = column == 0 or (column == 1 and not same_label)
        style.write(
            figure,
            left,
            top + 0.025 * small,
            words,
            size=style.SMALL if small else style.BODY,
            colour=colour,
            weight="bold" if bold else "normal",
            width=width - 0.34 * (column == 0),
        )
        axes = style.picture_axes(figure, left, top + line, width, height)
        axes.set_label(f"{_COLUMNS[column][0]} {number}")
        if column < 2:
            show_pixels(axes, to_pixels(pictures[column], mine.pictures.range, most=most))
        elif pictures[0].shape == pictures[1].shape:
            show_pixels(axes, difference_pixels(pictures[0], pictures[1], scale or item.largest, most=most))
        else:
            axes.set_axis_off()
    if label is not None:
        style.write(figure, start + width, top + 0.02, number, size=style.SMALL, colour=style.MUTED, align="right")


def difference_pixels(
    reference: NDArray[Any], candidate: NDArray[Any], scale: float, *, most: int | None = None
) -> NDArray[np.uint8]:
    """The difference of two images of one shape as 8-bit RGB: white for none, black for ``scale`` and more.

    Where one side is not finite (and the other side not the same) it is painted in the colour of such values.
    """
    change = absolute_difference(reference, candidate).max(axis=-1)
    # The largest difference of an area must not vanish when the picture is made smaller.
    change = _shrink_by_maximum(change, most)
    odd = ~np.isfinite(change)
    change[odd] = 0
    coloured = _DIFFERENCE(Normalize(0, scale or 1, clip=True)(change), bytes=True)[..., :3]
    pixels: NDArray[np.uint8] = np.ascontiguousarray(coloured, dtype=np.uint8)
    pixels[odd] = style.NON_FINITE
    return pixels


def _shrink_by_maximum(change: NDArray[Any], most: int | None) -> NDArray[Any]:
    if most is None or max(change.shape) <= most:
        return change
    step = math.ceil(max(change.shape) / most)
    rows, columns = range(0, change.shape[0], step), range(0, change.shape[1], step)
    return np.asarray(np.maximum.reduceat(np.maximum.reduceat(change, rows, axis=0), columns, axis=1))


def _draw_scale(figure: Figure, scale: float | None, left: float, top: float, width: float) -> None:
    """The legend of the difference's colours."""
    axes = style.picture_axes(figure, left, top, width, 0.1)
    axes.imshow(
        _DIFFERENCE(np.linspace(0, 1, 256))[np.newaxis],
        aspect="auto",
        interpolation="nearest",
        origin="upper",
    )
    axes.set_label("scale of the difference")
    end = "max of each record" if scale is None else f"{scale:.4g} and more"
    for words, position, align in [("equal", left, "left"), (end, left + width, "right")]:
        style.write(figure, position, top + 0.13, words, size=style.SMALL, colour=style.MUTED, align=align)
