"""Drawing pairs of images: reference, candidate and their difference, row by row."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
from matplotlib.colors import LinearSegmentedColormap, Normalize
from numpy.typing import NDArray

from tfqueue.views import style
from tfqueue.views.pixels import ValueRange, to_pixels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GAP = 0.15
_BLOCK_GAP = 0.45
_SIDE = 2.1
_PITCH_GAP = 0.2
_LEGEND = 0.32
_BLOCK_VALUES = 4_000_000
# More pairs would be higher than the 65,535 pixels that Agg can draw.
LIMIT = 100
# From paper to ink through the candidate's colour: no difference is white, in print as on screen.
_DIFFERENCE = LinearSegmentedColormap.from_list(
    "difference", [style.PAPER, "#fbd3a8", style.CANDIDATE, "#5c1a00", "#000000"]
)
_CHANNELS = {1: ("grey",), 2: ("first", "second"), 3: ("red", "green", "blue"), 4: ("red", "green", "blue", "alpha")}


@dataclass(frozen=True, slots=True)
class ImageDifference:
    """How far one image is from another.

    Attributes:
        largest: Largest absolute difference of values that are finite on both sides, in the units of the reference.
        mean: Mean absolute difference of those values.
        unlike: Number of values that are NaN or infinite on one side and not the same on the other; all of the
            values where the shapes differ.
        words: What is written over the picture.
    """

    largest: float
    mean: float
    unlike: int
    words: str

    @property
    def differs(self) -> bool:
        return self.largest > 0 or self.unlike > 0


@dataclass(frozen=True, slots=True)
class Pair:
    """One record of both sides.

    Attributes:
        number: What the record is called, ``"#12"``.
        reference: Its image in the reference [height, width, channels], or None.
        candidate: Its image in the candidate, or None.
        difference: How far they are apart.
        label: Its label in the reference, or None.
        other_label: Its label in the candidate, or None.
    """

    number: str
    reference: NDArray[Any] | None
    candidate: NDArray[Any] | None
    difference: ImageDifference
    label: str | None = None
    other_label: str | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        picture = self.reference if self.reference is not None else self.candidate
        return picture.shape if picture is not None else (1, 1, 1)

    @property
    def comparable(self) -> bool:
        """Whether there is a difference to draw."""
        return (
            self.reference is not None and self.candidate is not None and self.reference.shape == self.candidate.shape
        )


def image_difference(reference: NDArray[Any], candidate: NDArray[Any]) -> ImageDifference:
    """Largest and mean absolute difference of two images; NaN equals NaN, infinity only itself."""
    if reference.shape != candidate.shape:
        sizes = ["×".join(map(str, picture.shape)) for picture in (reference, candidate)]
        return ImageDifference(0.0, 0.0, reference.size, f"shape {sizes[0]} became {sizes[1]}")
    largest, total, compared, unlike = 0.0, 0.0, 0, 0
    for rows in _row_blocks(reference, 1):
        change = absolute_difference(reference[rows], candidate[rows])
        finite = np.isfinite(change)
        if not finite.all():
            unlike += change.size - int(finite.sum())
            change = change[finite]
        largest = max(largest, float(change.max(initial=0)))
        with np.errstate(over="ignore"):
            total += float(change.sum(dtype=np.float64))
        compared += change.size
    mean = total / compared if compared else 0.0
    parts = [f"{unlike} NaN or infinite on one side"] * bool(unlike)
    parts += [f"max {largest:.4g}, mean {mean:.3g}"] * bool(largest)
    return ImageDifference(largest, mean, unlike, "; ".join(parts) or "equal")


def _row_blocks(picture: NDArray[Any], step: int) -> Iterator[slice]:
    """Blocks of rows, each a multiple of ``step``: a large image is not copied whole into a wider type."""
    rows = max(1, _BLOCK_VALUES // max(1, picture[0].size) // step) * step
    return (slice(start, start + rows) for start in range(0, len(picture), rows))


def absolute_difference(reference: NDArray[Any], candidate: NDArray[Any]) -> NDArray[Any]:
    """``|candidate - reference|`` without wrap-around; inf where one side is finite or infinities differ."""
    if reference.dtype == candidate.dtype == np.uint8:
        # Many times faster than by way of a wider type, which matters for large images.
        return np.asarray(cv2.absdiff(np.ascontiguousarray(reference), np.ascontiguousarray(candidate))).reshape(
            reference.shape
        )
    wide = np.float32 if max(reference.dtype.itemsize, candidate.dtype.itemsize) <= 2 else np.float64
    with np.errstate(invalid="ignore", over="ignore"):
        change: NDArray[Any] = np.abs(candidate.astype(wide) - reference.astype(wide))
    if reference.dtype.kind == "f" or candidate.dtype.kind == "f":
        odd = ~np.isfinite(change)
        same = (reference == candidate) | (np.isnan(reference) & np.isnan(candidate))
        change[odd] = np.where(same[odd], 0.0, np.inf)
    return change


def difference_pixels(
    reference: NDArray[Any], candidate: NDArray[Any], scale: float, *, most: int | None = None
) -> NDArray[np.uint8]:
    """The difference of two images of one shape as 8-bit RGB: white for none, black for ``scale`` and more.

    Where one side is not finite (and the other side not the same) it is painted in the colour of such values.
    """
    # The largest difference of an area must not vanish when the picture is made smaller.
    step = 1 if most is None else math.ceil(max(reference.shape[:2]) / most)
    columns = range(0, reference.shape[1], step)
    parts = []
    for rows in _row_blocks(reference, step):
        block = absolute_difference(reference[rows], candidate[rows]).max(axis=-1)
        block = np.maximum.reduceat(block, range(0, len(block), step), axis=0)
        parts.append(np.maximum.reduceat(block, columns, axis=1))
    change = np.concatenate(parts)
    odd = ~np.isfinite(change)
    change[odd] = 0
    coloured = _DIFFERENCE(Normalize(0, scale or 1, clip=True)(change), bytes=True)[..., :3]
    pixels: NDArray[np.uint8] = np.ascontiguousarray(coloured, dtype=np.uint8)
    pixels[odd] = style.NON_FINITE
    return pixels


@dataclass(frozen=True, slots=True)
class Sheet:
    """Where pairs of images go: blocks of rows, each row with reference, candidate and differences.

    Attributes:
        pairs: The records, in order.
        shown: The values that are drawn as black and as white, on both sides.
        scale: Difference that is drawn in black; None takes the largest of each record.
        channels: Draw one difference for each channel.
        words: What is written under a pair, by its number.
    """

    pairs: Sequence[Pair]
    shown: ValueRange
    scale: float | None = None
    channels: bool = False
    words: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Heading and colour of each column."""
        found = [("reference", style.REFERENCE), ("candidate", style.CANDIDATE)]
        if not self.channels:
            return [*found, ("difference", style.INK)]
        count = max(pair.shape[-1] for pair in self.pairs)
        return found + [(f"difference in {name}", style.INK) for name in _CHANNELS[count]]

    @property
    def picture(self) -> tuple[float, float]:
        """Inches of one picture: width and height."""
        shapes = [pair.shape for pair in self.pairs]
        aspect = min(4.0, max(1 / 4, max(s[1] for s in shapes) / max(s[0] for s in shapes)))
        width = max(1.5, min(3.2, _SIDE * math.sqrt(aspect)))
        return width, width / aspect

    @property
    def blocks(self) -> int:
        # Few records leave room for larger pictures; many stand in two blocks side by side.
        return 2 if len(self.pairs) > 4 and len(self.columns) == 3 else 1

    @property
    def rows(self) -> int:
        return math.ceil(len(self.pairs) / self.blocks)

    @property
    def width(self) -> float:
        return self.blocks * self._block + (self.blocks - 1) * _BLOCK_GAP

    @property
    def height(self) -> float:
        line = style.BODY * style.POINT * style.LINE
        return line + 0.08 + self.rows * self._pitch + (_LEGEND if self._scaled else 0)

    @property
    def _block(self) -> float:
        return len(self.columns) * self.picture[0] + (len(self.columns) - 1) * _GAP

    @property
    def _pitch(self) -> float:
        below = style.SMALL * style.POINT * style.LINE if self.words else 0
        return style.BODY * style.POINT * style.LINE + self.picture[1] + below + _PITCH_GAP

    @property
    def _scaled(self) -> bool:
        return any(pair.comparable and pair.difference.largest for pair in self.pairs)

    def draw(self, figure: Figure, top: float) -> None:
        """Draw everything with the upper edge ``top`` inches below that of the figure."""
        line = style.BODY * style.POINT * style.LINE
        width = self.picture[0]
        lefts = [style.MARGIN + block * (self._block + _BLOCK_GAP) for block in range(self.blocks)]
        for left in lefts:
            for column, (words, colour) in enumerate(self.columns):
                start = left + column * (width + _GAP)
                style.write(figure, start, top, words, colour=colour, weight="bold", width=width)
        top += line + 0.08
        for position, pair in enumerate(self.pairs):
            block, row = divmod(position, self.rows)
            self._draw_pair(figure, pair, lefts[block], top + row * self._pitch)
        if self._scaled:
            self._draw_legend(figure, style.MARGIN, top + self.rows * self._pitch)

    def _draw_pair(self, figure: Figure, pair: Pair, left: float, top: float) -> None:
        width, height = self.picture
        line = style.BODY * style.POINT * style.LINE
        most = 2 * math.ceil(max(width, height) * style.DPI)
        self._write_titles(figure, pair, left, top)
        for column, (name, _) in enumerate(self.columns):
            axes = style.picture_axes(figure, left + column * (width + _GAP), top + line, width, height)
            axes.set_label(f"{name} {pair.number}")
            pixels = self._pixels(pair, column, most)
            if pixels is None:
                axes.set_axis_off()
            else:
                show_pixels(axes, pixels)
        if pair.number in self.words:
            words, under = self.words[pair.number], top + line + height + 0.03
            style.write(figure, left, under, words, size=style.SMALL, colour=style.ALARM, width=self._block)

    def _pixels(self, pair: Pair, column: int, most: int) -> NDArray[np.uint8] | None:
        if column < 2:
            picture = (pair.reference, pair.candidate)[column]
            return None if picture is None else to_pixels(picture, self.shown, most=most)
        if pair.reference is None or pair.candidate is None or not pair.comparable:
            return None
        one, other = pair.reference, pair.candidate
        if self.channels:
            channel = column - 2
            if channel >= one.shape[-1]:
                return None
            one, other = one[..., channel : channel + 1], other[..., channel : channel + 1]
        return difference_pixels(one, other, self.scale or pair.difference.largest, most=most)

    def _write_titles(self, figure: Figure, pair: Pair, left: float, top: float) -> None:
        width = self.picture[0]
        same = pair.label is None or pair.other_label is None or pair.label == pair.other_label
        number = style.inches(pair.number, style.SMALL)
        room = width - (number + 0.06 if pair.label is not None else 0)
        style.write(figure, left, top, pair.label or pair.number, weight="bold", width=room)
        if pair.label is not None:
            style.write(
                figure, left + width, top + 0.02, pair.number, size=style.SMALL, colour=style.MUTED, align="right"
            )
        style.write(
            figure,
            left + width + _GAP,
            top,
            pair.other_label or "",
            colour=style.MUTED if same else style.ALARM,
            weight="normal" if same else "bold",
            width=width,
        )
        style.write(
            figure,
            left + 2 * (width + _GAP),
            top + 0.025,
            pair.difference.words,
            size=style.SMALL,
            colour=style.INK if pair.difference.differs else style.MUTED,
            width=width,
        )

    def _draw_legend(self, figure: Figure, left: float, top: float) -> None:
        axes = style.picture_axes(figure, left, top, 2.4, 0.1)
        ramp = _DIFFERENCE(np.linspace(0, 1, 256))[np.newaxis]
        axes.imshow(ramp, aspect="auto", interpolation="nearest", origin="upper")
        axes.set_label("scale of the difference")
        end = "max of each record" if self.scale is None else f"{self.scale:.4g} and more"
        for words, position, align in [("equal", left, "left"), (end, left + 2.4, "right")]:
            style.write(figure, position, top + 0.13, words, size=style.SMALL, colour=style.MUTED, align=align)


def show_pixels(axes: Axes, pixels: NDArray[np.uint8]) -> None:
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
