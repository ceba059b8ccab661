"""Finding the images in a batch, the range of their values, and the pixels to show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from tfqueue.errors import InvalidArgument, InvalidImage
from tfqueue.views import style
from tfqueue.views.features import Feature

_IMAGE_WORDS = ("image", "img", "picture", "photo", "pixel", "frame", "x")
_SAMPLE = 1_000_000
_OVERSHOOT = 0.25
_CHECK = 8


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The values that are shown as black and as white.

    Attributes:
        low: Shown as black.
        high: Shown as white.
        words: The assumption in words, such as ``"0..1"``.
    """

    low: float
    high: float
    words: str


@dataclass(frozen=True, slots=True)
class Pictures:
    """The images of one feature of a batch.

    Attributes:
        feature: The feature that they were found in.
        images: One array [height, width, channels] a record.
        form: dtype and shape in words.
        range: What is shown as black and as white, common to all of them.
    """

    feature: Feature
    images: Sequence[NDArray[Any]]
    form: str
    range: ValueRange


def find_images(
    features: Sequence[Feature], *, image: str | None = None, value_range: tuple[float, float] | None = None
) -> Pictures:
    """The images of a batch.

    Args:
        features: The features of the batch.
        image: Name of the feature that holds the images; None finds the likeliest.
        value_range: Values to show as black and as white; None assumes a range from the values.

    Raises:
        InvalidImage: No feature holds images; the message says which features there are.
        InvalidArgument: The batch is empty, there is no feature named ``image``, or ``value_range`` is no
            range.
    """
    if not features:
        raise InvalidArgument("the batch is empty: it holds no feature at all")
    candidates = list(features)
    if image is not None:
        candidates = [feature for feature in features if feature.name == image]
        if not candidates:
            raise InvalidArgument(f"image={image!r}: no such feature; there are {_listing(features)}")
    layouts = [(_likeness(feature), feature) for feature in candidates]
    likeness, best = max(layouts, key=lambda pair: pair[0])
    if likeness <= 0:
        raise InvalidImage(
            "no image found in the batch; expected a feature [n, height, width, channels] with 1, 3 or 4 "
            f"channels, or [n, height, width]; there are {_listing(features)}"
        )
    images = _separate(best.values)
    if not images:
        raise InvalidArgument(
            f"the batch is empty: feature {best.title!r} has shape {list(best.values.shape)}"
        )
    if any(not picture.size for picture in images):
        raise InvalidImage(
            f"the images of feature {best.title!r} have no pixels: shape {list(best.values.shape)}"
        )
    shape = "×".join(map(str, images[0].shape))
    if value_range is None:
        assumed = assume_range(images)
    else:
        low, high = value_range
        if not low < high:
            raise InvalidArgument(f"value_range={value_range!r}: expected (low, high) with low < high")
        assumed = ValueRange(float(low), float(high), f"{low:g}..{high:g} as given")
    return Pictures(best, images, f"{best.values.dtype} {shape}", assumed)


def _listing(features: Sequence[Feature]) -> str:
    return "; ".join(feature.describe() for feature in features)


def _likeness(feature: Feature) -> float:
    """How likely a feature holds images; 0 or less for those that cannot."""
    values = feature.values
    if values.dtype.kind not in "biuf" or values.ndim not in (3, 4):
        return 0
    if values.ndim == 4 and values.shape[-1] not in (1, 3, 4):
        return 0
    score = 4.0 if values.ndim == 4 else 2.0
    if values.ndim == 3 and values.dtype.kind == "f" and min(values.shape[1:]) < _CHECK:
        # A few columns of floats are far more often a sequence of vectors than an image.
        score = 0.5
    score += {"u": 0.5, "f": 0.3}.get(values.dtype.kind, 0)
    name = feature.name.lower()
    return score + (0.4 if any(word in name for word in _IMAGE_WORDS) else 0)


def _separate(values: NDArray[Any]) -> list[NDArray[Any]]:
    if values.ndim == 3:
        values = values[..., np.newaxis]
    return list(values)


@dataclass(frozen=True, slots=True)
class Statistics:
    """What the values of an array are; not finite ones are counted apart.

    Attributes:
        low: Smallest finite value (nan if there is none).
        high: Largest finite value (nan if there is none).
        mean: Mean of the finite values (nan if there is none).
        nan: Number of NaN.
        infinite: Number of infinite values.
    """

    low: float
    high: float
    mean: float
    nan: int
    infinite: int


def statistics(values: NDArray[Any]) -> Statistics:
    """Range and mean of the finite values of an array."""
    if values.dtype.kind == "f":
        low, high = float(values.min()), float(values.max())
        # NaN passes through min and max, so two finite ends prove that all values are finite.
        if not (np.isfinite(low) and np.isfinite(high)):
            finite = np.isfinite(values)
            nan = int(np.isnan(values).sum())
            infinite = int(values.size - finite.sum()) - nan
            rest = values[finite]
            if not rest.size:
                return Statistics(np.nan, np.nan, np.nan, nan, infinite)
            return Statistics(
                float(rest.min()), float(rest.max()), float(rest.mean(dtype=np.float64)), nan, infinite
            )
        return Statistics(low, high, float(values.mean(dtype=np.float64)), 0, 0)
    return Statistics(float(values.min()), float(values.max()), float(values.mean(dtype=np.float64)), 0, 0)


