"""What the values of a bytes_list probably are: an encoded image, a sound, text, a message, the memory of an array."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from tfqueue.records.decode import MalformedError, parse
from tfqueue.records.imagefile import image_format

_LOOKED_AT: Final = 200
_IMAGES: Final = {
    "jpeg": "JPEG",
    "png": "PNG",
    "gif": "GIF",
    "bmp": "BMP",
    "webp": "WebP",
    "tiff": "TIFF",
}
# The numbers of tensorflow/core/framework/types.proto.
_TENSOR_TYPES: Final = {
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    7: "string",
    8: "complex64",
    9: "int64",
    10: "bool",
    14: "bfloat16",
    17: "uint16",
    18: "complex128",
    19: "float16",
    22: "uint32",
    23: "uint64",
}
_RAW_DTYPES: Final = ("float32", "float64", "int64", "int32", "uint8", "uint16", "float16")


class BytesMeaning:
    """Collects the values of one feature, and says what fits all of them."""

    def __init__(self) -> None:
        self._kinds: set[str] | None = None
        self._images: set[str] = set()
        self._others = False
        self._seen = 0
        self._sizes: set[int] = set()
        self._sample = b""
        self._fits: dict[tuple[str, ...], bool] = {}

    def add(self, value: bytes, numbers: Mapping[str, int]) -> None:
        """Looks at a value.

        Args:
            value: The bytes.
            numbers: The scalar int64 features of the same record, among which there may be height and width.
        """
        if self._seen >= _LOOKED_AT:
            return
        self._seen += 1
        image = image_format(value)
        if image:
            self._images.add(image)
        self._others = self._others or not image
        kinds = _kinds_of(value)
        self._kinds = kinds if self._kinds is None else self._kinds & kinds
        if len(self._sizes) < 3:
            self._sizes.add(len(value))
        self._sample = value if len(value) > len(self._sample) else self._sample
        for names, items in _sizes_by_names(numbers).items():
            fits = items > 0 and len(value) % items == 0 and len(value) // items in (1, 2, 4, 8)
            self._fits[names] = self._fits.get(names, True) and fits

    def words(self) -> str:
        """Returns the likely meaning, in words; "bytes" if nothing is known."""
        if self._images and not self._others:
            return f"{' or '.join(_IMAGES[image] for image in sorted(self._images))} image"
        kinds = self._kinds or set()
        for word in sorted(kinds):
            if word != "UTF-8 text":
                return word
        by_names = next((names for names, fits in self._fits.items() if fits), None)
        # A raw array may happen to be text, but not with a size that its neighbours give.
        if by_names is None and "UTF-8 text" in kinds:
            return "UTF-8 text"
        if by_names is not None:
            return f"raw array of shape [{', '.join(by_names)}]"
        shapes = fitting_arrays(self._sample) if len(self._sizes) == 1 else []
        return f"raw array? {' or '.join(shapes)}" if shapes else "bytes"


def _kinds_of(value: bytes) -> set[str]:
    if value[:4] == b"RIFF" and value[8:12] == b"WAVE":
        return {"WAV sound"}
    found = {_tensor(value), _message(value)} - {""}
    if is_text(value):
        found.add("UTF-8 text")
    return found


def is_text(value: bytes) -> bool:
    """Says whether these bytes are UTF-8 without control characters other than white space."""
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return all(character >= " " or character in "\t\r\n" for character in text)


def _message(value: bytes) -> str:
    if len(value) < 2 or value[0] != 0x0A:
        return ""
    try:
        message = parse(value)
    except MalformedError:
        return ""
    if not message.context and not message.sequences:
        return ""
    return "serialized tf.train.Example" if message.sequences is None else "serialized tf.train.SequenceExample"


def _tensor(value: bytes) -> str:
    """Recognises tf.io.serialize_tensor: a TensorProto begins with its dtype (field 1), then its shape (field 2)."""
    if len(value) < 4 or value[0] != 0x08 or value[1] not in _TENSOR_TYPES or value[2] != 0x12:
        return ""
    # Dimensions are short messages, so that the length of the shape is one byte.
    return f"serialized {_TENSOR_TYPES[value[1]]} tensor" if value[3] < 128 and 4 + value[3] <= len(value) else ""


def _sizes_by_names(numbers: Mapping[str, int]) -> dict[tuple[str, ...], int]:
    """Returns the number of items of the arrays whose dimensions stand in features called height, width, ..."""
    named = {name.rpartition("/")[2].lower(): (name, value) for name, value in numbers.items()}
    dims = [
        next((named[word] for word in words if word in named), None)
        for words in (("height", "rows", "h"), ("width", "cols", "columns", "w"), ("channels", "depth", "c"))
    ]
    if dims[0] is None or dims[1] is None:
        return {}
    known = [dim for dim in dims if dim is not None]
    sizes = {tuple(name for name, _ in known): math.prod(value for _, value in known)}
    if dims[2] is None:
        sizes[known[0][0], known[1][0], "3"] = 3 * known[0][1] * known[1][1]
    return sizes


def fitting_arrays(value: bytes) -> list[str]:
    """Returns the dtypes and shapes of which these bytes may be the memory, the likeliest first, three at most."""
    plausible = []
    possible = []
    for name in _RAW_DTYPES:
        dtype = np.dtype(name)
        if not value or len(value) % dtype.itemsize:
            continue
        array = np.frombuffer(value, dtype)
        text = f"{name} {_shape(array.size)}"
        if _looks_like_numbers(array):
            plausible.append(text)
        elif name == "uint8":
            possible.append(text)
    return (plausible + possible)[:3]


def _looks_like_numbers(array: np.ndarray) -> bool:
    """Says whether the values are of sizes that people store; bytes read as the wrong dtype hardly ever are."""
    if array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # signalling NaNs
            size = np.abs(array.astype(np.float64))
        return bool(
            np.isfinite(size).all() and size.max() > 1e-6 and (((size > 1e-8) & (size < 1e8)) | (size == 0)).all()
        )
    if array.dtype.itemsize >= 4:
        return bool((np.abs(array.astype(np.float64)) < 1e7).all())
    return False


def _shape(items: int) -> str:
    """Guesses a picture: square, with one, three or four channels; else a vector."""
    for channels in (3, 1, 4):
        side = math.isqrt(items // channels)
        if side >= 8 and side * side * channels == items:
            return f"[{side}, {side}, {channels}]"
    return f"[{items}]"
