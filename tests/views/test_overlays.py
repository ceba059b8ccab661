"""Boxes and masks lie where they belong."""

from __future__ import annotations

import numpy as np
import pytest

from tests.views import pictures
from tfqueue import errors, views
from tfqueue.views.features import Feature, boxed
from tfqueue.views.overlays import find_overlays

IMAGES = [np.zeros((40, 80, 3), np.uint8)] * 2


def find(features, order="yxyx"):
    return find_overlays([Feature(name, values) for name, values in features.items()], IMAGES, order)


@pytest.mark.parametrize(
    ("order", "numbers"),
    [("yxyx", [0.25, 0.5, 0.75, 1.0]), ("xyxy", [0.5, 0.25, 1.0, 0.75]), ("xywh", [0.5, 0.25, 0.5, 0.5])],
)
def test_relative_boxes_in_every_order(order, numbers):
    over = find({"bbox": np.array([[numbers], [numbers]], np.float32)}, order)
    np.testing.assert_allclose(over.boxes[0], [[10, 40, 30, 80]])
    assert "as parts of the image" in over.notes[0]


def test_boxes_in_pixels_and_padding():
    boxes = np.array(
        [[[4, 6, 10, 20], [0, 0, 0, 0], [0, 0, np.inf, 9]], [[-1, -1, -1, -1], [1, 2, 3, 70], [0, 0, 0, 0]]]
    )
    over = find({"boxes": boxes})
    np.testing.assert_array_equal(over.boxes[0], [[4, 6, 10, 20]])
    np.testing.assert_array_equal(over.boxes[1], [[1, 2, 3, 70]])
    assert "in pixels" in over.notes[0]
    assert "Not drawn: 1 with corners" in over.notes[0]


def test_boxes_the_wrong_way_round_are_said_not_to_be_drawn():
    over = find({"boxes": np.array([[[30, 6, 10, 20]], [[4, 6, 10, 20]]])})
    assert [len(boxes) for boxes in over.boxes] == [0, 1]
    assert "Not drawn: 1 with corners the wrong way round or not finite (is this the box_order?)." in over.notes[0]
    assert "Not drawn" not in find({"boxes": np.array([[[4, 6, 10, 20]], [[0, 0, 0, 0]]])}).notes[0]


def test_four_features_of_changing_length():
    corners = {
        f"image/object/bbox/{name}": boxed([np.array(values, np.float32) for values in rows])
        for name, rows in {
            "ymin": [[0.1, 0.2], []],
            "xmin": [[0.0, 0.5], []],
            "ymax": [[0.5, 0.6], []],
            "xmax": [[0.5, 1.0], []],
        }.items()
    }
    over = find(corners)
    np.testing.assert_allclose(over.boxes[0], [[4, 0, 20, 40], [8, 40, 24, 80]], rtol=1e-6)
    assert len(over.boxes[1]) == 0
    assert over.used == set(corners)


def test_a_box_is_drawn_around_its_pixels():
    image = np.zeros((1, 20, 20, 3), np.uint8)
    figure = views.show_batch({"image": image, "box": np.array([[5.0, 4.0, 15.0, 18.0]])})
    drawn = pictures.drawn_image(figure, 0, 20, 20)
    box = figure.axes[0].patches[0].get_bbox()
    assert (box.y0, box.x0, box.y1, box.x1) == (4.5, 3.5, 14.5, 17.5)
    assert not drawn[6:14, 5:17].any()


def test_a_mask_tints_its_own_pixels_only():
    image = np.full((1, 16, 16, 3), 100, np.uint8)
    mask = np.zeros((1, 16, 16, 1), np.int64)
    mask[0, 3:6, 2:9] = 2
    figure = views.show_batch({"image": image, "segmentation": mask})
    drawn = pictures.drawn_image(figure, 0, 16, 16)
    np.testing.assert_array_equal((drawn != 100).any(axis=-1), mask[0, ..., 0] == 2)
    assert any("Overlay segmentation: classes 0, 2." in words for words in pictures.words(figure))


def test_an_unnamed_float_image_of_the_same_size_is_no_mask():
    assert find({"other": np.random.default_rng(0).random((2, 40, 80))}).masks is None
    assert find({"other": np.zeros((2, 40, 80), np.int32)}).masks is not None
    assert find({"mask": np.zeros((2, 20, 80), np.int32)}).masks is None


def test_unknown_order():
    with pytest.raises(errors.InvalidArgument, match="box_order='ltrb': expected one of 'yxyx', 'xyxy', 'xywh'"):
        views.show_batch(pictures.tiles(1), box_order="ltrb")
