"""What was done to a batch, found by comparing it with its reference: the causes that `tfqueue.compare` names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfqueue.equivalence import compare
from tfqueue.equivalence.report import Cause, Report
from tfqueue.errors import TFQueueError
from tfqueue.views.features import Feature, holds_arrays
from tfqueue.views.pairs import Pair

# Enough to tell a cause by, and little enough to be compared in a part of the time that drawing takes.
_RECORDS, _SINGLE, _SIDE, _SIDE_ALONE = 64, 16, 48, 160
_MOSTLY = 0.9
_EVERYWHERE = ("resize", "jpeg", "re-encoded")
_SPREAD = 0.3
# Whoever did one of these to all images did it to each; the other causes may need several images to be seen.
_SHOWN_BY_EACH = frozenset({"channels-swapped", "flipped", "transposed", "channels-first", "cropped"})
_LOOKED_AT = 4


@dataclass(frozen=True, slots=True)
class Recognised:
    """The likely causes of what differs in two batches.

    Attributes:
        overall: Those of the batch as a whole.
        pictures: What was done to single images, by the number of the pair, where that is not one and the same.
    """

    overall: tuple[Cause, ...] = ()
    pictures: Mapping[str, Cause] = field(default_factory=dict)


def recognise(
    image: str, pairs: Sequence[Pair], shown: Sequence[Pair], features: Sequence[tuple[Feature, Feature]]
) -> Recognised:
    """The likely causes behind the differences of two batches in memory.

    Args:
        image: Name of the feature that holds the images.
        pairs: All records, in their order.
        shown: Those whose images differ and are to be explained one by one, should it be necessary.
        features: The other features of both sides, one value a record each.
    """
    differing = [pair for pair in pairs if pair.difference.differs]
    # Where images differ in a few records only, nothing was done to the feature as such.
    single = 0 < len(differing) < _MOSTLY * len(pairs)
    overall = [c for c in _batch_causes(image, pairs[:_RECORDS], features) if c.feature != image or not single]
    of_images = next((cause for cause in overall if cause.feature == image), None)
    if of_images is not None and (of_images.name not in _SHOWN_BY_EACH or _shown_by_each(of_images, image, shown)):
        return Recognised(tuple(overall))
    overall = [cause for cause in overall if cause is not of_images]
    found = {pair.number: _picture_cause(image, pair) for pair in shown[:_SINGLE]}
    pictures = {number: cause for number, cause in found.items() if cause is not None}
    return Recognised(tuple(overall), pictures)


def _shown_by_each(cause: Cause, image: str, shown: Sequence[Pair]) -> bool:
    found = [_picture_cause(image, pair) for pair in shown[:_LOOKED_AT]]
    return all(other is not None and other.name == cause.name for other in found)


def _batch_causes(image: str, pairs: Sequence[Pair], features: Sequence[tuple[Feature, Feature]]) -> list[Cause]:
    images = [(pair.reference, pair.candidate) for pair in pairs]
    left, right = (_stack([_middle(picture, _SIDE) for picture in side]) for side in zip(*images, strict=True))
    both: list[dict[str, NDArray[Any]]] = [{}, {}]
    if left is not None and right is not None:
        both[0][image], both[1][image] = left, right
    for one, two in features:
        if not holds_arrays(one.values) and not holds_arrays(two.values):
            both[0][one.name], both[1][one.name] = one.values[: len(pairs)], two.values[: len(pairs)]
    return _causes(both[0], both[1])


def _picture_cause(image: str, pair: Pair) -> Cause | None:
    if pair.reference is None or pair.candidate is None:
        return None
    one, two = (_middle(picture, _SIDE_ALONE)[np.newaxis] for picture in (pair.reference, pair.candidate))
    cause = next(iter(_causes({image: one}, {image: two})), None)
    # Resizing and decoding are told by how much differs; a stain on an otherwise equal image is neither.
    if cause is not None and cause.name.startswith(_EVERYWHERE) and np.mean(one != two) < _SPREAD:
        return None
    return cause


def _causes(reference: Mapping[str, NDArray[Any]], candidate: Mapping[str, NDArray[Any]]) -> list[Cause]:
    if not reference:
        return []
    try:
        report: Report = compare([dict(reference)], [dict(candidate)], order="strict", samples=0)
    except TFQueueError:
        # The picture shows the difference all the same; that it cannot be named is no reason not to draw it.
        return []
    # What compare says of streams (a file is missing, a buffer too small) cannot be known from one batch.
    return [cause for cause in report.causes if cause.feature is not None]


def _stack(pictures: Sequence[NDArray[Any]]) -> NDArray[Any] | None:
    return np.stack(pictures) if len({(p.shape, p.dtype) for p in pictures}) == 1 else None


def _middle(picture: NDArray[Any] | None, side: int) -> NDArray[Any]:
    """The middle of an image, which flips and turns keep in its place."""
    if picture is None:
        return np.empty((0, 0, 0))
    cuts = []
    for length in picture.shape[:2]:
        start = max(0, length - side) // 2
        # An odd rest would shift the middle of a flipped image by one.
        cuts.append(slice(start, length - start))
    return picture[cuts[0], cuts[1]]
