"""Runs build functions and gallery programs in lockstep, and compares batches bit by bit."""

from __future__ import annotations

import threading

import numpy as np
import tensorflow as tf

from tfqueue.engines.lockstep import Lockstep
from tfqueue.engines.queue_ops import apart, queue_operations

tf1 = tf.compat.v1


def lockstep(build_fn, steps=None, program=None):
    """The batches of a build function (and, of a gallery program, what feeds it) in the canonical schedule."""
    graph = tf.Graph()
    with graph.as_default():
        fetches = build_fn()
    engine = Lockstep(graph)
    with apart(graph):
        initializers = [
            tf1.global_variables_initializer(),
            tf1.local_variables_initializer(),
            tf1.tables_initializer(),
        ]
        cancel = [
            tf.raw_ops.QueueCloseV2(handle=op.outputs[0], cancel_pending_enqueues=True)
            for op in queue_operations(graph)
        ]
    batches = []
    with tf1.Session(graph=graph) as session:
        session.run(initializers)
        coord = tf1.train.Coordinator()
        engine.start(session, coord)
        feeders = []
        if program is not None:
            for feeder in program.feeders:
                thread = threading.Thread(target=_feed, args=(feeder, session, coord), daemon=True)
                thread.start()
                feeders.append(thread)
        with engine.attached():
            try:
                while steps is None or len(batches) < steps:
                    feed = None
                    if program is not None:
                        if program.before_step is not None:
                            program.before_step(session, len(batches))
                        if program.feed is not None:
                            feed = dict(program.feed(len(batches)))
                    batches.append(session.run(fetches, feed_dict=feed))
            except tf.errors.OutOfRangeError:
                pass
        coord.request_stop()
        session.run(cancel)
        assert engine.stop() == []
        for thread in feeders:
            thread.join(10)
            assert not thread.is_alive()
    return batches


def _feed(feeder, session, coord):
    with coord.stop_on_exception():
        feeder(session, coord)


def leaves(value):
    """The arrays of a batch, with their paths."""
    if isinstance(value, dict):
        return [(f"[{key!r}]{path}", leaf) for key in sorted(value) for path, leaf in leaves(value[key])]
    if isinstance(value, (list, tuple)):
        return [(f"[{index}]{path}", leaf) for index, item in enumerate(value) for path, leaf in leaves(item)]
    return [("", np.asarray(value))]


def assert_same_batches(ours, theirs):
    """Both lists hold bit-equal batches, in the same order, of the same dtypes and shapes."""
    assert len(ours) == len(theirs)
    for number, (left, right) in enumerate(zip(ours, theirs, strict=True)):
        ours_leaves, their_leaves = leaves(left), leaves(right)
        assert [path for path, _ in ours_leaves] == [path for path, _ in their_leaves]
        for (path, a), (_, b) in zip(ours_leaves, their_leaves, strict=True):
            where = f"batch {number}{path}"
            assert (a.dtype, a.shape) == (b.dtype, b.shape), where
            equal = (a == b).all() if a.dtype == object else a.tobytes() == b.tobytes()
            assert equal, f"{where}:\n{a}\n{b}"


def numpy_batches(dataset, steps=None):
    """The elements of a dataset as numpy, SparseTensors as SparseTensorValues."""
    return [_as_numpy(element) for element in (dataset if steps is None else dataset.take(steps))]


def _as_numpy(value):
    if isinstance(value, tf.SparseTensor):
        return tf1.SparseTensorValue(value.indices.numpy(), value.values.numpy(), value.dense_shape.numpy())
    if isinstance(value, dict):
        return {key: _as_numpy(item) for key, item in value.items()}
    if isinstance(value, tuple):
        items = [_as_numpy(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value.numpy()
