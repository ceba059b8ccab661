"""QueuePipeline: the way in, the batches, the clean end, the failures, the way out."""

from __future__ import annotations

import threading
from collections import namedtuple

import numpy as np
import pytest
import tensorflow as tf

import tfqueue
from tests.pipelines import LABEL, labels, numbers, parse, read, tf1
from tfqueue.errors import InvalidArgument, PipelineError, PipelineFailed

Pair = namedtuple("Pair", "image label")


@pytest.fixture
def path(tmp_path):
    return numbers(tmp_path / "numbers.tfrecord")


@pytest.fixture(autouse=True)
def no_thread_stays_behind():
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) - before == set()


# -- batches -------------------------------------------------------------------------------------------------------


def test_batches_come_in_the_structure_of_the_build_function(path) -> None:
    def build_fn():
        features = parse(
            [path], LABEL | {"box": tf1.VarLenFeature(tf.float32), "img": tf1.FixedLenFeature([], tf.string)}
        )
        batch = tf1.train.batch(features, 4)
        return Pair({"img": [batch["img"]]}, (batch["label"], batch["box"]))

    with tfqueue.QueuePipeline(build_fn) as pipeline:
        batch = next(pipeline)
    assert isinstance(batch, Pair)
    assert batch.image["img"][0][3] == bytes([3]) * 48
    np.testing.assert_array_equal(batch.label[0], [0, 1, 2, 3])
    assert isinstance(batch.label[1], tf1.SparseTensorValue)
    np.testing.assert_array_equal(batch.label[1].values, np.repeat(np.arange(4) + 0.5, 4).astype("f"))


def test_the_end_of_the_data_is_the_end_of_the_loop(path) -> None:
    with tfqueue.QueuePipeline(labels([path], 8, num_epochs=2)) as pipeline:
        batches = list(pipeline)
        assert list(pipeline) == []  # and stays it
    # 40 records in two epochs: batches cross the epochs, and all are full
    np.testing.assert_array_equal(np.concatenate(batches), np.tile(np.arange(20), 2))
    assert [len(batch) for batch in batches] == [8] * 5


@pytest.mark.parametrize("smaller", [False, True])
def test_the_remainder_follows_the_pipeline(path, smaller) -> None:
    with tfqueue.QueuePipeline(labels([path], 8, allow_smaller_final_batch=smaller)) as pipeline:
        assert [len(batch) for batch in pipeline] == ([8, 8, 4] if smaller else [8, 8])


def test_each_entry_is_a_fresh_run(path) -> None:
    pipeline = tfqueue.QueuePipeline(labels([path]))
    for _ in range(2):
        with pipeline:
            assert np.concatenate(list(pipeline)).tolist() == list(range(20))


def test_an_endless_pipeline_can_be_left(path) -> None:
    with tfqueue.QueuePipeline(labels([path], num_epochs=None)) as pipeline:
        assert [next(pipeline).tolist() for _ in range(6)][5] == [0, 1, 2, 3]


def test_a_reader_without_a_batch_queue(path) -> None:
    with tfqueue.QueuePipeline(lambda: parse([path], LABEL)) as pipeline:
        assert [int(features["label"]) for features in pipeline] == list(range(20))


def test_reading_without_a_queue(path) -> None:
    with tfqueue.QueuePipeline(lambda: read([path])) as pipeline:
        assert len(list(pipeline)) == 20


def test_what_other_code_needs_is_there(path) -> None:
    with tfqueue.QueuePipeline(labels([path])) as pipeline:
        assert pipeline.session.run(pipeline.fetches).tolist() == [0, 1, 2, 3]
        assert pipeline.fetches.graph is pipeline.graph
        assert not pipeline.coord.should_stop()
        # The ops with which the run looks at the queues, and closes them, are not part of the user's pipeline.
        assert [dequeue.name for dequeue in pipeline.topology.dequeues] == ["batch"]
    with pytest.raises(PipelineError, match="is not running; enter it first"):
        _ = pipeline.session


def test_iterating_before_entering_says_how() -> None:
    with pytest.raises(PipelineError, match=r"with QueuePipeline\(build_fn\) as pipeline"):
        iter(tfqueue.QueuePipeline(lambda: None))


def test_entering_twice_at_once_is_refused(path) -> None:
    with tfqueue.QueuePipeline(labels([path])) as pipeline, pytest.raises(PipelineError, match="running already"):
        pipeline.__enter__()


@pytest.mark.parametrize(
    "bad",
    [{"build_fn": 3}, {"engine": "thread"}, {"stall_timeout": "3"}, {"stall_timeout": 0}, {"stall_timeout": None}],
)
def test_bad_arguments_are_refused_at_the_door(bad) -> None:
    with pytest.raises(
        InvalidArgument,
        match=r"stall_timeout is a number of seconds above 0; got|build_fn must be|"
        r"engine 'thread' is not known; known: 'threads', 'lockstep', 'tfdata'",
    ):
        tfqueue.QueuePipeline(**({"build_fn": labels([])} | bad))


# -- global state --------------------------------------------------------------------------------------------------


def test_eager_execution_and_the_default_graph_are_left_alone(path) -> None:
    with tf.Graph().as_default() as outer:
        with tfqueue.QueuePipeline(labels([path])) as pipeline:
            next(pipeline)
            assert tf1.get_default_graph() is outer
            assert tf1.get_default_session() is None
        assert outer.get_operations() == []
    assert tf.executing_eagerly()
    assert float(tf.constant(1.0) + 1) == 2.0


