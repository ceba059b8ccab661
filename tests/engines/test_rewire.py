"""Training scripts whose queues are replaced under them: the same losses as before, step by step."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tests.engines import pipelines
from tests.topology import builders
from tfqueue.engines.lockstep import Lockstep
from tfqueue.engines.lockstep_hook import LockstepHook
from tfqueue.engines.rewire import rewire
from tfqueue.errors import CannotLower, InvalidArgument

tf1 = tf.compat.v1
SPEC = {"n": tf1.FixedLenFeature([], tf.int64), "x": tf1.VarLenFeature(tf.float32)}


def examples(*, threads=1, shuffled=True):
    """Batches of parsed records, shuffled by names and by records, three epochs."""
    names = tf1.train.string_input_producer(pipelines.files([9, 14, 11]), num_epochs=3, shuffle=shuffled, seed=4)
    parsed = tf1.parse_single_example(tf1.TFRecordReader().read(names)[1], SPEC)
    row = [parsed["n"], parsed["x"]]
    if shuffled:
        return tf1.train.shuffle_batch(row, 5, 40, min_after_dequeue=20, seed=6, num_threads=threads)
    return tf1.train.batch(row, 5, num_threads=threads)


def loss_of(number, values):
    weight = tf1.get_variable("weight", [], initializer=tf1.ones_initializer())
    total = tf1.sparse_reduce_sum(values, axis=1)
    return tf.reduce_mean((weight * total - tf.cast(number, tf.float32) / 100.0) ** 2)


def train_op(loss):
    return tf1.train.GradientDescentOptimizer(1e-5).minimize(loss, tf1.train.get_or_create_global_step())


def losses(*, rewired):
    """A training script of the usual kind, in lockstep or rewired."""
    with tf.Graph().as_default() as graph:
        loss = loss_of(*examples())
        train = train_op(loss)
        init = [tf1.global_variables_initializer(), tf1.local_variables_initializer(), tf1.tables_initializer()]
        engine = None
        if rewired:
            rewire(graph, shuffle="replay")
        else:
            engine = Lockstep(graph)
        found = []
        with tf1.Session() as session:
            session.run(init)
            coord = tf1.train.Coordinator()
            if engine is not None:
                engine.start(session, coord)
                step = engine.make_step([loss, train])
            else:
                assert tf1.train.start_queue_runners(session, coord) == []
                step = session.make_callable([loss, train])
            try:
                while not coord.should_stop():
                    found.append(step()[0])
            except tf.errors.OutOfRangeError:
                coord.request_stop()
            if engine is not None:
                engine.stop()
    return found


def test_a_training_loop_has_the_same_losses():
    before, after = losses(rewired=False), losses(rewired=True)
    assert len(before) == 20
    assert after == before


def test_a_monitored_session_has_the_same_losses():
    def monitored(*, rewired):
        with tf.Graph().as_default() as graph:
            loss = loss_of(*examples())
            train = train_op(loss)
            if rewired:
                rewire(graph, shuffle="replay")
            found = []
            hooks = [] if rewired else [LockstepHook()]
            with tf1.train.MonitoredTrainingSession(hooks=hooks) as session:
                while not session.should_stop():
                    found.append(session.run([loss, train])[0])
        return found

    before, after = monitored(rewired=False), monitored(rewired=True)
    assert len(before) == 20
    assert after == before


def test_the_learning_loop_of_tf_slim_has_the_same_losses():
    slim = pytest.importorskip("tf_slim", reason="tf_slim, whose learning loop this is, is not installed")

    def learned(*, rewired):
        with tf.Graph().as_default() as graph:
            tf1.losses.add_loss(loss_of(*examples()))
            train = slim.learning.create_train_op(tf1.losses.get_total_loss(), tf1.train.GradientDescentOptimizer(1e-5))
            engine = None if rewired else Lockstep(graph)
            if rewired:
                rewire(graph, shuffle="replay")
            else:  # the loop starts the runners of the collection, which lockstep runs itself
                graph.get_collection_ref(tf1.GraphKeys.QUEUE_RUNNERS).clear()
            found = []
            steps = []

            def train_step(session, train_op, global_step, train_step_kwargs):
                if engine is not None and not steps:
                    engine.start(session)
                    steps.append(engine.make_step(train_op))
                found.append(session.run(train_op) if engine is None else steps[0]())
                return found[-1], False

            slim.learning.train(train, None, train_step_fn=train_step, number_of_steps=100, save_summaries_secs=0)
            if engine is not None:
                engine.stop()
        return found

    before, after = learned(rewired=False), learned(rewired=True)
    assert len(before) == 20
    assert after == before


def run_to_the_end(fetches):
    with tf1.Session() as session:
        session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
        session.run(tf1.tables_initializer())
        found = []
        try:
            while True:
                found.append(session.run(fetches))
        except tf.errors.OutOfRangeError:
            return found


def test_a_batch_that_is_fetched_itself_has_a_stand_in():
    with tf.Graph().as_default() as graph:
        number = tf1.train.range_input_producer(6, num_epochs=1, shuffle=False).dequeue()
        batch = tf1.train.batch([number], 3)
        rewired = rewire(graph)
        assert rewired.stand_in(batch) is not batch
        assert [found.tolist() for found in run_to_the_end(rewired.stand_in(batch))] == [[0, 1, 2], [3, 4, 5]]
    assert set(rewired.tensors) == {batch.name}
    assert len(rewired.runners) == 2


def test_batches_with_sparse_tensors():
    with tf.Graph().as_default() as graph:
        number, values = examples(shuffled=False)
        rewired = rewire(graph)
        fetches = [rewired.stand_in(number), rewired.stand_in(values.values), tf.sparse.to_dense(values)]
        batches = run_to_the_end(fetches)
    assert batches[0][0].tolist() == [0, 1, 2, 3, 4]
    assert batches[0][1].tolist() == batches[0][2][batches[0][2] != 0].tolist() or 0 in batches[0][1]
    assert len(batches) == 3 * 34 // 5


def test_towers_share_one_iterator():
    with tf.Graph().as_default() as graph:
        queue = tf1.train.range_input_producer(12, num_epochs=1, shuffle=False)
        towers = [queue.dequeue_many(2) * 10 for _ in range(2)]
        rewire(graph)
        steps = run_to_the_end(towers)
    assert len(steps) == 3
    assert sorted(value for step in steps for tower in step for value in tower.tolist()) == list(range(0, 120, 10))


def test_a_lookup_table_is_initialised_as_before():
    with tf.Graph().as_default() as graph:
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([7, 8], tf.int64)), -1
        )
        word = tf1.train.string_input_producer(["a", "b", "c"], num_epochs=1, shuffle=False).dequeue()
        batch = tf1.train.batch([table.lookup(word)], 3)
        doubled = batch * 2
        rewired = rewire(graph)
        (found,) = run_to_the_end(doubled)
    assert found.tolist() == [14, 16, -2]
    assert len(rewired.initializers) == 1


def test_a_graph_that_cannot_be_rewired_stays_as_it_was():
    with tf.Graph().as_default() as graph:
        good = tf1.train.batch([tf1.train.range_input_producer(4, shuffle=False).dequeue()], 2) + 1
        fed = tf1.FIFOQueue(2, [tf.float32], [[]])
        fed.enqueue([tf1.placeholder(tf.float32, [])])
        result = fed.dequeue() + 1.0
        inputs = [list(op.inputs) for op in (good.op, result.op)]
        with pytest.raises(CannotLower):
            rewire(graph)
        assert [list(op.inputs) for op in (good.op, result.op)] == inputs
        assert len(graph.get_collection(tf1.GraphKeys.QUEUE_RUNNERS)) == 2


def test_a_reader_that_a_step_reads_itself():
    with tf.Graph().as_default() as graph:
        names = tf1.train.string_input_producer(pipelines.files([9]), shuffle=False)
        tf.strings.length(tf1.TFRecordReader().read(names)[1])
        with pytest.raises(CannotLower, match="without a queue behind it") as caught:
            rewire(graph)
    assert "to_dataset" in caught.value.advice


def test_what_cannot_be_rewired():
    with pytest.raises(InvalidArgument, match="nothing to replace"):
        rewire(tf.Graph())
    with tf.Graph().as_default() as graph:
        builders.fed()
        with pytest.raises(CannotLower, match="one of several queues"):
            rewire(graph)
    with tf.Graph().as_default() as graph:
        queue = tf1.train.range_input_producer(12)
        queue.dequeue_many(2)
        queue.dequeue_many(3)
        with pytest.raises(CannotLower, match="different sizes"):
            rewire(graph)
    graph.finalize()
    with pytest.raises(InvalidArgument, match="finalized"):
        rewire(graph)


def numbers(first=0):
    return tf1.train.range_input_producer(20, shuffle=False).dequeue() + first


def test_what_is_added_later_is_replaced_too():
    with tf.Graph().as_default() as graph:
        queue = tf1.FIFOQueue(9, tf.int32, [[]])
        tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, [queue.enqueue(numbers())]))
        first = queue.dequeue_many(2)
        rewired = rewire(graph)
        with tf1.Session() as session:
            assert session.run(rewired.stand_in(first)).tolist() == [0, 1]
            second = queue.dequeue_many(2)  # takes on from there
            other = tf1.train.batch([numbers(100)], 3)
            with tf.control_dependencies([first.op]):
                waits = tf.constant(7)
            again = first + 0
            rewired = rewired.extend()
            assert session.run(rewired.stand_in(second)).tolist() == [2, 3]
            assert session.run(rewired.stand_in(other)).tolist() == [100, 101, 102]
            assert session.run([waits, rewired.stand_in(first.op)]) == [7, None]
            assert session.run(again).tolist() == [6, 7]
        assert list(rewired.datasets) == [queue.queue_ref.op.name, "batch/fifo_queue"]
        assert len(rewired.runners) == 4
        assert graph.get_collection(tf1.GraphKeys.QUEUE_RUNNERS) == []


def test_what_is_added_later_and_cannot_be_replaced():
    with tf.Graph().as_default() as graph:
        producer = tf1.train.range_input_producer(20, shuffle=False)
        batch = tf1.train.batch([producer.dequeue()], 2)
        rewired = rewire(graph)
        tf1.train.batch([producer.dequeue()], 3)
        with pytest.raises(CannotLower, match=r"in whose place tf\.data had been put before"):
            rewired.extend()
        with tf1.Session() as session:
            assert session.run(rewired.stand_in(batch)).tolist() == [0, 1]
    with tf.Graph().as_default() as graph:
        queue = tf1.FIFOQueue(9, tf.int32, [[]])
        tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, [queue.enqueue(numbers())]))
        queue.dequeue_many(2)
        rewired = rewire(graph)
        queue.dequeue_many(3)
        with pytest.raises(CannotLower, match="batches of different sizes"):
            rewired.extend()
