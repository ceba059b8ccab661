"""Seeded random ops worked out from the number of the run, against the kernels."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.engines.running import numpy_batches
from tfqueue.engines.random_ops import can_be_numbered
from tfqueue.engines.stage import RUN, extract
from tfqueue.engines.tfdata import to_dataset
from tfqueue.topology.subgraph import GraphView

tf1 = tf.compat.v1

OPS = {
    "uniform": lambda shape: tf1.random_uniform(shape, -2.0, 3.0, seed=5),
    "normal": lambda shape: tf1.random_normal(shape, seed=5),
    "truncated": lambda shape: tf1.truncated_normal(shape, seed=2**40),
    "integers": lambda shape: tf1.random_uniform(shape, 3, 90, tf.int64, seed=5),
    "float64": lambda shape: tf1.random_uniform(shape, dtype=tf.float64, seed=5),
}


@pytest.mark.parametrize("shape", [[], [3], [4, 5], [257]], ids=str)
@pytest.mark.parametrize("name", OPS)
def test_the_values_are_those_of_the_kernel(name, shape):
    graph = tf.Graph()
    with graph.as_default():
        tf1.set_random_seed(2**35 + 3)
        value = OPS[name](shape)
    with tf1.Session(graph=graph) as session:
        expected = [session.run(value) for _ in range(5)]
    function = extract(GraphView(graph), [value], cuts=(), number_runs=True, words="the stage")
    assert function.numbered
    assert function.stateful == ()
    run = tf.function(lambda number: function({RUN: number}))
    for number in (3, 0, 4, 1, 2):
        (ours,) = run(tf.constant(number, tf.int64))
        assert ours.dtype == value.dtype
        assert ours.numpy().tobytes() == expected[number].tobytes()


def test_what_has_no_number():
    raw = tf.raw_ops
    with tf.Graph().as_default():
        unseeded = raw.RandomUniform(shape=[2], dtype=tf.float32)
        open_shape = raw.RandomUniform(shape=tf1.placeholder(tf.int32, [None]), dtype=tf.float32, seed=1)
        gamma = raw.RandomGamma(shape=[2], alpha=1.0, seed=1)
        seeded = raw.RandomUniform(shape=[2], dtype=tf.float32, seed2=1)
    assert [can_be_numbered(tensor.op) for tensor in (unseeded, open_shape, gamma, seeded)] == [
        False,
        False,
        False,
        True,
    ]


def test_a_random_op_that_two_stages_share_keeps_its_own_state():
    def build():
        noise = tf1.random_uniform([], seed=3)
        numbers = tf1.train.range_input_producer(6, num_epochs=1, shuffle=False)
        left = tf1.train.batch([tf.cast(numbers.dequeue(), tf.float32) + noise], 2)
        return left, noise

    batches = numpy_batches(to_dataset(build))
    assert len(batches) == 3
    assert len({float(noise) for _, noise in batches}) == 3
    assert np.all(np.concatenate([left for left, _ in batches]) >= [0, 1, 2, 3, 4, 5])
