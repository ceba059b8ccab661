"""The functions of tf.contrib.data that today's tf.data.experimental no longer has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from tfqueue.errors import InvalidArgument

tf1 = tf.compat.v1

Transformation = Callable[[Any], Any]


def batch_and_drop_remainder(batch_size: Any) -> Transformation:
    """For Dataset.apply: batches of exactly ``batch_size``; what is left at the end is dropped."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(batch_size: Any, padded_shapes: Any, padding_values: Any = None) -> Transformation:
    """For Dataset.apply: padded batches of exactly ``batch_size``; what is left at the end is dropped."""
    return lambda dataset: dataset.padded_batch(batch_size, padded_shapes, padding_values, drop_remainder=True)


def sloppy_interleave(map_func: Callable[..., Any], cycle_length: Any, block_length: Any = 1) -> Transformation:
    """For Dataset.apply: interleaves ``cycle_length`` datasets, and passes over one that is not ready."""
    return lambda dataset: dataset.interleave(
        map_func, cycle_length, block_length, num_parallel_calls=cycle_length, deterministic=False
    )


def sliding_window_batch(
    window_size: int, stride: int | None = None, window_shift: int | None = None, window_stride: int = 1
) -> Transformation:
    """For Dataset.apply: batches of ``window_size`` elements, each ``window_shift`` elements after the one before.

    Args:
        window_size: Elements of a window.
        stride: The old name of ``window_shift``.
        window_shift: How far the window moves; 1 where nothing is given.
        window_stride: How far the elements inside a window lie apart.
    """
    if stride is not None and window_shift is not None:
        raise InvalidArgument("stride is the old name of window_shift: give one of them")
    shift = window_shift if window_shift is not None else 1 if stride is None else stride

    def apply(dataset: Any) -> Any:
        windows = dataset.window(window_size, shift=shift, stride=window_stride, drop_remainder=True)
        structure = dataset.element_spec

        def batched(*parts: Any) -> Any:
            flat = [part.batch(window_size, drop_remainder=True) for part in tf.nest.flatten(list(parts))]
            zipped = tf.data.Dataset.zip(tuple(flat))
            return zipped.map(lambda *values: tf.nest.pack_sequence_as(structure, list(values)))

        return windows.flat_map(batched)

    return apply


def assert_element_shape(expected_shapes: Any) -> Transformation:
    """For Dataset.apply: elements whose shapes are the expected ones; others are errors when they are read."""

    def apply(dataset: Any) -> Any:
        def checked(*element: Any) -> Any:
            value = element[0] if len(element) == 1 and not isinstance(dataset.element_spec, tuple) else element
            flat = tf.nest.flatten(value)
            shapes = _flat_shapes(expected_shapes)
            if len(shapes) != len(flat):
                raise InvalidArgument(f"expected_shapes has {len(shapes)} shapes for {len(flat)} components")
            ensured = [tf.ensure_shape(part, shape) for part, shape in zip(flat, shapes, strict=True)]
            return tf.nest.pack_sequence_as(value, ensured)

        return dataset.map(checked)

    return apply


def read_batch_features(
    file_pattern: Any,
    batch_size: int,
    features: Mapping[str, Any],
    reader: Callable[..., Any] = tf1.data.TFRecordDataset,
    reader_args: Any = None,
    randomize_input: bool = True,
    num_epochs: int | None = None,
    capacity: int = 10000,
) -> Any:
    """Parsed batches of the examples in files, as tensors of a one-shot iterator.

    Args:
        file_pattern: A pattern, or a list of them.
        batch_size: Examples of a batch; the last may be smaller.
        features: What to parse: from names to tf.FixedLenFeature or tf.VarLenFeature.
        reader: A dataset class over file names, of serialized examples or of pairs (key, example).
        reader_args: Further arguments of ``reader``, by position.
        randomize_input: Shuffle the files and, within ``capacity``, the examples.
        num_epochs: Passes over the files; None: without end.
        capacity: Examples that are shuffled at once.
    """
    files = tf.data.Dataset.list_files(file_pattern, shuffle=randomize_input)
    dataset = files.flat_map(lambda name: reader(name, *(reader_args or ())))
    if isinstance(dataset.element_spec, tuple):
        dataset = dataset.map(lambda _, example: example)
    dataset = dataset.repeat(num_epochs)
    if randomize_input:
        dataset = dataset.shuffle(capacity)
    dataset = dataset.batch(batch_size).map(lambda serialized: tf.io.parse_example(serialized, dict(features)))
    return tf1.data.make_one_shot_iterator(dataset.prefetch(1)).get_next()


def _flat_shapes(shapes: Any) -> list[Any]:
    if shapes is None or isinstance(shapes, tf.TensorShape):
        return [shapes]
    if isinstance(shapes, list) and all(size is None or isinstance(size, int) for size in shapes):
        return [tf.TensorShape(shapes)]
    if isinstance(shapes, Mapping):
        return [shape for key in sorted(shapes) for shape in _flat_shapes(shapes[key])]
    return [shape for part in shapes for shape in _flat_shapes(part)]
