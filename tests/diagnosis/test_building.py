"""What TensorFlow refuses while the graph is built."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tests.diagnosis.running import run_to_failure
from tests.pipelines import numbers, parse, tf1
from tfqueue.diagnosis.building import failure_of_build

F = tf1.FixedLenFeature


def if_tensor():
    if tf1.placeholder(tf.bool, []):
        return tf.constant(1)
    return tf.constant(2)


def image_of_open_shape(path):
    return tf1.image.decode_jpeg(parse([path], {"img": F([], tf.string)})["img"])


@pytest.mark.parametrize(
    ("build", "cause_name", "words"),
    [
        (lambda path: tf1.train.batch([tf.zeros([2]), image_of_open_shape(path)], 2), "shapes-not-defined", "number 1"),
        (lambda path: tf1.train.string_input_producer([]).dequeue(), "no-files", "the list of file names is empty"),
        (lambda path: tf1.train.shuffle_batch([tf.zeros([])], 4, 5, 5), "capacity", "min_after_dequeue + "),
        (lambda path: parse([path], {"label": F([], tf.int32)})["label"], "feature-dtype", "tf.cast the result"),
        (lambda path: if_tensor(), "tensor-as-bool", "tf.cond"),
        (lambda path: tf1.reset_default_graph(), "graph-reset", "leave tf.reset_default_graph() out"),
    ],
    ids=["open-shape", "no-files", "capacity", "int32-feature", "if-tensor", "reset"],
)
def test_a_graph_that_cannot_be_built(tmp_path, build, cause_name, words) -> None:
    path = numbers(tmp_path / "numbers.tfrecord")
    failed = run_to_failure(lambda: build(path))
    assert failed.cause_name == cause_name
    assert words in failed.advice
    assert failed.source.startswith(("test_building.py", "pipelines.py"))
    assert isinstance(failed.__cause__, (ValueError, TypeError, AssertionError))


def test_other_errors_of_a_build_function_are_its_own() -> None:
    assert failure_of_build(ValueError("the user's own"), "main.py:3 in build") is None
