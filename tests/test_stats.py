"""The accounts of a run are those of what really happened."""

from __future__ import annotations

import json

import pytest
import tensorflow as tf

import tfqueue
from tests.pipelines import LABEL, labels, numbers, parse, read, tf1
from tfqueue.stats import Accounts


@pytest.fixture
def path(tmp_path):
    return numbers(tmp_path / "numbers.tfrecord")


def run(build_fn, use=list):
    with tfqueue.QueuePipeline(build_fn, check=False) as pipeline:
        use(pipeline)
    return pipeline.stats


def test_what_the_last_partial_batch_drops(path) -> None:
    stats = run(labels([path], 8, num_epochs=3))  # 60 records
    assert (stats.steps, stats.delivered, stats.dropped, stats.fetched_elsewhere) == (7, 56, 4, 0)
    assert stats.ended
    assert "batch size 8, no allow_smaller_final_batch" in stats.dropped_why


def test_a_smaller_final_batch_drops_nothing(path) -> None:
    stats = run(labels([path], 8, allow_smaller_final_batch=True))
    assert (stats.steps, stats.delivered, stats.dropped, stats.dropped_why) == (3, 20, 0, None)


def test_stages_count_records_and_producers_count_epochs(path) -> None:
    stats = run(labels([path, path], 10, num_epochs=3, num_threads=2))
    producer, stage = stats.stages
    assert (producer.epochs, producer.runs, producer.records) == (True, 3, 6)
    assert (stage.epochs, stage.runs, stage.records, stage.threads, stage.alive) == (False, 120, 120, 2, 0)
    assert stage.source.startswith("pipelines.py:")


def test_records_fetched_by_another_run_are_found(path) -> None:
    def use(pipeline) -> None:
        next(pipeline)
        pipeline.session.run(pipeline.fetches)
        list(pipeline)

    stats = run(labels([path], 5), use)
    assert (stats.steps, stats.delivered, stats.fetched_elsewhere) == (3, 15, 5)


def test_what_cannot_be_counted_is_not_guessed(path) -> None:
    def filtered():
        label = parse([path], LABEL)["label"]
        return tf1.train.maybe_batch([label], label > 9, 5)

    stats = run(filtered)
    assert (stats.delivered, stats.dropped, stats.fetched_elsewhere) == (10, 0, None)
    assert stats.stages[-1].records is None
    stats = run(lambda: read([path]))
    assert (stats.steps, stats.delivered, stats.dropped) == (20, None, None)


def test_before_the_end_nothing_counts_as_dropped(path) -> None:
    stats = run(labels([path], 8), next)
    assert (stats.steps, stats.ended, stats.dropped, stats.fetched_elsewhere) == (1, False, None, None)


def test_variable_batches_are_counted_by_their_rows(path) -> None:
    def build_fn():
        _, lines = tf1.TFRecordReader().read_up_to(
            tf1.train.string_input_producer([path], num_epochs=1, shuffle=False), 3
        )
        sparse = tf.sparse.from_dense(tf1.reshape(tf1.decode_raw(tf1.substr(lines, 0, 1), tf.uint8), [-1, 1]))
        return tf1.train.batch([sparse], 6, enqueue_many=True, allow_smaller_final_batch=True)

    assert run(build_fn).delivered == 20


def test_queues_are_looked_at_at_the_end_at_least(path) -> None:
    stats = run(labels([path], 8))
    queue = stats.queues[-1]
    assert (queue.name, queue.capacity, queue.size, queue.fullest) == ("batch/fifo_queue", 32, 4, queue.fullest)
    assert 4 <= queue.fullest <= 20
    assert stats.history[-1][1][-1] == 4


def test_text_and_json(path) -> None:
    stats = run(labels([path], 8, num_epochs=2))
    text = str(stats)
    assert "delivered: 5 steps, 40 records, to the end of the data" in text
    assert "2 epochs" in text
    assert json.loads(json.dumps(stats.to_dict()))["delivered"] == 40


