"""Finding the images of a batch: arrays in either layout, encoded files, raw bytes with a shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from tfqueue.errors import InvalidArgument, InvalidImage
from tfqueue.views.features import Feature, holds_arrays, holds_bytes
from tfqueue.views.pixels import ValueRange, assume_range

_IMAGE_WORDS = frozenset(
    {"image", "images", "img", "imgs", "picture", "photo", "pixels", "frame", "encoded", "x", "raw"}
)
_MAGIC = {
    b"\xff\xd8\xff": "JPEG",
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"GIF8": "GIF",
    b"BM": "BMP",
    b"RIFF": "WebP",
    b"II*\x00": "TIFF",
    b"MM\x00*": "TIFF",
}
_HEIGHT, _WIDTH = frozenset({"height", "rows", "h"}), frozenset({"width", "cols", "columns", "w"})
_DEPTH, _SHAPE = frozenset({"depth", "channels", "channel", "c"}), frozenset({"shape", "size", "dims"})
_SMALLEST_GUESS = 8

Reader = Callable[[int], list[Any]]

# The function has moved between OpenCV 4 and 5; it returns the level before.
_set_log_level: Any = cv2.utils.logging.setLogLevel if hasattr(cv2.utils, "logging") else cv2.setLogLevel  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Pictures:
    """The images of one feature of a batch.

    Attributes:
        feature: The feature that they were found in.
        total: Number of records of the batch.
        images: One array [height, width, channels] a record, for the records that are to be shown.
        form: Layout, dtype and shape in words.
        range: What is shown as black and as white, common to all of them.
        used: Names of the other features that were needed to read them (height, width, shape).
        failures: What is wrong with images that cannot be decoded, by position; these are one grey pixel.
        notes: What was guessed.
    """

    feature: Feature
    total: int
    images: Sequence[NDArray[Any]]
    form: str
    range: ValueRange
    used: frozenset[str] = frozenset()
    failures: Mapping[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Reading:
    """One way to take a feature as images.

    Attributes:
        score: How likely it is meant so.
        read: Gives the images of the first so many records; a string in place of one that cannot be read.
        form: How the images are stored, in words, or "" for plain arrays.
        used: Names of the features that tell the shape.
        notes: What was guessed.
    """

    score: float
    read: Reader
    form: str = ""
    used: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


def find_images(
    features: Sequence[Feature],
    *,
    image: str | None = None,
    value_range: tuple[float, float] | None = None,
    n: int | None = None,
) -> Pictures:
    """The images of a batch.

    Args:
        features: The features of the batch.
        image: Name of the feature that holds the images; None finds the likeliest.
        value_range: Values to show as black and as white; None assumes a range from the values.
        n: Read the images of the first ``n`` records only; None reads all.

    Raises:
        InvalidImage: No feature holds images, or none of them can be decoded; the message says which features
            there are, or what the bytes are.
        InvalidArgument: The batch is empty, there is no feature named ``image``, or ``value_range`` is no
            range.
    """
    if value_range is not None and not value_range[0] < value_range[1]:
        raise InvalidArgument(f"value_range={value_range!r}: expected (low, high) with low < high")
    candidates = list(features)
    if image is not None:
        candidates = [feature for feature in features if feature.name == image]
        if not candidates:
            raise InvalidArgument(f"image={image!r}: no such feature; there are {listing(features)}")
    readings = [(_reading(feature, features), feature) for feature in candidates]
    found = [(reading, feature) for reading, feature in readings if reading is not None]
    if not found:
        where = "the batch" if image is None else f"feature {image!r}"
        raise InvalidImage(
            f"no image found in {where}; expected a feature [n, height, width, channels] with 1 to 4 "
            "channels, [n, channels, height, width], [n, height, width], or encoded bytes; "
            f"there are {listing(features)}"
        )
    reading, best = max(found, key=lambda pair: pair[0].score)
    if not len(best.values):
        raise InvalidArgument(f"the batch is empty: feature {best.name!r} has shape {list(best.values.shape)}")
    count = len(best.values) if n is None else min(n, len(best.values))
    read = reading.read(count)
    failures = {position: words for position, words in enumerate(read) if isinstance(words, str)}
    good = [picture for picture in read if not isinstance(picture, str)]
    if not good:
        raise InvalidImage(f"no image of feature {best.name!r} can be read; the first one: {failures[0]}")
    if any(not picture.size for picture in good):
        raise InvalidImage(f"the images of feature {best.name!r} have no pixels: shape {list(good[0].shape)}")
    blank = np.full((1, 1, 1), 0, good[0].dtype)
    images = [blank if position in failures else picture for position, picture in enumerate(read)]
    if value_range is None:
        assumed = assume_range(good)
    else:
        low, high = value_range
        assumed = ValueRange(float(low), float(high), f"{low:g}..{high:g} as given")
    form = f"{reading.form} {good[0].dtype} {_shapes(good)}".strip()
    return Pictures(best, len(best.values), images, form, assumed, reading.used, failures, reading.notes)


def listing(features: Sequence[Feature]) -> str:
    """The features with dtype and shape, in words."""
    return "; ".join(feature.describe() for feature in features) or "no features at all"


def _shapes(images: Sequence[NDArray[Any]]) -> str:
    shapes = sorted({picture.shape for picture in images})
    words = ["×".join(map(str, shape)) for shape in (shapes[0], shapes[-1])]
    return words[0] if len(shapes) == 1 else f"{words[0]} to {words[1]}"


def _reading(feature: Feature, features: Sequence[Feature]) -> _Reading | None:
    """The likeliest way to take a feature as images, or None if it cannot be one."""
    values = feature.values
    if not values.ndim:
        return None
    bonus = 0.4 if _IMAGE_WORDS & feature.words else 0.0
    if holds_bytes(values):
        return _bytes_reading(feature, features, bonus)
    if holds_arrays(values):
        layouts = {layout_of(row.shape) if row.dtype.kind in "biuf" else None for row in values}
        if len(layouts) != 1 or None in layouts:
            return None
        layout = layouts.pop()
        return _Reading(4 + bonus, lambda n: [arranged(row, str(layout)) for row in values[:n]], _named(layout))
    if values.dtype.kind not in "biuf":
        return None
    if values.ndim in (3, 4):
        layout = layout_of(values.shape[1:])
        if layout is None:
            return None
        score = 4.0 if values.ndim == 4 else 2.0
        if values.ndim == 3 and values.dtype.kind == "f" and min(values.shape[1:]) < _SMALLEST_GUESS:
            # A few columns of floats are far more often a sequence of vectors than an image.
            score = 0.5
        score += {"u": 0.5, "f": 0.3}.get(values.dtype.kind, 0) + bonus
        return _Reading(score, lambda n: [arranged(row, layout) for row in values[:n]], _named(layout))
    if values.ndim == 2 and values.shape[1] >= _SMALLEST_GUESS**2:
        return _flat_reading(feature, features, bonus)
    return None


def layout_of(shape: tuple[int, ...]) -> str | None:
    """How an array of one record can be an image: ``"HW"``, ``"HWC"``, ``"CHW"``, or None if it cannot."""
    if len(shape) == 2:
        return "HW"
    if len(shape) != 3:
        return None
    if 1 <= shape[2] <= 4:
        return "HWC"
    return "CHW" if 1 <= shape[0] <= 4 else None


def arranged(picture: NDArray[Any], layout: str) -> NDArray[Any]:
    """An image as [height, width, channels]."""
    if layout == "HW":
        return picture[..., np.newaxis]
    return picture.transpose(1, 2, 0) if layout == "CHW" else picture


def _named(layout: str | None) -> str:
    return "channels first" if layout == "CHW" else ""


def _bytes_reading(feature: Feature, features: Sequence[Feature], bonus: float) -> _Reading | None:
    values = feature.values.reshape(len(feature.values), -1)
    if values.shape[1] != 1:
        return None
    items = values[:, 0]
    kinds = {kind for item in items if (kind := encoding(item)) is not None}
    if kinds:
        return _Reading(4.5 + bonus, lambda n: [decode(item) for item in items[:n]], " and ".join(sorted(kinds)))
    shapes, used = _shapes_beside(feature, features)
    lengths = {len(item) for item in items}
    if shapes is not None:
        first = _dtype_for(len(items[0]), shapes[0])
        if first is not None:
            return _Reading(4.2 + bonus, lambda n: _from_memory(items[:n], shapes, first), "raw bytes,", used)
    if len(lengths) == 1 and (bonus or len(features) <= 2):
        shape = guess_shape(lengths.pop())
        if shape is not None:
            return _guessed([np.frombuffer(item, np.uint8) for item in items], shape, 1.5 + bonus, "raw bytes,")
    return None


def _flat_reading(feature: Feature, features: Sequence[Feature], bonus: float) -> _Reading | None:
    values = feature.values
    shapes, used = _shapes_beside(feature, features)
    if shapes is not None and all(math.prod(shape) == values.shape[1] for shape in shapes):
        return _Reading(
            4 + bonus,
            lambda n: [row.reshape(shape) for row, shape in zip(values[:n], shapes, strict=False)],
            "flat values,",
            used,
        )
    # Without a shape beside it, only a name or the values of pixels say that a row of numbers is an image.
    if not bonus and values.dtype != np.uint8 and not _pixel_like(values):
        return None
    shape = guess_shape(values.shape[1])
    return None if shape is None else _guessed(list(values), shape, 1 + bonus, "flat values,")


def _pixel_like(values: NDArray[Any]) -> bool:
    """Whether flat floats fill 0..1 or 0..255 as pixels do, with black ones among them; embeddings do not."""
    if values.dtype.kind != "f" or not values.size:
        return False
    sample = values[:16]
    low, high = float(sample.min()), float(sample.max())
    return low == 0 and (0.5 < high <= 1 or 64 < high <= 255)


def _guessed(rows: list[NDArray[Any]], shape: tuple[int, int, int], score: float, form: str) -> _Reading:
    planar = shape[2] > 1 and is_planar(rows, shape)
    height, width, channels = shape
    order = "one channel after the other" if planar else "pixel by pixel"
    note = f"Shape guessed from the number of values: {height}×{width}×{channels}"
    note += f", {order}." if channels > 1 else "."

    def read(n: int) -> list[Any]:
        if planar:
            return [arranged(row.reshape(channels, height, width), "CHW") for row in rows[:n]]
        return [row.reshape(shape) for row in rows[:n]]

    return _Reading(score, read, form, notes=(note,))


def guess_shape(count: int) -> tuple[int, int, int] | None:
    """The square image of 1, 3 or 4 channels that has ``count`` values, or None."""
    for channels in (1, 3, 4):
        side = math.isqrt(count // channels)
        if side >= _SMALLEST_GUESS and side * side * channels == count:
            return side, side, channels
    return None


def is_planar(rows: Sequence[NDArray[Any]], shape: tuple[int, int, int]) -> bool:
    """Whether flat values are smoother read one channel after the other (as in CIFAR-10's files)."""
    height, width, channels = shape
    sample = np.stack([row.reshape(-1) for row in rows[:16]]).astype(np.float64)
    by_pixel = sample.reshape(-1, height, width, channels)
    by_plane = sample.reshape(-1, channels, height, width)
    return bool(np.abs(np.diff(by_plane, axis=3)).mean() < np.abs(np.diff(by_pixel, axis=2)).mean())


def _shapes_beside(
    feature: Feature, features: Sequence[Feature]
) -> tuple[list[tuple[int, int, int]] | None, frozenset[str]]:
    """The shape of each record's image as other features tell it, and the names of those."""
    count = len(feature.values)
    numbers = [
        other
        for other in features
        if other is not feature and other.values.dtype.kind in "iu" and len(other.values.shape) in (1, 2)
        and len(other.values) == count
    ]  # fmt: skip

    def named(words: frozenset[str], width: tuple[int, ...]) -> Feature | None:
        return next((f for f in numbers if words & f.words and math.prod(f.values.shape[1:]) in width), None)

    height, breadth = named(_HEIGHT, (1,)), named(_WIDTH, (1,))
    if height is not None and breadth is not None:
        depth = named(_DEPTH, (1,))
        parts = [height, breadth] + ([depth] if depth is not None else [])
        columns = [part.values.reshape(count).astype(int) for part in parts]
        if depth is None:
            sizes = columns[0] * columns[1]
            known = _lengths(feature)
            columns.append(np.where(sizes > 0, known // np.maximum(sizes, 1), 1))
        shapes = [(int(a), int(b), int(c)) for a, b, c in zip(*columns, strict=True)]
        return (shapes if all(min(shape) > 0 for shape in shapes) else None), frozenset(p.name for p in parts)
    shape = named(_SHAPE, (2, 3))
    if shape is None:
        return None, frozenset()
    rows = shape.values.astype(int)
    shapes = [(int(row[0]), int(row[1]), int(row[2]) if len(row) > 2 else 1) for row in rows]
    return (shapes if all(min(s) > 0 for s in shapes) else None), frozenset({shape.name})


def _lengths(feature: Feature) -> NDArray[Any]:
    values = feature.values
    if holds_bytes(values):
        return np.array([len(item) for item in values.reshape(-1)])
    return np.full(len(values), values.shape[1])


def _dtype_for(length: int, shape: tuple[int, int, int]) -> np.dtype[Any] | None:
    count = math.prod(shape)
    for dtype in (np.uint8, np.uint16, np.float32, np.float64):
        if count * np.dtype(dtype).itemsize == length:
            return np.dtype(dtype)
    return None


def _from_memory(items: Any, shapes: Sequence[tuple[int, int, int]], dtype: np.dtype[Any]) -> list[Any]:
    read: list[Any] = []
    for item, shape in zip(items, shapes, strict=False):
        if len(item) == math.prod(shape) * dtype.itemsize:
            read.append(np.frombuffer(item, dtype).reshape(shape))
        else:
            needed = math.prod(shape) * dtype.itemsize
            read.append(f"{len(item)} bytes, but {'×'.join(map(str, shape))} {dtype} needs {needed}")
    return read


def encoding(item: bytes | str) -> str | None:
    """The format of an encoded image by its first bytes, or None."""
    if isinstance(item, str):
        return None
    return next((kind for magic, kind in _MAGIC.items() if item.startswith(magic) and len(item) > 20), None)


def decode(item: bytes) -> NDArray[Any] | str:
    """An encoded image as [height, width, channels], channels in the order red, green, blue, alpha.

    As TensorFlow does, the orientation in a JPEG's EXIF data is not obeyed. Pixels may be a few grey levels
    off those of tf.image.decode_jpeg, whose default DCT method is another.

    Returns:
        The image, or what is wrong with the bytes, in words.
    """
    # OpenCV writes to standard error what is wrong with a broken file; here it is said in the picture.
    level = _set_log_level(0)
    try:
        picture = cv2.imdecode(np.frombuffer(item, np.uint8), cv2.IMREAD_UNCHANGED)
    except cv2.error as error:
        return f"{len(item)} bytes that OpenCV cannot decode: {error.err}"
    finally:
        _set_log_level(level)
    if picture is None:
        return f"{len(item)} bytes that are no whole {encoding(item) or 'image'}"
    if picture.ndim == 2:
        return picture[..., np.newaxis]
    if picture.shape[2] == 4:
        return cv2.cvtColor(picture, cv2.COLOR_BGRA2RGBA)
    return cv2.cvtColor(picture, cv2.COLOR_BGR2RGB) if picture.shape[2] == 3 else picture
