"""Features of a batch: names, kinds, rows, and clear words for what is no tensor."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest

from tfqueue.equivalence.leaves import Dense, Ragged, Sparse, common_size, flatten, skeleton
from tfqueue.errors import InvalidStream

Point = namedtuple("Point", "x y")


def names(batch: object) -> list[str]:
    return [name for name, _ in flatten(batch)]


def test_names_follow_the_structure() -> None:
    x = np.zeros(2)
    assert names(x) == ["value"]
    assert names((x, x)) == ["[0]", "[1]"]
    assert names({"image": x, "label": x}) == ["image", "label"]
    assert names(Point(x, x)) == ["x", "y"]
    assert names(({"a": x, "b": (x, x)}, [x])) == ["[0].a", "[0].b.[0]", "[0].b.[1]", "[1].[0]"]
    assert skeleton(({"a": x}, Point(x, x), (x,))) == "({a: tensor}, Point(x=tensor, y=tensor), (tensor,))"


def test_python_numbers_and_strings_are_values() -> None:
    (_, leaf), (_, text) = flatten({"label": [1, 2, 3], "name": ["a", "é"]})
    assert leaf.row(2) == 3
    assert text.row(1) == "é".encode()
    assert text.dtype == "string"


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        ({"x": object()}, "feature x is an object, not a tensor"),
        ({"x": None}, "feature x is a NoneType"),
        ({}, "empty dict"),
        ({"x": np.array([[1], None], dtype=object)}, "array of Python objects"),
        ({"x": np.array(["2020-01-01"], dtype="datetime64[D]")}, "datetime64"),
        ({"x": np.zeros(2, dtype=[("a", "i4")])}, "structured array"),
    ],
)
def test_what_is_no_tensor_is_named(batch: object, words: str) -> None:
    with pytest.raises(InvalidStream, match=words.replace("[", r"\[")):
        flatten(batch)


def test_rows_of_ragged_leaves() -> None:
    leaf = Ragged((np.array([0, 2, 2, 5]),), np.array([10, 11, 12, 13, 14]))
    assert [list(leaf.row(i)) for i in range(3)] == [[10, 11], [], [12, 13, 14]]
    assert list(leaf.rows(1, 3).row(1)) == [12, 13, 14]
    deep = Ragged((np.array([0, 2, 3]), np.array([0, 1, 3, 4])), np.array([1, 2, 3, 4]))
    assert [list(part) for part in deep.row(0)] == [[1], [2, 3]]
    assert [list(part) for part in deep.rows(1, 2).row(0)] == [[4]]


def test_rows_of_sparse_leaves() -> None:
    leaf = Sparse(np.array([[0, 1], [2, 0]]), np.array([5, 6]), np.array([3, 2]))
    assert [leaf.row(i).tolist() for i in range(3)] == [[0, 5], [0, 0], [6, 0]]
    assert leaf.rows(1, 3).row(1).tolist() == [6, 0]


def test_the_number_of_records_is_the_common_leading_size() -> None:
    assert common_size(flatten((np.zeros((4, 2)), np.zeros(4)))) == 4
    assert common_size(flatten((np.zeros((4, 2)), np.zeros(3)))) is None
    assert common_size(flatten((np.zeros((4, 2)), np.float32(1)))) == 4


def test_values_of_tensorflow() -> None:
    tf = pytest.importorskip("tensorflow")
    ragged = tf.ragged.constant([[1, 2], [], [3]])
    sparse = tf.sparse.from_dense([[0, 1], [2, 0]])
    leaves = dict(flatten({"r": ragged, "s": sparse, "d": tf.constant([b"a", b"b"])}))
    assert isinstance(leaves["r"], Ragged)
    assert leaves["r"].row(0).tolist() == [1, 2]
    assert isinstance(leaves["s"], Sparse)
    assert leaves["s"].row(1).tolist() == [2, 0]
    assert isinstance(leaves["d"], Dense)
    assert leaves["d"].row(1) == b"b"
    with tf.Graph().as_default(), pytest.raises(InvalidStream, match="graph tensor"):
        flatten(tf.constant(1.0))
