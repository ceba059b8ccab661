"""Branches that fill one queue in turns, and random numbers that they, or the branches of a tf.cond, draw."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tests.engines.running import assert_same_batches, lockstep, numpy_batches
from tfqueue.engines.tfdata import to_dataset
from tfqueue.topology.trace import trace

tf1 = tf.compat.v1


def noisy_branches(seeds, *, open_shape):
    def build():
        number = tf1.train.range_input_producer(30, num_epochs=2, shuffle=False).dequeue()
        shape = [tf.size(number)] if open_shape else [1]
        rows = [[number, tf1.random_uniform(shape, seed=seed)[0]] for seed in seeds]
        return tf1.train.batch_join(rows, 4, allow_smaller_final_batch=True)

    return build


@pytest.mark.parametrize("open_shape", [False, True], ids=["shape known", "shape open"])
@pytest.mark.parametrize("seeds", [(1, 2, 3), (4, 4, 4)], ids=["own seeds", "equal seeds"])
def test_each_branch_draws_from_a_stream_of_its_own(seeds, open_shape):
    build = noisy_branches(seeds, open_shape=open_shape)
    expected = lockstep(build)
    for optimize in (True, False):
        dataset = to_dataset(build, shuffle="replay", optimize=optimize)
        for _ in range(3):
            assert_same_batches(numpy_batches(dataset), expected)


def test_branches_that_share_two_streams_pair_them_alike():
    def build():
        left = tf1.train.range_input_producer(20, num_epochs=2, shuffle=True, seed=3)
        right = tf1.train.range_input_producer(20, num_epochs=2, shuffle=True, seed=3)
        pairs = [(left.dequeue(), right.dequeue()), (left.dequeue(), right.dequeue())]
        first, (again, last) = pairs[0], pairs[1][::-1]
        return tf1.train.batch_join([[*first], [last * 100, again], [*first]], 4)

    batches = lockstep(build)
    assert_same_batches(numpy_batches(to_dataset(build)), batches)
    pairs = [(int(a), int(b)) for left, right in batches for a, b in zip(left, right, strict=True)]
    assert all(a in (b, 100 * b) for a, b in pairs)


def drawn_in_a_cond():
    number = tf1.train.range_input_producer(200, num_epochs=2, shuffle=False).dequeue()
    noise = tf.cond(number % 3 > 0, lambda: tf1.random_uniform([], seed=3), lambda: tf1.random_normal([], seed=4))
    return tf1.train.batch([number, noise], 7)


def drawn_in_a_loop():
    number = tf1.train.range_input_producer(60, num_epochs=2, shuffle=False).dequeue()
    total = tf.while_loop(
        lambda i, _: i < number % 4,
        lambda i, total: (i + 1, total + tf1.random_uniform([], seed=6)),
        [0, 0.0],
        parallel_iterations=1,
    )[1]
    return tf1.train.batch([number, total], 7)


@pytest.mark.parametrize("build", [drawn_in_a_cond, drawn_in_a_loop])
def test_random_numbers_in_a_branch_are_drawn_in_the_order_of_the_records(build):
    expected = lockstep(build)
    for shuffle in ("replay", "native"):
        dataset = to_dataset(build, shuffle=shuffle)
        # tf.data takes such a tf.cond for a stateless op, which it may run on several records at once.
        assert dataset.options().experimental_optimization.map_parallelization is False
        for _ in range(3):
            assert_same_batches(numpy_batches(dataset), expected)


def test_a_tf_cond_that_draws_is_told_as_random_and_one_that_calls_python_as_python():
    def build():
        number = tf1.train.range_input_producer(9).dequeue()
        noise = tf.cond(number > 3, lambda: tf1.random_uniform([]), lambda: 0.0, name="draws")
        value = tf.cond(number > 3, lambda: tf1.py_func(abs, [noise], tf.float32), lambda: 0.0, name="calls")
        return tf1.train.batch([number, tf.reshape(value, [])], 2)

    stage = trace(build).transform("batch/fifo_queue_enqueue")
    assert stage.random == ("draws",)
    assert stage.python == ("calls",)
