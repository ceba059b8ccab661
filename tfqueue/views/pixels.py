"""From the values of an image to the pixels that are shown: range, shrinking, transparency, NaN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from tfqueue.views import style

_SAMPLE = 1_000_000
_OVERSHOOT = 0.25
_DARKEST = 48


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


@np.errstate(over="ignore", invalid="ignore")
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
            return Statistics(float(rest.min()), float(rest.max()), float(rest.mean(dtype=np.float64)), nan, infinite)
        return Statistics(low, high, float(values.mean(dtype=np.float64)), 0, 0)
    return Statistics(float(values.min()), float(values.max()), float(values.mean(dtype=np.float64)), 0, 0)


def assume_range(images: Sequence[NDArray[Any]]) -> ValueRange:
    """The range that the values of a batch of images were most likely made for.

    One range holds for the whole batch, so that a dark image stays dark beside a bright one.
    """
    dtype = np.result_type(*{picture.dtype for picture in images})
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
                    return ValueRange(0, 2**bits - 1, f"0..{2**bits - 1}" + (f" ({bits} bits)" if bits > 8 else ""))
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
            f"standardised values (mean {mean:.2f}, deviation {deviation:.2f}), {low:.3g}..{high:.3g}",
        )
    if low >= -_OVERSHOOT and high <= 1 + _OVERSHOOT:
        return ValueRange(0, 1, f"0..1, clipped from {low:.3g}..{high:.3g}")
    if low >= -1 - _OVERSHOOT and high <= 1 + _OVERSHOOT:
        return ValueRange(-1, 1, f"-1..1, clipped from {low:.3g}..{high:.3g}")
    # Floats that end far below 255 are another quantity (a depth, a distance), unless they are whole numbers.
    if low >= 0 and high <= 255 and (high > _DARKEST or _whole(images)):
        return ValueRange(0, 255, "0..255")
    if low >= -255 * _OVERSHOOT and 128 < high <= 255 * (1 + _OVERSHOOT):
        return ValueRange(0, 255, f"0..255, clipped from {low:.3g}..{high:.3g}")
    return _stretched(low, high)


def _stretched(low: float, high: float) -> ValueRange:
    if low < high:
        return ValueRange(low, high, f"stretched from {low:.4g}..{high:.4g}")
    # A flat image has no range; it is shown in middle grey. The margin must not vanish beside a large value.
    margin = max(1.0, abs(low) * 1e-3)
    return ValueRange(low - margin, high + margin, f"all {low:.4g}")


@np.errstate(over="ignore", invalid="ignore")
def _moments(images: Sequence[NDArray[Any]]) -> tuple[float, float]:
    """Mean and standard deviation of finite values, from at most about a million of them."""
    sample = _sampled(images)
    return float(sample.mean()), float(sample.std())


def _whole(images: Sequence[NDArray[Any]]) -> bool:
    sample = _sampled(images)
    return bool((sample == np.rint(sample)).all())


def _sampled(images: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    room = max(1, _SAMPLE // len(images))
    sample = np.concatenate(
        [picture.reshape(-1)[:: max(1, picture.size // room)].astype(np.float64) for picture in images]
    )
    finite: NDArray[np.float64] = sample[np.isfinite(sample)]
    return finite


def to_pixels(picture: NDArray[Any], shown: ValueRange, *, most: int | None = None) -> NDArray[np.uint8]:
    """An image as 8-bit RGB, [height, width, 3].

    Values that are not finite are painted in one loud colour; transparent images are laid over a chequered
    ground.

    Args:
        picture: [height, width, channels], with 1 to 4 channels (two are shown as red and cyan).
        shown: The values to show as black and as white.
        most: Shrink (by the mean over areas) to at most this many pixels a side.
    """
    picture = shrink(picture, most)
    bad = None
    if picture.dtype == np.uint8 and (shown.low, shown.high) == (0, 255):
        pixels = picture
    else:
        # Values near the end of float32, or of float64, would overflow when the range is stretched.
        reach = max(abs(shown.low), abs(shown.high))
        scaled = picture.astype(np.float32 if picture.dtype.itemsize < 8 and reach < 1e30 else np.float64)
        if picture.dtype.kind == "f":
            bad = ~np.isfinite(scaled).all(axis=-1)
            if not bad.any():
                bad = None
            else:
                scaled[bad] = shown.low
        # What lies far outside of the range, too.
        np.clip(scaled, shown.low, shown.high, out=scaled)
        unit = 2.0**-40 if reach > 1e300 else 1.0
        scaled *= unit
        scaled -= shown.low * unit
        scaled *= 255 / (shown.high * unit - shown.low * unit)
        pixels = np.clip(np.rint(scaled, out=scaled), 0, 255, out=scaled).astype(np.uint8)
    channels = pixels.shape[-1]
    if channels == 1:
        pixels = np.repeat(pixels, 3, axis=-1)
    elif channels == 2:
        # Red against cyan: told apart by every kind of colour vision through their brightness.
        pixels = pixels[..., [0, 1, 1]]
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
