"""QueuePipeline and queue_runners: the way in, the batches, the clean end, the failures, the way out."""

from __future__ import annotations

import contextlib
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


@pytest.mark.parametrize("bad", [{"build_fn": 3}, {"build_fn": labels([]), "engine": "thread"}])
def test_bad_arguments_are_refused_at_the_door(bad) -> None:
    with pytest.raises(
        InvalidArgument, match=r"build_fn must be|engine 'thread' is not known; known: 'threads', 'lockstep', 'tfdata'"
    ):
        tfqueue.QueuePipeline(**bad)


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


def test_a_failure_of_the_fetched_ops_themselves(path) -> None:
    def build_fn():
        return tf1.reshape(labels([path])(), tf1.placeholder_with_default([3], [1]))

    with tfqueue.QueuePipeline(build_fn) as pipeline, pytest.raises(PipelineFailed, match="Input to reshape") as caught:
        next(pipeline)
    assert "on the way to the fetched tensors" in caught.value.stage


# -- queue_runners -------------------------------------------------------------------------------------------------


def graph_of(build_fn):
    graph = tf.Graph()
    with graph.as_default():
        return graph, build_fn()


def test_a_session_of_ones_own_runs_to_the_end(path) -> None:
    graph, batch = graph_of(labels([path], 6, num_epochs=2))
    got = []
    with tf1.Session(graph=graph) as session:
        with tfqueue.queue_runners(session) as coord:
            while not coord.should_stop():
                got.append(session.run(batch))
        assert session.run(graph.get_tensor_by_name("input_producer/Const:0")) is not None  # the session is still open
    assert np.concatenate(got).tolist() == (list(range(20)) * 2)[:36]


def test_values_that_the_user_set_are_left_alone(path) -> None:
    def build_fn():
        weight = tf1.get_variable("weight", initializer=1.0)
        return labels([path])(), weight, weight.assign(5.0)

    graph, (batch, weight, assign) = graph_of(build_fn)
    with tf1.Session(graph=graph) as session:
        session.run(assign)
        with tfqueue.queue_runners(session):
            assert session.run([batch, weight])[1] == 5.0


def test_the_true_cause_in_a_session_of_ones_own(path) -> None:
    graph, batch = graph_of(labels([path + ".gone"]))
    with (
        tf1.Session(graph=graph) as session,
        pytest.raises(PipelineFailed, match="No such file") as caught,
        tfqueue.queue_runners(session),
    ):
        session.run(batch)
    assert isinstance(caught.value.__cause__, tf.errors.NotFoundError)


def test_start_queue_runners_inside_the_block_starts_nothing_twice(path) -> None:
    graph, batch = graph_of(labels([path], 5))
    got = []
    with tf1.Session(graph=graph) as session, tfqueue.queue_runners(session):
        coord = tf1.train.Coordinator()
        threads = tf1.train.start_queue_runners(session, coord)
        try:
            while not coord.should_stop():
                got.extend(session.run(batch).tolist())
        except tf.errors.OutOfRangeError:
            coord.request_stop()
        coord.join(threads)
    assert got == list(range(20))


def test_runners_added_inside_the_block_are_found(path) -> None:
    graph, batch = graph_of(labels([path], 5))
    with graph.as_default(), tf1.Session(graph=graph) as session, tfqueue.queue_runners(session) as coord:
        queue = tf1.FIFOQueue(2, tf.int64, [[5]])
        tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, [queue.enqueue(batch)]))
        late = queue.dequeue()
        got = []
        while not coord.should_stop():
            got.extend(session.run(late).tolist())
    assert got == list(range(20))


def test_a_block_inside_a_block_is_part_of_it(path) -> None:
    graph, batch = graph_of(labels([path], 5))
    with tf1.Session(graph=graph) as session, tfqueue.queue_runners(session) as outer:
        with tfqueue.queue_runners(session) as inner:
            assert inner is outer
            first = session.run(batch)
        assert session.run(batch)[0] == first[-1] + 1


def test_a_monitored_session(path) -> None:
    graph, batch = graph_of(labels([path], 5))
    got = []
    with graph.as_default():
        tf1.train.get_or_create_global_step()
        with tf1.train.MonitoredSession() as session, tfqueue.queue_runners(session):
            while not session.should_stop():
                got.extend(session.run(batch).tolist())
    assert got == list(range(20))


