"""`import tfqueue.compat.v1 as tf`: TensorFlow's own names, the restored ones, and errors that help."""

from __future__ import annotations

import gzip
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow
import tensorflow.compat.v1 as tf1

import tfqueue.compat.v1 as tf
from tfqueue.compat import mnist, names
from tfqueue.compat.numpy_names import removed_names
from tfqueue.compat.submodules import modules
from tfqueue.errors import CannotRestore, InvalidArgument, RecordError


def value(build) -> object:
    """What a graph-building function gives in a session."""
    with tf1.Graph().as_default(), tf1.Session() as session:
        tensors = build()
        session.run(tf1.global_variables_initializer())
        return session.run(tensors)


def test_the_names_of_tensorflow_are_its_own() -> None:
    assert tf.Session is tf1.Session
    assert tf.train.batch is tf1.train.batch
    assert tf.train.string_input_producer is tf1.train.string_input_producer
    assert tf.__version__ == tensorflow.__version__
    assert set(dir(tf1)) - {name for name in dir(tf1) if name.startswith("_")} <= set(dir(tf))


def test_what_is_nowhere_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'tensorflow' has no attribute 'no_such_name'"):
        tf.no_such_name  # noqa: B018
    with pytest.raises(AttributeError, match=r"module 'tensorflow.train' has no attribute 'no_such_name'"):
        tf.train.no_such_name  # noqa: B018


def test_what_is_gone_says_what_it_was_and_the_way_today() -> None:
    with pytest.raises(CannotRestore, match="ffmpeg") as raised:
        tf.contrib.ffmpeg.decode_audio  # noqa: B018
    assert raised.value.modern is not None
    assert "tf.audio.decode_wav" in raised.value.modern
    assert not hasattr(tf.contrib.training, "batch_sequences_with_states")
    assert "batch_sequences_with_states" not in dir(tf.contrib.training)


def test_sparse_split_takes_both_orders() -> None:
    def halves(split):
        sparse = tf.SparseTensor([[0, 1], [1, 3]], [5, 6], [2, 4])
        return [tf.sparse_tensor_to_dense(part) for part in split(sparse)]

    old = value(lambda: halves(lambda sparse: tf.sparse_split(1, 2, sparse)))
    new = value(lambda: halves(lambda sparse: tf.sparse_split(sp_input=sparse, num_split=2, axis=1)))
    for parts in (old, new):
        np.testing.assert_array_equal(parts, [[[0, 5], [0, 0]], [[0, 0], [0, 6]]])


def test_importing_changes_no_global_behaviour() -> None:
    code = (
        "import tensorflow as t, sys\n"
        "before = (t.executing_eagerly(), t.compat.v1.resource_variables_enabled(), list(sys.path))\n"
        "import tfqueue.compat.v1 as tf, tfqueue.compat.contrib as c\n"
        "tf.pack, tf.contrib.slim.conv2d, tf.layers.dense, tf.contrib.training.bucket\n"
        "assert before == (t.executing_eagerly(), t.compat.v1.resource_variables_enabled(), list(sys.path))\n"
        "assert not hasattr(t, 'contrib') and not hasattr(t.compat.v1, 'pack')\n"
        "print('same')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "same", done.stderr


def test_arithmetic_of_before_1_0() -> None:
    a, b = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), np.array([[5.0, 6.0], [7.0, 8.0]], np.float32)

    def build() -> list[object]:
        return [
            tf.mul(a, b), tf.sub(a, b), tf.neg(a), tf.inv(a), tf.pack([a, b]), tf.unpack(a), tf.complex_abs(3 + 4j),
            tf.select([True, False], a, b), tf.batch_matmul(a[None], b[None], adj_y=True), tf.batch_matrix_inverse(a),
            tf.listdiff([1, 2, 3, 4], [2, 4]),
        ]  # fmt: skip

    mul, sub, neg, inv, pack, unpack, length, select, matmul, inverse, listdiff = value(build)
    np.testing.assert_array_equal(mul, a * b)
    np.testing.assert_array_equal(sub, a - b)
    np.testing.assert_array_equal(neg, -a)
    np.testing.assert_allclose(inv, 1 / a, rtol=1e-6)
    np.testing.assert_array_equal(pack, np.stack([a, b]))
    np.testing.assert_array_equal(unpack, a)
    assert length == pytest.approx(5.0)
    np.testing.assert_array_equal(select, [a[0], b[1]])
    np.testing.assert_allclose(matmul, (a @ b.T)[None])
    np.testing.assert_allclose(inverse, np.linalg.inv(a), rtol=1e-5)
    np.testing.assert_array_equal(listdiff[0], [1, 3])
    np.testing.assert_array_equal(listdiff[1], [0, 2])


