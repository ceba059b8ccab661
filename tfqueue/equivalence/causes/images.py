"""Causes that show in pictures: axes, flips, crops, resizing and decoding."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tfqueue.equivalence.causes.numbers import Found
from tfqueue.equivalence.causes.pairs import Changed
from tfqueue.equivalence.leaves import Array


def image_causes(changed: Changed) -> Iterator[Found]:
    """Likely causes for one feature that may hold images, the surest first."""
    if not changed.numeric or min(a.ndim for a in (*changed.left, *changed.right)) < 2:
        return
    yield from _axes(changed)
    if changed.alike:
        yield from _crop(changed)
        yield from _decoding(changed)


def _axes(changed: Changed) -> Iterator[Found]:
    left = changed.left
    if all(a.ndim == 3 and a.shape[-1] in (3, 4) for a in left):
        order = [2, 1, 0, 3][: left[0].shape[-1]]
        if changed.explained([a[..., order] for a in left]):
            yield "channels-swapped", ("the candidate's image is the reference's with channels 0 and 2 exchanged")
            return
        for permutation in ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1)):
            if left[0].shape[-1] == 3 and changed.explained([a[..., list(permutation)] for a in left]):
                yield "channels-swapped", f"the candidate's channels are the reference's {list(permutation)}"
                return
    for words, turn in _TURNS.items():
        if changed.explained([turn(a) for a in left]):
            yield (
                ("transposed" if "transposed" in words else "flipped"),
                (f"the candidate's image is the reference's {words}"),
            )
            return
    if all(a.ndim == 3 for a in left):
        for words, axes in (("channels first", (2, 0, 1)), ("channels last", (1, 2, 0))):
            if changed.explained([np.transpose(a, axes) for a in left]):
                yield "channels-first", f"the candidate's image is the reference's with {words}"
                return
    size = {a.size for a in left} | {b.size for b in changed.right}
    if (
        len(size) == 1
        and changed.left[0].shape != changed.right[0].shape
        and changed.explained([a.reshape(b.shape) for a, b in zip(left, changed.right, strict=True)])
    ):
        yield "transposed", "the values are the same, in another shape"
        return
    if changed.alike and any(
        changed.explained([a.reshape(shape).transpose(axes).reshape(a.shape) for a in left])
        for shape, axes in _misread(left[0].shape)
    ):
        yield "channels-first", "the values are the same, read in another order of axes"


def _misread(shape: tuple[int, ...]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(shape, axes) of a reshape that takes planes for pixels, or the other way round."""
    if len(shape) != 3:
        return []
    h, w, c = shape
    return [((c, h, w), (1, 2, 0)), ((h, w, c), (2, 0, 1)), ((w, h, c), (1, 0, 2)), ((c, w, h), (2, 1, 0))]


_TURNS: dict[str, Callable[[Array], Array]] = {
    "flipped left to right": lambda a: a[:, ::-1],
    "flipped upside down": lambda a: a[::-1],
    "rotated by 180 degrees": lambda a: a[::-1, ::-1],
    "transposed (height and width exchanged)": lambda a: np.swapaxes(a, 0, 1),
    "rotated by 90 degrees": lambda a: np.rot90(a),
    "rotated by 270 degrees": lambda a: np.rot90(a, 3),
}


def _crop(changed: Changed) -> Iterator[Found]:
    height, width = changed.left[0].shape[:2]
    reach_y, reach_x = min(16, height - 2), min(16, width - 2)
    if reach_y < 1 and reach_x < 1:
        return
    found: dict[tuple[int, int], int] = {}
    for a, b in list(zip(changed.left, changed.right, strict=True))[:16]:
        step = _shift(a, b, max(reach_y, 0), max(reach_x, 0))
        if step is not None:
            found[step] = found.get(step, 0) + 1
    if not found:
        return
    total = min(16, len(changed.left))
    step = max(found, key=lambda key: found[key])
    if sum(found.values()) < 0.9 * total:
        return
    if found[step] >= 0.9 * total:
        yield "cropped", (f"the candidate's image is the reference's, moved by {step[0]} rows and {step[1]} columns")
    else:
        yield "cropped", f"the candidate's images are the reference's, moved by various steps such as {step}"


def _shift(one: Array, two: Array, reach_y: int, reach_x: int) -> tuple[int, int] | None:
    """The step by which one image is the other where they overlap, if there is one."""
    height, width = one.shape[:2]
    steps = sorted(
        ((y, x) for y in range(-reach_y, reach_y + 1) for x in range(-reach_x, reach_x + 1) if (y, x) != (0, 0)),
        key=lambda s: abs(s[0]) + abs(s[1]),
    )
    for y, x in steps:
        a = one[max(y, 0) : height + min(y, 0), max(x, 0) : width + min(x, 0)]
        b = two[max(-y, 0) : height + min(-y, 0), max(-x, 0) : width + min(-x, 0)]
        if a.size * 4 < one.size or len(np.unique(a[:2])) < 3:
            continue
        if np.array_equal(a, b) or float(np.abs(a.astype(np.float64) - b).max()) <= 1e-6 * float(np.abs(b).max()):
            return y, x
    return None


