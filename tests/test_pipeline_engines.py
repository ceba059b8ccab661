"""QueuePipeline and queue_runners with the other engines."""

from __future__ import annotations

import threading
from collections import namedtuple

import numpy as np
import pytest
import tensorflow as tf

import tfqueue
from tests.pipelines import LABEL, graph_of, labels, numbers, parse, tf1
from tfqueue.errors import PipelineFailed

Pair = namedtuple("Pair", "image label")


@pytest.fixture
def path(tmp_path):
    return numbers(tmp_path / "numbers.tfrecord")


@pytest.fixture(autouse=True)
def no_thread_stays_behind():
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) - before == set()


# -- lockstep ---------------------------------------------------------------------------------------------------------


def shuffled(path):
    def build_fn():
        label = parse([path], LABEL, num_epochs=3)["label"]
        return tf1.train.shuffle_batch([label], 6, capacity=15, min_after_dequeue=5, seed=3)

    return build_fn


def test_lockstep_gives_the_same_batches_every_time(path) -> None:
    runs = []
    for _ in range(2):
        with tfqueue.QueuePipeline(shuffled(path), engine="lockstep") as pipeline:
            runs.append(np.stack(list(pipeline)).tolist())
        assert (pipeline.stats.delivered, pipeline.stats.dropped, pipeline.stats.fetched_elsewhere) == (60, 0, None)
    assert runs[0] == runs[1]
    assert sorted(np.ravel(runs[0])) == sorted([*range(20)] * 3)


def test_lockstep_in_a_session_of_ones_own_gives_the_same(path) -> None:
    with tfqueue.QueuePipeline(shuffled(path), engine="lockstep") as pipeline:
        expected = [batch.tolist() for batch in pipeline]
    graph, batch = graph_of(shuffled(path))
    got = []
    with tf1.Session(graph=graph) as session:
        with tfqueue.queue_runners(session, engine="lockstep") as coord:
            while not coord.should_stop():
                got.append(session.run(batch).tolist())
        assert "run" not in vars(session)  # the session is as it was
    assert got == expected


def test_lockstep_names_the_true_cause(path) -> None:
    pipeline = tfqueue.QueuePipeline(labels([path, path + ".gone"]), engine="lockstep", check=False)
    with pytest.raises(PipelineFailed) as caught, pipeline:
        list(pipeline)
    assert caught.value.cause_name == "missing-file"
    assert caught.value.file == path + ".gone"


# -- tfdata -----------------------------------------------------------------------------------------------------------


def test_tfdata_gives_the_same_batches_in_the_same_structure(path) -> None:
    def build_fn():
        features = parse([path], LABEL | {"box": tf1.VarLenFeature(tf.float32)}, num_epochs=2)
        batch = tf1.train.batch(features, 6)
        return Pair([batch["label"]], {"box": batch["box"]})

    with tfqueue.QueuePipeline(build_fn) as threads, tfqueue.QueuePipeline(build_fn, engine="tfdata") as tfdata:
        pairs = list(zip(threads, tfdata, strict=True))
    assert len(pairs) == 6
    for ours, theirs in pairs:
        assert isinstance(theirs, Pair)
        assert isinstance(theirs.label["box"], tf1.SparseTensorValue)
        np.testing.assert_array_equal(ours.image[0], theirs.image[0])
        np.testing.assert_array_equal(ours.label["box"].values, theirs.label["box"].values)
    assert (tfdata.stats.delivered, tfdata.stats.steps) == (36, 6)


def test_tfdata_delivers_every_record_of_a_shuffled_pipeline_once_an_epoch(path) -> None:
    with tfqueue.QueuePipeline(shuffled(path), engine="tfdata") as pipeline:
        got = np.concatenate(list(pipeline)).tolist()
    assert sorted(got) == sorted([*range(20)] * 3)


def test_tfdata_names_the_true_cause(path) -> None:
    pipeline = tfqueue.QueuePipeline(labels([path, path + ".gone"]), engine="tfdata", check=False)
    with pytest.raises(PipelineFailed, match="No such file"), pipeline:
        list(pipeline)


def test_tfdata_says_what_it_cannot_lower() -> None:
    def build_fn():
        queue = tf1.FIFOQueue(3, tf.int32, [[]], name="mine")
        queue.enqueue(tf1.placeholder(tf.int32, []))
        return queue.dequeue()

    with pytest.raises(tfqueue.errors.CannotLower), tfqueue.QueuePipeline(build_fn, engine="tfdata", check=False):
        pass