def test_both_orders_of_arguments() -> None:
    a = np.arange(12, dtype=np.float32).reshape(2, 6)
    image = np.arange(48, dtype=np.float32).reshape(1, 4, 4, 3)

    def pairs() -> list[object]:
        return [
            (tf.concat(1, [a, a]), tf1.concat([a, a], 1)),
            (tf.concat([a, a], 1), tf1.concat([a, a], 1)),
            (tf.concat(concat_dim=0, values=[a, a]), tf1.concat([a, a], 0)),
            (tf.split(1, 3, a), tf1.split(a, 3, 1)),
            (tf.split(a, 3, 1), tf1.split(a, 3, 1)),
            (tf.split(value=a, num_or_size_splits=[1, 5], axis=1)[1], tf1.split(a, [1, 5], 1)[1]),
            (tf.split(split_dim=0, num_split=2, value=a), tf1.split(a, 2, 0)),
            (tf.concat(tf.constant(1), [a, a]), tf1.concat([a, a], 1)),
            (tf.split(tf.constant(0), 2, a), tf1.split(a, 2, 0)),
            (tf.image.resize_images(image, tf.constant(3), tf.constant(5)), tf1.image.resize_images(image, [3, 5])),
            (tf.reverse(a, [False, True]), tf1.reverse(a, [1])),
            (tf.reverse(a, [0, 1]), tf1.reverse(a, [0, 1])),
            (tf.reverse(a, tf1.constant([True, False])), tf1.reverse(a, [0])),
            (tf.image.resize_images(image, 3, 5), tf1.image.resize_images(image, [3, 5])),
            (tf.image.resize_images(image, [3, 5], 1), tf1.image.resize_images(image, [3, 5], 1)),
            (tf.image.resize_images(image, 3, 5, 2, True), tf1.image.resize_images(image, [3, 5], 2, True)),
        ]

    for old, new in value(pairs):
        np.testing.assert_array_equal(np.asarray(old), np.asarray(new))


def test_losses_by_position() -> None:
    logits, labels = np.array([[1.0, 2.0, -1.0]], np.float32), np.array([[0.2, 0.3, 0.5]], np.float32)

    def pairs() -> list[object]:
        nn, nn1 = tf.nn, tf1.nn
        return [
            (
                nn.softmax_cross_entropy_with_logits(logits, labels),
                nn1.softmax_cross_entropy_with_logits(labels=labels, logits=logits),
            ),
            (
                nn.sparse_softmax_cross_entropy_with_logits(logits, [2]),
                nn1.sparse_softmax_cross_entropy_with_logits(labels=[2], logits=logits),
            ),
            (
                nn.sigmoid_cross_entropy_with_logits(logits, targets=labels),
                nn1.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits),
            ),
            (
                nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits),
                nn1.softmax_cross_entropy_with_logits(labels=labels, logits=logits),
            ),
        ]

    for old, new in value(pairs):
        np.testing.assert_array_equal(old, new)
    with pytest.raises(TypeError, match="two values"):
        value(lambda: tf.nn.softmax_cross_entropy_with_logits(logits, labels, labels=labels))


def test_a_call_in_todays_order_is_not_called_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "_used", {})
    value(lambda: tf.concat([[1], [2]], 0))
    assert names.restored_so_far() == ()
    value(lambda: tf.concat(0, [[1], [2]]))
    assert [row.name for row in names.restored_so_far()] == ["tf.concat"]


def test_summaries_keep_their_tags() -> None:
    def build() -> object:
        with tf1.name_scope("scope"):
            tf.scalar_summary("loss", 2.0)
            tf.histogram_summary("weights", [1.0, 2.0])
            tf.image_summary("pictures", np.zeros([1, 2, 2, 3], np.uint8))
            tf.audio_summary("sounds", np.zeros([1, 8], np.float32), 8000)
        return tf.merge_all_summaries()

    written = tf1.Summary.FromString(value(build))
    assert [item.tag for item in written.value] == ["loss", "weights", "pictures/image/0", "sounds/audio/0"]
    assert written.value[0].simple_value == 2.0
    assert tf.train.SummaryWriter is tf1.summary.FileWriter


