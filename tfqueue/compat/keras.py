"""Feed Keras: from arrays without a copy in the graph, and from queue pipelines.

    model.fit(tfdata_generator(images, labels, is_training=True), steps_per_epoch=steps, epochs=5)
    model.fit(**QueuePipeline(build_fn).as_keras(), **QueuePipeline(build_val).as_keras(validation=True), epochs=5)

Everything here works with Keras 3 and with tf_keras, whether or not eager execution is on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
import tensorflow as tf

from tfqueue.build import build
from tfqueue.errors import InvalidArgument
from tfqueue.initialize import initialize_all
from tfqueue.startcheck.counting import elements_of
from tfqueue.startcheck.files import Files
from tfqueue.topology.model import FETCHES
from tfqueue.topology.trace import trace

__all__ = ["array_dataset", "create_generator_tf_dataset", "steps_of_one_pass", "tfdata_generator"]

tf1 = tf.compat.v1


def array_dataset(arrays: Any, *, chunk: int = 256) -> Any:
    """The rows of arrays, as `tf.data.Dataset.from_tensor_slices` gives them, without a copy in the graph.

    A constant of the graph cannot hold 2 GB, and doubles the memory below that; here each step reads its rows from the
    arrays themselves (which must therefore not change meanwhile, and which may be memory-mapped).

    Args:
        arrays: An array, or a nest (tuple, list, dictionary) of arrays with the same first dimension.
        chunk: Rows that are read at once.

    Returns:
        A dataset of single rows, in order, with tuples instead of lists.

    Raises:
        InvalidArgument: There is no array, one has no dimension or no dtype of TensorFlow, or they differ in length.
    """
    nest = _tuples(arrays)
    flat = [np.asanyarray(array) for array in tf.nest.flatten(nest)]
    if not flat:
        raise InvalidArgument("arrays holds no array")
    if any(array.ndim == 0 for array in flat):
        raise InvalidArgument(
            "an array without dimensions has no rows; give arrays with one row a record (a list stands for several)"
        )
    lengths = {len(array) for array in flat}
    if len(lengths) > 1:
        raise InvalidArgument(f"the arrays have different lengths: {[len(array) for array in flat]}")
    if chunk < 1:
        raise InvalidArgument(f"chunk must be at least 1; got {chunk}")
    dtypes = [_dtype(array) for array in flat]
    count = lengths.pop()

    native = [array.dtype.newbyteorder("=") for array in flat]  # TensorFlow takes the bytes of others as they are

    def rows(indices: Any) -> list[Any]:
        part = slice(indices[0], indices[-1] + 1)
        return [np.ascontiguousarray(array[part], kind) for array, kind in zip(flat, native, strict=True)]

    def read(indices: Any) -> Any:
        values = tf.numpy_function(rows, [indices], dtypes, stateful=False)
        values = values if isinstance(values, list | tuple) else [values]
        for value, array in zip(values, flat, strict=True):
            value.set_shape([None, *array.shape[1:]])
        return tf.nest.pack_sequence_as(nest, list(values))

    # A dataset of TF1, so that it and what is made of it have make_one_shot_iterator() and its like.
    dataset = tf1.data.Dataset.range(count).batch(chunk).map(read).apply(lambda chunks: chunks.unbatch())
    return dataset.apply(tf1.data.experimental.assert_cardinality(count))


def tfdata_generator(
    images: Any,
    labels: Any,
    is_training: bool,
    batch_size: int = 128,
    *,
    map_fn: Callable[[Any, Any], Any] | None = None,
    buffer_size: int = 1000,
    seed: int | None = None,
) -> Any:
    """An endless dataset of batches of images and labels for ``fit``.

    Args:
        images: An array with one image a row; it is not copied into the graph.
        labels: An array with one label a row.
        is_training: Shuffle, anew in every pass.
        batch_size: Rows of a batch; the last batch of a pass may be smaller.
        map_fn: From one image and its label to what the model takes, such as a cast and a one-hot.
        buffer_size: Rows among which the shuffle draws.
        seed: Of the shuffle.

    Returns:
        A `tf.data.Dataset`; give ``fit`` the ``steps_per_epoch``.

    Raises:
        InvalidArgument: As `array_dataset`; there are no rows, or a number is below 1.
    """
    _check_rows(images, batch_size=batch_size, buffer_size=buffer_size)
    dataset = array_dataset((images, labels))
    if is_training:
        dataset = dataset.shuffle(buffer_size, seed=seed)
    if map_fn is not None:
        dataset = dataset.map(map_fn, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.batch(batch_size).repeat().prefetch(tf.data.AUTOTUNE)


def create_generator_tf_dataset(
    images: Any,
    onehots: Any,
    batch_size: int,
    map_fn: Callable[[Any], Any] | None = None,
    *,
    seed: int | None = None,
) -> Iterator[tuple[Any, Any]]:
    """An endless Python generator of (inputs, labels) batches of arrays, made by tf.data in a session of its own.

    The rows are shuffled anew in every pass; a batch may go over the end of a pass. As any generator, it serves one
    thread: ``fit_generator`` needs ``workers=0`` or 1.

    Args:
        images: An array with one image a row; it is not copied into the graph.
        onehots: An array with one label a row.
        batch_size: Rows of a batch.
        map_fn: From one image to what the model takes, such as an augmentation.
        seed: Of the shuffle.

    Raises:
        InvalidArgument: As `array_dataset`; there are no rows, or ``batch_size`` is below 1.
    """
    _check_rows(images, batch_size=batch_size)
    graph = tf.Graph()
    with graph.as_default():
        dataset = array_dataset((images, onehots))
        dataset = dataset.shuffle(len(images), seed=seed).repeat()
        if map_fn is not None:
            dataset = dataset.map(lambda x, y: (map_fn(x), y), num_parallel_calls=tf.data.AUTOTUNE)
        batch = tf1.data.make_one_shot_iterator(dataset.batch(batch_size).prefetch(1)).get_next()

    def generate() -> Iterator[tuple[Any, Any]]:
        # Not `with`: a session that is the default one while the caller does other things breaks the caller's nesting.
        session = tf1.Session(graph=graph)
        try:
            step = session.make_callable(batch)
            while True:
                yield step()
        finally:
            session.close()

    return generate()


def steps_of_one_pass(build_fn: Callable[[], Any]) -> int | None:
    """The batches that one pass over the data of a queue pipeline gives; None where its graph does not tell.

    Counted from the records of its files, or the length of its lists, and the batch size; a last partial batch counts
    where the pipeline delivers it.
    """
    graph = tf.Graph()
    fetches = build(build_fn, graph)
    once = trace(graph, fetches)
    once = replace(once, producers=tuple(replace(producer, num_epochs=1) for producer in once.producers))
    with tf1.Session(graph=graph) as session:
        initialize_all(graph, session)
        files = Files(once, graph, session)
        files.check()
        counts = files.count()
    steps = []
    for name in once.transform(FETCHES).inputs:
        dequeue = next((dequeue for dequeue in once.dequeues if dequeue.name == name), None)
        if dequeue is None or dequeue.queue is None:
            return None
        total = elements_of(once.queue(dequeue.queue), once, counts)
        if total is None or (dequeue.kind != "dequeue" and dequeue.batch_size is None):
            return None
        size = 1 if dequeue.kind == "dequeue" else dequeue.batch_size or 1
        steps.append(-(-total // size) if dequeue.kind == "dequeue_up_to" else total // size)
    return min(steps) if steps else None


def pipeline_dataset(build_fn: Callable[[], Any], fresh: Callable[[], Any]) -> Any:
    """A dataset of a pipeline's batches whose every pass is a fresh run of the queues.

    Args:
        build_fn: The build function.
        fresh: Makes a pipeline that is not running.
    """
    graph = tf.Graph()
    signature = _signature(build(build_fn, graph))

    def batches() -> Iterator[Any]:
        with fresh() as pipeline:
            for batch in pipeline:
                yield _tuples(batch)

    return tf.data.Dataset.from_generator(batches, output_signature=signature)


def fit_arguments(
    dataset: Any,
    build_fn: Callable[[], Any],
    *,
    x: str | Sequence[str] | None,
    y: str | Sequence[str] | None,
    validation: bool,
    steps_per_epoch: int | None,
) -> dict[str, Any]:
    """What `QueuePipeline.as_keras` returns."""
    dataset = _inputs_and_targets(dataset, x, y)
    steps = steps_per_epoch
    if steps is not None and steps < 1:
        raise InvalidArgument(f"steps_per_epoch must be at least 1, or None; got {steps}")
    if steps is None:
        steps = steps_of_one_pass(build_fn)
        if steps == 0:
            raise InvalidArgument("one pass over the data gives no batch: there are fewer records than batch_size")
        if steps is None:
            raise InvalidArgument(
                "the number of batches of one pass is not known from the graph (a filter, buckets, records that "
                "become several); pass steps_per_epoch="
            )
    if validation:
        return {"validation_data": dataset, "validation_steps": steps}
    return {"x": dataset, "steps_per_epoch": steps, "shuffle": False}  # Keras warns that it cannot shuffle a dataset


def _inputs_and_targets(dataset: Any, x: str | Sequence[str] | None, y: str | Sequence[str] | None) -> Any:
    spec = dataset.element_spec
    if isinstance(spec, Mapping):
        if y is None:
            raise InvalidArgument(
                f"the pipeline delivers a dictionary; say which of {sorted(spec)} is the target: as_keras(y=...)"
            )
        targets = [y] if isinstance(y, str) else list(y)
        inputs = [x] if isinstance(x, str) else list(x) if x is not None else sorted(set(spec) - set(targets))
        unknown = sorted({*inputs, *targets} - set(spec))
        if unknown:
            raise InvalidArgument(f"the pipeline delivers no {unknown}; it delivers {sorted(spec)}")

        def part(batch: Mapping[str, Any], names: Sequence[str], single: bool) -> Any:
            return batch[names[0]] if single else {name: batch[name] for name in names}

        one = isinstance(x, str) or (x is None and len(inputs) == 1)
        return dataset.map(lambda batch: (part(batch, inputs, one), part(batch, targets, isinstance(y, str))))
    if x is not None or y is not None:
        raise InvalidArgument("x= and y= are names in a dictionary; this pipeline delivers no dictionary")
    if not isinstance(spec, tuple) or len(spec) not in (2, 3):
        raise InvalidArgument(
            "fit needs (inputs, targets) or (inputs, targets, weights): let build_fn return that, or a dictionary"
        )
    return dataset if type(spec) is tuple else dataset.map(tuple)  # a namedtuple, which Keras takes for one input


def _signature(fetches: Any) -> Any:
    def spec(tensor: Any) -> Any:
        if isinstance(tensor, tf.SparseTensor):
            return tf.SparseTensorSpec(tensor.shape, tensor.dtype)
        return tf.TensorSpec(tensor.shape, tensor.dtype)

    return tf.nest.map_structure(spec, _tuples(fetches))


def _tuples(nest: Any) -> Any:
    """A nest with tuples instead of lists, which tf.data would take for one tensor."""
    if isinstance(nest, Mapping):
        return {key: _tuples(value) for key, value in nest.items()}
    if isinstance(nest, tuple) and hasattr(nest, "_fields") and not isinstance(nest, tf1.SparseTensorValue):
        return type(nest)(*map(_tuples, nest))
    if isinstance(nest, list) or type(nest) is tuple:
        return tuple(map(_tuples, nest))
    return nest


def _check_rows(images: Any, **numbers: Any) -> None:
    for name, number in numbers.items():
        if not isinstance(number, Integral) or number < 1:
            raise InvalidArgument(f"{name} must be an integer of at least 1; got {number!r}")
    if np.ndim(images) > 0 and len(images) == 0:
        raise InvalidArgument("images has no rows: an endless stream of nothing")


def _dtype(array: Any) -> Any:
    if array.dtype.kind == "O" and not all(isinstance(value, str | bytes) for value in array.flat):
        raise InvalidArgument("an array of objects must hold strings only; give numbers a dtype: np.asarray(x, dtype)")
    try:
        return tf.string if array.dtype.kind in "OSU" else tf.as_dtype(array.dtype)
    except TypeError as error:
        raise InvalidArgument(f"an array of {array.dtype} cannot be fed to TensorFlow") from error
