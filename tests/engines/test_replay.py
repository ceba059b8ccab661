"""The replayed shuffle against the emulation of the queue."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engines import emulation
from tfqueue.engines.replay import replay_shuffle
from tfqueue.errors import InvalidArgument


def numbers(count):
    return tf.data.Dataset.range(count)


def values(dataset):
    return [element.tolist() for element in dataset.as_numpy_iterator()]


@settings(max_examples=12, deadline=None)
@given(
    count=st.integers(0, 70),
    minimum=st.integers(0, 20),
    batch=st.integers(1, 12),
    more=st.integers(0, 20),
    seed=st.integers(1, 2**40),
    keep=st.booleans(),
)
def test_batches_are_those_of_the_queue(count, minimum, batch, more, seed, keep):
    capacity = minimum + batch + more
    replay = replay_shuffle(capacity, minimum, seed, 7, batch_size=batch, drop_remainder=not keep)
    expected = emulation.shuffled_batches(range(count), capacity, minimum, batch, seed, 7, up_to=keep)
    assert values(numbers(count).apply(replay)) == list(expected)


@settings(max_examples=12, deadline=None)
@given(count=st.integers(0, 400), minimum=st.integers(0, 20), more=st.integers(1, 200), seed=st.integers(1, 2**40))
def test_single_elements_are_those_of_the_queue(count, minimum, more, seed):
    replay = replay_shuffle(minimum + more, minimum, seed, 3)
    expected = emulation.shuffled_batches(range(count), minimum + more, minimum, 1, seed, 3)
    assert values(numbers(count).apply(replay)) == [element for (element,) in expected]


def test_a_second_pass_gives_the_same():
    dataset = numbers(50).apply(replay_shuffle(20, 5, 1, 2, batch_size=4))
    assert values(dataset) == values(dataset)


def test_an_endless_input():
    dataset = numbers(10).repeat().apply(replay_shuffle(20, 5, 1, 2, batch_size=4)).take(100)
    elements = [n for _ in range(100) for n in range(10)]
    expected = list(emulation.shuffled_batches(elements, 20, 5, 4, 1, 2))[:100]
    assert values(dataset) == expected


@pytest.mark.parametrize("batch", [None, 3])
def test_structures_keep_their_parts_together(batch):
    dataset = numbers(40).map(lambda n: {"n": n, "pair": (tf.fill([2], tf.cast(n, tf.float32)), tf.as_string(n))})
    shuffled = dataset.apply(replay_shuffle(12, 4, 5, 6, batch_size=batch))
    assert set(shuffled.element_spec) == {"n", "pair"}
    seen = []
    for element in shuffled.as_numpy_iterator():
        n = np.ravel(element["n"])
        seen.extend(n.tolist())
        assert (np.reshape(element["pair"][0], [-1, 2]) == n[:, np.newaxis]).all()
        assert [int(text) for text in np.ravel(element["pair"][1])] == n.tolist()
    assert sorted(seen) == list(range(39 if batch else 40)) or (batch and len(set(seen)) == 39)


def test_elements_of_any_shape():
    dataset = numbers(30).map(lambda n: tf.range(n))
    lengths = [len(element) for element in dataset.apply(replay_shuffle(8, 2, 5, 6)).as_numpy_iterator()]
    assert lengths == [n for (n,) in emulation.shuffled_batches(range(30), 8, 2, 1, 5, 6)]


@pytest.mark.parametrize("batch", [None, 4])
def test_an_iterator_saved_in_the_middle_goes_on_where_it_was(batch, tmp_path):
    dataset = numbers(500).apply(replay_shuffle(60, 20, 1, 2, batch_size=batch))
    iterator = iter(dataset)
    for _ in range(7):
        next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "iterator"))
    expected = [element.numpy().tolist() for element in iterator]
    again = iter(dataset)
    tf.train.Checkpoint(iterator=again).restore(path)
    assert [element.numpy().tolist() for element in again] == expected
    assert len(expected) > 100


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((5, 5, 1, 1), {}, "larger than min_after_dequeue"),
        ((5, 2, 0, 0), {}, "not seeded"),
        ((5, 2, 1, 1), {"batch_size": 4}, "1 to 3 at once"),
        ((5, 2, 1, 1), {"batch_size": 0}, "1 to 3 at once"),
    ],
)
def test_numbers_that_fit_no_queue(arguments, options, words):
    with pytest.raises(InvalidArgument, match=words):
        replay_shuffle(*arguments, **options)


def test_what_is_no_tensor_is_refused():
    dataset = numbers(3).map(lambda n: tf.sparse.from_dense(tf.one_hot(n, 3)))
    with pytest.raises(InvalidArgument, match="serialize_sparse"):
        dataset.apply(replay_shuffle(5, 2, 1, 1))
