"""tf.contrib.image's geometric ops (rotate, translate, transform), by the op that TensorFlow's core has for them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfqueue.errors import InvalidArgument

tf1 = tf.compat.v1

_DTYPES = (tf.uint8, tf.int32, tf.int64, tf.float16, tf.float32, tf.float64)


def transform(
    images: Any, transforms: Any, interpolation: str = "NEAREST", output_shape: Any = None, name: str | None = None
) -> Any:
    """Images seen through projective maps; what lies outside of an image is 0.

    Args:
        images: [height, width], [height, width, channels] or [images, height, width, channels].
        transforms: A vector (a0, a1, a2, b0, b1, b2, c0, c1) or one for each image. The pixel (x, y) of the output is
            that at ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) of the input, with k = c0 x + c1 y + 1.
        interpolation: ``"NEAREST"`` or ``"BILINEAR"``.
        output_shape: Height and width of the output; None: those of the input.
        name: A name for the ops.

    Raises:
        InvalidArgument: ``images`` or ``transforms`` has another rank or dtype.
    """
    with tf1.name_scope(name, "transform", [images, transforms]):
        images = tf.convert_to_tensor(images, name="images")
        transforms = tf.convert_to_tensor(transforms, tf.float32, name="transforms")
        if images.dtype not in _DTYPES:
            raise InvalidArgument(f"images must be of {[dtype.name for dtype in _DTYPES]}; got {images.dtype.name}")
        if images.shape.rank not in (2, 3, 4):
            raise InvalidArgument(f"images must have 2, 3 or 4 dimensions, which are known; got {images.shape}")
        if transforms.shape.rank not in (1, 2):
            raise InvalidArgument(f"transforms must be a vector or a matrix; got the shape {transforms.shape}")
        batch = {2: lambda: images[None, :, :, None], 3: lambda: images[None], 4: lambda: images}[images.shape.rank]()
        size = tf.shape(batch)[1:3] if output_shape is None else tf.convert_to_tensor(output_shape, tf.int32)
        if size.shape.rank != 1:
            raise InvalidArgument(f"output_shape must be (height, width); got {output_shape!r}")
        output = tf.raw_ops.ImageProjectiveTransformV2(
            images=batch,
            transforms=transforms[None] if transforms.shape.rank == 1 else transforms,
            output_shape=size,
            interpolation=interpolation.upper(),
        )
        known = tf.get_static_value(size)
        height, width = batch.shape[1:3] if output_shape is None else (None, None) if known is None else known
        output.set_shape([batch.shape[0], height, width, batch.shape[3]])
        return {2: lambda: output[0, :, :, 0], 3: lambda: output[0], 4: lambda: output}[images.shape.rank]()


def rotate(images: Any, angles: Any, interpolation: str = "NEAREST", name: str | None = None) -> Any:
    """Images turned counterclockwise around their centres; corners that are turned in are 0.

    Args:
        images: As of `transform`.
        angles: In radians: one, or one for each image.
        interpolation: ``"NEAREST"`` or ``"BILINEAR"``.
        name: A name for the ops.
    """
    with tf1.name_scope(name, "rotate", [images, angles]):
        images = tf.convert_to_tensor(images, name="images")
        rank = images.shape.rank
        if rank not in (2, 3, 4):
            raise InvalidArgument(f"images must have 2, 3 or 4 dimensions, which are known; got {images.shape}")
        size = tf.cast(tf.shape(images)[1:3] if rank == 4 else tf.shape(images)[:2], tf.float32)
        return transform(images, angles_to_projective_transforms(angles, size[0], size[1]), interpolation)


def translate(images: Any, translations: Any, interpolation: str = "NEAREST", name: str | None = None) -> Any:
    """Images moved by (dx, dy) pixels, to the right and down; ``translations`` is one pair, or one for each image."""
    with tf1.name_scope(name, "translate", [images, translations]):
        return transform(images, translations_to_projective_transforms(translations), interpolation)


def angles_to_projective_transforms(angles: Any, image_height: Any, image_width: Any, name: str | None = None) -> Any:
    """The maps [images, 8] of rotations by ``angles`` (radians) around the centres of images of that size."""
    with tf1.name_scope(name, "angles_to_projective_transforms", [angles]):
        angles = tf.reshape(tf.convert_to_tensor(angles, tf.float32, name="angles"), [-1])
        width = tf.cast(image_width, tf.float32) - 1
        height = tf.cast(image_height, tf.float32) - 1
        cos, sin = tf.cos(angles), tf.sin(angles)
        x = (width - (cos * width - sin * height)) / 2
        y = (height - (sin * width + cos * height)) / 2
        zero = tf.zeros_like(angles)
        return tf.stack([cos, -sin, x, sin, cos, y, zero, zero], axis=1)


def translations_to_projective_transforms(translations: Any, name: str | None = None) -> Any:
    """The maps [images, 8] of moves by (dx, dy) pixels: one pair, or a matrix of them."""
    with tf1.name_scope(name, "translations_to_projective_transforms", [translations]):
        pairs = tf.convert_to_tensor(translations, tf.float32, name="translations")
        if pairs.shape.rank not in (1, 2):
            raise InvalidArgument(f"translations must be a pair (dx, dy) or a matrix of pairs; got {pairs.shape}")
        pairs = tf.reshape(pairs, [-1, 2])
        one, zero = tf.ones_like(pairs[:, 0]), tf.zeros_like(pairs[:, 0])
        return tf.stack([one, zero, -pairs[:, 0], zero, one, -pairs[:, 1], zero, zero], axis=1)


def flat_transforms_to_matrices(transforms: Any) -> Any:
    """[images, 8] as matrices [images, 3, 3]."""
    flat = tf.reshape(tf.convert_to_tensor(transforms, tf.float32), [-1, 8])
    return tf.reshape(tf.concat([flat, tf.ones_like(flat[:, :1])], axis=1), [-1, 3, 3])


def matrices_to_flat_transforms(transform_matrices: Any) -> Any:
    """[images, 3, 3] as [images, 8]: divided by the last entry, which must not be 0."""
    flat = tf.reshape(tf.convert_to_tensor(transform_matrices, tf.float32), [-1, 9])
    return (flat / flat[:, 8:9])[:, :8]


def compose_transforms(*transforms: Any) -> Any:
    """The maps that apply several, the first one first."""
    if not transforms:
        raise InvalidArgument("compose_transforms needs at least one transform")
    composed = flat_transforms_to_matrices(transforms[0])
    for following in transforms[1:]:
        composed = tf.matmul(composed, flat_transforms_to_matrices(following))
    return matrices_to_flat_transforms(composed)
