"""Feeding Keras: the ways of a well-known answer of the time, each run today, with its twin and the proof.

The answer shows a generator over a tf.data iterator with placeholders, tensors as the input and target of a model,
an iterator in `fit`, a generator in `fit_generator`, and an estimator. All run here on TF1's names; after each comes
the same with tfqueue, and a comparison. Where the answer had a slip, a comment starting with "mended:" says so.

    python demos/keras_feed.py [FOLDER]
"""

# ruff: noqa: N803, RET504 (names and shape of the code are the answer's)

import gzip
import struct
import sys
import warnings
from pathlib import Path

import keras
import numpy as np

import tfqueue
import tfqueue.compat.v1 as tf  # mended: the names of TF1 live here today; tf.keras is tf_keras, which has graphs
from tfqueue.compat.estimator import run_input_fn
from tfqueue.compat.keras import create_generator_tf_dataset, tfdata_generator

# What Keras says of the old ways.
warnings.filterwarnings("ignore", message=".*(fit_generator|state_updates)")
folder = Path(sys.argv[1] if len(sys.argv) > 1 else "keras-feed")
folder.mkdir(exist_ok=True)
K = tf.keras.backend

# Pictures of 28 x 28 that stand for MNIST: of class c, rows 2c to 2c + 3 are bright.
NUM_CLASSES = 10
rng = np.random.default_rng(0)


