"""tf.contrib.training's samplers: batches in which elements are left out, or come several times, by chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfqueue.errors import InvalidArgument

tf1 = tf.compat.v1

# The counts with which the estimate of the classes' shares begins, so that the first examples do not decide it.
_SEEN_BEFORE = 10


def rejection_sample(
    tensors: Any,
    accept_prob_fn: Callable[[list[Any]], Any],
    batch_size: int,
    queue_threads: int = 1,
    enqueue_many: bool = False,
    prebatch_capacity: int = 16,
    prebatch_threads: int = 1,
    runtime_checks: bool = False,
    name: str | None = None,
) -> list[Any]:
    """Batches of the elements that are accepted, each by chance of its own.

    Args:
        tensors: A list of tensors: one element, or many along the first dimension with ``enqueue_many``.
        accept_prob_fn: From the list of one element's tensors to a scalar in [0, 1], the chance to be kept.
        batch_size: Accepted elements of a batch.
        queue_threads: Threads that draw and fill the batch queue.
        enqueue_many: Whether ``tensors`` holds many elements.
        prebatch_capacity: Elements that wait to be drawn, with ``enqueue_many``.
        prebatch_threads: Threads that take ``tensors`` apart, with ``enqueue_many``.
        runtime_checks: Assert in the graph that the chances are in [0, 1].
        name: A name for the ops.

    Returns:
        A list of tensors with a first dimension of ``batch_size``.
    """
    parts = _list_of(tensors)
    with tf1.name_scope(name, "rejection_sample", parts):
        if enqueue_many:
            parts = _one_by_one(parts, prebatch_capacity, prebatch_threads)
        chance = tf.convert_to_tensor(accept_prob_fn(parts))
        chance.shape.assert_has_rank(0)
        if runtime_checks:
            checks = [tf1.assert_less_equal(0.0, chance), tf1.assert_less_equal(chance, 1.0)]
            with tf.control_dependencies(checks):
                chance = tf.identity(chance)
        return _accepted(parts, chance, batch_size, queue_threads)


def stratified_sample(
    tensors: Any,
    labels: Any,
    target_probs: Any,
    batch_size: int,
    init_probs: Any = None,
    enqueue_many: bool = False,
    queue_capacity: int = 16,
    threads_per_queue: int = 1,
    name: str | None = None,
) -> tuple[list[Any], Any]:
    """Batches in which class c has the share ``target_probs[c]``; of classes that are too frequent, some are dropped.

    An example of class c is kept with chance r(c) / max r, where r = target / initial share.

    Args:
        tensors: A list of tensors: one element, or many along the first dimension with ``enqueue_many``.
        labels: The class of the element: an integer scalar, or a vector with ``enqueue_many``.
        target_probs: The wanted shares of the classes, which sum to 1.
        batch_size: Elements of a batch.
        init_probs: The shares of the classes in the data; None: counted while the data flows, in a variable that must
            be initialised.
        enqueue_many: Whether ``tensors`` and ``labels`` hold many elements.
        queue_capacity: Elements that wait to be drawn.
        threads_per_queue: Threads of each of the two queues.
        name: A name for the ops.

    Returns:
        The list of batched tensors, and the batched labels.

    Raises:
        InvalidArgument: Shares that do not sum to 1 or are not the same classes, a class that is wanted and does not
            occur, or labels of the wrong rank.
    """
    parts = _list_of(tensors)
    labels = tf.convert_to_tensor(labels)
    if not labels.dtype.is_integer:
        raise InvalidArgument(f"labels must be integers, the number of the class; got {labels.dtype.name}")
    if labels.shape.rank is not None and labels.shape.rank != int(enqueue_many):
        wanted = "a vector" if enqueue_many else "a scalar"
        raise InvalidArgument(f"labels must be {wanted} with enqueue_many={enqueue_many}; got shape {labels.shape}")
    target = tf.convert_to_tensor(target_probs, tf.float32)
    initial = None if init_probs is None else tf.convert_to_tensor(init_probs, tf.float32)
    _check_shares(target, initial)
    with tf1.name_scope(name, "stratified_sample", [*parts, labels]):
        labels = _checked(labels, target)
        if initial is None:
            initial = _shares_so_far(labels, target.shape[0])
        chances = _chances(target, initial)
        if not enqueue_many:
            parts, labels = [part[tf.newaxis] for part in parts], labels[tf.newaxis]
        rows = tf.shape(labels)
        # The chances travel beside each element: the estimate of a later moment would not be the one it was read with.
        each = tf.broadcast_to(chances, tf.concat([rows, tf.shape(chances)], axis=0))
        each.set_shape(tf.TensorShape([labels.shape[0]]).concatenate(chances.shape))
        *parts, label, own = _one_by_one([*parts, labels, each], queue_capacity, threads_per_queue)
        *batch, label_batch = _accepted([*parts, label], own[label], batch_size, threads_per_queue)
        return batch, label_batch


def resample_at_rate(
    inputs: Any, rates: Any, scope: str | None = None, seed: int | None = None, back_prop: bool = False
) -> list[Any]:
    """The rows of ``inputs``, row i a number of times that is drawn from the Poisson distribution of mean ``rates[i]``.

    Args:
        inputs: A list of tensors with the same first dimension.
        rates: A vector of floats that are not negative: how often each row comes on the average.
        scope: A name for the ops.
        seed: Of the draws.
        back_prop: Whether gradients go through to ``inputs``.

    Returns:
        A list of tensors whose first dimension is unknown, and may be 0; copies of a row stand side by side.

    Raises:
        InvalidArgument: ``inputs`` is no list, or ``rates`` is no vector of floats.
    """
    parts = _list_of(inputs)
    with tf1.name_scope(scope, "resample_at_rate", [*parts, rates]):
        rates = tf.convert_to_tensor(rates, name="rates")
        if not rates.dtype.is_floating or not rates.shape.is_compatible_with([None]):
            raise InvalidArgument(f"rates must be a vector of floats; got {rates.dtype.name} of shape {rates.shape}")
        counts = tf1.random_poisson(rates, [], dtype=rates.dtype, seed=seed)
        rows = tf.repeat(tf.range(tf.size(rates)), tf.cast(counts, tf.int32))
        chosen = [tf.gather(part, rows) for part in parts]
        return chosen if back_prop else [tf.stop_gradient(part) for part in chosen]


def weighted_resample(
    inputs: Any,
    weights: Any,
    overall_rate: Any,
    scope: str | None = None,
    mean_decay: float = 0.999,
    warmup: int = 10,
    seed: int | None = None,
) -> tuple[list[Any], Any]:
    """The rows of ``inputs``, each as often as its weight says, and ``overall_rate`` times on the average of all calls.

    The mean weight, by which the weights are divided, is estimated in two local variables that must be initialised: as
    the mean of all batches for the first ``warmup`` of them, then with the decay ``mean_decay``.

    Args:
        inputs: A list of tensors with the same first dimension.
        weights: A vector of float32 that are not negative.
        overall_rate: How often a row of mean weight comes on the average.
        scope: A name for the ops and variables.
        mean_decay: What is kept of the estimate from batch to batch.
        warmup: Batches during which the estimate is their mean.
        seed: Of the draws.

    Returns:
        The list of `resample_at_rate`, and the rate with which each of its rows was drawn.
    """
    parts = _list_of(inputs)
    with tf1.variable_scope(scope, "weighted_resample", [*parts, weights]):
        weights = tf.convert_to_tensor(weights, tf.float32, name="weights")
        with tf1.variable_scope("estimate_mean"):
            so_far = tf1.get_local_variable("resample_count", initializer=tf.constant(0))
            estimate = tf1.get_local_variable("estimated_mean", initializer=tf.constant(0.0))
        count = tf1.assign_add(so_far, 1, use_locking=True)
        fresh = (count - 1) / tf.minimum(count, warmup)  # of the first batches, all have the same part in the mean
        decay = tf.minimum(tf.cast(fresh, tf.float32), mean_decay)
        mean = tf1.assign(estimate, estimate * decay + tf.reduce_mean(weights) * (1 - decay))
        rates = weights * overall_rate / mean
        *chosen, effective = resample_at_rate([*parts, rates], rates, seed=seed)
        return chosen, effective


def _list_of(tensors: Any) -> list[Any]:
    if isinstance(tensors, str | bytes) or not isinstance(tensors, Sequence):
        raise InvalidArgument(f"tensors must be a list of tensors; got {type(tensors).__name__}")
    return [tf.convert_to_tensor(tensor) for tensor in tensors]


def _one_by_one(parts: Sequence[Any], capacity: int, threads: int) -> list[Any]:
    """One element at a time from tensors that hold many."""
    taken = tf1.train.batch(list(parts), batch_size=1, num_threads=threads, capacity=capacity, enqueue_many=True)
    return [part[0] for part in (taken if isinstance(taken, list) else [taken])]


def _accepted(parts: Sequence[Any], chance: Any, batch_size: int, threads: int) -> list[Any]:
    keep = tf1.random_uniform([], dtype=chance.dtype) < chance
    capacity = 2 * batch_size if isinstance(batch_size, int) else 32
    batch = tf1.train.maybe_batch(list(parts), keep, batch_size, num_threads=threads, capacity=capacity)
    return list(batch) if isinstance(batch, list | tuple) else [batch]


def _check_shares(target: Any, initial: Any) -> None:
    known = tf.get_static_value(target)
    known_initial = None if initial is None else tf.get_static_value(initial)
    for argument, values in (("target_probs", known), ("init_probs", known_initial)):
        if values is not None and (values.ndim != 1 or np.any(values < 0) or abs(float(values.sum()) - 1) > 1e-4):
            raise InvalidArgument(f"{argument} must be a vector of shares that sum to 1; got {values.tolist()}")
    if initial is not None and not target.shape.is_compatible_with(initial.shape):
        raise InvalidArgument(
            f"target_probs has shape {target.shape} and init_probs {initial.shape}; one share a class"
        )
    if known is not None and known_initial is not None and np.any((known_initial == 0) & (known > 0)):
        classes = np.flatnonzero((known_initial == 0) & (known > 0)).tolist()
        raise InvalidArgument(f"classes {classes} have a target share and do not occur (init_probs is 0)")


def _checked(labels: Any, target: Any) -> Any:
    classes = tf.cast(tf.size(target), labels.dtype)
    checks = [
        tf1.assert_non_negative(labels, message="labels must be numbers of classes"),
        tf1.assert_less(labels, classes, message="labels must be smaller than the number of target_probs"),
    ]
    with tf.control_dependencies(checks):
        return tf.identity(labels)


def _shares_so_far(labels: Any, classes: int) -> Any:
    """The share of each class among what has been read, counted with every read."""
    with tf1.variable_scope(None, default_name="class_counts"):
        seen = tf1.get_variable(
            "seen",
            dtype=tf.int64,
            initializer=tf.constant([_SEEN_BEFORE] * classes, tf.int64),
            trainable=False,
        )
    new = tf.reduce_sum(tf.one_hot(tf.reshape(labels, [-1]), classes, dtype=tf.int64), axis=0)
    counts = tf.cast(tf1.assign_add(seen, new, use_locking=True), tf.float32)
    return counts / tf.reduce_sum(counts)


def _chances(target: Any, initial: Any) -> Any:
    ratio = tf.math.divide_no_nan(target, initial)
    return ratio / tf.reduce_max(ratio)
