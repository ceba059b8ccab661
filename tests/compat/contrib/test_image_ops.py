"""tf.contrib.image: what turns and moves images, against numpy and scipy."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf2
from scipy import ndimage

import tfqueue.compat.v1 as tf
from tfqueue.errors import InvalidArgument

RANDOM = np.random.default_rng(3)
SQUARE = RANDOM.integers(0, 255, (5, 5)).astype(np.uint8)
IMAGES = RANDOM.normal(size=(2, 6, 9, 3)).astype(np.float32)


def value(build):
    with tf2.Graph().as_default(), tf.Session() as session:
        return session.run(build())


@pytest.mark.parametrize("quarters", [0, 1, 2, 3])
def test_quarter_turns_are_exact(quarters: int) -> None:
    angle = quarters * np.pi / 2
    np.testing.assert_array_equal(value(lambda: tf.contrib.image.rotate(SQUARE, angle)), np.rot90(SQUARE, quarters))
    colours = np.stack([SQUARE, SQUARE + 1], axis=-1)
    turned = value(lambda: tf.contrib.image.rotate(tf.constant(colours), angle, "NEAREST", "turn"))
    np.testing.assert_array_equal(turned, np.rot90(colours, quarters))


def test_bilinear_turns_are_those_of_scipy() -> None:
    angles = [0.3, -1.1]
    turned = value(lambda: tf.contrib.image.rotate(IMAGES, angles, interpolation="BILINEAR"))
    for image, angle, found in zip(IMAGES, angles, turned, strict=True):
        for channel in range(3):
            # Both take 0 outside; at the border scipy cuts where TensorFlow fades, so only the inner pixels are asked.
            expected = ndimage.rotate(image[..., channel], np.degrees(angle), reshape=False, order=1, mode="constant")
            inside = ndimage.rotate(np.ones((6, 9)), np.degrees(angle), reshape=False, order=1, mode="constant") > 0.999
            assert inside.sum() > 10
            np.testing.assert_allclose(found[..., channel][inside], expected[inside], atol=1e-4)


def test_images_are_moved_to_the_right_and_down() -> None:
    moved = value(lambda: tf.contrib.image.translate(IMAGES, [2, 1]))
    np.testing.assert_array_equal(moved[:, 1:, 2:], IMAGES[:, :-1, :-2])
    assert not moved[:, :1].any()
    assert not moved[:, :, :2].any()
    each = value(lambda: tf.contrib.image.translate(IMAGES, [[0, 0], [-3, 0]]))
    np.testing.assert_array_equal(each[0], IMAGES[0])
    np.testing.assert_array_equal(each[1][:, :-3], IMAGES[1][:, 3:])


def test_transforms_of_another_size() -> None:
    with tf2.Graph().as_default():
        half = tf.contrib.image.transform(IMAGES, [2, 0, 0, 0, 2, 0, 0, 0], output_shape=[3, 4])
        assert half.shape.as_list() == [2, 3, 4, 3]
        unknown = tf.contrib.image.transform(tf.placeholder(tf.float32, [None, None, None, 3]), [1.0] * 8)
        assert unknown.shape.as_list() == [None, None, None, 3]
        with tf.Session() as session:
            np.testing.assert_array_equal(session.run(half), IMAGES[:, ::2, :8:2])


def test_transforms_are_composed() -> None:
    image = tf.contrib.image
    a = [0.5, 0.1, 2, -0.2, 1.5, 1, 0.001, 0.002]
    b = [1, 0.3, -1, 0.1, 0.9, 2, 0.0, 0.003]
    matrices = value(lambda: image.flat_transforms_to_matrices([a, b]))
    np.testing.assert_allclose(matrices[0], np.reshape([*a, 1], (3, 3)), rtol=1e-6)
    np.testing.assert_allclose(value(lambda: image.matrices_to_flat_transforms(2 * matrices)), [a, b], rtol=1e-5)
    both = matrices[0] @ matrices[1]
    found = value(lambda: image.compose_transforms(a, b))
    np.testing.assert_allclose(found[0], (both / both[2, 2]).reshape(9)[:8], rtol=1e-5)
    there_and_back = value(lambda: image.translate(image.translate(IMAGES, [1, 0]), [-1, 0]))
    np.testing.assert_array_equal(there_and_back[:, :, :-1], IMAGES[:, :, :-1])


def test_what_cannot_be_transformed() -> None:
    with tf2.Graph().as_default():
        with pytest.raises(InvalidArgument, match="2, 3 or 4 dimensions"):
            tf.contrib.image.rotate(np.zeros(3, np.float32), 1.0)
        with pytest.raises(InvalidArgument, match=r"images must be of .*; got bool"):
            tf.contrib.image.rotate(np.zeros((3, 3), bool), 1.0)
        with pytest.raises(InvalidArgument, match="vector or a matrix"):
            tf.contrib.image.transform(IMAGES, 1.0)
        with pytest.raises(InvalidArgument, match="pair"):
            tf.contrib.image.translate(IMAGES, 1.0)
        with pytest.raises(InvalidArgument, match="at least one"):
            tf.contrib.image.compose_transforms()
