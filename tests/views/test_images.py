"""Finding images, whatever form they are stored in."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.views import gallery, pictures
from tests.views.gallery import strings
from tfqueue import errors, views
from tfqueue.views.features import Feature
from tfqueue.views.images import decode, find_images, guess_shape, is_planar, layout_of


def find(batch, **options):
    return find_images([Feature(name, values) for name, values in batch.items()], **options)


def test_channels_first_is_turned():
    tiles = pictures.tiles(4)
    found = find({"image": np.ascontiguousarray(tiles.transpose(0, 3, 1, 2))})
    np.testing.assert_array_equal(np.stack(found.images), tiles)
    assert found.form == "channels first uint8 32×32×3"


@pytest.mark.parametrize(
    ("shape", "layout"),
    [
        ((32, 32), "HW"),
        ((32, 32, 1), "HWC"),
        ((32, 32, 4), "HWC"),
        ((3, 32, 32), "CHW"),
        ((4, 1, 1), "HWC"),
        ((1, 1, 3), "HWC"),
        ((32, 32, 7), None),
        ((7, 32, 32), None),
        ((32,), None),
        ((2, 3, 4, 5), None),
    ],
)
def test_layouts(shape, layout):
    assert layout_of(shape) == layout


def test_two_channels_are_red_and_cyan():
    batch = np.zeros((1, 2, 2, 2), np.uint8)
    batch[0, 0, 0] = (200, 0)
    batch[0, 1, 1] = (0, 100)
    drawn = pictures.drawn_image(views.show_batch(batch), 0, 2, 2)
    assert drawn[0, 0].tolist() == [200, 0, 0]
    assert drawn[1, 1].tolist() == [0, 100, 100]


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".webp", ".tiff"])
def test_encoded_bytes_come_back_in_the_order_red_green_blue(suffix):
    tile = pictures.tiles(3)[2]
    options = [cv2.IMWRITE_WEBP_QUALITY, 101] if suffix == ".webp" else []
    encoded = cv2.imencode(suffix, cv2.cvtColor(tile, cv2.COLOR_RGB2BGR), options)[1].tobytes()
    np.testing.assert_array_equal(find({"x": strings([encoded])}).images[0], tile)


def test_jpeg_grey_transparent_and_16_bits():
    tile = pictures.tiles(1)[0]
    assert np.abs(decode(gallery.jpeg(tile)).astype(int) - tile).mean() < 6
    grey = cv2.imencode(".png", tile[..., 0])[1].tobytes()
    np.testing.assert_array_equal(decode(grey), tile[..., :1])
    deep = cv2.imencode(".png", tile[..., 0].astype(np.uint16) * 257)[1].tobytes()
    found = find({"depth": strings([deep])})
    assert found.range.words == "0..65535 (16 bits)"
    clear = pictures.transparent()
    stored = cv2.imencode(".png", cv2.cvtColor(clear, cv2.COLOR_RGBA2BGRA))[1].tobytes()
    np.testing.assert_array_equal(decode(stored), clear)


def test_images_of_changing_size():
    photo = pictures.photograph()
    found = find({"image": strings([gallery.jpeg(photo[:50, :40]), gallery.jpeg(photo[:30, :90])])})
    assert [picture.shape for picture in found.images] == [(50, 40, 3), (30, 90, 3)]
    assert found.form == "JPEG uint8 30×90×3 to 50×40×3"


def test_one_broken_image_among_good_ones_is_named():
    good = gallery.jpeg(pictures.tiles(1)[0])
    batch = {"image": strings([good, good[:200], good]), "label": np.arange(3)}
    assert find(batch).failures == {1: "200 bytes that are no whole JPEG"}
    figure = views.show_batch(batch)
    words = pictures.words(figure)
    assert "1 image cannot be decoded." in words
    assert "200 bytes that are no whole JPEG" in words
    assert len(figure.axes) == 3


def test_only_broken_images():
    with pytest.raises(errors.InvalidImage, match="no image of feature 'image' can be read; the first one: 40 bytes"):
        find({"image": strings([b"\xff\xd8\xff" + bytes(37)])})


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_raw_bytes_with_height_and_width_beside(dtype):
    tiles = pictures.tiles(3)[:, :20, :28].astype(dtype)
    batch = {
        "image/raw": strings([tile.tobytes() for tile in tiles]),
        "image/height": np.full(3, 20),
        "image/width": np.full((3, 1), 28),
        "image/channels": np.full(3, 3),
        "label": np.arange(3),
    }
    found = find(batch)
    np.testing.assert_array_equal(np.stack(found.images), tiles)
    assert found.used == {"image/height", "image/width", "image/channels"}
    del batch["image/channels"]
    if dtype is np.uint8:
        np.testing.assert_array_equal(np.stack(find(batch).images), tiles)


def test_raw_bytes_with_a_shape_beside():
    sizes = [(4, 6, 3), (5, 5, 3)]
    images = [np.random.default_rng(0).integers(0, 255, size).astype(np.uint8) for size in sizes]
    found = find({"data": strings([image.tobytes() for image in images]), "data_shape": np.array(sizes)})
    for shown, image in zip(found.images, images, strict=True):
        np.testing.assert_array_equal(shown, image)


def test_raw_bytes_that_do_not_fit_their_shape():
    tile = pictures.tiles(1, 8)[0]
    batch = {
        "raw": strings([tile.tobytes(), b"short"]),
        "height": np.array([8, 8]),
        "width": np.array([8, 8]),
    }
    batch["channels"] = np.array([3, 3])
    assert find(batch).failures == {1: "5 bytes, but 8×8×3 uint8 needs 192"}


def test_raw_bytes_without_a_shape_are_a_guess_and_said_to_be():
    tiles = pictures.tiles(5)
    found = find({"image_raw": strings([tile.tobytes() for tile in tiles])})
    np.testing.assert_array_equal(np.stack(found.images), tiles)
    assert found.notes == ("Shape guessed from the number of values: 32×32×3, pixel by pixel.",)
    planes = [tile.transpose(2, 0, 1).tobytes() for tile in tiles]
    found = find({"image_raw": strings(planes)})
    np.testing.assert_array_equal(np.stack(found.images), tiles)
    assert found.notes == ("Shape guessed from the number of values: 32×32×3, one channel after the other.",)


def test_flat_numbers():
    tiles = pictures.tiles(4, 16)[..., 0]
    flat = tiles.reshape(4, -1)
    for values in (flat, flat.astype(np.int64)):
        found = find({"image": values, "label": np.arange(4)})
        np.testing.assert_array_equal(np.stack(found.images)[..., 0], tiles)
    with pytest.raises(errors.InvalidImage):
        find({"embedding": flat.astype(np.float32)})


def test_image_is_preferred_to_a_sequence_of_vectors():
    tiles = pictures.tiles(2).astype(np.float32)
    batch = {
        "steps": np.zeros((2, 50, 6), np.float32),
        "picture": tiles,
        "grid": np.zeros((2, 32, 32), np.float32),
    }
    assert find(batch).feature.name == "picture"


def test_only_the_images_that_are_shown_are_decoded():
    good = gallery.jpeg(pictures.tiles(1)[0])
    found = find({"image": strings([good, good, b"\xff\xd8\xff broken" * 9])}, n=2)
    assert len(found.images) == 2
    assert found.failures == {}
    assert found.total == 3


@settings(max_examples=50, deadline=None)
@given(st.sampled_from([1, 3, 4]), st.integers(8, 300))
def test_a_guess_is_a_square_of_that_many_values(channels, side):
    shape = guess_shape(channels * side * side)
    assert shape is not None
    assert shape[0] == shape[1]
    assert np.prod(shape) == channels * side * side


def test_no_guess_for_numbers_that_are_no_square():
    assert guess_shape(1000) is None
    assert guess_shape(3 * 7 * 7) is None


def test_planes_are_told_from_pixels_by_smoothness():
    rng = np.random.default_rng(1)
    smooth = np.cumsum(rng.normal(size=(3, 16, 16)), axis=2) + np.array([0, 80, 160])[:, None, None]
    assert is_planar([smooth.reshape(-1)], (16, 16, 3))
    assert not is_planar([smooth.transpose(1, 2, 0).reshape(-1)], (16, 16, 3))


@pytest.mark.parametrize("side", [28, 32])
@pytest.mark.parametrize("scale", [1.0, 255.0])
def test_flat_floats_that_fill_the_range_of_pixels_are_an_image(side, scale):
    tiles = pictures.tiles(4, side)[..., 0].astype(np.float32) / 255 * scale
    tiles[:, 0, 0] = 0
    tiles[0, 1, 1] = scale
    found = find({"[0]": tiles.reshape(4, -1), "[1]": np.eye(10)[:4]})
    np.testing.assert_array_equal(np.stack(found.images)[..., 0], tiles)
    assert found.notes == (f"Shape guessed from the number of values: {side}×{side}×1.",)


def test_embeddings_are_no_image():
    vectors = np.random.default_rng(0).normal(size=(4, 784)).astype(np.float32)
    for values in (vectors, np.abs(vectors) / 100, vectors * 0):
        with pytest.raises(errors.InvalidImage):
            find({"embedding": values, "label": np.arange(4)})


@pytest.mark.parametrize(
    ("top", "words"),
    [(7.65, "stretched from"), (40.0, "0..255"), (40.5, "stretched from"), (200.5, "0..255")],
)
def test_small_floats_are_another_quantity_unless_they_are_whole(top, words):
    depth = np.linspace(0, top, 64, dtype=np.float32).reshape(1, 8, 8)
    if top == 40.0:
        depth = np.rint(depth)
    assert find({"depth": depth}).range.words.startswith(words)