def test_a_supervisor_that_started_the_runners_itself(path) -> None:
    for paths, problem in (([path], None), ([path, path + ".gone"], tf.errors.NotFoundError)):
        graph, batch = graph_of(labels(paths, 5))
        got = []
        with graph.as_default(), contextlib.ExitStack() as stack:
            if problem is not None:
                stack.enter_context(pytest.raises(problem, match="No such file"))
            supervisor = tf1.train.Supervisor(summary_op=None)
            session = stack.enter_context(supervisor.managed_session())
            with tfqueue.queue_runners(session, check=False):
                while not supervisor.should_stop():
                    got.extend(session.run(batch).tolist())
        assert got == list(range(20 if problem is None else len(got)))  # a failure closes the queues at once


def test_runners_that_died_before_the_block_are_started_again(path) -> None:
    graph, batch = graph_of(labels([path], 5))
    # Runners without a coordinator raise in their threads: the producer's before the initialisers have run, the
    # others' when their session is closed. So they are waited for inside of the block that takes their errors.
    with _errors_of_threads() as errors:
        with tf1.Session(graph=graph) as session:
            threads = tf1.train.start_queue_runners(session)
            for thread in threads:
                if "input_producer" in thread.name:
                    thread.join(30)
            assert errors
            with tfqueue.queue_runners(session):
                assert session.run(batch).tolist() == [0, 1, 2, 3, 4]
        for thread in threads:
            thread.join(30)


def test_the_failure_of_runners_that_were_started_with_another_coordinator(path) -> None:
    graph, batch = graph_of(labels([*[path] * 5, "missing.tfrecord"], 5))  # more than the queue holds at the start
    with graph.as_default(), tf1.Session() as session:
        session.run(tf1.local_variables_initializer())
        coord = tf1.train.Coordinator()
        threads = tf1.train.start_queue_runners(session, coord)
        with pytest.raises(PipelineFailed) as caught, tfqueue.queue_runners(session, check=False):
            while True:
                session.run(batch)
        with pytest.raises(tf.errors.NotFoundError):
            coord.join(threads)
    assert caught.value.cause_name == "missing-file"


@contextlib.contextmanager
def _errors_of_threads():
    errors = []
    before, threading.excepthook = threading.excepthook, errors.append
    try:
        yield errors
    finally:
        threading.excepthook = before


def test_the_accounts_of_a_session_of_ones_own(path) -> None:
    graph, batch = graph_of(labels([path], 5))
    with tf1.Session(graph=graph) as session, tfqueue.queue_runners(session) as coord:
        session.run(batch)
        assert {stage.name: stage.records for stage in coord.stats.stages}["batch/fifo_queue_enqueue"] >= 4


def test_a_graph_from_a_metagraph_file(path, tmp_path) -> None:
    graph, batch = graph_of(labels([path], 5))
    with graph.as_default():
        tf1.train.export_meta_graph(str(tmp_path / "graph.meta"))
    got = []
    with tf.Graph().as_default(), tf1.Session() as session:
        tf1.train.import_meta_graph(str(tmp_path / "graph.meta"))
        with tfqueue.queue_runners(session) as coord:
            while not coord.should_stop():
                got.extend(session.run(batch.name).tolist())
    assert got == list(range(20))


def test_a_second_block_on_closed_queues_is_refused_with_a_way_out(path) -> None:
    graph, batch = graph_of(labels([path], 5))
    with tf1.Session(graph=graph) as session:
        with tfqueue.queue_runners(session):
            session.run(batch)
        with pytest.raises(InvalidArgument, match="open a new session"), tfqueue.queue_runners(session):
            pass
    with tf1.Session(graph=graph) as session, tfqueue.queue_runners(session):
        assert session.run(batch).tolist() == [0, 1, 2, 3, 4]


def test_something_that_is_no_session_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"needs a tf\.compat\.v1\.Session; got Graph"):
        tfqueue.queue_runners(tf.Graph())


def test_a_thread_blocked_in_a_queue_of_ones_own_is_freed() -> None:
    graph = tf.Graph()
    with graph.as_default():
        queue = tf1.FIFOQueue(2, tf.int32, [[]])
        value = tf1.placeholder(tf.int32, [])
        enqueue, one = queue.enqueue(value), queue.dequeue()
    ended = []

    def feed(session) -> None:
        try:
            while True:
                session.run(enqueue, {value: 1})
        except tf.errors.CancelledError as error:
            ended.append(error)

    with tf1.Session(graph=graph) as session:
        with tfqueue.queue_runners(session):
            feeder = threading.Thread(target=feed, args=(session,))
            feeder.start()
            session.run(one)
        feeder.join(30)
    assert len(ended) == 1


