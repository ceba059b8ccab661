"""Random numbers worked out from seeds, against TensorFlow's kernels and a plain Python emulation."""

from __future__ import annotations

from itertools import islice

import numpy as np
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engines import emulation
from tfqueue.engines import philox

tf1 = tf.compat.v1
SEEDS = st.integers(0, 2**63 - 1)


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, seed2=SEEDS, first=st.integers(0, 50), count=st.integers(0, 40))
def test_words_are_those_of_the_generator(seed, seed2, first, count):
    expected = list(islice(emulation.philox(seed, seed2), first, first + count))
    assert philox.words(seed, seed2, first, count).numpy().tolist() == expected


@settings(max_examples=20, deadline=None)
@given(count=st.integers(0, 60), seed=st.integers(1, 2**31), seed2=st.integers(1, 2**31), runs=st.integers(1, 4))
def test_permutations_are_those_of_random_shuffle(count, seed, seed2, runs):
    with tf.Graph().as_default(), tf1.Session() as session:
        shuffled = tf.raw_ops.RandomShuffle(value=tf.range(count), seed=seed, seed2=seed2)
        expected = [session.run(shuffled).tolist() for _ in range(runs)]
    ours = [philox.shuffled_indices(count, seed, seed2, run).numpy().tolist() for run in range(runs)]
    assert ours == expected


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_draws_are_swap_and_pop(data):
    size = data.draw(st.integers(1, 30))
    words = data.draw(st.lists(st.integers(0, 2**32 - 1), max_size=size))
    buffer = list(range(size))
    expected = []
    for word in words:
        at = word % len(buffer)
        expected.append(buffer[at])
        buffer[at] = buffer[-1]
        buffer.pop()
    taken, holes, fillers = philox.drawn_positions(tf.constant(words, tf.int64), tf.constant(size, tf.int64))
    assert taken.numpy().tolist() == expected
    left = np.arange(size)
    left[holes.numpy()] = fillers.numpy()
    assert left[: size - len(words)].tolist() == buffer
