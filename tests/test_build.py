"""A build function must give tensors of the graph it is called in."""

from __future__ import annotations

from collections import namedtuple

import pytest
import tensorflow as tf

from tests.pipelines import tf1
from tfqueue.build import build
from tfqueue.errors import InvalidArgument, InvalidBuildFunction, PipelineFailed

Pair = namedtuple("Pair", "image label")


def test_every_nest_of_tensors_is_accepted() -> None:
    def build_fn():
        x = tf1.constant([1])
        sparse = tf.SparseTensor([[0]], [1], [3])
        return Pair({"a": x, "b": [x, (sparse, tf.ragged.constant([[1], []]))]}, tf1.get_variable("v", []))

    with tf.Graph().as_default() as graph:
        pass
    fetches = build(build_fn, graph)
    assert isinstance(fetches, Pair)
    assert fetches.image["a"].graph is graph


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (lambda: None, "returned no tensor, but None"),
        (lambda: (), r"returned no tensor, but \(\)"),
        (lambda: {"image": []}, "returned no tensor"),
        (lambda: {"image": tf.constant(1), "label": None}, r"returned None \(NoneType\) at \['label'\]"),
        (lambda: [tf.constant(1), 7], r"returned 7 \(int\) at \[1\]"),
        (lambda: Pair(tf.constant(1), "label"), r"returned 'label' \(str\) at .label"),
        (lambda: tf1.no_op(), "where a tensor was expected"),
        (lambda: tf1.train.batch, "call the function"),
    ],
    ids=["none", "empty", "no leaf", "none inside", "number", "string", "operation", "function"],
)
def test_anything_else_is_named_with_its_place(value, words) -> None:
    with pytest.raises(InvalidBuildFunction, match=words):
        build(value, tf.Graph())


def test_a_tensor_of_another_graph_is_named() -> None:
    with tf.Graph().as_default():
        foreign = tf1.constant(1, name="foreign")
    with pytest.raises(InvalidBuildFunction, match=r"tensor of another graph at \[0\]: foreign:0"):
        build(lambda: [foreign], tf.Graph())


def test_an_eager_tensor_is_named() -> None:
    eager = tf.constant(1)
    with pytest.raises(InvalidBuildFunction, match="an eager tensor"):
        build(lambda: eager, tf.Graph())


def test_something_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"build_fn must be a function"):
        build([1, 2], tf.Graph())


def test_an_error_of_the_users_own_code_stays_as_it_is() -> None:
    def build_fn():
        raise ValueError("of the user")

    with pytest.raises(ValueError, match=r"^of the user$"):
        build(build_fn, tf.Graph())


def test_a_shape_that_is_not_defined_is_named_with_the_line() -> None:
    def build_fn():
        image = tf1.image.decode_jpeg(tf1.constant(b""))
        return tf1.train.batch([tf1.constant(1), image], 2)

    with pytest.raises(PipelineFailed, match=r"tensor number 1 \(\[None, None, None\]\)") as caught:
        build(build_fn, tf.Graph())
    assert caught.value.cause_name == "shapes-not-defined"
    assert caught.value.source.startswith("test_build.py:")
    assert isinstance(caught.value.__cause__, ValueError)


def test_match_filenames_once_can_be_given_to_string_input_producer(tmp_path) -> None:
    (tmp_path / "a.txt").write_text("x")

    def build_fn():
        names = tf1.train.match_filenames_once(str(tmp_path / "*.txt"))
        return tf1.train.string_input_producer(names).dequeue()

    assert build(build_fn, tf.Graph()).dtype == tf.string