def _decoding(changed: Changed) -> Iterator[Found]:
    """What the size of small differences tells, in grey levels of 255."""
    one, two = changed.stacked
    if one[0].size < 48:
        return
    peak = max(float(np.abs(one).max()), float(np.abs(two).max()))
    levels = np.abs(two - one) * (255.0 if peak <= 1.5 else 1.0)
    if peak > 300 or levels.max() < 0.5:
        return
    share = float(np.mean(levels > 0.4))
    words = (
        f"{share:.0%} of the values differ, by {levels.mean():.2g} of 255 grey levels on average, "
        f"{levels.max():.3g} at most"
    )
    related = float(np.corrcoef(one.ravel(), two.ravel())[0, 1])
    if share > 0.05 and levels.max() <= 9 and levels.mean() <= 1.8:
        yield "jpeg-dct", words
    elif related > 0.9 and levels.mean() <= 12 and _unmoved(one, two):
        yield "re-encoded", words
    else:
        yield from resize_causes(one, two, words)


def _unmoved(one: Array, two: Array) -> bool:
    moved = _field(one, two)
    return moved is not None and all(abs(v) < 0.05 for v in moved) and abs(_sharpness(one, two) - 1) < 0.15


def resize_causes(one: Array, two: Array, words: str) -> Iterator[Found]:
    """Which resizing differs, from how far details moved: everywhere alike, more and more, or not at all.

    Args:
        one: Images of the reference, float64 of shape [records, height, width] or [records, height, width,
            channels].
        two: The candidate's, of the same shape.
        words: What to say first.
    """
    if one.ndim < 3 or min(one.shape[1:3]) < 6 or float(np.corrcoef(one.ravel(), two.ravel())[0, 1]) < 0.3:
        return
    moved = _field(one, two)
    if moved is None:
        return
    shift_y, shift_x, grow_y, grow_x = moved
    if max(abs(grow_y), abs(grow_x)) > max(0.04, 0.5 * max(abs(shift_y), abs(shift_x))):
        yield "resize-align-corners", f"{words}; details move more and more across the image"
    elif max(abs(shift_y), abs(shift_x)) > 0.04:
        yield "resize-half-pixel", (f"{words}; details move by {shift_y:.2f} rows and {shift_x:.2f} columns everywhere")
    else:
        sharper = _sharpness(one, two)
        kind = "resize-antialias" if sharper < 0.8 or sharper > 1.25 else "resize-kernel"
        yield kind, f"{words}; nothing moves, and the candidate has {sharper:.2f} times the detail"


def _grey(images: Array) -> Array:
    return np.asarray(images.reshape(*images.shape[:3], -1).mean(axis=3))


def _field(one: Array, two: Array) -> tuple[float, float, float, float] | None:
    """(rows, columns, growth of rows, of columns) by which details moved, by least squares over all images.

    Solves ``two - one = dy * d(one)/dy + dx * d(one)/dx`` with dy and dx linear in the place; the growth is
    that from the middle to the edge. First-order optical flow, after Lucas and Kanade (1981).
    """
    a, b = _grey(one), _grey(two)
    mean = (a + b) / 2
    slope_y, slope_x = np.gradient(mean, axis=1), np.gradient(mean, axis=2)
    height, width = a.shape[1:]
    y = np.linspace(-1, 1, height)[np.newaxis, :, np.newaxis]
    x = np.linspace(-1, 1, width)[np.newaxis, np.newaxis, :]
    columns = [slope_y, slope_x, slope_y * y, slope_x * x]
    matrix = np.stack([c[:, 1:-1, 1:-1].ravel() for c in columns], axis=1)
    target = (b - a)[:, 1:-1, 1:-1].ravel()
    if not np.any(matrix):
        return None
    solution = np.linalg.lstsq(matrix, target, rcond=None)[0]
    return tuple(float(v) for v in solution)  # type: ignore[return-value]


def _sharpness(one: Array, two: Array) -> float:
    """How much finest detail the second has, against the first."""
    detail = [np.abs(np.diff(_grey(images), n=2, axis=axis)).mean() for images in (one, two) for axis in (1, 2)]
    return float((detail[2] + detail[3]) / max(detail[0] + detail[1], 1e-12))
