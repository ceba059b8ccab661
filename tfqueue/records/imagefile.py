"""What an encoded image is: its format, size, channels and orientation, and its pixels, by OpenCV."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tfqueue.errors import InvalidImage

_SOF_MARKERS = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_PNG_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}
_ORIENTATION_TAG = 0x0112


@dataclass(frozen=True, slots=True)
class ImageFile:
    """An encoded image.

    Attributes:
        format: "jpeg", "png", "gif", "bmp", "webp" or "tiff"; "" if OpenCV reads it but the kind is unknown.
        height: In pixels, as stored: an EXIF orientation is not applied.
        width: In pixels, as stored.
        channels: As stored: 1 grey, 2 grey and alpha, 3 colour, 4 colour and alpha (or CMYK in a JPEG).
        orientation: The EXIF orientation, 1 to 8; 1 is upright, also where the file says nothing.
    """

    format: str
    height: int
    width: int
    channels: int
    orientation: int = 1


def image_format(data: bytes) -> str:
    """Returns the format of an image by its first bytes, or "" if they are those of no known one."""
    if data.startswith(b"\xff\xd8\xff"):
        return "jpeg"
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    if data.startswith((b"II*\0", b"MM\0*")):
        return "tiff"
    if data.startswith(b"BM"):
        return "bmp"
    return ""


def inspect(data: bytes, *, name: str) -> ImageFile:
    """Decodes an image and says what it is.

    Args:
        data: The bytes of the file.
        name: Its name, for the error.

    Raises:
        InvalidImage: It is no image, or one that is cut or damaged.
    """
    pixels = decode(data, name=name)
    height, width = pixels.shape[:2]
    channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    kind = image_format(data)
    # OpenCV converts what TensorFlow gives as it is stored: CMYK and grey with alpha.
    stored = {"jpeg": _jpeg_channels, "png": _png_channels}.get(kind)
    if stored is not None:
        channels = stored(data) or channels
    return ImageFile(kind, height, width, channels, exif_orientation(data) if kind == "jpeg" else 1)


def decode(data: bytes, *, name: str) -> npt.NDArray[Any]:
    """Returns the pixels as OpenCV gives them: [height, width] or [height, width, channels], BGR, as stored.

    Raises:
        InvalidImage: It is no image, or one that is cut or damaged.
    """
    import cv2

    if not data:
        raise InvalidImage(f"{name!r} is empty; expected an image")
    try:
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    except cv2.error as error:
        raise InvalidImage(f"{name!r} is an image that cannot be decoded: {error.err}") from error
    if pixels is None:
        from tfqueue.records.sniffing import sniff_bytes

        kind = image_format(data)
        if kind:
            words = "" if kind in ("jpeg", "png") else f", or of a kind that OpenCV {cv2.__version__} does not read"
            raise InvalidImage(f"{name!r} is a {kind} image that is cut or damaged{words}")
        raise InvalidImage(f"{name!r} is no image; it is {sniff_bytes(data[:4096]).words}")
    return np.asarray(pixels)


def exif_orientation(data: bytes) -> int:
    """Returns the EXIF orientation of a JPEG, 1 to 8; 1 (upright) also where it has none."""
    for marker, start, end in _jpeg_segments(data):
        if marker == 0xE1 and data[start : start + 6] == b"Exif\0\0":
            return _tiff_orientation(data[start + 6 : end])
    return 1


def _tiff_orientation(tiff: bytes) -> int:
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None or len(tiff) < 8:
        return 1
    (first,) = struct.unpack_from(order + "I", tiff, 4)
    if first + 2 > len(tiff):
        return 1
    (count,) = struct.unpack_from(order + "H", tiff, first)
    for entry in range(first + 2, min(first + 2 + 12 * count, len(tiff) - 11), 12):
        tag, kind, _, value = struct.unpack_from(order + "HHIH", tiff, entry)
        if tag == _ORIENTATION_TAG and kind == 3:
            return int(value) if 1 <= value <= 8 else 1
    return 1


def _jpeg_channels(data: bytes) -> int:
    for marker, start, end in _jpeg_segments(data):
        if marker in _SOF_MARKERS and end - start >= 6:
            return data[start + 5]
    return 0


def _png_channels(data: bytes) -> int:
    return _PNG_CHANNELS.get(data[25], 0) if len(data) > 25 else 0


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yields marker, start and end of the segments in front of the picture itself."""
    position = 2
    while position + 4 <= len(data) and data[position] == 0xFF:
        marker = data[position + 1]
        if marker == 0xFF:  # padding
            position += 1
            continue
        if marker == 0xDA:
            return
        (length,) = struct.unpack_from(">H", data, position + 2)
        end = position + 2 + length
        if length < 2 or end > len(data):
            return
        yield marker, position + 4, end
        position = end


KERNELS: Final = {"nearest": 0, "linear": 1, "cubic": 2, "area": 3, "lanczos4": 4}
"""OpenCV's InterpolationFlags by name."""


def decode_colour(data: bytes, colour: str, *, name: str) -> npt.NDArray[np.uint8]:
    """Returns the pixels, [height, width, 3] or for "GRAY" [height, width, 1], without turning them upright.

    Raises:
        InvalidImage: See ``decode``.
    """
    import cv2

    flag = cv2.IMREAD_GRAYSCALE if colour == "GRAY" else cv2.IMREAD_COLOR
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), flag | cv2.IMREAD_IGNORE_ORIENTATION)
    if pixels is None:
        raise InvalidImage(f"{name!r} cannot be decoded in {'grey' if colour == 'GRAY' else 'colour'}")
    if colour == "GRAY":
        return np.asarray(pixels, np.uint8)[:, :, np.newaxis]
    return np.asarray(pixels if colour == "BGR" else cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB), np.uint8)


def resized(pixels: npt.NDArray[np.uint8], size: tuple[int, int], kernel: str) -> npt.NDArray[np.uint8]:
    """Returns pixels of shape [height, width, channels], stretched to ``size`` (height, width)."""
    import cv2

    if pixels.shape[:2] == size:
        return pixels
    out = cv2.resize(np.ascontiguousarray(pixels), (size[1], size[0]), interpolation=KERNELS[kernel])
    return np.asarray(out, np.uint8).reshape(*size, pixels.shape[2])


def turned(pixels: npt.NDArray[Any], orientation: int) -> npt.NDArray[Any]:
    """Returns pixels [height, width, ...] turned upright, as an EXIF orientation of 1 to 8 says.

    Orientation n says where row 0 and column 0 of the stored pixels belong: 2 top right, 3 bottom right, 4 bottom left,
    and 5 to 8 the same with rows and columns exchanged (EXIF 2.3, tag 0x0112).
    """
    if orientation >= 5:
        pixels = pixels.swapaxes(0, 1)
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    return np.ascontiguousarray(pixels)


def encode_jpeg(pixels: npt.NDArray[Any], *, name: str) -> bytes:
    """Returns pixels as OpenCV has them (BGR) as a JPEG of quality 95.

    Raises:
        InvalidImage: They are no 8-bit grey or colour pixels.
    """
    import cv2

    done, data = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, 95])
    if not done:
        raise InvalidImage(f"{name!r} cannot be encoded again as JPEG")
    return bytes(data)
