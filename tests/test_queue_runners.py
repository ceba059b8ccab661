"""queue_runners: a graph and a session of the user's own."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import tensorflow as tf

import tfqueue
from tests.pipelines import graph_of, labels, numbers, tf1
from tfqueue.errors import InvalidArgument, PipelineFailed


@pytest.fixture
def path(tmp_path):
    return numbers(tmp_path / "numbers.tfrecord")


@pytest.fixture(autouse=True)
def no_thread_stays_behind():
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) - before == set()


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


def looked_up():
    keys, values = tf.constant([3], tf.int64), tf.constant([30], tf.int64)
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), -1)
    offset = tf1.get_variable("offset", initializer=tf.constant(1, tf.int64))
    return tf1.train.batch([offset + table.lookup(tf.constant(3, tf.int64))], 2)


@pytest.mark.parametrize("done", [(), ("variables",), ("tables",), ("variables", "tables")])
def test_what_the_user_has_not_initialised_is_initialised(done) -> None:
    graph, batch = graph_of(looked_up)
    with graph.as_default(), tf1.Session() as session:
        if "variables" in done:
            session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
        if "tables" in done:
            session.run(tf1.tables_initializer())
        with tfqueue.queue_runners(session):
            assert session.run(batch).tolist() == [31, 31]


class SelfStarting(tf1.train.QueueRunner):
    """A runner whose threads run already when they are given away, and which ask nothing before they enqueue."""

    def _work(self, session, operation, coord) -> None:
        with coord.stop_on_exception():
            while not coord.should_stop():
                for _ in range(3):
                    session.run(operation)

    def create_threads(self, sess, coord=None, daemon=False, start=False):
        threads = [threading.Thread(target=self._work, args=(sess, op, coord)) for op in self.enqueue_ops]
        for thread in threads:
            thread.start()
        return threads


def test_a_class_of_ones_own_that_starts_its_threads_itself() -> None:
    def build_fn():
        queue = tf1.FIFOQueue(5, tf.int32, [[]], name="mine")
        tf1.train.add_queue_runner(SelfStarting(queue, [queue.enqueue(7), queue.enqueue(7)]))
        return queue.dequeue_many(4)

    graph, batch = graph_of(build_fn)
    with tf1.Session(graph=graph) as session, tfqueue.queue_runners(session) as coord:
        for _ in range(10):
            assert session.run(batch).tolist() == [7] * 4
        assert [stage.records for stage in coord.stats.stages] == [None, None]  # nobody has counted


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
