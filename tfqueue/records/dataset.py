"""Records as a tf.data.Dataset, parsed with the spec that the records themselves give."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfqueue.errors import RecordError
from tfqueue.records.schema import DECODABLE, FeatureSchema, Schema
from tfqueue.records.values import SHAPE_SUFFIX, dtype_from_name


def make_dataset(
    paths: Sequence[str], compressions: Sequence[str], records: int, schema: Schema, *, raw: bool = False
) -> tf.data.Dataset:
    """Returns the records of files in order, parsed; see ``RecordReader.dataset``.

    Args:
        paths: The files.
        compressions: How each is compressed, as tf.data.TFRecordDataset spells it.
        records: How many records they hold; fewer raise when the dataset is read.
        schema: What is in them.
        raw: Whether arrays written with layout "bytes" stay as they are stored.
    """
    serialized: tf.data.Dataset | None = None
    # A TFRecordDataset has one compression; neighbours of the same kind share one.
    for compression, group in itertools.groupby(zip(paths, compressions, strict=True), key=lambda pair: pair[1]):
        part = tf.data.TFRecordDataset([path for path, _ in group], compression_type=compression)
        serialized = part if serialized is None else serialized.concatenate(part)
    assert serialized is not None
    counted = serialized.apply(tf.data.experimental.assert_cardinality(records))
    return counted.map(make_parser(schema, raw=raw), num_parallel_calls=tf.data.AUTOTUNE)


def make_parser(schema: Schema, *, raw: bool = False) -> Callable[[tf.Tensor], dict[str, Any]]:
    """Returns a function from a serialized record to a dict of tensors.

    Raises:
        RecordError: The records have no common spec.
    """
    spec = schema.parse_spec()
    sequence_spec = schema.sequence_spec()
    arrays = [feature for feature in schema.features if feature.dtype is not None and not raw]
    for feature in arrays:
        if feature.dtype == "mixed" or feature.present != schema.records:
            raise RecordError(
                f"feature {feature.name!r} is not an array of one dtype in all records; read it with raw=True",
                feature=feature.name,
            )
        dtype = dtype_from_name(feature.dtype or "")
        # Of the dtypes that are not numpy's own, tf.bitcast takes bfloat16 only.
        foreign = dtype is not None and dtype.type.__module__ != "numpy" and dtype.name != "bfloat16"
        if foreign and feature.kind == "bytes":
            raise RecordError(
                f"feature {feature.name!r} is an array of {feature.dtype}, which TensorFlow cannot decode; read it "
                "with raw=True, or without TensorFlow",
                feature=feature.name,
            )

    def parse(serialized: tf.Tensor) -> dict[str, Any]:
        features: dict[str, Any]
        if sequence_spec:
            features, sequences = tf.io.parse_single_sequence_example(serialized, spec, sequence_spec)
            features.update(sequences)
        else:
            features = tf.io.parse_single_example(serialized, spec) if spec else {}
        for feature in arrays:
            features[feature.name] = _restored(feature, features)
        for feature in arrays:
            features.pop(feature.name + SHAPE_SUFFIX, None)
        return features

    return parse


def _restored(feature: FeatureSchema, features: dict[str, Any]) -> tf.Tensor:
    value = features[feature.name]
    stored_shape = features.get(feature.name + SHAPE_SUFFIX)
    if isinstance(value, tf.SparseTensor):
        value = tf.sparse.to_dense(value)
    if isinstance(stored_shape, tf.SparseTensor):
        stored_shape = tf.sparse.to_dense(stored_shape)
    shape = feature.shape if stored_shape is None else stored_shape
    assert feature.dtype is not None
    dtype = dtype_from_name(feature.dtype)
    if dtype is not None and dtype.kind not in "SU":
        value = tf.cast(value, _tf_dtype(dtype)) if feature.kind != "bytes" else _decoded(value, dtype)
    restored = tf.reshape(value, shape)
    restored.set_shape(feature.shape)
    return restored


def _tf_dtype(dtype: np.dtype[Any]) -> tf.DType:
    # TensorFlow has no dates; their numbers are kept.
    return tf.int64 if dtype.kind in "mM" else tf.as_dtype(dtype)


def _decoded(value: tf.Tensor, dtype: np.dtype[Any]) -> tf.Tensor:
    if dtype.name in DECODABLE:
        return tf.io.decode_raw(value, tf.as_dtype(dtype))
    memory = tf.io.decode_raw(value, tf.uint8)
    if dtype.itemsize > 1:
        memory = tf.reshape(memory, [-1, dtype.itemsize])
    return tf.bitcast(memory, _tf_dtype(dtype))
