"""Feeding Keras: arrays that stay outside the graph, pipelines in fit, iterators and tensors in tf_keras."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf1

import tfqueue
import tfqueue.compat.v1 as tf
from tfqueue.compat.keras import array_dataset, create_generator_tf_dataset, steps_of_one_pass, tfdata_generator
from tfqueue.errors import InvalidArgument

RANDOM = np.random.default_rng(4)
X = RANDOM.normal(size=(40, 3)).astype(np.float32)
Y = X @ np.array([[1.0], [-2.0], [0.5]], np.float32)


def test_array_dataset_gives_what_from_tensor_slices_gives() -> None:
    arrays = {"x": X, "rest": (np.arange(40), np.array([f"name {i}" for i in range(40)])), "f16": X.astype(np.float16)}
    ours = array_dataset(arrays, chunk=7)
    theirs = tf2.data.Dataset.from_tensor_slices(arrays)
    assert ours.element_spec == theirs.element_spec
    assert ours.cardinality() == 40
    for a, b in zip(ours.as_numpy_iterator(), theirs.as_numpy_iterator(), strict=True):
        tf2.nest.map_structure(np.testing.assert_array_equal, a, b)


def test_array_dataset_copies_nothing_into_the_graph() -> None:
    large = np.zeros([1000, 1000], np.float32)
    with tf2.Graph().as_default() as graph:
        element = tf1.data.make_one_shot_iterator(array_dataset(large)).get_next()
        assert graph.as_graph_def().ByteSize() < 50_000
        large[0] = 7
        with tf1.Session() as session:
            np.testing.assert_array_equal(session.run(element), np.full(1000, 7.0))


def test_array_dataset_of_more_than_two_gigabytes() -> None:
    """A constant of the graph cannot hold it; zeros of memory that is never touched cost nothing."""
    large = np.broadcast_to(np.float32(3), (3_000_000, 256))
    assert large.nbytes > 2**31
    with tf2.Graph().as_default():
        dataset = array_dataset((large, np.broadcast_to(np.int64(1), 3_000_000))).batch(8).take(2)
        element = tf1.data.make_one_shot_iterator(dataset).get_next()
        with tf1.Session() as session:
            rows, labels = session.run(element)
    assert rows.shape == (8, 256)
    assert rows[0, 0] == 3
    assert labels.tolist() == [1] * 8


def test_arrays_that_cannot_be_fed() -> None:
    with pytest.raises(InvalidArgument, match="different lengths"):
        array_dataset((X, Y[:-1]))
    with pytest.raises(InvalidArgument, match="no array"):
        array_dataset(())
    with pytest.raises(InvalidArgument, match="no rows"):
        array_dataset(np.float32(1))
    with pytest.raises(InvalidArgument, match="cannot be fed"):
        array_dataset(np.zeros(3, "datetime64[s]"))


def test_arrays_of_another_byte_order_keep_their_values() -> None:
    for dtype in (">i4", ">f8", "<i4"):
        rows = [row.numpy().tolist() for row in array_dataset(np.arange(6).reshape(3, 2).astype(dtype))]
        assert rows == [[0, 1], [2, 3], [4, 5]]


def test_numbers_and_arrays_that_generators_refuse() -> None:
    empty = X[:0]
    for call, words in (
        (lambda: tfdata_generator(X, Y, True, 0), "batch_size must be an integer of at least 1; got 0"),
        (lambda: tfdata_generator(X, Y, True, 4, buffer_size=0), "buffer_size must be an integer of at least 1"),
        (lambda: tfdata_generator(empty, Y[:0], True), "images has no rows"),
        (lambda: create_generator_tf_dataset(X, Y, None), "batch_size must be an integer of at least 1; got None"),
        (lambda: create_generator_tf_dataset(empty, Y[:0], 4), "images has no rows"),
        (lambda: create_generator_tf_dataset(X, Y[:3], 4), "different lengths"),
        (lambda: array_dataset(np.array([1, "a"], object)), "must hold strings only"),
        (lambda: array_dataset([[1, 2], [3, 4]]), "a list stands for several"),
    ):
        with pytest.raises(InvalidArgument, match=words):
            call()


def test_tfdata_generator() -> None:
    numbers = np.arange(10)
    plain = tfdata_generator(X[:10], numbers, is_training=False, batch_size=4)
    labels = [y.tolist() for _, y in plain.take(4).as_numpy_iterator()]
    assert labels == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9], [0, 1, 2, 3]]
    shuffled = tfdata_generator(
        X[:10], numbers, is_training=True, batch_size=5, seed=1, map_fn=lambda x, y: (x * 2, tf2.one_hot(y, 10))
    )
    passes = [(x, y.argmax(1)) for x, y in shuffled.take(4).as_numpy_iterator()]
    for first, second in (passes[:2], passes[2:]):
        assert sorted([*first[1], *second[1]]) == list(range(10))
    np.testing.assert_array_equal(passes[0][0], X[passes[0][1]] * 2)
    assert [y.tolist() for _, y in passes[:2]] != [y.tolist() for _, y in passes[2:]]


def test_create_generator_tf_dataset() -> None:
    numbers = np.arange(40)
    generator = create_generator_tf_dataset(X, numbers, 8, lambda x: x + 1, seed=2)
    batches = [next(generator) for _ in range(10)]
    generator.close()
    for half in (batches[:5], batches[5:]):
        assert sorted(np.concatenate([y for _, y in half])) == list(range(40))
    np.testing.assert_array_equal(batches[3][0], X[batches[3][1]] + 1)
    with pytest.raises(InvalidArgument, match="batch_size"):
        create_generator_tf_dataset(X, numbers, 0)


# -- tf_keras in graph mode --------------------------------------------------------------------------------------------


def quadratic_model():
    model = tf.keras.models.Sequential([tf.keras.layers.Dense(1, input_shape=(3,), kernel_initializer="zeros")])
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    return model


def by_hand(batches) -> list[float]:
    """The losses of the same training in numpy."""
    weights, bias, losses = np.zeros([3, 1]), np.zeros(1), []
    for x, y in batches:
        error = x @ weights + bias - y
        losses.append(float((error**2).mean()))
        weights -= 0.1 * 2 * x.T @ error / len(x)
        bias -= 0.1 * 2 * error.mean(0)
    return losses


def test_tensors_as_input_and_target() -> None:
    with tf2.Graph().as_default():
        x = tf1.data.make_one_shot_iterator(tf1.data.Dataset.from_tensor_slices(X).repeat().batch(40)).get_next()
        y = tf1.data.make_one_shot_iterator(tf1.data.Dataset.from_tensor_slices(Y).repeat().batch(40)).get_next()
        inputs = tf.keras.layers.Input(tensor=x)
        outputs = tf.keras.layers.Dense(1, kernel_initializer="zeros")(inputs)
        model = tf.keras.models.Model(inputs=inputs, outputs=outputs)
        model.compile(tf.keras.optimizers.SGD(0.1), "mse", target_tensors=[y])
        losses = model.fit(steps_per_epoch=1, epochs=5, verbose=0).history["loss"]
    np.testing.assert_allclose(losses, by_hand([(X, Y)] * 5), rtol=1e-4)


@pytest.mark.filterwarnings("ignore:.*state_updates:UserWarning")
def test_an_iterator_in_fit_with_validation() -> None:
    with tf2.Graph().as_default():
        model = quadratic_model()
        train = tf1.data.make_one_shot_iterator(tfdata_generator(X, Y, is_training=False, batch_size=8))
        test = tf1.data.make_one_shot_iterator(tfdata_generator(X[:8], Y[:8], is_training=False, batch_size=8))
        history = model.fit(
            train, steps_per_epoch=5, epochs=3, verbose=0, validation_data=test, validation_steps=1
        ).history
        weights, bias = model.get_weights()
    losses = by_hand([(X[i : i + 8], Y[i : i + 8]) for i in range(0, 40, 8)] * 3)
    np.testing.assert_allclose(history["loss"], np.reshape(losses, [3, 5]).mean(1), rtol=1e-4)
    np.testing.assert_allclose(history["val_loss"][-1], ((X[:8] @ weights + bias - Y[:8]) ** 2).mean(), rtol=1e-4)


@pytest.mark.filterwarnings("ignore:.*state_updates:UserWarning")
def test_iterators_that_keras_cannot_read() -> None:
    with tf2.Graph().as_default():
        model = quadratic_model()

        def iterator(*arrays):
            dataset = array_dataset(arrays if len(arrays) > 1 else arrays[0]).batch(8).repeat()
            return tf1.data.make_one_shot_iterator(dataset)

        with pytest.raises(InvalidArgument, match=r"fit needs an iterator of \(inputs, targets\)"):
            model.fit(iterator(X), steps_per_epoch=1)
        with pytest.raises(InvalidArgument, match="validation_data is an iterator and x is ndarray"):
            model.fit(X, Y, validation_data=iterator(X, Y), validation_steps=1)
        dataset = tfdata_generator(X, Y, is_training=False, batch_size=8)
        with pytest.raises(InvalidArgument, match=r"and x is .*Dataset.*: give x as an iterator, too"):
            model.fit(dataset, steps_per_epoch=1, validation_data=iterator(X, Y), validation_steps=1)
        # By position, as the eighth argument.
        history = model.fit(
            iterator(X, Y), None, None, 1, 0, None, 0.0, iterator(X, Y), steps_per_epoch=1, validation_steps=1
        ).history
        assert set(history) == {"loss", "val_loss"}
        assert model.predict(iterator(X), steps=2).shape == (16, 1)


@pytest.mark.filterwarnings("ignore:.*fit_generator:UserWarning")
def test_a_generator_in_fit_generator() -> None:
    with tf2.Graph().as_default():
        model = quadratic_model()
        generator = create_generator_tf_dataset(X, Y, 40, seed=1)
        history = model.fit_generator(generator, steps_per_epoch=2, epochs=2, workers=0, verbose=0).history
        generator.close()
    # A batch holds all rows, in some order: the losses are those of whole passes.
    np.testing.assert_allclose(history["loss"], np.reshape(by_hand([(X, Y)] * 4), [2, 2]).mean(1), rtol=1e-4)


# -- pipelines in Keras 3 ----------------------------------------------------------------------------------------------


def pipeline(epochs: int | None = 1, rows: int = 40, batch: int = 8, names: bool = False, smaller: bool = False):
    def build_fn():
        x, y = tf1.train.slice_input_producer(
            [tf1.constant(X[:rows]), tf1.constant(Y[:rows])], num_epochs=epochs, shuffle=False
        )
        tensors = {"features": x, "target": y} if names else [x, y]
        return tf1.train.batch(tensors, batch, allow_smaller_final_batch=smaller)

    return build_fn


def keras_model() -> keras.Model:
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, kernel_initializer="zeros")])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    return model


@pytest.mark.parametrize("engine", ["threads", "lockstep", "tfdata"])
@pytest.mark.parametrize("epochs", [1, None])
def test_a_pipeline_trains_keras_3(engine: str, epochs: int | None) -> None:
    train = tfqueue.QueuePipeline(pipeline(epochs), engine=engine)
    test = tfqueue.QueuePipeline(pipeline(1, rows=8), engine=engine)
    arguments = train.as_keras()
    assert arguments["steps_per_epoch"] == 5
    model = keras_model()
    history = model.fit(**arguments, **test.as_keras(validation=True), epochs=3, verbose=0).history
    losses = by_hand([(X[i : i + 8], Y[i : i + 8]) for i in range(0, 40, 8)] * 3)
    np.testing.assert_allclose(history["loss"], np.reshape(losses, [3, 5]).mean(1), rtol=1e-4)
    weights, bias = model.get_weights()
    np.testing.assert_allclose(history["val_loss"][-1], ((X[:8] @ weights + bias - Y[:8]) ** 2).mean(), rtol=1e-4)


@pytest.mark.parametrize("engine", ["threads", "lockstep", "tfdata"])
def test_to_dataset_gives_the_batches_of_the_pipeline(engine: str) -> None:
    with tfqueue.QueuePipeline(pipeline(names=True, rows=19, smaller=True)) as running:
        expected = list(running)
    dataset = tfqueue.QueuePipeline(pipeline(names=True, rows=19, smaller=True), engine=engine).to_dataset()
    for _ in range(2):  # each pass is a run of its own
        for ours, theirs in zip(dataset.as_numpy_iterator(), expected, strict=True):
            tf2.nest.map_structure(np.testing.assert_array_equal, ours, theirs)


def test_a_pipeline_with_names() -> None:
    train = tfqueue.QueuePipeline(pipeline(names=True), engine="lockstep")
    x, y = next(iter(train.as_keras(y="target")["x"]))
    np.testing.assert_array_equal(x, X[:8])
    np.testing.assert_array_equal(y, Y[:8])
    x, y = next(iter(train.as_keras(x=["features"], y=["target"])["x"]))
    np.testing.assert_array_equal(x["features"], X[:8])
    np.testing.assert_array_equal(y["target"], Y[:8])
    pair = namedtuple("pair", "x y")
    named = tfqueue.QueuePipeline(lambda: pair(*pipeline()()), engine="lockstep").as_keras()["x"]
    assert type(next(iter(named))) is tuple
    np.testing.assert_array_equal(next(iter(named))[1], Y[:8])
    with pytest.raises(InvalidArgument, match="which of"):
        train.as_keras()
    with pytest.raises(InvalidArgument, match="delivers no"):
        train.as_keras(y="label")
    with pytest.raises(InvalidArgument, match="delivers no dictionary"):
        tfqueue.QueuePipeline(pipeline()).as_keras(y="target")


def test_steps_of_one_pass(tmp_path: Path) -> None:
    path = str(tmp_path / "a.tfrecord")
    with tf2.io.TFRecordWriter(path) as writer:
        for i in range(23):
            writer.write(bytes([i]))

    def records(**options):
        def build_fn():
            names = tf1.train.string_input_producer([path, path], num_epochs=options.pop("num_epochs", None))
            value = tf1.TFRecordReader().read(names)[1]
            if options.pop("filter", False):
                return tf1.train.maybe_batch([value], tf1.equal(value, "x"), 4)
            return tf1.train.batch([value], 4, **options)

        return build_fn

    assert steps_of_one_pass(records()) == 11
    assert steps_of_one_pass(records(num_epochs=3)) == 11
    assert steps_of_one_pass(records(allow_smaller_final_batch=True)) == 12
    assert steps_of_one_pass(records(filter=True)) is None
    with pytest.raises(InvalidArgument, match="pass steps_per_epoch="):
        tfqueue.QueuePipeline(lambda: (records(filter=True)(), tf1.constant(1))).as_keras()
    with pytest.raises(InvalidArgument, match="fewer records than batch_size"):
        tfqueue.QueuePipeline(pipeline(rows=3)).as_keras()


def test_a_pipeline_that_delivers_something_else() -> None:
    with pytest.raises(InvalidArgument, match="steps_per_epoch must be at least 1, or None; got 0"):
        tfqueue.QueuePipeline(pipeline()).as_keras(steps_per_epoch=0)

    def build_fn():
        return tf1.train.batch([tf1.train.slice_input_producer([tf1.constant(X)], shuffle=False)[0]], 4)

    with pytest.raises(InvalidArgument, match=r"fit needs \(inputs, targets\)"):
        tfqueue.QueuePipeline(build_fn).as_keras()
