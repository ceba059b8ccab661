"""The losses of sequences of tf.contrib.seq2seq, tf.contrib.legacy_seq2seq and tf.nn.seq2seq."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfqueue.errors import InvalidArgument

tf1 = tf.compat.v1

_TINY = 1e-12  # against a division by 0 where all weights are 0

LossFunction = Callable[..., Any]


def sequence_loss(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: LossFunction | None = None,
    name: str | None = None,
) -> Any:
    """The weighted cross-entropy of a batch of sequences, as tf.contrib.seq2seq had it.

    Args:
        logits: [batch, steps, classes] floats.
        targets: [batch, steps] integers.
        weights: [batch, steps] floats, 0 where a sequence has ended.
        average_across_timesteps: Divide by the weights of the steps.
        average_across_batch: Divide by the weights of the batch.
        softmax_loss_function: Called as (labels=, logits=) in place of the sparse softmax cross-entropy.
        name: A name for the ops.

    Returns:
        A scalar; [steps] with an average over the batch only, [batch] over the steps only, [batch, steps] without both.
    """
    with tf1.name_scope(name, "sequence_loss", [logits, targets, weights]):
        logits, targets, weights = map(tf.convert_to_tensor, (logits, targets, weights))
        for argument, tensor, rank in (("logits", logits, 3), ("targets", targets, 2), ("weights", weights, 2)):
            if tensor.shape.rank not in (rank, None):
                raise InvalidArgument(f"{argument} must have {rank} dimensions; got the shape {tensor.shape}")
        classes = tf.shape(logits)[2]
        flat = _cross_entropy(softmax_loss_function, tf.reshape(targets, [-1]), tf.reshape(logits, [-1, classes]))
        losses = tf.reshape(flat, tf.shape(targets)) * weights
        losses.set_shape(targets.shape)
        if average_across_timesteps and average_across_batch:
            return tf.reduce_sum(losses) / (tf.reduce_sum(weights) + _TINY)
        if not average_across_timesteps and not average_across_batch:
            return losses
        axis = 1 if average_across_timesteps else 0
        return tf.reduce_sum(losses, axis) / (tf.reduce_sum(weights, axis) + _TINY)


def sequence_loss_by_example(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    softmax_loss_function: LossFunction | None = None,
    name: str | None = None,
) -> Any:
    """The weighted cross-entropy of each sequence, a vector [batch]; of lists with an entry for each step.

    Args:
        logits: [batch, classes] floats for each step.
        targets: [batch] integers for each step.
        weights: [batch] floats for each step.
        average_across_timesteps: Divide by the weights of the steps.
        softmax_loss_function: As of `sequence_loss`.
        name: A name for the ops.

    Raises:
        InvalidArgument: The lists have different lengths.
    """
    if not len(logits) == len(targets) == len(weights):
        raise InvalidArgument(
            f"logits, targets and weights must be lists of the same length; got {len(logits)}, {len(targets)}, "
            f"{len(weights)}"
        )
    with tf1.name_scope(name, "sequence_loss_by_example", [*logits, *targets, *weights]):
        steps = [
            _cross_entropy(softmax_loss_function, tf.reshape(target, [-1]), logit) * weight
            for logit, target, weight in zip(logits, targets, weights, strict=True)
        ]
        losses = tf.add_n(steps)
        return losses / (tf.add_n(list(weights)) + _TINY) if average_across_timesteps else losses


def sequence_loss_of_lists(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: LossFunction | None = None,
    name: str | None = None,
) -> Any:
    """The sum, or the average over the batch, of `sequence_loss_by_example`: a scalar."""
    with tf1.name_scope(name, "sequence_loss", [*logits, *targets, *weights]):
        losses = sequence_loss_by_example(logits, targets, weights, average_across_timesteps, softmax_loss_function)
        total = tf.reduce_sum(losses)
        return total / tf.cast(tf.shape(targets[0])[0], total.dtype) if average_across_batch else total


def _cross_entropy(function: LossFunction | None, labels: Any, logits: Any) -> Any:
    function = function or tf1.nn.sparse_softmax_cross_entropy_with_logits
    return function(labels=labels, logits=logits)
