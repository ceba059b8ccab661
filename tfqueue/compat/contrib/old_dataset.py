"""tf.contrib.data.Dataset as it was in TensorFlow 1.2 and 1.3, before it became tf.data.Dataset.

The datasets are those of tf.compat.v1.data; each, and what is made of it, also takes ``map(f, num_threads=,
output_buffer_size=)`` and has ``dense_to_sparse_batch`` as a method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfqueue.errors import InvalidArgument

tf1 = tf.compat.v1

__all__ = ["Dataset", "FixedLengthRecordDataset", "TFRecordDataset", "TextLineDataset"]

# The methods that give another dataset.
_CHAINED = (
    "apply",
    "batch",
    "cache",
    "concatenate",
    "filter",
    "flat_map",
    "interleave",
    "map",
    "padded_batch",
    "prefetch",
    "repeat",
    "shard",
    "shuffle",
    "skip",
    "take",
)

# Those that today's datasets have again, and that give no dataset of TF1.
_LATER = ("enumerate", "group_by_window", "ignore_errors", "unbatch")


class _Kind(type):
    """isinstance(x, tf.contrib.data.Dataset) is true for every dataset."""

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, tf.data.Dataset)


class Dataset(metaclass=_Kind):
    """Makes datasets: from_tensors, from_tensor_slices, from_generator, from_sparse_tensor_slices, range, zip, ..."""

    @staticmethod
    def from_tensors(tensors: Any) -> Any:
        return _old(tf1.data.Dataset.from_tensors(tensors))

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Any:
        return _old(tf1.data.Dataset.from_tensor_slices(tensors))

    @staticmethod
    def from_sparse_tensor_slices(sparse_tensor: Any) -> Any:
        return _old(tf1.data.Dataset.from_sparse_tensor_slices(sparse_tensor))

    @staticmethod
    def from_generator(generator: Callable[[], Any], output_types: Any, output_shapes: Any = None) -> Any:
        return _old(tf1.data.Dataset.from_generator(generator, output_types, output_shapes))

    @staticmethod
    def range(*arguments: Any) -> Any:
        return _old(tf1.data.Dataset.range(*arguments))

    @staticmethod
    def zip(datasets: Any) -> Any:
        return _old(tf1.data.Dataset.zip(datasets))

    @staticmethod
    def list_files(file_pattern: Any, shuffle: bool = False) -> Any:
        """The files that match, in their order: 1.2 and 1.3 did not shuffle them."""
        return _old(tf1.data.Dataset.list_files(file_pattern, shuffle=shuffle))

    @staticmethod
    def read_batch_features(*arguments: Any, **options: Any) -> Any:
        """`tf.contrib.data.read_batch_features`."""
        from tfqueue.compat.contrib.datasets import read_batch_features

        return read_batch_features(*arguments, **options)


def TFRecordDataset(filenames: Any, compression_type: Any = None, **options: Any) -> Any:  # noqa: N802 - a class once
    """The records of TFRecord files."""
    return _old(tf1.data.TFRecordDataset(filenames, compression_type, **options))


def TextLineDataset(filenames: Any, compression_type: Any = None, **options: Any) -> Any:  # noqa: N802 - a class once
    """The lines of files."""
    return _old(tf1.data.TextLineDataset(filenames, compression_type, **options))


def FixedLengthRecordDataset(filenames: Any, record_bytes: Any, *arguments: Any, **options: Any) -> Any:  # noqa: N802
    """Records of ``record_bytes`` bytes each."""
    return _old(tf1.data.FixedLengthRecordDataset(filenames, record_bytes, *arguments, **options))


def _old(dataset: Any) -> Any:
    """The dataset, with the methods of 1.2; they are put on the object, because its class is everybody's."""
    for name in _CHAINED:
        setattr(dataset, name, _chained(getattr(dataset, name)))
    newer_map = dataset.map

    def old_map(
        map_func: Callable[..., Any],
        num_threads: Any = None,
        output_buffer_size: Any = None,
        num_parallel_calls: Any = None,
        **options: Any,
    ) -> Any:
        if num_threads is not None and num_parallel_calls is not None:
            raise InvalidArgument("num_threads is the old name of num_parallel_calls: give one of them")
        mapped = newer_map(map_func, num_parallel_calls=num_parallel_calls or num_threads, **options)
        return mapped if output_buffer_size is None else mapped.prefetch(output_buffer_size)

    dataset.map = old_map
    for name in _LATER:
        setattr(dataset, name, _through_apply(dataset, getattr(dataset, name)))
    dataset.dense_to_sparse_batch = lambda batch_size, row_shape: dataset.apply(
        tf1.data.experimental.dense_to_sparse_batch(batch_size, row_shape)
    )
    return dataset


def _chained(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        return _old(method(*arguments, **options))

    return call


def _through_apply(dataset: Any, method: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        return dataset.apply(lambda _: method(*arguments, **options))  # apply gives a dataset of TF1

    return call
