"""Two batches side by side: reference, candidate, and what lies between them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfqueue.equivalence.report import Cause, Report
from tfqueue.errors import InvalidArgument
from tfqueue.views import style
from tfqueue.views.features import ClassNames, Feature, check_class_names, find_label, label_words, one_per_record
from tfqueue.views.images import Pictures, find_images
from tfqueue.views.inputs import take
from tfqueue.views.pairs import LIMIT, Pair, Sheet, image_difference
from tfqueue.views.recognise import Recognised, recognise
from tfqueue.views.style import header, plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def show_pair(
    reference: Any,
    candidate: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    n: int = 8,
    labels: str | None = None,
    class_names: ClassNames | None = None,
    image: str | None = None,
    value_range: tuple[float, float] | None = None,
    scale: float | None = None,
    channels: bool = False,
    report: Report | None = None,
) -> Figure:
    """Show a reference batch beside a candidate batch and their difference, worst records first.

    Records are paired by position. Differences are absolute, taken in the values' own units (without wrap-around),
    the largest over the channels of a pixel. They are drawn from white (none) to black (``scale``). The worst records
    are those whose shape or label differs, then those that are not finite on one side only, then by mean difference.

    Args:
        reference: A batch or a source of batches, as for `show_batch`; of a source the first batch is taken.
        candidate: Its counterpart; the image feature is taken from the same place in its structure if it has that.
        path: PNG file to write as well; its folder must exist.
        n: Show at most so many records, up to 100.
        labels: Name of the feature that titles the records; None finds it.
        class_names: Name of each class, as a sequence or a mapping from its number.
        image: Name of the feature that holds the images; None finds it in the reference.
        value_range: Values to show as black and as white; None assumes a range from the reference. Both sides are
            drawn in the same range, so that a difference in scale is seen.
        scale: Difference that is drawn in black; None takes the largest of each record, so that the smallest change
            is seen.
        channels: Draw one difference for each channel.
        report: What `tfqueue.compare` found of the two streams, whose likely causes are then written over the pictures.
            None compares the two batches: what was done to all of them (channels swapped, another kernel of a resize,
            labels shifted ...) is written over the pictures, what was done to single ones under those.

    Returns:
        A matplotlib Figure with three Axes a record: reference, candidate, difference.

    Raises:
        InvalidImage: A side holds no image; the message lists its features with dtype and shape.
        InvalidArgument: A side is empty, an option does not fit, or ``path`` cannot be written.
    """
    target = style.check_path(path)
    if not 1 <= n <= LIMIT:
        raise InvalidArgument(f"n={n!r}: expected 1 to {LIMIT} records in one picture")
    if scale is not None and not scale > 0:
        raise InvalidArgument(f"scale={scale!r}: expected a difference above 0")
    check_class_names(class_names)
    mine = _side("reference", reference, image, value_range, label=labels, class_names=class_names)
    if labels is not None and mine.label_name is None:
        known = ", ".join(repr(f.name) for f in mine.features if f is not mine.pictures.feature) or "none"
        raise InvalidArgument(f"labels={labels!r}: no such feature with one value a record; there are {known}")
    other = _side(
        "candidate",
        candidate,
        mine.pictures.feature.name,
        value_range,
        label=mine.label_name,
        class_names=class_names,
        elsewhere=True,
    )
    if report is not None and not isinstance(report, Report):
        raise InvalidArgument(f"report is a {type(report).__name__}; expected what tfqueue.compare returned")
    figure = _draw(mine, other, n, scale, channels, report)
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
    source: Any,
    image: str | None,
    value_range: tuple[float, float] | None,
    *,
    label: str | None,
    class_names: ClassNames | None,
    elsewhere: bool = False,
) -> _Side:
    """A side with its images; ``elsewhere`` allows image and label to have other names than those given."""
    try:
        features = take(source, None).features
        names = [feature.name for feature in features]
        if elsewhere:
            image = image if image in names else None
            label = label if label in names else None
        pictures = find_images(features, image=image, value_range=value_range)
    except InvalidArgument as error:
        raise type(error)(f"{name}: {error}") from error
    fitting, _ = one_per_record([f for f in features if f is not pictures.feature], pictures.total)
    found = find_label(fitting) if label is None else next((f for f in fitting if f.name == label), None)
    if found is None:
        return _Side(features, pictures, None, None)
    return _Side(features, pictures, found.name, label_words(found.values, class_names))


def _pairs(mine: _Side, other: _Side) -> list[Pair]:
    """All records of both sides, in their order."""
    pairs = []
    for index in range(min(len(mine.pictures.images), len(other.pictures.images))):
        one, two = mine.pictures.images[index], other.pictures.images[index]
        label, other_label = (None if side.labels is None else side.labels[index] for side in (mine, other))
        pairs.append(Pair(f"#{index}", one, two, image_difference(one, two), label, other_label))
    return pairs


def _worst_first(pairs: Sequence[Pair]) -> list[Pair]:
    def badness(item: tuple[int, Pair]) -> tuple[bool, bool, int, float, int]:
        index, pair = item
        return pair.comparable, not _mislabelled(pair), -pair.difference.unlike, -pair.difference.mean, index

    return [pair for _, pair in sorted(enumerate(pairs), key=badness)]


def _mislabelled(pair: Pair) -> bool:
    return pair.label is not None and pair.other_label is not None and pair.label != pair.other_label


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
    for side, pictures in (("reference", left), ("candidate", right)):
        notes += [f"{side} {plural(len(pictures.failures), 'image')} cannot be decoded."] * bool(pictures.failures)
    return notes


def causes_in_words(causes: Sequence[Cause], most: int) -> list[str]:
    """The likely causes that a comparison found."""
    return [
        f"Likely cause{f' in {cause.feature}' if cause.feature else ''}: {cause.name}: {cause.summary}; {cause.advice}."
        for cause in causes[:most]
    ]


def _heading(differing: int, mislabelled: int, total: int, shown: int, *, whole: bool) -> str:
    one = "The" if whole else "The first"
    each = "Both" if whole and total == 2 else f"{'All' if whole else one} {total}"
    if not differing:
        words = f"{each} images are equal" if total > 1 else f"{one} image is equal"
    elif total == 1:
        words = f"{one} image differs"
    else:
        words = f"{each} images differ" if differing == total else f"{differing} of {total} images differ"
    if not whole:
        words += ", the numbers of records differ"
    if mislabelled:
        words += f", {plural(mislabelled, 'label')} differ" + "s" * (mislabelled == 1)
    if shown < max(differing, mislabelled):
        words += f"; the worst {shown} shown"
    elif shown < total:
        words += f"; {shown} shown"
    return words


def _recognised(mine: _Side, other: _Side, pairs: Sequence[Pair], shown: Sequence[Pair]) -> Recognised:
    """What was done to the candidate; nothing is compared where nothing differs."""
    left, right = (
        {f.name: f for f in one_per_record(side.features, side.pictures.total)[0] if f is not side.pictures.feature}
        for side in (mine, other)
    )
    features = [(left[name], right[name]) for name in left if name in right]
    if not any(pair.difference.differs or _mislabelled(pair) for pair in pairs):
        return Recognised()
    return recognise(mine.pictures.feature.name, pairs, [p for p in shown if p.difference.differs], features)


def _draw(mine: _Side, other: _Side, n: int, scale: float | None, channels: bool, report: Report | None) -> Figure:
    in_order = _pairs(mine, other)
    pairs = _worst_first(in_order)
    differing = sum(pair.difference.differs for pair in pairs)
    mislabelled = sum(map(_mislabelled, pairs))
    found = Recognised(report.causes) if report is not None else _recognised(mine, other, in_order, pairs[:n])
    words = {number: f"Likely {cause.name}: {cause.summary}." for number, cause in found.pictures.items()}
    sheet = Sheet(pairs[:n], mine.pictures.range, scale, channels, words)
    whole = len(mine.pictures.images) == len(other.pictures.images)
    heading = _heading(differing, mislabelled, len(pairs), len(sheet.pairs), whole=whole)
    facts = f"{mine.pictures.feature.name}: {mine.pictures.form}. Range assumed: {mine.pictures.range.words}."
    notes = causes_in_words(found.overall, 2) + _notes(mine, other)
    figure, upper = header(heading, facts, notes, max(sheet.width, 5.2), sheet.height)
    sheet.draw(figure, upper)
    return figure
