"""Causes that show in pictures: axes, flips, crops, resizing and decoding."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tfqueue.equivalence.causes.numbers import Found
from tfqueue.equivalence.causes.pairs import Changed, close
from tfqueue.equivalence.leaves import Array

_MOST_TURNED = 4 << 20  # elements
_REACH = 16  # pixels
_WINDOW = 256  # pixels
_PEAKS = 6
_SAME_PICTURE = 1e-5  # of correlation


def image_causes(changed: Changed) -> Iterator[Found]:
    """Likely causes for one feature that may hold images, the surest first."""
    if not is_picture(changed):
        return
    yield from _axes(changed)
    if changed.alike:
        yield from _crop(changed)
        yield from _decoding(changed)


def is_picture(changed: Changed) -> bool:
    """Whether a feature has the axes of an image."""
    return changed.numeric and min(a.ndim for a in (*changed.left, *changed.right)) >= 2


def _axes(changed: Changed) -> Iterator[Found]:
    left = changed.left
    for name, words, turn in _turns(changed):
        if changed.explained([turn(a) for a in left]):
            yield name, words
            return
    yield from _sometimes_turned(changed)
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


def _turns(changed: Changed) -> Iterator[tuple[str, str, Callable[[Array], Array]]]:
    """(cause, words, what was done) for every order of axes and channels that the shapes allow."""
    left = changed.left
    if all(a.ndim == 3 and a.shape[-1] in (3, 4) for a in left):
        depth = left[0].shape[-1]
        yield (
            "channels-swapped",
            "the candidate's image is the reference's with channels 0 and 2 exchanged",
            lambda a: a[..., [2, 1, 0, 3][:depth]],
        )
        for order in ([0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1]) if depth == 3 else ():
            words = f"the candidate's channels are the reference's {order}"
            yield "channels-swapped", words, lambda a, order=order: a[..., order]  # type: ignore[misc]
    for words, turn in _TURNS.items():
        name = "transposed" if "transposed" in words else "flipped"
        yield name, f"the candidate's image is the reference's {words}", turn
    if all(a.ndim == 3 for a in left):
        for words, axes in (("channels first", (2, 0, 1)), ("channels last", (1, 2, 0))):
            said = f"the candidate's image is the reference's with {words}"
            yield "channels-first", said, lambda a, axes=axes: np.transpose(a, axes)  # type: ignore[misc]


def turned(changed: Changed) -> tuple[str, str, Changed] | None:
    """An order of axes or channels in which the candidate has the image, with other values besides.

    Returns:
        The cause, what it is concluded from, and the feature with the reference's images turned in that way; None if
        they look no more like the candidate's than before.
    """
    count = max(2, min(8, _MOST_TURNED // max(1, changed.left[0].size)))
    some = changed.first(count)
    usual = _likeness(some.left, some.right)
    best, found = 0.0, None
    for name, words, turn in _turns(some):
        like = _likeness([turn(a) for a in some.left], some.right)
        if like > best:
            best, found = like, (name, words, turn)
    if found is None or best < 0.9 or 1 - best > 0.3 * (1 - usual):
        return None
    name, words, turn = found
    return name, words, Changed(changed.name, [turn(a) for a in changed.left], changed.right, changed.records)


def _likeness(left: list[Array], right: list[Array]) -> float:
    """The mean correlation of images of one shape, which scale and offset do not change; 0 for other shapes."""
    likes = []
    for a, b in zip(left, right, strict=True):
        if a.shape != b.shape:
            return 0.0
        one, two = (np.nan_to_num(values.astype(np.float32)).ravel() for values in (a, b))
        one, two = one - one.mean(), two - two.mean()
        norm = float(np.sqrt((one @ one) * (two @ two)))
        likes.append(float(one @ two) / norm if norm else 0.0)
    return float(np.mean(likes)) if likes else 0.0


def _sometimes_turned(changed: Changed) -> Iterator[Found]:
    """Images of which some are flipped and the others are not, as random_flip leaves them."""
    if not changed.alike or len(changed.left) < 3:
        return
    for words in ("flipped left to right", "flipped upside down"):
        turn = _TURNS[words]
        flips, plain = 0, 0
        for a, b in zip(changed.left, changed.right, strict=True):
            flips += close(turn(a), b)
            plain += close(a, b)
            if not flips and not plain:
                return
        if flips and plain and flips + plain >= 0.9 * len(changed.left):
            yield "flipped", f"{flips} of {flips + plain} images of the candidate are the reference's {words}"
            return


def grey(changed: Changed) -> Iterator[Found]:
    """Pictures without colour on one side."""
    both = list(zip(changed.left, changed.right, strict=True))
    for here, there, side in ((1, 0, "candidate"), (0, 1, "reference")):
        if all(_one_channel(pair[here], pair[there]) for pair in both):
            yield "grayscale", f"the {side}'s images have one channel, the other side's have three"
            return
    if not all(a.ndim == b.ndim == 3 and a.shape == b.shape and a.shape[-1] == 3 for a, b in both):
        return
    for here, there, side in ((1, 0, "candidate"), (0, 1, "reference")):
        if all(_colourless(pair[here]) and not _colourless(pair[there]) for pair in both):
            yield "grayscale", f"the three channels of the {side}'s images are equal, the other side's are not"


def _one_channel(image: Array, other: Array) -> bool:
    """Whether an image has no channels, or a single one, where another of its size has three."""
    return other.ndim == 3 and other.shape[-1] == 3 and image.shape in (other.shape[:2], (*other.shape[:2], 1))


def _colourless(image: Array) -> bool:
    return np.array_equal(image[..., 0], image[..., 1]) and np.array_equal(image[..., 0], image[..., 2])


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
    if min(changed.left[0].shape[:2]) < 6:
        return
    pairs = list(zip(changed.left, changed.right, strict=True))[:16]
    found: dict[tuple[int, int], int] = {}
    for number, (a, b) in enumerate(pairs, start=1):
        step = _shift(a, b)
        if step is not None:
            found[step] = found.get(step, 0) + 1
        if number - sum(found.values()) > 0.1 * len(pairs) + 1:
            return
    total, told = len(pairs), sum(found.values())
    unmoved = found.pop((0, 0), 0)
    if not found or told < 0.9 * total:
        return
    step = max(found, key=lambda key: found[key])
    if found[step] >= 0.9 * (total - unmoved) and not unmoved:
        yield "cropped", f"the candidate's image is the reference's, moved by {step[0]} rows and {step[1]} columns"
    else:
        yield "cropped", f"the candidate's images are the reference's, moved by various steps such as {step}"


def _shift(one: Array, two: Array) -> tuple[int, int] | None:
    """The step by which one image is the other where they overlap, up to scale and offset, if there is one."""
    height, width = one.shape[:2]
    for y, x in _likely_steps(one, two):
        a = one[max(y, 0) : height + min(y, 0), max(x, 0) : width + min(x, 0)]
        b = two[max(-y, 0) : height + min(-y, 0), max(-x, 0) : width + min(-x, 0)]
        if a.size * 4 >= one.size and len(np.unique(a[:2])) >= 3 and 1 - _likeness([a], [b]) < _SAME_PICTURE:
            return y, x
    return None


def _likely_steps(one: Array, two: Array) -> list[tuple[int, int]]:
    """The steps at which two images are most alike, by phase correlation (Kuglin and Hines, 1975)."""
    height, width = (min(size, _WINDOW) for size in one.shape[:2])
    pictures = []
    for image in (one, two):
        part = np.nan_to_num(image[:height, :width].astype(np.float64)).reshape(height, width, -1).mean(axis=2)
        pictures.append(np.fft.rfft2(part - part.mean(), s=(2 * height, 2 * width)))
    cross = pictures[0] * np.conj(pictures[1])
    peaks = np.fft.irfft2(cross / np.maximum(np.abs(cross), 1e-12), s=(2 * height, 2 * width))
    reach_y, reach_x = min(_REACH, height - 2), min(_REACH, width - 2)
    rows = np.concatenate([np.arange(reach_y + 1), np.arange(-reach_y, 0)])
    columns = np.concatenate([np.arange(reach_x + 1), np.arange(-reach_x, 0)])
    near = peaks[np.ix_(rows, columns)]
    best = np.argsort(near, axis=None)[::-1][:_PEAKS]
    return [(int(rows[i // len(columns)]), int(columns[i % len(columns)])) for i in best.tolist()]


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
