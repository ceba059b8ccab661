"""Steps that are fed something in place of a batch leave the batch in its queue, in every engine."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import tfqueue
from tests.engines import pipelines
from tfqueue.engines.feeding import fed_names, idle_ops
from tfqueue.engines.lockstep_hook import LockstepHook

tf1 = tf.compat.v1


def batch_of(names):
    number = tf1.parse_single_example(tf1.TFRecordReader().read(names)[1], {"n": tf1.FixedLenFeature([], tf.int64)})[
        "n"
    ]
    return tf1.train.shuffle_batch([number], 4, 30, 10, seed=6)


def build():
    """A batch of records from files; the reader waits for file names, as lockstep's helper thread knows."""
    return batch_of(tf1.train.string_input_producer(pipelines.files([9, 14, 11]), num_epochs=2, seed=4))


def numbers(session, tensors, feeds):
    """The batches of 15 steps, between which others are fed what they take, and the end."""
    taken, fed = tensors
    found = []
    for step in range(15):
        found.append(session.run(taken).tolist())
        if step % 3 == 0:
            assert session.run(taken, feeds).tolist() == fed
        if step % 4 == 0:
            assert session.run([], feeds) == []
    return found


def straight():
    with tf.Graph().as_default():
        batch = build()
        with tf1.Session() as session:
            session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
            with tfqueue.queue_runners(session, engine="lockstep"):
                return [session.run(batch).tolist() for _ in range(15)]


@pytest.mark.parametrize("engine", ["lockstep", "tfdata"])
@pytest.mark.parametrize("by", ["default", "batch", "name"])
def test_a_batch_that_is_fed_is_not_taken(engine, by):
    with tf.Graph().as_default():
        batch = build()
        if by == "default":
            batch = tf1.placeholder_with_default(batch, [None])
        doubled = batch * 2
        feeds = {batch.name if by == "name" else batch: np.arange(4)}
        with tf1.Session() as session:
            session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
            options = {"shuffle": "replay"} if engine == "tfdata" else {}
            with tfqueue.queue_runners(session, engine=engine, **options):
                found = numbers(session, (doubled, [0, 2, 4, 6]), feeds)
    assert found == [[2 * number for number in row] for row in straight()]


def test_under_a_monitored_session():
    with tf.Graph().as_default():
        batch = tf1.placeholder_with_default(build(), [None])
        tf1.train.get_or_create_global_step()
        with tf1.train.MonitoredTrainingSession(hooks=[LockstepHook()]) as session:
            found = numbers(session, (batch, [0, 1, 2, 3]), {batch: np.arange(4)})
    assert found == straight()


def test_names_of_what_is_fed():
    with tf.Graph().as_default():
        plain = tf1.placeholder(tf.float32, [], name="plain")
        sparse = tf1.sparse_placeholder(tf.float32, name="sparse")
        found = fed_names({plain: 1, "other:0": 2, sparse: 3, (plain, sparse.values): 4})
    assert found == {"plain:0", "other:0", *(part.name for part in (sparse.indices, sparse.values, sparse.dense_shape))}
    assert fed_names(None) == frozenset()


def test_what_does_not_run():
    with tf.Graph().as_default() as graph:
        one = tf.constant(1, name="one")
        two = tf.identity(one, name="two")
        with tf.control_dependencies([one]):
            three = tf.add(two, two, name="three")
        end = tf.multiply(three, two, name="end")
    assert idle_ops(graph, [end], frozenset()) == frozenset()
    assert idle_ops(graph, [end], frozenset({"three:0"})) == {"three"}
    assert idle_ops(graph, [end], frozenset({"three:0", "two:0"})) == {"one", "two", "three"}
    assert idle_ops(graph, [end], frozenset({"end:0"})) == {"one", "two", "three", "end"}
    assert idle_ops(graph, [end.op], frozenset({"end:0", "two:0"})) == {"two"}