def assume_range(images: Sequence[NDArray[Any]]) -> ValueRange:
    """The range that the values of a batch of images were most likely made for.

    One range holds for the whole batch, so that a dark image stays dark beside a bright one.
    """
    dtype = images[0].dtype
    if dtype.kind == "b":
        return ValueRange(0, 1, "False..True")
    if dtype == np.uint8:
        return ValueRange(0, 255, "0..255")
    parts = [statistics(picture) for picture in images]
    known = [part for part in parts if not np.isnan(part.low)]
    if not known:
        return ValueRange(0, 1, "0..1 (no finite value)")
    low, high = min(part.low for part in known), max(part.high for part in known)
    if dtype.kind in "iu":
        if low >= 0:
            for bits in (8, 10, 12, 16):
                if high < 2**bits:
                    return ValueRange(
                        0, 2**bits - 1, f"0..{2**bits - 1}" + (f" ({bits} bits)" if bits > 8 else "")
                    )
        return _stretched(low, high)
    if low >= 0 and high <= 1:
        return ValueRange(0, 1, "0..1")
    if low >= -1 and high <= 1:
        return ValueRange(-1, 1, "-1..1")
    mean, deviation = _moments(images)
    if low < 0 and abs(mean) < 0.3 and 0.7 < deviation < 1.3:
        return ValueRange(
            low,
            high,
            f"standardised values (mean {mean:.2g}, deviation {deviation:.2g}), {low:.3g}..{high:.3g}",
        )
    if low >= -_OVERSHOOT and high <= 1 + _OVERSHOOT:
        return ValueRange(0, 1, f"0..1, clipped from {low:.3g}..{high:.3g}")
    if low >= -1 - _OVERSHOOT and high <= 1 + _OVERSHOOT:
        return ValueRange(-1, 1, f"-1..1, clipped from {low:.3g}..{high:.3g}")
    if low >= 0 and high <= 255:
        return ValueRange(0, 255, "0..255")
    if low >= -255 * _OVERSHOOT and 128 < high <= 255 * (1 + _OVERSHOOT):
        return ValueRange(0, 255, f"0..255, clipped from {low:.3g}..{high:.3g}")
    return _stretched(low, high)


def _stretched(low: float, high: float) -> ValueRange:
    # A flat image would have no range; it is shown in middle grey.
    return (
        ValueRange(low, high, f"stretched from {low:.4g}..{high:.4g}")
        if low < high
        else ValueRange(low - 1, high + 1, f"all {low:.4g}")
    )


def _moments(images: Sequence[NDArray[Any]]) -> tuple[float, float]:
    """Mean and standard deviation of finite values, from at most about a million of them."""
    room = max(1, _SAMPLE // len(images))
    sample = np.concatenate(
        [picture.reshape(-1)[:: max(1, picture.size // room)].astype(np.float64) for picture in images]
    )
    sample = sample[np.isfinite(sample)]
    return float(sample.mean()), float(sample.std())


def to_pixels(picture: NDArray[Any], shown: ValueRange, *, most: int | None = None) -> NDArray[np.uint8]:
    """An image as 8-bit RGB, [height, width, 3].

    Values that are not finite are painted in one loud colour; transparent images are laid over a chequered
    ground.

    Args:
        picture: [height, width, channels], with 1, 3 or 4 channels.
        shown: The values to show as black and as white.
        most: Shrink (by the mean over areas) to at most this many pixels a side.
    """
    picture = shrink(picture, most)
    bad = None
    if picture.dtype == np.uint8 and (shown.low, shown.high) == (0, 255):
        pixels = picture
    else:
        scaled = picture.astype(np.float32 if picture.dtype.itemsize < 8 else np.float64)
        if picture.dtype.kind == "f":
            bad = ~np.isfinite(scaled).all(axis=-1)
            if not bad.any():
                bad = None
            else:
                scaled[bad] = shown.low
        scaled -= shown.low
        scaled *= 255 / (shown.high - shown.low)
        pixels = np.clip(np.rint(scaled, out=scaled), 0, 255, out=scaled).astype(np.uint8)
    channels = pixels.shape[-1]
    if channels == 1:
        pixels = np.repeat(pixels, 3, axis=-1)
    elif channels == 4:
        pixels = _over_chequers(pixels)
    if bad is not None:
        pixels[bad] = style.NON_FINITE
    return np.ascontiguousarray(pixels)


def shrink(picture: NDArray[Any], most: int | None) -> NDArray[Any]:
    """``picture`` shrunk by the mean over areas so that no side is longer than ``most``."""
    height, width = picture.shape[:2]
    if most is None or max(height, width) <= most:
        return picture
    scale = most / max(height, width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    if picture.dtype not in (np.uint8, np.uint16, np.float32, np.float64):
        # What OpenCV cannot shrink is thinned first, so that no large copy in another type is made.
        picture = picture[:: max(1, height // (4 * size[1])), :: max(1, width // (4 * size[0]))]
        picture = picture.astype(np.float32 if picture.dtype.itemsize < 8 else np.float64)
    small = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
    return small.reshape(size[1], size[0], picture.shape[-1])


def _over_chequers(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    height, width = pixels.shape[:2]
    side = max(1, max(height, width) // 16)
    odd = (np.arange(height)[:, None] // side + np.arange(width)[None, :] // side) % 2
    ground = np.where(odd, 235, 255).astype(np.float32)[..., np.newaxis]
    alpha = pixels[..., 3:].astype(np.float32) / 255
    return np.rint(pixels[..., :3] * alpha + ground * (1 - alpha)).astype(np.uint8)
