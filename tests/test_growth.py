"""Ops added in the loop are reported with their line; a program that is still being set up is not."""

from __future__ import annotations

import warnings

import pytest
import tensorflow as tf

import tfqueue
from tests.pipelines import labels, numbers, tf1
from tfqueue.errors import TFQueueWarning


@pytest.fixture
def path(tmp_path):
    return numbers(tmp_path / "numbers.tfrecord")


def test_ops_added_in_every_step_are_named_with_their_line(path) -> None:
    with tfqueue.QueuePipeline(labels([path], num_epochs=None)) as pipeline:
        with pytest.warns(
            TFQueueWarning, match=r"StridedSlice 'strided_slice_\d', added at test_growth\.py:\d+ in test_ops"
        ):
            for _ in range(11):
                next(pipeline)
                with pipeline.graph.as_default():
                    pipeline.session.run(pipeline.fetches[0])
        next(pipeline)  # said once


def test_ops_added_in_a_loop_over_a_session_of_ones_own(path) -> None:
    with tf.Graph().as_default(), tf1.Session() as session:
        batch = labels([path], num_epochs=None)()
        with (
            tfqueue.queue_runners(session) as coord,
            pytest.warns(TFQueueWarning, match="the graph grows in every step"),
        ):
            for _ in range(12):
                assert not coord.should_stop()
                session.run(batch[0])


def test_a_graph_that_grows_a_few_times_is_fine(path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with tfqueue.QueuePipeline(labels([path], num_epochs=None)) as pipeline:
            for step in range(40):
                if step % 4 == 0:
                    with pipeline.graph.as_default():
                        tf.constant(step)
                next(pipeline)
