"""tf.train.Supervisor and the training loop of slim, with their service threads, beside eager execution."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf1

import tfqueue.compat.v1 as tf


def training(graph):
    number = tf.train.range_input_producer(50, num_epochs=1, shuffle=False).dequeue()
    step = tf.train.get_or_create_global_step(graph)
    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    loss = tf.square(weight - tf.cast(number, tf.float32))
    tf.summary.scalar("loss", loss)
    return tf.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=step), loss


@pytest.mark.parametrize("given", [True, False])
def test_the_services_of_a_supervisor_run(tmp_path: Path, given: bool) -> None:
    assert tf2.executing_eagerly()
    saved = threading.Event()

    class Saver(tf1.train.Saver):
        def save(self, *arguments, **options):
            path = super().save(*arguments, **options)
            saved.set()
            return path

    graph = tf2.Graph()
    with graph.as_default():
        train, _ = training(graph)
        supervisor = tf.train.Supervisor(
            graph if given else None,
            logdir=str(tmp_path),
            saver=Saver(),
            save_summaries_secs=3600,
            save_model_secs=3600,
        )
        assert isinstance(supervisor, tf1.train.Supervisor)
        with supervisor.managed_session() as session:
            session.run(train)
            assert saved.wait(60)  # the first checkpoint is due at once
    assert "global_step" in dict(tf1.train.list_variables(tf1.train.latest_checkpoint(str(tmp_path))))


@pytest.mark.filterwarnings("ignore:Attempting to use a closed FileWriter")  # slim stops its Supervisor twice
def test_slims_training_loop(tmp_path: Path) -> None:
    slim = tf.contrib.slim
    before = set(threading.enumerate())
    with tf2.Graph().as_default() as graph:
        _, loss = training(graph)
        train = slim.learning.create_train_op(loss, tf.train.GradientDescentOptimizer(0.01), summarize_gradients=True)
        last = slim.learning.train(
            train, str(tmp_path), number_of_steps=4, save_summaries_secs=3600, log_every_n_steps=0
        )
    assert np.isfinite(last)
    assert tf1.train.load_variable(tf1.train.latest_checkpoint(str(tmp_path)), "global_step") == 4
    left = {thread for thread in threading.enumerate() if thread not in before and not thread.daemon}
    assert left == set()