def test_reading_without_a_queue(path) -> None:
    with tfqueue.QueuePipeline(lambda: read([path])) as pipeline:
        assert len(list(pipeline)) == 20


# -- lockstep ------------------------------------------------------------------------------------------------------


def shuffled(path):
    def build_fn():
        label = parse([path], LABEL, num_epochs=3)["label"]
        return tf1.train.shuffle_batch([label], 6, capacity=15, min_after_dequeue=5, seed=3)

    return build_fn


def test_lockstep_gives_the_same_batches_every_time(path) -> None:
    runs = []
    for _ in range(2):
        with tfqueue.QueuePipeline(shuffled(path), engine="lockstep") as pipeline:
            runs.append(np.stack(list(pipeline)).tolist())
        assert (pipeline.stats.delivered, pipeline.stats.dropped, pipeline.stats.fetched_elsewhere) == (60, 0, None)
    assert runs[0] == runs[1]
    assert sorted(np.ravel(runs[0])) == sorted([*range(20)] * 3)


def test_lockstep_in_a_session_of_ones_own_gives_the_same(path) -> None:
    with tfqueue.QueuePipeline(shuffled(path), engine="lockstep") as pipeline:
        expected = [batch.tolist() for batch in pipeline]
    graph, batch = graph_of(shuffled(path))
    got = []
    with tf1.Session(graph=graph) as session:
        with tfqueue.queue_runners(session, engine="lockstep") as coord:
            while not coord.should_stop():
                got.append(session.run(batch).tolist())
        assert "run" not in vars(session)  # the session is as it was
    assert got == expected


def test_lockstep_names_the_true_cause(path) -> None:
    pipeline = tfqueue.QueuePipeline(labels([path, path + ".gone"]), engine="lockstep", check=False)
    with pytest.raises(PipelineFailed) as caught, pipeline:
        list(pipeline)
    assert caught.value.cause_name == "missing-file"
    assert caught.value.file == path + ".gone"


# -- tfdata --------------------------------------------------------------------------------------------------------


def test_tfdata_gives_the_same_batches_in_the_same_structure(path) -> None:
    def build_fn():
        features = parse([path], LABEL | {"box": tf1.VarLenFeature(tf.float32)}, num_epochs=2)
        batch = tf1.train.batch(features, 6)
        return Pair([batch["label"]], {"box": batch["box"]})

    with tfqueue.QueuePipeline(build_fn) as threads, tfqueue.QueuePipeline(build_fn, engine="tfdata") as tfdata:
        pairs = list(zip(threads, tfdata, strict=True))
    assert len(pairs) == 6
    for ours, theirs in pairs:
        assert isinstance(theirs, Pair)
        assert isinstance(theirs.label["box"], tf1.SparseTensorValue)
        np.testing.assert_array_equal(ours.image[0], theirs.image[0])
        np.testing.assert_array_equal(ours.label["box"].values, theirs.label["box"].values)
    assert (tfdata.stats.delivered, tfdata.stats.steps) == (36, 6)


def test_tfdata_delivers_every_record_of_a_shuffled_pipeline_once_an_epoch(path) -> None:
    with tfqueue.QueuePipeline(shuffled(path), engine="tfdata") as pipeline:
        got = np.concatenate(list(pipeline)).tolist()
    assert sorted(got) == sorted([*range(20)] * 3)


def test_tfdata_names_the_true_cause(path) -> None:
    pipeline = tfqueue.QueuePipeline(labels([path, path + ".gone"]), engine="tfdata", check=False)
    with pytest.raises(PipelineFailed, match="No such file"), pipeline:
        list(pipeline)


def test_tfdata_says_what_it_cannot_lower() -> None:
    def build_fn():
        queue = tf1.FIFOQueue(3, tf.int32, [[]], name="mine")
        queue.enqueue(tf1.placeholder(tf.int32, []))
        return queue.dequeue()

    with pytest.raises(tfqueue.errors.CannotLower), tfqueue.QueuePipeline(build_fn, engine="tfdata", check=False):
        pass
