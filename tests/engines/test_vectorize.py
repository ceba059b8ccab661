"""Stages on whole batches: the same bits as record by record, and only where that is certain."""

from __future__ import annotations

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import gallery
from tests.engines import pipelines
from tests.engines.running import assert_same_batches, numpy_batches
from tfqueue.engines.stage import extract
from tfqueue.engines.tfdata import to_dataset
from tfqueue.engines.vectorize import vectorize
from tfqueue.topology.subgraph import GraphView

tf1 = tf.compat.v1

EXAMPLES = [
    tf.train.Example(
        features=tf.train.Features(
            feature={
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=[n, n + 0.5, n * 0.1, -n, 7.0, n / 3])),
                "n": tf.train.Feature(int64_list=tf.train.Int64List(value=[n])),
                "raw": tf.train.Feature(bytes_list=tf.train.BytesList(value=[bytes(range(n, n + 12))])),
                "line": tf.train.Feature(bytes_list=tf.train.BytesList(value=[f"{n},{n / 7},word".encode()])),
            }
        )
    ).SerializeToString()
    for n in range(9)
]


def parsed(record):
    spec = {
        "x": tf1.FixedLenFeature([2, 3], tf.float32),
        "n": tf1.FixedLenFeature([], tf.int64),
        "raw": tf1.FixedLenFeature([], tf.string),
        "line": tf1.FixedLenFeature([], tf.string),
    }
    return tf1.parse_single_example(record, spec)


SAME = {
    "parse": lambda f: [f["x"], f["n"]],
    "scale": lambda f: [f["x"] / 255.0 - 0.5, tf.cast(f["n"], tf.int32) + 1],
    "normalise by column": lambda f: [(f["x"] - [1.0, 2.0, 3.0]) / [3.0, 5.0, 7.0]],
    "decode raw": lambda f: [tf.io.decode_raw(f["raw"], tf.uint8)],
    "reshape and transpose": lambda f: [
        tf.transpose(tf.reshape(tf.io.decode_raw(f["raw"], tf.uint8), [3, 2, 2]), [1, 2, 0])
    ],
    "reshape with an open dimension": lambda f: [tf.reshape(f["x"], [-1])],
    "slice": lambda f: [f["x"][1], f["x"][:, 0], f["x"][0, 1:], f["x"][:, tf.newaxis, ::2]],
    "csv": lambda f: [*tf.io.decode_csv(f["line"], [[0], [0.0], [""]])],
    "stack and concat": lambda f: [
        tf.stack([f["x"][0], f["x"][1]], axis=1),
        tf.concat([f["x"], f["x"] * 2.0], axis=1),
        tf.stack([f["n"], f["n"] * 3]),
    ],
    "expand and squeeze": lambda f: [tf.squeeze(tf.expand_dims(f["x"], 0), [0]), tf.expand_dims(f["n"], -1)],
    "look up": lambda f: [tf.gather(tf.constant([[5.0, 6.0]] * 9) * 2.0, f["n"])],
    "compare": lambda f: [f["x"] > 1.0, tf.logical_not(f["n"] > 4), tf.maximum(f["x"], 0.25)],
    "one of two": lambda f: [f["x"] * tf.cast(f["n"], tf.float32)[tf.newaxis, tf.newaxis]],
}
# Correct or not: these cannot be told to be bit-equal, or are not in the list of what is.
REFUSED = {
    "exp": lambda f: [tf.exp(f["x"])],
    "sum over all": lambda f: [tf.reduce_sum(f["x"])],
    "a constant output": lambda f: [f["n"], tf.constant(3.0)],
    "broadcast of different ranks": lambda f: [f["x"] * tf.cast(f["n"], tf.float32)],
    "a constant of more dimensions": lambda f: [tf.cast(f["n"], tf.float32) * tf.constant([[1.0, 2.0]])],
    "squeeze of whatever is 1": lambda f: [tf.squeeze(tf.reshape(f["n"], [1, 1]))],
    "matrix product": lambda f: [tf.matmul(f["x"], tf.ones([3, 2]))],
    "ellipsis": lambda f: [f["x"][..., 1:]],
    "loop": lambda f: [tf.while_loop(lambda n: n < 10, lambda n: [n + 1], [f["n"]])[0]],
}


def stage_of(transform):
    graph = tf.Graph()
    with graph.as_default():
        queue = tf1.FIFOQueue(3, tf.string, [[]])
        record = queue.dequeue()
        outputs = transform(parsed(record))
    view = GraphView(graph)
    return extract(view, outputs, cuts=[record.op], words="the stage"), view, record.name


@pytest.mark.parametrize("name", SAME)
def test_a_batch_gives_the_bits_of_its_records(name):
    function, view, record = stage_of(SAME[name])
    vector = vectorize(function, view)
    assert vector is not None
    whole = tf.function(lambda records: vector({record: records}))(tf.constant(EXAMPLES))
    single = tf.function(lambda one: function({record: one}))
    rows = [single(tf.constant(example)) for example in EXAMPLES]
    expected = [tf.stack(column) for column in zip(*rows, strict=True)]
    assert_same_batches([[t.numpy() for t in whole]], [[t.numpy() for t in expected]])


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_certain_is_left_alone(name):
    function, view, _ = stage_of(REFUSED[name])
    assert vectorize(function, view) is None


def test_lists_and_sparse_features_are_left_alone():
    spec = {"x": tf1.FixedLenSequenceFeature([3], tf.float32, allow_missing=True), "n": tf1.VarLenFeature(tf.int64)}
    graph = tf.Graph()
    with graph.as_default():
        record = tf1.FIFOQueue(3, tf.string, [[]]).dequeue()
        features = tf1.parse_single_example(record, spec)
    view = GraphView(graph)
    for outputs in ([features["x"]], [features["n"].values]):
        assert vectorize(extract(view, outputs, cuts=[record.op], words="the stage"), view) is None


@pytest.mark.parametrize("shuffle", ["native", "replay"])
@pytest.mark.parametrize(
    "name", ["T1-tfrecord-batch", "T2-cifar-eval", "T4-slices-read-file", "T6-csv-batch", "T5-array-constants"]
)
def test_the_passes_change_nothing(name, shuffle, tmp_path):
    program = gallery.get(name).program(tmp_path)
    fast = to_dataset(program.build_fn, shuffle=shuffle)
    plain = to_dataset(program.build_fn, shuffle=shuffle, optimize=False)
    assert fast.element_spec == plain.element_spec
    assert_same_batches(numpy_batches(fast), numpy_batches(plain))


@settings(max_examples=8, deadline=None)
@given(pipelines.drawn(shuffled=True), st.just("replay"))
def test_the_passes_change_no_drawn_pipeline(pipeline, shuffle):
    if pipeline.plan["batch"] > pipeline.plan["capacity"]:
        pipeline.plan["batch"] = pipeline.plan["capacity"]
    fast = to_dataset(pipeline, shuffle=shuffle)
    plain = to_dataset(pipeline, shuffle=shuffle, optimize=False)
    assert_same_batches(numpy_batches(fast), numpy_batches(plain))
