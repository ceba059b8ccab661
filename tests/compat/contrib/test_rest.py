"""tf.contrib's smaller parts: slim mended, datasets, columns, hyperparameters, staging areas, lookup tables."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf1

import tfqueue
import tfqueue.compat.v1 as tf
from tfqueue.errors import CannotRestore, InvalidArgument

slim = tf.contrib.slim


def run(*tensors, init=()):
    with tf1.Session() as session:
        session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer(), tf1.tables_initializer()])
        for op in init:
            session.run(op)
        return session.run(tensors[0] if len(tensors) == 1 else list(tensors))


@pytest.fixture(autouse=True)
def _graph():
    with tf2.Graph().as_default():
        yield


@pytest.mark.filterwarnings("ignore:.*deprecated:UserWarning")
def test_slim_layers_train() -> None:
    x = tf.constant(np.random.default_rng(0).normal(size=[8, 6, 6, 3]).astype(np.float32))
    with slim.arg_scope([slim.conv2d], normalizer_fn=slim.batch_norm, weights_regularizer=slim.l2_regularizer(0.01)):
        net = slim.conv2d(x, 4, [3, 3])
    loss = tf.reduce_mean(tf.square(slim.fully_connected(slim.flatten(net), 1, activation_fn=None) - 1.0))
    train = tf.contrib.layers.optimize_loss(
        loss, tf.contrib.framework.get_or_create_global_step(), 0.05, "SGD", update_ops=[]
    )
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        losses = [session.run(train) for _ in range(20)]
    assert losses[-1] < 0.5 * losses[0]


def test_slim_batch_norm_normalizes() -> None:
    data = np.random.default_rng(1).normal(3, 5, [64, 3]).astype(np.float32)
    normal = slim.batch_norm(tf.constant(data), is_training=True, scale=False, epsilon=0.001)
    expected = (data - data.mean(0)) / np.sqrt(data.var(0) + 0.001)
    np.testing.assert_allclose(run(normal), expected, atol=1e-4)


def test_slim_decodes_images_of_both_formats() -> None:
    pixels = np.random.default_rng(2).integers(0, 256, [5, 4, 3], np.uint8)
    for image_format, encode in ((b"png", tf2.io.encode_png), (b"raw", None)):
        with tf2.Graph().as_default():
            encoded = pixels.tobytes() if encode is None else encode(pixels)
            handler = slim.tfexample_decoder.Image(shape=[5, 4, 3])
            features = {"image/encoded": tf.convert_to_tensor(encoded), "image/format": tf.constant(image_format)}
            np.testing.assert_array_equal(run(handler.tensors_to_item(features)), pixels)


def test_slim_provider_feeds_a_pipeline(tmp_path: Path) -> None:
    path = str(tmp_path / "images.tfrecord")
    pixels = np.random.default_rng(3).integers(0, 256, [9, 5, 4, 3], np.uint8)
    with tf2.io.TFRecordWriter(path) as writer:
        with tf1.Session() as session:
            encoded = session.run([tf1.image.encode_png(image) for image in pixels])
        for i, image in enumerate(encoded):
            example = tf2.train.Example()
            example.features.feature["image/encoded"].bytes_list.value.append(image)
            example.features.feature["image/format"].bytes_list.value.append(b"png")
            example.features.feature["image/class/label"].int64_list.value.append(i)
            writer.write(example.SerializeToString())

    def build():
        decoder = slim.tfexample_decoder.TFExampleDecoder(
            {
                "image/encoded": tf.FixedLenFeature([], tf.string),
                "image/format": tf.FixedLenFeature([], tf.string, "png"),
                "image/class/label": tf.FixedLenFeature([], tf.int64),
            },
            {
                "image": slim.tfexample_decoder.Image(shape=[5, 4, 3]),
                "label": slim.tfexample_decoder.Tensor("image/class/label", shape=[]),
            },
        )
        dataset = slim.dataset.Dataset(path, tf.TFRecordReader, decoder, 9, {})
        provider = slim.dataset_data_provider.DatasetDataProvider(dataset, shuffle=False, num_epochs=1)
        return tf.train.batch(list(provider.get(["image", "label"])), 3)

    with tfqueue.QueuePipeline(build, check=False) as pipeline:
        found = list(pipeline)
    np.testing.assert_array_equal(np.concatenate([image for image, _ in found]), pixels)
    np.testing.assert_array_equal(np.concatenate([label for _, label in found]), np.arange(9))


@pytest.mark.filterwarnings("ignore:.*deprecated:UserWarning")
@pytest.mark.parametrize("net", ["resnet_v1", "resnet_v2"])
def test_nets_are_built(net: str) -> None:
    module = getattr(slim.nets, net)
    with slim.arg_scope(module.resnet_arg_scope()):
        logits, _ = getattr(module, f"{net}_50")(tf.zeros([1, 32, 32, 3]), num_classes=5, is_training=False)
    assert logits.shape[-1] == 5


def test_slim_finds_everything_it_uses() -> None:
    """Every dotted name in tf_slim's sources that goes through a mended module leads to something."""
    missing = []
    for name, module in list(sys.modules.items()):
        if not name.startswith("tf_slim.") or getattr(module, "__file__", None) is None:
            continue
        for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used = vars(module).get(node.value.id)
                if isinstance(used, ModuleType) and not hasattr(used, node.attr):
                    missing.append(f"{name}: {node.value.id}.{node.attr}")
    assert missing == []


