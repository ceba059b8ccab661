"""Queues that can never deliver, and queues that deliver something else than one would think."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tests.pipelines import labels, numbers, tf1
from tests.startcheck.running import check, kinds, refused, the_finding
from tfqueue.errors import InvalidArgument, PipelineFailed
from tfqueue.initialize import initialize_all
from tfqueue.startcheck import check_before_start


@pytest.fixture
def path(tmp_path):
    return numbers(tmp_path / "numbers.tfrecord")


def filled(queue, *values):
    """Let a runner put the same element into a queue, again and again."""
    tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, [queue.enqueue(values)]))
    return queue


# -- what cannot work: each of these programs was seen to wait for ever, or to fail, in TensorFlow --------------------


def test_an_empty_list_would_be_waited_for_for_ever() -> None:
    failed = refused(lambda: tf1.train.slice_input_producer([tf.zeros([0], tf.int32), tf.zeros([0])]))
    assert failed.cause_name == "no-elements"
    assert "an empty list" in str(failed)
    assert failed.source.startswith("test_queues.py")


def test_a_tensor_with_fewer_rows_than_the_first() -> None:
    failed = refused(lambda: tf1.train.slice_input_producer([[1, 2, 3], [1, 2]]))
    assert failed.cause_name == "unequal-lengths"
    assert "2 and 3 rows; it counts to 3" in str(failed)


def test_a_tensor_with_more_rows_than_the_first() -> None:
    kind, words = the_finding(lambda: tf1.train.slice_input_producer([[1, 2], [1, 2, 3]]))
    assert kind == "unequal-lengths"
    assert "behind row 2 of the longer ones are never used" in words


def test_equal_rows_and_a_part_of_a_table() -> None:
    assert kinds(lambda: tf1.train.slice_input_producer([[1, 2], [3, 4]])) == []
    assert kinds(lambda: tf.gather([1, 2, 3], tf1.train.range_input_producer(2).dequeue())) == []


def test_no_room() -> None:
    assert refused(lambda: filled(tf1.FIFOQueue(0, tf.float32, [[]]), 1.0).dequeue()).cause_name == "capacity"


@pytest.mark.parametrize("minimum", [5, 9])
def test_no_room_beside_min_after_dequeue(minimum) -> None:
    failed = refused(lambda: filled(tf1.RandomShuffleQueue(5, minimum, tf.float32, [[]]), 1.0).dequeue())
    assert failed.cause_name == "capacity"
    assert f"must keep {minimum} elements (min_after_dequeue), and has room for 5 (capacity)" in str(failed)


@pytest.mark.parametrize("take", ["dequeue_many", "dequeue_up_to"])
def test_a_batch_larger_than_a_priority_queue(take) -> None:
    def build_fn():
        queue = filled(tf1.PriorityQueue(5, [tf.float32], [[]]), tf.constant(1, tf.int64), 1.0)
        return getattr(queue, take)(8)

    failed = refused(build_fn)
    assert failed.cause_name == "capacity"
    assert "a batch of 8 is taken from the priority queue" in str(failed)


@pytest.mark.parametrize("make", [tf1.FIFOQueue, tf1.PaddingFIFOQueue])
def test_other_queues_gather_a_batch_that_is_larger_than_they_are(make) -> None:
    assert kinds(lambda: filled(make(5, tf.float32, [[]]), 1.0).dequeue_many(8)) == []


def test_a_placeholder_before_a_runner() -> None:
    failed = refused(lambda: tf1.train.batch([tf1.placeholder(tf.float32, [3], "pixels") * 2], 2))
    assert failed.cause_name == "placeholder"
    assert "'pixels'" in str(failed)


def test_a_runner_that_feeds_its_placeholder_itself() -> None:
    class Feeding(tf1.train.QueueRunner):
        pass

    def build_fn():
        queue = tf1.FIFOQueue(5, tf.float32, [[]])
        tf1.train.add_queue_runner(Feeding(queue, [queue.enqueue(tf1.placeholder(tf.float32, []))]))
        return queue.dequeue()

    assert kinds(build_fn) == []


# -- what surprises ----------------------------------------------------------------------------------------------------


def shuffled(capacity, minimum, batch_size=4):
    return lambda: tf1.train.shuffle_batch([tf1.random_uniform([])], batch_size, capacity, minimum)


def test_less_room_than_a_batch_beside_min_after_dequeue() -> None:
    kind, words = the_finding(shuffled(12, 10))
    assert kind == "small-capacity"
    assert "room for 12 elements: beside the 10 of min_after_dequeue that is less than one batch of 4" in words


@pytest.mark.parametrize("capacity", [14, 100, 11])
def test_room_enough_or_the_one_element_of_a_repeatable_order(capacity) -> None:
    assert kinds(shuffled(capacity, 10)) == []


def pairs(num_threads, **options):
    def build_fn():
        names = tf1.train.input_producer(tf.range(9), **options).dequeue()
        numbers = tf1.train.input_producer(tf.range(9), **options).dequeue()
        return tf1.train.batch([names, numbers], 3, num_threads=num_threads)

    return build_fn


def test_two_streams_paired_by_several_threads() -> None:
    found = {finding.kind: str(finding) for finding in check(pairs(8, shuffle=False))}
    assert "8 threads run one enqueue that takes from 2 streams" in found["mispaired"]


@pytest.mark.parametrize("options", [{"shuffle": False}, {"shuffle": True, "seed": 3}])
def test_two_streams_paired_by_one_thread(options) -> None:
    assert kinds(pairs(1, **options)) == []


def test_two_streams_shuffled_each_in_its_own_way() -> None:
    kind, words = the_finding(pairs(1, shuffle=True))
    assert kind == "mispaired"
    assert "the same seed for each" in words


def test_threads_where_nothing_is_shuffled(path) -> None:
    ((kind, words),) = [(found.kind, found.message) for found in check(labels([path], num_threads=3))]
    assert kind == "order"
    assert "nothing is shuffled, but 3 threads fill queue 'batch/fifo_queue'" in words


@pytest.mark.parametrize("options", [{"num_threads": 1}, {"num_threads": 3, "shuffle": True}])
def test_one_thread_or_shuffled_files(path, options) -> None:
    assert kinds(labels([path], **options)) == []


def test_a_queue_that_nothing_fills() -> None:
    kind, words = the_finding(lambda: tf1.FIFOQueue(3, tf.int32, [[]], name="lonely").dequeue())
    assert kind == "not-filled"
    assert "'lonely'" in words


def test_a_forgotten_runner() -> None:
    def build_fn():
        queue = tf1.FIFOQueue(3, tf.int32, [[]])
        queue.enqueue(tf1.train.range_input_producer(5).dequeue(), name="put")
        return queue.dequeue()

    kind, words = the_finding(build_fn)
    assert kind == "not-filled"
    assert "no queue runner fills it: unless a thread of your own runs 'put'" in words


def test_a_queue_that_a_thread_feeds() -> None:
    def build_fn():
        queue = tf1.FIFOQueue(3, tf.int32, [[]])
        queue.enqueue(tf1.placeholder(tf.int32, []))
        return queue.dequeue()

    assert kinds(build_fn) == []


# -- in a session of the user's ----------------------------------------------------------------------------------------


def test_without_fetches_and_with_a_finalized_graph(path) -> None:
    graph = tf.Graph()
    with graph.as_default():
        labels([path, path + ".gone"])()
    with tf1.Session(graph=graph) as session:
        initialize_all(graph, session)
        graph.finalize()
        with pytest.raises(PipelineFailed, match="there is no such file"):
            check_before_start(graph, session)


def test_fetches_of_another_graph_are_refused(path) -> None:
    graph, other = tf.Graph(), tf.Graph()
    with other.as_default():
        foreign = tf.constant(1)
    with graph.as_default():
        labels([path + ".gone"])()
    with tf1.Session(graph=graph) as session, pytest.raises(InvalidArgument):
        check_before_start(graph, session, fetches=foreign)