def test_rows_are_counted_where_a_tensor_has_them(path) -> None:
    def mean_first():
        batch = labels([path], 8, allow_smaller_final_batch=True)()
        return {"mean": tf.reduce_mean(batch), "labels": [tf.cast(batch, tf.float32)]}

    stats = run(mean_first)
    assert (stats.delivered, stats.dropped, stats.fetched_elsewhere) == (20, 0, 0)
    stats = run(lambda: tf.reduce_mean(labels([path], 8, allow_smaller_final_batch=True)()))
    assert (stats.steps, stats.delivered, stats.fetched_elsewhere) == (3, None, None)


def test_a_runner_with_a_loop_of_its_own_is_not_counted() -> None:
    class Feeder(tf1.train.QueueRunner):
        def _run(self, sess, enqueue_op, coord=None):
            for _ in range(5):
                sess.run(enqueue_op)
            sess.run(self.close_op)

    def build_fn():
        queue = tf1.FIFOQueue(9, tf.int32, [[]])
        tf1.train.add_queue_runner(Feeder(queue, [queue.enqueue(1)]))
        return queue.dequeue_up_to(5)

    stats = run(build_fn)
    assert (stats.delivered, stats.fetched_elsewhere, stats.stages[0].records) == (5, None, None)


def test_the_accounts_of_a_session_of_ones_own_stay(path) -> None:
    with tf.Graph().as_default(), tf1.Session() as session:
        batch = labels([path], 8)()
        with tfqueue.queue_runners(session) as coord:
            while not coord.should_stop():
                session.run(batch)
    assert coord.stats.stages[-1].records == 20
    assert "delivered" not in str(coord.stats)


def test_an_engine_without_threads_shows_no_counts_and_no_ops_of_its_own(path) -> None:
    with tfqueue.QueuePipeline(labels([path], 8), engine="lockstep", check=False) as pipeline:
        assert sum(len(batch) for batch in pipeline) == 16
    assert [stage.name for stage in pipeline.stats.stages] == [
        "input_producer/input_producer_EnqueueMany",
        "batch/fifo_queue_enqueue",
    ]
    assert "0/0" not in str(pipeline.stats)
    assert "epoch" not in str(pipeline.stats)


def test_the_waiting_of_every_step_of_a_short_run(path) -> None:
    stats = run(labels([path], 5))
    assert [group.steps for group in stats.step_history] == [1, 1, 1, 1]
    assert sum(group.seconds for group in stats.step_history) == pytest.approx(stats.step_seconds)
    assert max(group.longest for group in stats.step_history) == stats.longest_step_seconds
    at = [group.at for group in stats.step_history]
    assert at == sorted(at)
    json.dumps(stats.to_dict())


@pytest.mark.parametrize("steps", [1, 999, 1000, 1001, 2500, 100_001])
def test_the_waiting_of_a_long_run_is_kept_in_groups(steps) -> None:
    topology = tfqueue.trace(lambda: tf.constant(1))
    accounts = Accounts(runners=None)  # steps alone ask nothing of them
    for number in range(steps):
        accounts.stepped(number % 7 + 1.0, 1)
    groups = accounts.stats(topology).step_history
    assert sum(group.steps for group in groups) == steps
    assert sum(group.seconds for group in groups) == accounts.step_seconds
    assert max(group.longest for group in groups) == accounts.longest
    assert len(groups) <= 1000
    assert len({group.steps for group in groups[:-1]}) <= 1
    assert [group.at for group in groups] == sorted(group.at for group in groups)


def test_a_run_that_is_left_at_once_has_sizes(path) -> None:
    with tfqueue.QueuePipeline(labels([path], 5, num_epochs=None)) as pipeline:
        next(pipeline)
    assert [queue.name for queue in pipeline.stats.queues] == ["input_producer", "batch/fifo_queue"]
