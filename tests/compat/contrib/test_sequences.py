"""Losses of sequences, embeddings of ids and recurrent helpers, against numpy and TensorFlow's own ops."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf2

import tfqueue.compat.v1 as tf
from tfqueue.errors import InvalidArgument

RANDOM = np.random.default_rng(4)
LOGITS = RANDOM.normal(size=(3, 4, 5)).astype(np.float32)
TARGETS = RANDOM.integers(0, 5, (3, 4))
WEIGHTS = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [0.5, 1, 1, 0]], np.float32)
CROSS = np.log(np.exp(LOGITS).sum(-1)) - np.take_along_axis(LOGITS, TARGETS[..., None], -1)[..., 0]
WEIGHTED = CROSS * WEIGHTS


def value(build):
    with tf2.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        tensors = build()
        session.run(tf.global_variables_initializer())
        return session.run(tensors)


@pytest.mark.parametrize(
    ("across_steps", "across_batch", "expected"),
    [
        (True, True, WEIGHTED.sum() / WEIGHTS.sum()),
        (True, False, WEIGHTED.sum(1) / WEIGHTS.sum(1)),
        (False, True, WEIGHTED.sum(0) / WEIGHTS.sum(0)),
        (False, False, WEIGHTED),
    ],
)
def test_sequence_loss(across_steps: bool, across_batch: bool, expected) -> None:
    found = value(lambda: tf.contrib.seq2seq.sequence_loss(LOGITS, TARGETS, WEIGHTS, across_steps, across_batch))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_losses_of_lists_of_steps() -> None:
    lists = [list(np.moveaxis(array, 1, 0)) for array in (LOGITS, TARGETS, WEIGHTS)]
    old, older = tf.contrib.legacy_seq2seq, tf.nn.seq2seq
    by_example = value(lambda: older.sequence_loss_by_example(*lists))
    np.testing.assert_allclose(by_example, WEIGHTED.sum(1) / WEIGHTS.sum(1), rtol=1e-5)
    sums = value(lambda: old.sequence_loss_by_example(*lists, False))
    np.testing.assert_allclose(sums, WEIGHTED.sum(1), rtol=1e-5)
    np.testing.assert_allclose(value(lambda: old.sequence_loss(*lists)), by_example.mean(), rtol=1e-5)
    np.testing.assert_allclose(value(lambda: older.sequence_loss(*lists, False, False)), sums.sum(), rtol=1e-5)

    def constant(labels, logits):
        return tf.cast(labels, tf.float32) + 0 * tf.reduce_sum(logits, axis=1)

    own = value(lambda: old.sequence_loss_by_example(*lists, False, constant))
    np.testing.assert_allclose(own, (TARGETS * WEIGHTS).sum(1), rtol=1e-5)
    with tf2.Graph().as_default():
        with pytest.raises(InvalidArgument, match="same length; got 4, 4, 3"):
            old.sequence_loss(lists[0], lists[1], lists[2][:3])
        with pytest.raises(InvalidArgument, match="logits must have 3 dimensions"):
            tf.contrib.seq2seq.sequence_loss(LOGITS[0], TARGETS, WEIGHTS)


IDS = np.array([[1, 2, 0, 0], [3, 3, 3, 1]])


def test_embedded_ids() -> None:
    def build():
        table = tf.constant_initializer(np.arange(8.0).reshape(4, 2))
        plain = tf.contrib.layers.embed_sequence(IDS, 4, 2, initializer=table, scope="words")
        again = tf.contrib.layers.embed_sequence(IDS, unique=True, scope="words", reuse=True)
        bag = tf.contrib.layers.bow_encoder(IDS, 4, 2, initializer=table)
        every = tf.contrib.layers.bow_encoder(IDS, 4, 2, sparse_lookup=False, initializer=table)
        assert again.shape.as_list() == [2, 4, 2]
        names = [variable.op.name for variable in tf.trainable_variables()]
        assert names == ["words/embeddings", "bow_encoder/embeddings", "bow_encoder_1/embeddings"]
        return plain, again, bag, every

    rows = np.arange(8.0).reshape(4, 2)
    plain, again, bag, every = value(build)
    np.testing.assert_array_equal(plain, rows[IDS])
    np.testing.assert_array_equal(again, rows[IDS])
    np.testing.assert_allclose(bag, [rows[[1, 2]].mean(0), rows[[3, 3, 3, 1]].mean(0)])
    np.testing.assert_allclose(every, rows[IDS].mean(1))
    with pytest.raises(InvalidArgument, match="needs vocab_size and embed_dim"):
        tf.contrib.layers.embed_sequence(IDS)


STEPS = RANDOM.normal(size=(2, 5, 3)).astype(np.float32)


@pytest.mark.filterwarnings("ignore::UserWarning")  # what tf_keras says of its old cells
def test_layers_of_bidirectional_cells() -> None:
    initializer = tf.constant_initializer(0.1)

    def cell(size):
        return tf.nn.rnn_cell.LSTMCell(size, initializer=initializer)

    def by_hand():
        output = tf.constant(STEPS)
        for layer, size in enumerate((4, 2)):
            both, _ = tf.nn.bidirectional_dynamic_rnn(
                cell(size), cell(size), output, sequence_length=[5, 3], dtype=tf.float32, scope=f"hand_{layer}"
            )
            output = tf.concat(both, 2)
        return output

    def stacked():
        output, forward, backward = tf.contrib.rnn.stack_bidirectional_dynamic_rnn(
            [cell(4), cell(2)], [cell(4), cell(2)], STEPS, dtype=tf.float32, sequence_length=[5, 3]
        )
        assert (
            tf.trainable_variables()[0].op.name
            == "stack_bidirectional_rnn/cell_0/bidirectional_rnn/fw/lstm_cell/kernel"
        )
        return output, forward, backward

    output, forward, backward = value(stacked)
    np.testing.assert_allclose(output, value(by_hand), rtol=1e-5)
    assert [state.h.shape for state in forward] == [(2, 4), (2, 2)]
    np.testing.assert_allclose(output[:, 0, 2:], backward[1].h, rtol=1e-5)
    with tf2.Graph().as_default(), pytest.raises(InvalidArgument, match="cells_bw has 0 entries for the 1"):
        tf.contrib.rnn.stack_bidirectional_dynamic_rnn([cell(4)], [], STEPS, dtype=tf.float32)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_block_cell_computes_what_the_op_did() -> None:
    def build():
        cell = tf.contrib.rnn.LSTMBlockCell(4, forget_bias=0.5)
        c, h = (tf.constant(RANDOM.normal(size=(2, 4)).astype(np.float32)) for _ in range(2))
        x = tf.constant(STEPS[:, 0])
        _, (new_c, new_h) = cell(x, (c, h))
        kernel, bias = tf.trainable_variables()
        assert kernel.op.name == "lstm_cell/kernel"
        zero = tf.zeros([4])
        op = tf2.raw_ops.LSTMBlockCell(
            x=x, cs_prev=c, h_prev=h, w=kernel, b=bias, wci=zero, wcf=zero, wco=zero, forget_bias=0.5, cell_clip=-1.0
        )
        return new_c, new_h, op.cs, op.h

    new_c, new_h, op_c, op_h = value(build)
    np.testing.assert_allclose(new_c, op_c, rtol=1e-5)
    np.testing.assert_allclose(new_h, op_h, rtol=1e-5)
    with pytest.raises(InvalidArgument, match="use_peephole is not restored"):
        tf.contrib.rnn.LSTMBlockCell(4, use_peephole=True)


def test_batch_and_time_change_places() -> None:
    np.testing.assert_array_equal(value(lambda: tf.contrib.rnn.transpose_batch_time(STEPS)), STEPS.swapaxes(0, 1))
