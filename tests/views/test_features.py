"""Names, labels and short text of features."""

from __future__ import annotations

import collections

import numpy as np
import pytest
import tensorflow as tf

from tfqueue import errors
from tfqueue.equivalence import leaves
from tfqueue.views.features import Feature, find_label, flatten, is_one_hot, label_words, short

Pair = collections.namedtuple("Pair", "left right")


def test_names_are_those_of_a_comparison():
    a = np.zeros(2)
    for batch in (
        a,
        (a, a),
        [a, {"x": a, "y": (a, a)}],
        {"f": {"image": a, "pair": Pair(a, [a])}},
        Pair(a, [1, 2]),
        {"x": [b"a", b"b"]},
    ):
        assert [feature.name for feature in flatten(batch)] == [name for name, _ in leaves.flatten(batch)]


@pytest.mark.parametrize(
    ("batch", "label"),
    [
        ({"id": np.arange(3), "label": np.arange(3)}, "label"),
        ({"id": np.arange(3), "image/class/label": np.ones(3)}, "image/class/label"),
        ({"relabelled": np.arange(3)}, None),
        ({"label": np.zeros((3, 50))}, None),
        ((np.zeros((3, 4, 4)), np.arange(3), np.arange(3)), "[1]"),
        ((np.zeros((3, 4, 4)), np.eye(3)), "[1]"),
        ((np.zeros((3, 4, 4)), np.zeros((3, 1))), "[1]"),
        ({"y": [b"cat", b"dog", b"cow"]}, "y"),
    ],
)
def test_the_label_is_found_by_name_or_place(batch, label):
    found = find_label(flatten(batch))
    assert (found.name if found else None) == label


def test_label_words():
    assert label_words(np.eye(3)[[2, 0]]) == ["2", "0"]
    assert label_words(np.array([0.25, 1.5])) == ["0.25", "1.5"]
    assert label_words(np.array([True, False])) == ["True", "False"]
    assert label_words(np.array([[3], [1]]), ["a", "b", "c", "d"]) == ["3 d", "1 b"]
    assert label_words(np.array([-1]), ["a"]) == ["-1 no such class"]
    assert label_words(np.array([b"caf\xc3\xa9"], object)) == ["café"]


def test_one_hot():
    assert is_one_hot(np.eye(4)[[1, 1, 2]])
    assert is_one_hot(np.eye(4, dtype=bool))
    assert not is_one_hot(np.zeros((2, 4)))
    assert not is_one_hot(np.ones((2, 2)))
    assert not is_one_hot(np.arange(4))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (3, "3"),
        (np.float32(0.1), "0.1"),
        (2 + 1j, "2+1j"),
        (np.array([1, 2, 3]), "[1, 2, 3]"),
        (np.array([0.5, np.nan]), "[0.5, nan]"),
        (np.arange(10, dtype=np.int32), "int32[10] 0..9"),
        (b"text", "text"),
        (b"\x00\x01\x02\x03", "4 bytes"),
        (np.zeros((0, 3)), "float64[0, 3]"),
        (np.array([b"a", b"b"], object), "[a, b]"),
    ],
)
def test_short(value, words):
    assert short(value) == words


def test_descriptions_name_dtype_and_shape():
    assert Feature("x", np.zeros((2, 3), np.float32)).describe() == "x: float32[2, 3]"
    assert Feature("x", np.array([b"a"], object)).describe() == "x: bytes[1]"


@pytest.mark.parametrize("batch", [{}, (), {"a": {}}])
def test_a_structure_without_tensors(batch):
    with pytest.raises(errors.InvalidArgument, match="holds no tensor"):
        flatten(batch)


def test_strings_keep_the_nuls_at_their_end():
    for value in (tf.constant(b"ab\0"), b"ab\0", np.array(b"ab\0", object)):
        assert flatten({"x": value})[0].values[()] == b"ab\0"
