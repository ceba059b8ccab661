"""Small diagrams of one record: lines of sequences, waveforms of audio, histograms of images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tfqueue.equivalence.followed import is_one_hot
from tfqueue.views import style
from tfqueue.views.features import Feature, holds_arrays

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHORTEST = 12
_AUDIO_SAMPLES = 1500
_AUDIO_WORDS = frozenset({"audio", "wav", "waveform", "sound", "speech", "pcm", "samples"})
_LINES = 4
_CHANNEL_COLOURS = {1: (style.INK,), 2: (style.CANDIDATE, style.REFERENCE)}
_RGB = (style.CANDIDATE, "#009e73", style.REFERENCE, style.MUTED)


@dataclass(frozen=True, slots=True)
class Strip:
    """A feature that is drawn as a line.

    Attributes:
        feature: The feature.
        audio: Whether it is drawn as a waveform.
        low: Lowest value of the records shown.
        high: Highest value of the records shown.
    """

    feature: Feature
    audio: bool
    low: float
    high: float


def find_strips(features: Sequence[Feature], count: int) -> list[Strip]:
    """The features whose values are sequences of numbers, long enough to be worth a line."""
    return [strip for feature in features if (strip := as_strip(feature, count)) is not None]


def as_strip(feature: Feature, count: int) -> Strip | None:
    """The first ``count`` records of a feature as lines, or None if they are no sequences."""
    values = feature.values
    if holds_arrays(values):
        rows = [np.asarray(row) for row in values[:count]]
    elif values.ndim in (2, 3) and values.dtype.kind in "iuf" and not is_one_hot(values):
        rows = list(values[:count])
    else:
        return None
    if any(row.dtype.kind not in "iuf" or row.ndim not in (1, 2) for row in rows):
        return None
    if any(row.ndim == 2 and row.shape[1] > _LINES for row in rows):
        return None
    longest = max((len(row) for row in rows), default=0)
    if longest < _SHORTEST:
        return None
    known = [row[np.isfinite(row)] for row in rows]
    known = [row for row in known if row.size]
    low = min((float(row.min()) for row in known), default=0.0)
    high = max((float(row.max()) for row in known), default=0.0)
    audio = longest >= _AUDIO_SAMPLES or bool(_AUDIO_WORDS & feature.words)
    return Strip(feature, audio, low, high)


def draw_strip(axes: Axes, strip: Strip, index: int, width: int) -> None:
    """Draw the sequence of one record; all records of a feature share their vertical scale.

    Args:
        axes: Axes without ticks.
        strip: The feature.
        index: The record.
        width: Pixels that the axes are wide; more samples are drawn as the range of each pixel column.
    """
    row = np.asarray(strip.feature.values[index], np.float64)
    lines = row.T if row.ndim == 2 else row[np.newaxis]
    for number, line in enumerate(lines):
        colour = style.REFERENCE if len(lines) == 1 else style.PALETTE[number]
        if len(line) > 2 * width:
            low, high = envelope(line, width)
            axes.fill_between(np.arange(len(low)), low, high, color=colour, linewidth=0.4)
        else:
            axes.plot(line, color=colour, linewidth=0.9, solid_joinstyle="round", marker="", linestyle="-")
    span = (strip.high - strip.low) or 1.0
    if strip.audio:
        reach = max(abs(strip.low), abs(strip.high)) or 1.0
        axes.set_ylim(-reach * 1.05, reach * 1.05)
    else:
        axes.set_ylim(strip.low - 0.08 * span, strip.high + 0.08 * span)
    axes.margins(x=0.01)


def envelope(line: NDArray[Any], columns: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Lowest and highest value of each of ``columns`` pieces of a line, [columns] each."""
    starts = np.linspace(0, len(line), columns, endpoint=False).astype(int)
    return np.minimum.reduceat(line, starts), np.maximum.reduceat(line, starts)


def draw_histogram(axes: Axes, image: NDArray[Any], low: float, high: float) -> None:
    """Draw how often the values of an image occur between ``low`` and ``high``, one line a channel."""
    channels = image.shape[-1]
    colours = _CHANNEL_COLOURS.get(channels, _RGB)
    top = 0.0
    for channel in range(channels):
        values = image[..., channel].reshape(-1)
        values = values[:: max(1, values.size // 200_000)].astype(np.float64)
        counts, edges = np.histogram(values[np.isfinite(values)], bins=48, range=(low, high))
        top = max(top, float(counts.max(initial=0)))
        axes.stairs(counts, edges, color=colours[channel], linewidth=0.9)
    axes.set_ylim(0, top * 1.08 or 1.0)
    axes.set_xlim(low, high)