def test_layers_and_cells_under_keras_3() -> None:
    def build() -> list[object]:
        x = tf.constant(np.ones([2, 8, 8, 3], np.float32))
        y = tf.layers.conv2d(x, 4, 3, kernel_initializer=tf.ones_initializer())
        y = tf.layers.batch_normalization(y, training=False)
        cell = tf.nn.rnn_cell.BasicLSTMCell(5)
        outputs, state = tf.nn.dynamic_rnn(cell, tf.ones([2, 3, 4]), dtype=tf.float32)
        return [y, tf.layers.dense(tf.layers.flatten(x), 7), outputs, state]

    with pytest.warns(UserWarning, match="deprecated"):
        convolved, dense, outputs, state = value(build)
    np.testing.assert_allclose(convolved, np.full([2, 6, 6, 4], 27 / np.sqrt(1.001)), rtol=1e-5)
    assert dense.shape == (2, 7)
    assert outputs.shape == (2, 3, 5)
    np.testing.assert_array_equal(state.h, outputs[:, -1])


def test_flags_of_before_1_5(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "tfqueue_test_flag"
    tf.flags.DEFINE_integer(name, 3, "a number")
    try:
        monkeypatch.setattr(sys, "argv", ["program", f"--{name}=4", "other"])
        tf.flags.FLAGS._parse_flags()
        assert tf.app.flags.FLAGS[name].value == 4
        assert getattr(tf.flags.FLAGS, name) == 4
        assert getattr(tf.flags.FLAGS, "__flags")[name] == 4
        assert tf.flags.FLAGS.__dict__["__flags"][name] == 4
        tf.flags.FLAGS.__dict__["__flags"][name] = 5
        assert getattr(tf.flags.FLAGS, name) == tf.flags.FLAGS.__dict__["__flags"][name] == 5
        setattr(tf.flags.FLAGS, name, 4)
        assert getattr(tf1.flags.FLAGS, name) == 4
    finally:
        delattr(tf1.flags.FLAGS, name)


def test_modules_are_found_by_their_old_names() -> None:
    found = modules()
    assert found["tensorflow.contrib.slim"].conv2d is not None
    assert found["tensorflow.contrib.slim.nets.vgg"].vgg_16 is not None
    assert found["tensorflow.contrib.slim.python.slim.nets.vgg"].vgg_16 is not None
    assert found["tensorflow.flags"].FLAGS is tf.flags.FLAGS
    assert found["tensorflow.gfile"].Exists is tf1.gfile.Exists
    assert found["tensorflow.python_io"].TFRecordWriter is tf1.python_io.TFRecordWriter
    assert found["tensorflow.contrib.learn.python.learn.datasets"].mnist.load_mnist is mnist.load_mnist
    assert found["tensorflow.examples.tutorials.mnist"].input_data.read_data_sets is mnist.read_data_sets
    assert found["tensorflow.keras.layers"].Dense.__module__.startswith("tf_keras")


def test_listing_the_modules_imports_nothing() -> None:
    code = (
        "import sys; from tfqueue.compat.submodules import modules; print(len(modules()), 'tensorflow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split()[1] == "False"


def test_contrib_packages_can_be_imported() -> None:
    import tfqueue.compat.contrib.training as training
    from tfqueue.compat.contrib import slim

    assert training.bucket is tf.contrib.training.bucket
    assert slim is tf.contrib.slim


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a NumPy that still has them
def test_numpy_names_are_given_back_for_a_block() -> None:
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    missing = {
        name
        for name, there in {"np.lib.*": hasattr(np.lib, "pad"), "np.rank": hasattr(np, "rank")}.items()
        if not there
    }
    before, lib, methods = dict(vars(np)), dict(vars(np.lib)), dict(vars(np.ndarray)).keys()
    with removed_names():
        assert array.tostring() == array.tobytes()
        assert array.T.tostring("F") == array.T.tobytes("F")
        assert np.float32(1.5).tostring() == np.float32(1.5).tobytes()
        assert np.int is int
        assert np.array([1], np.float).dtype == np.float64
        read = np.fromstring(array.tobytes(), np.int16)
        read[0] = 7
        np.testing.assert_array_equal(read[1:], array.ravel()[1:])
        np.testing.assert_array_equal(np.fromstring("1 2", sep=" "), [1.0, 2.0])
        with pytest.raises(ValueError, match="multiple of element size"):
            np.fromstring(b"123", np.int16)
        np.testing.assert_array_equal(np.lib.pad([1], (1, 1), "constant"), [0, 1, 0])
        assert (np.PINF, np.NINF, np.math.sqrt(4), np.rank(array), np.alen(array)) == (np.inf, -np.inf, 2.0, 2, 2)
        assert np.cast["float32"](array).dtype == np.asfarray(array, np.float32).dtype == np.float32
        np.testing.assert_array_equal(np.msort(array[::-1]), array)
        assert np.trapz([1.0, 2.0, 3.0]) == 4.0
        assert (array.ptp(), array.ptp(axis=0).tolist()) == (5, [3, 3, 3])
        np.testing.assert_array_equal(array.newbyteorder(), array.byteswap())
        changed = array.copy()
        changed.itemset(4, 9)
        changed.itemset((0, 1), 8)
        changed.itemset(0, 2, 7)
        np.testing.assert_array_equal(changed, [[0, 8, 7], [3, 9, 5]])
        assert {"np.lib.*", "np.rank"} & missing <= {row.name for row in names.restored_so_far()}
        with removed_names():
            pass
        assert array.tostring() == array.tobytes()
    assert (dict(vars(np.lib)), dict(vars(np.ndarray)).keys()) == (lib, methods)
    assert dict(vars(np)) == before
    assert hasattr(array, "tostring") is (np.__version__ < "2.3")


def test_numpy_names_go_away_after_an_error() -> None:
    with pytest.raises(KeyError), removed_names():
        raise KeyError("x")
    assert not hasattr(np, "int")


def idx(data: np.ndarray) -> bytes:
    return bytes((0, 0, 8, data.ndim)) + struct.pack(f">{data.ndim}I", *data.shape) + data.tobytes()


@pytest.fixture
def mnist_folder(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    for name, count in (("train", 30), ("t10k", 7)):
        images = random.integers(0, 256, [count, 28, 28], np.uint8)
        labels = np.arange(count, dtype=np.uint8) % 10
        (tmp_path / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
        (tmp_path / f"{name}-labels-idx1-ubyte").write_bytes(idx(labels))
    return tmp_path


def test_mnist_of_local_files(mnist_folder: Path) -> None:
    data = mnist.read_data_sets(mnist_folder, one_hot=True, validation_size=10, seed=3)
    assert (data.train.num_examples, data.validation.num_examples, data.test.num_examples) == (20, 10, 7)
    assert data.train.images.shape == (20, 784)
    assert data.train.images.dtype == np.float32
    seen = np.concatenate([data.train.next_batch(8)[1].argmax(1) for _ in range(5)])
    assert data.train.epochs_completed == 1 or data.train.epochs_completed == 2
    expected = np.sort(np.arange(10, 30) % 10)
    np.testing.assert_array_equal(np.sort(seen[:20]), expected)
    np.testing.assert_array_equal(np.sort(seen[20:40]), expected)
    in_order = mnist.read_data_sets(mnist_folder, validation_size=0, dtype=np.uint8, reshape=False)
    images, labels = in_order.test.next_batch(3, shuffle=False)
    assert images.shape == (3, 28, 28, 1)
    np.testing.assert_array_equal(labels, [0, 1, 2])
    with pytest.raises(InvalidArgument, match="more than the 7 examples"):
        in_order.test.next_batch(8)


def test_mnist_files_that_are_missing_or_damaged(mnist_folder: Path) -> None:
    (mnist_folder / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(RecordError, match="reads local files only") as raised:
        mnist.read_data_sets(mnist_folder)
    assert "t10k-labels-idx1-ubyte" in str(raised.value.file)
    (mnist_folder / "t10k-labels-idx1-ubyte").write_bytes(idx(np.zeros(7, np.uint8))[:-1])
    with pytest.raises(RecordError, match="should hold"):
        mnist.read_data_sets(mnist_folder)
    (mnist_folder / "train-images-idx3-ubyte.gz").write_bytes(b"<html>")
    with pytest.raises(RecordError, match="no IDX file"):
        mnist.read_data_sets(mnist_folder)
