"""What an encoded image is; bytes that are none never crash."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tfqueue.errors import InvalidImage
from tfqueue.records import imagefile

PIXELS = np.random.default_rng(0).integers(0, 256, (5, 7, 4), np.uint8)
EXIF = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"


def jpeg(channels: int = 3) -> bytes:
    return cv2.imencode(".jpg", PIXELS[:, :, 0] if channels == 1 else PIXELS[:, :, :channels])[1].tobytes()


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".bmp", ".webp", ".tiff", ".gif"])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_formats(suffix: str, channels: int) -> None:
    unwritten = (suffix, channels) in ((".jpg", 4), (".bmp", 4), (".gif", 4), (".gif", 1))
    if unwritten or not cv2.haveImageWriter(suffix):  # older ones write no GIF
        pytest.skip("OpenCV does not write this")
    done, data = cv2.imencode(suffix, PIXELS[:, :, 0] if channels == 1 else PIXELS[:, :, :channels])
    assert done
    found = imagefile.inspect(data.tobytes(), name="a")
    assert found.format == {".jpg": "jpeg"}.get(suffix, suffix[1:])
    assert (found.height, found.width) == (5, 7)
    if suffix in (".jpg", ".png"):
        assert found.channels == channels
        assert tf.io.decode_image(data.tobytes()).shape == (5, 7, channels)


def test_a_png_with_a_palette_and_grey_with_alpha() -> None:
    for colour_type, channels in ((3, 3), (4, 2), (0, 1), (2, 3), (6, 4)):
        head = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + bytes(8) + bytes([8, colour_type])
        assert imagefile._png_channels(head) == channels


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_damaged_images_are_read_or_refused_by_name(data: st.DataObject) -> None:
    plain = jpeg()
    whole = bytearray(plain[:2] + b"\xff\xe1" + (len(EXIF) + 2).to_bytes(2, "big") + EXIF + plain[2:])
    assert imagefile.exif_orientation(bytes(whole)) == 6
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, min(60, len(whole) - 1)))] = data.draw(st.integers(0, 255))
    damaged = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    assert 1 <= imagefile.exif_orientation(damaged) <= 8
    refused = ""
    try:
        found = imagefile.inspect(damaged, name="some name")
        assert found.height > 0
        assert found.width > 0
    except InvalidImage as error:
        refused = str(error)
    assert not refused or "some name" in refused


def test_orientation_is_its_own_inverse_where_it_should_be() -> None:
    for orientation in range(1, 9):
        turned = imagefile.turned(PIXELS, orientation)
        assert turned.shape == ((7, 5, 4) if orientation >= 5 else (5, 7, 4))
        inverse = {6: 8, 8: 6}.get(orientation, orientation)
        assert np.array_equal(imagefile.turned(turned, inverse), PIXELS)
