"""The summary ops of TensorFlow before 1.0, which write the tag as it is given.

The ones that replaced them put the name scope before the tag, so that events of an old and a new run have other tags.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

tf1 = tf.compat.v1


def scalar_summary(tags: Any, values: Any, collections: Iterable[str] | None = None, name: str | None = None) -> Any:
    """A serialized `Summary` with a scalar for each tag; ``tags`` and ``values`` have the same shape."""
    with tf1.name_scope(name, "ScalarSummary", [tags, values]):
        return _collected(tf.raw_ops.ScalarSummary(tags=tags, values=values), collections)


def histogram_summary(tag: Any, values: Any, collections: Iterable[str] | None = None, name: str | None = None) -> Any:
    """A serialized `Summary` with a histogram of ``values``; NaN and infinities are errors."""
    with tf1.name_scope(name, "HistogramSummary", [tag, values]):
        return _collected(tf.raw_ops.HistogramSummary(tag=tag, values=values), collections)


def image_summary(
    tag: Any, tensor: Any, max_images: int = 3, collections: Iterable[str] | None = None, name: str | None = None
) -> Any:
    """A serialized `Summary` with up to ``max_images`` PNG pictures of a [batch, height, width, 1, 3 or 4] tensor.

    Floats are scaled to the range of a picture one by one; uint8 is kept.
    """
    with tf1.name_scope(name, "ImageSummary", [tag, tensor]):
        return _collected(tf.raw_ops.ImageSummary(tag=tag, tensor=tensor, max_images=max_images), collections)


def audio_summary(
    tag: Any,
    tensor: Any,
    sample_rate: Any,
    max_outputs: int = 3,
    collections: Iterable[str] | None = None,
    name: str | None = None,
) -> Any:
    """A serialized `Summary` with up to ``max_outputs`` sounds of a [batch, frames (, channels)] tensor in [-1, 1].

    ``sample_rate`` is in hertz.
    """
    with tf1.name_scope(name, "AudioSummary", [tag, tensor]):
        rate = tf.cast(sample_rate, tf.float32)
        summary = tf.raw_ops.AudioSummaryV2(tag=tag, tensor=tensor, sample_rate=rate, max_outputs=max_outputs)
        return _collected(summary, collections)


def _collected(summary: Any, collections: Iterable[str] | None) -> Any:
    tf1.add_to_collections(collections if collections is not None else [tf1.GraphKeys.SUMMARIES], summary)
    return summary