def test_two_pipelines_side_by_side_and_one_in_a_worker_thread(path) -> None:
    found = []

    def work() -> None:
        with tfqueue.QueuePipeline(labels([path])) as pipeline:
            found.extend(np.concatenate(list(pipeline)).tolist())

    with tfqueue.QueuePipeline(labels([path])) as one, tfqueue.QueuePipeline(labels([path])) as two:
        worker = threading.Thread(target=work)
        worker.start()
        pairs = list(zip(one, two, strict=True))
        worker.join(60)
    assert [left.tolist() for left, _ in pairs] == [right.tolist() for _, right in pairs]
    assert found == list(range(20))


# -- initialisers --------------------------------------------------------------------------------------------------


def test_tables_and_variables_that_need_each_other_are_initialised() -> None:
    def build_fn():
        keys = tf1.get_variable("keys", initializer=tf.constant([3, 4], tf.int64))
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(keys, tf.constant([30, 40], tf.int64)), -1
        )
        start = tf1.get_variable("start", initializer=lambda: table.lookup(tf.constant(4, tf.int64)), dtype=tf.int64)
        return tf1.train.batch([start + table.lookup(tf.constant(3, tf.int64))], 2)

    with tfqueue.QueuePipeline(build_fn) as pipeline:
        assert next(pipeline).tolist() == [70, 70]


def test_init_fn_gives_a_value_before_the_runners_start() -> None:
    def build_fn():
        data = tf1.placeholder(tf.float32, [6])
        stored = tf1.Variable(data, trainable=False, collections=[])
        return tf1.train.batch(tf1.train.slice_input_producer([stored], num_epochs=1, shuffle=False), 3)

    def init_fn(session) -> None:
        graph = session.graph
        assign = next(op for op in graph.get_operations() if op.type == "AssignVariableOp" and "limit" not in op.name)
        placeholder = next(op for op in graph.get_operations() if op.type == "Placeholder")
        session.run(assign, {placeholder.outputs[0]: np.arange(6, dtype="f")})

    with tfqueue.QueuePipeline(build_fn, init_fn=init_fn) as pipeline:
        assert [batch.tolist() for batch in pipeline] == [[0, 1, 2], [3, 4, 5]]


def test_an_initialiser_that_cannot_run_is_the_failure() -> None:
    def build_fn():
        return tf1.get_variable("v", initializer=tf1.placeholder(tf.float32, []))

    with pytest.raises(PipelineFailed, match="placeholder"), tfqueue.QueuePipeline(build_fn):
        pass


# -- failures ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", [True, False])
def test_a_missing_file_is_what_the_user_sees(path, check) -> None:
    # Before the start, or, with the checks off, by the runner that meets it: the same is said.
    pipeline = tfqueue.QueuePipeline(labels([path, path + "s"]), check=check)
    with pytest.raises(PipelineFailed) as caught, pipeline:
        list(pipeline)
    assert caught.value.cause_name == "missing-file"
    assert caught.value.file == path + "s"
    assert isinstance(caught.value.__cause__, tf.errors.NotFoundError)
    assert "did you mean 'numbers.tfrecord'?" in caught.value.advice
    assert caught.value.source.startswith("pipelines.py:")


def test_a_failure_after_the_loop_was_left_is_still_told(path) -> None:
    failed = threading.Event()

    def build_fn():
        def look(label):
            if label == 5:
                failed.set()
                raise KeyError("no such case")
            return label

        label = tf1.py_func(look, [parse([path], LABEL)["label"]], tf.int64)
        label.set_shape([])
        return tf1.train.batch([label], 2)

    with pytest.raises(PipelineFailed, match="no such case"), tfqueue.QueuePipeline(build_fn) as pipeline:
        assert next(pipeline).tolist() == [0, 1]
        assert failed.wait(30)
        assert pipeline.coord.wait_for_stop(30)


def test_an_error_of_the_loop_goes_through_unchanged(path) -> None:
    with pytest.raises(ZeroDivisionError), tfqueue.QueuePipeline(labels([path])) as pipeline:
        next(pipeline)
        raise ZeroDivisionError


def _another_session() -> None:
    with tf.Graph().as_default(), tf1.Session() as session:
        session.run(tf1.data.make_one_shot_iterator(tf.data.Dataset.range(0)).get_next())


def _eager() -> None:
    next(tf.raw_ops.Reshape(tensor=[1, 2, 3], shape=[2]))


@pytest.mark.parametrize(
    ("go_wrong", "kind"), [(_another_session, tf.errors.OutOfRangeError), (_eager, tf.errors.InvalidArgumentError)]
)
def test_an_error_of_another_session_or_of_eager_code_is_the_users_own(path, go_wrong, kind) -> None:
    with pytest.raises(kind), tfqueue.QueuePipeline(labels([path])) as pipeline:
        next(pipeline)
        go_wrong()


def test_a_failure_of_the_fetched_ops_themselves(path) -> None:
    def build_fn():
        return tf1.reshape(labels([path])(), tf1.placeholder_with_default([3], [1]))

    with tfqueue.QueuePipeline(build_fn) as pipeline, pytest.raises(PipelineFailed, match="Input to reshape") as caught:
        next(pipeline)
    assert "on the way to the fetched tensors" in caught.value.stage
