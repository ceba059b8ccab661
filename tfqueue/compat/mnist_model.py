"""tensorflow.examples.tutorials.mnist.mnist: the model of the MNIST how-tos, which their programs import.

Two hidden layers and a linear one. The names of its variables are those of TF1, so that old checkpoints fit.
"""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

__all__ = ["IMAGE_PIXELS", "IMAGE_SIZE", "NUM_CLASSES", "evaluation", "inference", "loss", "training"]

_tf1 = tf.compat.v1

NUM_CLASSES = 10
IMAGE_SIZE = 28
IMAGE_PIXELS = IMAGE_SIZE * IMAGE_SIZE


def inference(images: Any, hidden1_units: int, hidden2_units: int) -> Any:
    """The logits, [batch, NUM_CLASSES], of images, [batch, IMAGE_PIXELS]."""
    hidden1 = tf.nn.relu(_linear(images, "hidden1", IMAGE_PIXELS, hidden1_units))
    hidden2 = tf.nn.relu(_linear(hidden1, "hidden2", hidden1_units, hidden2_units))
    return _linear(hidden2, "softmax_linear", hidden2_units, NUM_CLASSES)


def _linear(inputs: Any, name: str, size: int, units: int) -> Any:
    with _tf1.name_scope(name):
        spread = 1.0 / math.sqrt(float(size))
        weights = _tf1.Variable(_tf1.truncated_normal([size, units], stddev=spread), name="weights")
        biases = _tf1.Variable(_tf1.zeros([units]), name="biases")
        return tf.matmul(inputs, weights) + biases


def loss(logits: Any, labels: Any) -> Any:
    """The mean cross entropy of logits and the numbers of the classes, [batch]."""
    return _tf1.losses.sparse_softmax_cross_entropy(labels=tf.cast(labels, tf.int64), logits=logits)


def training(loss: Any, learning_rate: float) -> Any:
    """The op that trains by plain gradient descent and counts a variable `global_step`."""
    _tf1.summary.scalar("loss", loss)
    global_step = _tf1.Variable(0, name="global_step", trainable=False)
    return _tf1.train.GradientDescentOptimizer(learning_rate).minimize(loss, global_step=global_step)


def evaluation(logits: Any, labels: Any) -> Any:
    """How many of the batch are predicted correctly."""
    return tf.reduce_sum(tf.cast(tf.math.in_top_k(targets=labels, predictions=logits, k=1), tf.int32))