def pictures(count):
    labels = rng.integers(0, NUM_CLASSES, count).astype(np.uint8)
    images = rng.integers(0, 60, (count, 28, 28)).astype(np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[2 * label : 2 * label + 4] += 150
    return images, labels


x_train, y_train = pictures(512)
x_test, y_test = pictures(128)


def small_model(layers, loss="categorical_crossentropy", **input_options):
    model = layers.models.Sequential(
        [
            layers.layers.Flatten(**input_options),
            layers.layers.Dense(NUM_CLASSES, activation="softmax", kernel_initializer="zeros"),
        ]
    )
    model.compile(layers.optimizers.SGD(0.02), loss, metrics=["accuracy"])
    return model


def floats(images):
    return images.astype(np.float32)[..., None] / 255


onehots = np.eye(NUM_CLASSES, dtype=np.float32)[y_train]


def agree(what, one, other):
    print(f"{what}: losses {np.round(one, 4).tolist()}, equal: {np.allclose(one, other, rtol=1e-4)}")
    assert np.allclose(one, other, rtol=1e-4)


# -- 1. a generator over placeholders: the arrays are not copied into the graph --------------------------------------


def legacy_generator(images, onehots, batch_size, map_fn=None):  # mended: `self` and a map_fn that was not an argument
    # Get shapes
    img_size = images.shape
    img_size = (None, img_size[1], img_size[2], img_size[3])
    onehot_size = onehots.shape
    onehot_size = (None, onehot_size[1])

    # Placeholders
    images_tensor = tf.placeholder(tf.float32, shape=img_size)
    onehots_tensor = tf.placeholder(tf.float32, shape=onehot_size)

    # Dataset
    dataset = tf.data.Dataset.from_tensor_slices((images_tensor, onehots_tensor))
    # Map function (e.g. augmentation)
    if map_fn is not None:
        dataset = dataset.map(lambda x, y: (map_fn(x), y), num_parallel_calls=tf.data.experimental.AUTOTUNE)
    # Combined shuffle and infinite repeat
    dataset = dataset.apply(tf.data.experimental.shuffle_and_repeat(len(images), None))
    dataset = dataset.batch(batch_size)
    dataset = dataset.prefetch(1)

    # Make the iterator
    iterator = dataset.make_initializable_iterator()
    init_op = iterator.initializer
    next_val = iterator.get_next()

    sess = K.get_session()  # mended: `with ... as_default()` around a yield leaves the session open as the default one
    sess.run(init_op, feed_dict={images_tensor: images, onehots_tensor: onehots})
    while True:
        inputs, labels = sess.run(next_val)
        yield inputs, labels


def one_pass(generator, batches):
    """The pairs of one pass, sorted, so that two shuffles can be compared."""
    pairs = [next(generator) for _ in range(batches)]
    generator.close()
    rows = [np.concatenate(part).reshape(len(pairs) * len(pairs[0][0]), -1) for part in zip(*pairs, strict=True)]
    rows = np.concatenate(rows, axis=1)
    return rows[np.lexsort(rows.T)]


with tf.Graph().as_default() as graph:
    legacy = one_pass(legacy_generator(floats(x_train), onehots, 64), 8)
    inside = graph.as_graph_def().ByteSize()
twin = one_pass(create_generator_tf_dataset(floats(x_train), onehots, 64), 8)
print(f"1. one pass of both generators gives the same pairs: {np.array_equal(legacy, twin)}")
print(f"   graph {inside:,} bytes, arrays {floats(x_train).nbytes:,} bytes")
assert np.array_equal(legacy, twin)
assert inside < 100_000


# -- 2. tensors as the input and the target of a model ---------------------------------------------------------------

with tf.Graph().as_default():
    x = np.arange(4).reshape(-1, 1).astype("float32")
    ds_x = tf.data.Dataset.from_tensor_slices(x).repeat().batch(4)
    it_x = ds_x.make_one_shot_iterator()

    y = np.arange(5, 9).reshape(-1, 1).astype("float32")
    ds_y = tf.data.Dataset.from_tensor_slices(y).repeat().batch(4)
    it_y = ds_y.make_one_shot_iterator()

    input_vals = tf.keras.layers.Input(tensor=it_x.get_next())
    output = tf.keras.layers.Dense(1, activation="relu", kernel_initializer="ones")(input_vals)
    model = tf.keras.models.Model(inputs=input_vals, outputs=output)
    model.compile("rmsprop", "mse", target_tensors=[it_y.get_next()])
    by_tensors = model.fit(steps_per_epoch=1, epochs=5, verbose=0).history["loss"]

with tf.Graph().as_default():  # the twin: the same arrays as arrays
    model = tf.keras.models.Sequential(
        [tf.keras.layers.Dense(1, activation="relu", kernel_initializer="ones", input_shape=(1,))]
    )
    model.compile("rmsprop", "mse")
    agree("2. Input(tensor=...) and arrays", by_tensors, model.fit(x, y, 4, epochs=5, verbose=0).history["loss"])


# -- 3. the iterator of a dataset in fit, with validation during training ----------------------------------------------


def legacy_tfdata_generator(images, labels, is_training, batch_size=128):
    """Construct a data generator using `tf.Dataset`."""

    def map_fn(image, label):
        """Preprocess raw data to trainable input."""
        x = tf.reshape(tf.cast(image, tf.float32), (28, 28, 1)) / 255
        y = tf.one_hot(tf.cast(label, tf.uint8), NUM_CLASSES)
        return x, y

    dataset = tf.data.Dataset.from_tensor_slices((images, labels))

    if is_training:
        dataset = dataset.shuffle(1000, seed=1)  # depends on sample size; mended: a seed, to compare by
    dataset = dataset.map(map_fn)
    dataset = dataset.batch(batch_size)
    dataset = dataset.repeat()
    dataset = dataset.prefetch(tf.contrib.data.AUTOTUNE)

    return dataset


def to_input(image, label):
    image = tf.reshape(tf.cast(image, tf.float32), (28, 28, 1)) / 255
    return image, tf.one_hot(tf.cast(label, tf.uint8), NUM_CLASSES)


def fitted(training_set, test_set):
    model = small_model(tf.keras, input_shape=(28, 28, 1))
    return model.fit(
        training_set.make_one_shot_iterator(),
        steps_per_epoch=len(x_train) // 128,
        epochs=5,
        verbose=0,
        # The answer says that validation needs "feedable iterators", which is "convoluted". It does not.
        validation_data=test_set.make_one_shot_iterator(),
        validation_steps=1,
    ).history


with tf.Graph().as_default():
    legacy = fitted(
        legacy_tfdata_generator(x_train, y_train, is_training=True), legacy_tfdata_generator(x_test, y_test, False)
    )
with tf.Graph().as_default():
    twin = fitted(
        tfdata_generator(x_train, y_train, is_training=True, map_fn=to_input, seed=1),
        tfdata_generator(x_test, y_test, is_training=False, map_fn=to_input),
    )
agree("3. an iterator in fit", legacy["loss"], twin["loss"])
agree("   and its validation", legacy["val_loss"], twin["val_loss"])


# -- 4. the older way: a generator, fit_generator and MNIST by tf.contrib.learn ----------------------------------------


def write_idx(name, array):
    head = bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
    (folder / f"{name}-ubyte.gz").write_bytes(gzip.compress(head + array.tobytes()))


# The four files of MNIST would be here; nothing is downloaded.
for part, images, labels in (("train", x_train, y_train), ("t10k", x_test, y_test)):
    write_idx(f"{part}-images-idx3", images)
    write_idx(f"{part}-labels-idx1", labels)
mnist = tf.contrib.learn.datasets.mnist
data = mnist.read_data_sets(folder, validation_size=0)


def oldest_generator(images, labels, batch_size=128):
    def map_func(image, label):
        """A transformation function"""
        x_train = tf.reshape(tf.cast(image, tf.float32), (28, 28, 1))
        y_train = tf.one_hot(tf.cast(label, tf.uint8), NUM_CLASSES)
        return x_train, y_train  # mended: a list would be one tensor

    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.map(map_func)
    # mended: shuffle() without a buffer size; one batch is all rows here, so that the order does not matter
    dataset = dataset.shuffle(len(images)).batch(batch_size).repeat()
    iterator = dataset.make_one_shot_iterator()

    next_batch = iterator.get_next()
    while True:
        yield K.get_session().run(next_batch)


with tf.Graph().as_default():
    history = small_model(tf.keras, input_shape=(28, 28, 1)).fit_generator(
        generator=oldest_generator(data.train.images, data.train.labels, batch_size=512),
        steps_per_epoch=2,
        epochs=3,
        workers=0,  # This is important
        verbose=0,
    )
with tf.Graph().as_default():
    generator = create_generator_tf_dataset(floats(x_train), onehots, 512)
    twin = small_model(tf.keras, input_shape=(28, 28, 1)).fit(generator, steps_per_epoch=2, epochs=3, verbose=0)
agree("4. fit_generator", history.history["loss"], twin.history["loss"])


# -- 5. a Keras model as an estimator --------------------------------------------------------------------------------

with tf.Graph().as_default():
    model = small_model(tf.keras, input_shape=(28, 28, 1))
    estimator = tf.keras.estimator.model_to_estimator(keras_model=model, model_dir=str(folder / "model"))
    input_name = model.layers[0].input.op.name


def input_fn(dataset):
    dataset = dataset.map(lambda X, y: ({input_name: X}, y))  # mended: a parenthesis
    return dataset.make_one_shot_iterator().get_next()


train_spec = tf.estimator.TrainSpec(
    # mended: a dataset belongs to the graph it was made in, so it is made in the function
    input_fn=lambda: input_fn(tfdata_generator(x_train, y_train, is_training=True, map_fn=to_input, seed=1)),
    max_steps=100,
)
eval_spec = tf.estimator.EvalSpec(
    input_fn=lambda: input_fn(tfdata_generator(x_test, y_test, is_training=False, map_fn=to_input)),
    steps=1,  # mended: the dataset repeats without end
)

# The input function by itself, without an estimator.
features, labels = next(run_input_fn(eval_spec.input_fn))
alone = np.array_equal(features[input_name], floats(x_test)) and np.array_equal(labels.argmax(1), y_test)
print(f"5. the input function by itself gives the pictures of the test: {alone}")
assert alone

result, _ = tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
print(f"   the estimator after step {result['global_step']}: accuracy {result['accuracy']:.3f}")
assert result["accuracy"] > 0.9


# -- 6. a queue pipeline in Keras 3 -----------------------------------------------------------------------------------


def queue_pipeline():
    image, label = tf.train.slice_input_producer(
        [tf.constant(x_train), tf.constant(y_train)], num_epochs=1, shuffle=False
    )
    return tf.train.batch(to_input(image, label), 128)


def test_pipeline():
    image, label = tf.train.slice_input_producer(
        [tf.constant(x_test), tf.constant(y_test)], num_epochs=1, shuffle=False
    )
    return tf.train.batch(to_input(image, label), 128)


for engine in ("threads", "lockstep", "tfdata"):
    train = tfqueue.QueuePipeline(queue_pipeline, engine=engine)
    test = tfqueue.QueuePipeline(test_pipeline, engine=engine)
    model = small_model(keras)
    by_queue = model.fit(**train.as_keras(), **test.as_keras(validation=True), epochs=3, verbose=0).history
    model = small_model(keras)
    by_array = model.fit(floats(x_train), onehots, 128, epochs=3, shuffle=False, verbose=0).history
    agree(f"6. Keras 3 on the queues, engine {engine}", by_queue["loss"], by_array["loss"])
