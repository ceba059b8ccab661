"""Pictures inside a page: the images of differing records, small enough for fifty of them in five megabytes."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from tfqueue.equivalence.report import Difference
from tfqueue.errors import InvalidArgument
from tfqueue.views.features import Feature, boxed
from tfqueue.views.images import find_images
from tfqueue.views.pairs import difference_pixels, image_difference
from tfqueue.views.pixels import ValueRange, assume_range, to_pixels

_MOST_PIXELS = 224
_LOSSLESS_BYTES = 12_000
# Enough to see what changed; the numbers beside the pictures are exact.
_QUALITY = {"reference": 84, "candidate": 84, "difference": 72}
_SHARP_SIDE = 96


@dataclass(frozen=True, slots=True)
class Picture:
    """An image in a page.

    Attributes:
        role: ``"reference"``, ``"candidate"`` or ``"difference"``.
        uri: The image as a data URI.
        width: Its width in pixels.
        height: Its height in pixels.
        sharp: Whether it is small and shown as squares.
        words: What stands under it.
    """

    role: str
    uri: str
    width: int
    height: int
    sharp: bool
    words: str


@dataclass(frozen=True, slots=True)
class Images:
    """The images of one difference.

    Attributes:
        feature: The feature that they come from, or None if the record has no image.
        reference: [height, width, channels], or None.
        candidate: The same of the candidate.
    """

    feature: str | None = None
    reference: NDArray[Any] | None = None
    candidate: NDArray[Any] | None = None


def images_of(difference: Difference) -> Images:
    """The images of a difference's records: of the feature that differs if that is one, else of the likeliest."""
    reference = _image(difference.reference_record, difference.feature)
    name = reference[0] if reference is not None else difference.feature
    candidate = _image(difference.candidate_record, name)
    if reference is not None and candidate is not None and reference[0] != candidate[0]:
        candidate = None
    found = reference or candidate
    if found is None:
        return Images()
    return Images(found[0], reference and reference[1], candidate and candidate[1])


def _image(record: Mapping[str, Any] | None, prefer: str | None) -> tuple[str, NDArray[Any]] | None:
    if not record:
        return None
    features = record_features(record)
    for choice in (prefer, None) if prefer in record else (None,):
        try:
            pictures = find_images(features, image=choice)
        except InvalidArgument:
            continue
        return pictures.feature.name, pictures.images[0]
    return None


def record_features(record: Mapping[str, Any]) -> list[Feature]:
    """The features of one record as a batch of one."""
    return [Feature(name, _batch_of_one(value)) for name, value in record.items()]


def _batch_of_one(value: Any) -> NDArray[Any]:
    if isinstance(value, (bytes, str, list)):
        return boxed([value])
    array: NDArray[Any] = np.asarray(value)[np.newaxis]
    return array


def common_range(images: Sequence[Images]) -> dict[str, ValueRange]:
    """For each feature the range of values of all its reference images, so that all are drawn alike."""
    by_feature: dict[str, list[NDArray[Any]]] = {}
    for pair in images:
        picture = pair.reference if pair.reference is not None else pair.candidate
        if pair.feature is not None and picture is not None:
            by_feature.setdefault(pair.feature, []).append(picture)
    return {name: assume_range(pictures) for name, pictures in by_feature.items()}


def pictures_of(images: Images, shown: ValueRange) -> list[Picture]:
    """Reference, candidate and difference as far as there are such."""
    pictures = []
    for role, picture in (("reference", images.reference), ("candidate", images.candidate)):
        if picture is not None:
            words = f"{role}, {'×'.join(map(str, picture.shape))} {picture.dtype}"
            pictures.append(_picture(role, to_pixels(picture, shown, most=_MOST_PIXELS), words))
    if images.reference is not None and images.candidate is not None:
        found = image_difference(images.reference, images.candidate)
        if images.reference.shape == images.candidate.shape:
            pixels = difference_pixels(images.reference, images.candidate, found.largest, most=_MOST_PIXELS)
            scale = f"; black is {found.largest:.4g}" if found.largest else ""
            pictures.append(_picture("difference", pixels, f"difference: {found.words}{scale}"))
    return pictures


def _picture(role: str, pixels: NDArray[np.uint8], words: str) -> Picture:
    height, width = pixels.shape[:2]
    bgr = cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR)
    kind, content = "png", cv2.imencode(".png", bgr, [cv2.IMWRITE_PNG_COMPRESSION, 6])[1].tobytes()
    if len(content) > _LOSSLESS_BYTES:
        kind, content = "jpeg", cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY[role]])[1].tobytes()
    return Picture(role, data_uri(kind, content), width, height, max(height, width) <= _SHARP_SIDE, words)


def data_uri(kind: str, content: bytes) -> str:
    """An image file as the text of a link that holds it."""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"
