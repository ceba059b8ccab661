"""What a report keeps of its sides: labels of the first records."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import tfqueue
from tfqueue.equivalence import followed
from tfqueue.equivalence.leaves import as_leaf


def labels_of(batches, candidate=None):
    orders = tfqueue.compare(batches, candidate or batches).orders
    return orders.reference_labels, orders.candidate_labels


def batched(size=32, count=8, **features):
    return [
        {name: values[size * n : size * (n + 1)] for name, values in features.items()}
        for n in range(min(count, len(next(iter(features.values()))) // size))
    ]


def texts(values):
    array = np.empty(len(values), object)
    array[:] = values
    return array


def test_integers_under_the_name_of_a_label():
    index, label = np.arange(256), np.arange(256) % 7
    for found in labels_of(batched(index=index, label=label.astype(np.uint8))):
        np.testing.assert_array_equal(found, label)


def test_strings_and_one_hot_rows():
    number = np.arange(256) % 5
    for found in labels_of(batched(x=np.arange(256.0), target=texts([b"cat %d" % n for n in number]))):
        assert found.tolist() == [b"cat %d" % n for n in number]
    for found in labels_of(batched(x=np.arange(256.0), y=np.eye(5, dtype=np.float32)[number])):
        np.testing.assert_array_equal(found, number)


def test_the_candidate_may_have_the_name():
    image, label = np.zeros((64, 4, 4, 3), np.uint8), np.arange(64) % 3
    plain = [(np.arange(64), image, label)]
    named = [{"id": np.arange(64), "image": image, "label": label}]
    for one, two in ((plain, named), (named, plain)):
        for found in labels_of(one, two):
            np.testing.assert_array_equal(found, label)


def test_without_names_the_first_that_can_be_one():
    image, label = np.random.default_rng(0).random((64, 4, 4, 3)), np.arange(64) % 3
    for found in labels_of([(image, label)]):
        np.testing.assert_array_equal(found, label)


@pytest.mark.parametrize(
    "features",
    [
        {"x": np.arange(64)},
        {"label": np.linspace(0, 1, 64)},
        {"label": np.zeros((64, 3), np.int64)},
        {"x": np.arange(4096), "class": texts([b"%d" % n for n in range(4096)])},
    ],
)
def test_no_label(features):
    assert labels_of(batched(count=200, **features)) == (None, None)


def test_what_stops_being_one_hot_is_no_label():
    kept = followed.KeptLabels(0)
    kept.add((as_leaf(np.eye(3), "y"),))
    assert kept.values().tolist() == [0, 1, 2]
    kept.add((as_leaf(np.zeros((0, 3)), "y"),))
    assert kept.values().tolist() == [0, 1, 2]
    kept.add((as_leaf(np.ones((2, 3)), "y"),))
    assert kept.values() is None
    kept.add((as_leaf(np.eye(3), "y"),))
    assert kept.values() is None


def test_no_more_than_so_many_are_kept(monkeypatch):
    monkeypatch.setattr(followed, "_RECORDS", 50)
    for found in labels_of(batched(label=np.arange(256) % 7)):
        np.testing.assert_array_equal(found, np.arange(50) % 7)


def test_a_golden_has_no_labels(tmp_path):
    batches = batched(label=np.arange(256) % 7)
    tfqueue.record_golden(batches, tmp_path / "g.golden")
    found = labels_of(tmp_path / "g.golden", batches)
    assert found[0] is None


def test_ragged_features_are_no_labels():
    ragged = tf.ragged.constant([[1], [2, 3]])
    assert labels_of([{"label": ragged}, {"label": ragged}]) == (None, None)