def values(dataset) -> list:
    next_value = tf1.data.make_one_shot_iterator(dataset).get_next()
    found = []
    with tf1.Session() as session:
        while True:
            try:
                found.append(session.run(next_value))
            except tf2.errors.OutOfRangeError:
                return found


def test_datasets_of_contrib(tmp_path: Path) -> None:
    data = tf.contrib.data
    numbers = data.Dataset.range(7)
    np.testing.assert_array_equal(values(numbers.apply(data.batch_and_drop_remainder(3))), [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(values(numbers.apply(data.map_and_batch(lambda n: n * 2, 7)))[0], np.arange(7) * 2)
    padded = numbers.map(lambda n: tf.fill([n], n)).apply(data.padded_batch_and_drop_remainder(3, [None]))
    assert [batch.shape for batch in values(padded)] == [(3, 2), (3, 5)]
    windows = numbers.apply(data.sliding_window_batch(3, window_shift=2))
    np.testing.assert_array_equal(values(windows), [[0, 1, 2], [2, 3, 4], [4, 5, 6]])
    pairs = numbers.map(lambda n: {"a": n, "b": (n, n * n)}).apply(data.sliding_window_batch(2, stride=3))
    assert values(pairs)[1]["b"][1].tolist() == [9, 16]
    assert sorted(values(numbers.apply(data.shuffle_and_repeat(10, 2)))) == sorted([*range(7)] * 2)
    mixed = numbers.apply(data.sloppy_interleave(lambda n: data.Dataset.from_tensors(n).repeat(2), 3))
    assert sorted(values(mixed)) == sorted([*range(7)] * 2)
    shaped = numbers.batch(7).apply(data.assert_element_shape([7]))
    assert tf1.data.get_output_shapes(shaped).as_list() == [7]
    with pytest.raises(tf2.errors.InvalidArgumentError):
        values(numbers.batch(5).apply(data.assert_element_shape([5])))
    assert data.AUTOTUNE == tf2.data.AUTOTUNE
    with pytest.raises(InvalidArgument, match="old name"):
        data.sliding_window_batch(2, stride=1, window_shift=1)


def test_datasets_of_1_2(tmp_path: Path) -> None:
    data = tf.contrib.data
    path = tmp_path / "lines"
    path.write_text("1\n2\nx\n4\n", encoding="utf-8")
    lines = data.TextLineDataset([str(path)])
    assert isinstance(lines, data.Dataset)
    numbers = lines.map(tf.string_to_number, num_threads=2, output_buffer_size=10).ignore_errors()
    assert values(numbers.map(lambda n: n * 2, num_threads=3)) == [2.0, 4.0, 8.0]
    pairs = data.Dataset.zip((data.Dataset.range(5), data.Dataset.range(5, 10)))
    batched = pairs.filter(lambda a, b: a > 0).batch(3)
    assert [a.tolist() for a, _ in values(batched)] == [[1, 2, 3], [4]]
    assert values(batched.unbatch()) == [(1, 6), (2, 7), (3, 8), (4, 9)]
    assert values(data.Dataset.range(2).enumerate(5)) == [(5, 0), (6, 1)]
    grouped = data.Dataset.range(6).group_by_window(lambda n: n % 2, lambda _, window: window.batch(3), 3)
    assert [batch.tolist() for batch in values(grouped)] == [[0, 2, 4], [1, 3, 5]]
    sparse = data.Dataset.range(1, 3).map(lambda n: tf.fill([n], n)).dense_to_sparse_batch(2, [4])
    assert values(sparse)[0].values.tolist() == [1, 2, 2]
    iterator = data.Iterator.from_structure(numbers.output_types, numbers.output_shapes)
    next_value, start = iterator.get_next(), iterator.make_initializer(numbers)
    with tf1.Session() as session:
        session.run(start)
        assert session.run(next_value) == 1.0
    assert values(tf1.data.Dataset.range(3).flat_map(lambda n: data.Dataset.from_tensors(n).repeat(2)))[-1] == 2
    with pytest.raises(InvalidArgument, match="old name"):
        lines.map(tf.string_to_number, num_threads=2, num_parallel_calls=2)


def test_read_batch_features_of_datasets(tmp_path: Path) -> None:
    path = str(tmp_path / "a.tfrecord")
    with tf2.io.TFRecordWriter(path) as writer:
        for i in range(5):
            example = tf2.train.Example()
            example.features.feature["n"].int64_list.value.append(i)
            writer.write(example.SerializeToString())
    batch = tf.contrib.data.read_batch_features(
        path, 2, {"n": tf.FixedLenFeature([], tf.int64)}, randomize_input=False, num_epochs=2
    )
    with tf1.Session() as session:
        found = [session.run(batch)["n"].tolist() for _ in range(5)]
    assert found == [[0, 1], [2, 3], [4, 0], [1, 2], [3, 4]]


def test_columns_describe_what_to_parse() -> None:
    layers = tf.contrib.layers
    words = layers.sparse_column_with_hash_bucket("words", 100)
    columns = [
        layers.real_valued_column("age"),
        layers.real_valued_column("pixels", dimension=2, default_value=0.5),
        layers.real_valued_column("any", dimension=None, dtype=tf.int64),
        layers.embedding_column(words, dimension=4),
        layers.bucketized_column(layers.real_valued_column("height"), [1.0, 2.0]),
        layers.crossed_column([words, layers.sparse_column_with_keys("colour", ["red"])], 10),
        layers.weighted_sparse_column(layers.sparse_column_with_integerized_feature("id", 9), "weight"),
    ]
    assert layers.create_feature_spec_for_parsing(set(columns)) == layers.create_feature_spec_for_parsing(columns)
    assert layers.create_feature_spec_for_parsing(columns) == {
        "age": tf.FixedLenFeature([1], tf.float32, None),
        "pixels": tf.FixedLenFeature([2], tf.float32, [0.5, 0.5]),
        "any": tf.VarLenFeature(tf.int64),
        "words": tf.VarLenFeature(tf.string),
        "height": tf.FixedLenFeature([1], tf.float32, None),
        "colour": tf.VarLenFeature(tf.string),
        "id": tf.VarLenFeature(tf.int64),
        "weight": tf.VarLenFeature(tf.float32),
    }
    example = tf2.train.Example()
    example.features.feature["age"].float_list.value.append(3.5)
    parsed = layers.parse_feature_columns_from_examples([example.SerializeToString()], columns[:2])
    age, pixels = run(parsed["age"], parsed["pixels"])
    assert age.tolist() == [[3.5]]
    assert pixels.tolist() == [[0.5, 0.5]]


def test_columns_that_cannot_work() -> None:
    layers = tf.contrib.layers
    with pytest.raises(InvalidArgument, match="described twice"):
        layers.create_feature_spec_for_parsing([layers.real_valued_column("a"), layers.real_valued_column("a", 2)])
    with pytest.raises(InvalidArgument, match="make_parse_example_spec"):
        layers.create_feature_spec_for_parsing([object()])
    with pytest.raises(InvalidArgument, match="its dimension is 2"):
        layers.real_valued_column("a", 2, [1.0])
    with pytest.raises(CannotRestore, match="model side"):
        layers.input_from_feature_columns  # noqa: B018


def test_initializers_and_regularizers_of_layers() -> None:
    weights = run(tf.contrib.layers.xavier_initializer(seed=1)([300, 200]))
    assert np.abs(weights).max() <= np.sqrt(6 / 500)
    assert weights.std() == pytest.approx(np.sqrt(2 / 500), rel=0.05)
    assert run(tf.contrib.layers.l2_regularizer(0.5)(tf.constant([1.0, 3.0]))) == pytest.approx(2.5)


def test_framework() -> None:
    framework = tf.contrib.framework
    step = framework.get_or_create_global_step()
    assert framework.get_or_create_global_step() is step
    assert framework.nest.flatten({"a": [1, (2, 3)]}) == [1, 2, 3]

    @framework.add_arg_scope
    def add(x, y=1):
        return x + y

    with framework.arg_scope([add], y=5):
        assert add(1) == 6
    assert add(1) == 2


def test_hparams() -> None:
    hparams = tf.contrib.training.HParams(rate=0.1, layers=[8, 4], name="a", fast=False)
    assert hparams.parse("rate=2,layers[1]=16,name=b c,fast=true").values() == {
        "rate": 2.0, "layers": [8, 16], "name": "b c", "fast": True,
    }  # fmt: skip
    assert hparams.parse("layers=[1,2,3]").layers == [1, 2, 3]
    assert "rate" in hparams
    assert hparams.get("nothing", 7) == 7
    assert tf.contrib.training.HParams(rate=1.0).parse_json(hparams_json := '{"rate": 3}').rate == 3.0, hparams_json
    for text in ("nothing=1", "layers=x", "rate", "layers[9]=1", "fast=perhaps", "rate=1,rate=2"):
        with pytest.raises(InvalidArgument):
            hparams.parse(text)
    with pytest.raises(InvalidArgument, match="is there already"):
        hparams.add_hparam("values", 1)
    with pytest.raises(InvalidArgument, match="is int"):
        tf.contrib.training.HParams(n=1).set_hparam("n", 1.5)
    with pytest.raises(InvalidArgument, match="n was None at first"):
        tf.contrib.training.HParams(n=None).parse("n=3")


def test_staging_area() -> None:
    area = tf.contrib.staging.StagingArea([tf.int32, tf.float32], shapes=[[], [2]], names=["a", "b"], capacity=3)
    x = tf.placeholder(tf.int32, [])
    put = area.put({"a": x, "b": tf.cast(tf.stack([x, x + 1]), tf.float32)})
    taken, size, clear = area.get(), area.size(), area.clear()
    assert taken["b"].shape == [2]
    with tf1.Session() as session:
        for i in range(3):
            session.run(put, {x: i})
        assert session.run(size) == 3
        found = session.run(taken)
        assert found["a"] == 0
        assert found["b"].tolist() == [0.0, 1.0]
        session.run(clear)
        assert session.run(size) == 0
    with pytest.raises(InvalidArgument, match="needs the names"):
        area.put({"a": 1})
    with pytest.raises(InvalidArgument, match="dtypes and 1 shapes"):
        tf.contrib.staging.StagingArea([tf.int32, tf.int32], shapes=[[]])


def test_lookup_tables(tmp_path: Path) -> None:
    path = tmp_path / "words"
    path.write_text("one\ntwo\n", encoding="utf-8")
    lookup = tf.contrib.lookup
    words = tf.constant(["two", "three", "one"])
    plain = lookup.index_table_from_tensor(["one", "two"]).lookup(words)
    hashed = lookup.index_table_from_file(str(path), num_oov_buckets=3).lookup(words)
    back = lookup.index_to_string_table_from_tensor(["one", "two"]).lookup(tf.constant([1, 5], tf.int64))
    lines = lookup.index_to_string_table_from_file(str(path)).lookup(tf.constant([0], tf.int64))
    expected = 2 + tf.string_to_hash_bucket_fast(words, 3)[1]
    plain, hashed, back, lines, expected = run(plain, hashed, back, lines, expected)
    assert plain.tolist() == [1, -1, 0]
    assert hashed.tolist() == [1, expected, 0]
    assert back.tolist() == [b"two", b"UNK"]
    assert lines.tolist() == [b"one"]
