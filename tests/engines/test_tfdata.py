"""The lowered dataset against lockstep: bit-equal with replayed shuffles, the same records with native ones."""

from __future__ import annotations

from collections import Counter, namedtuple
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import assume, given, settings

from tests import gallery
from tests.engines import pipelines
from tests.engines.running import assert_same_batches, leaves, lockstep, numpy_batches
from tests.topology import builders
from tfqueue.engines.tfdata import to_dataset
from tfqueue.errors import CannotLower, InvalidArgument

tf1 = tf.compat.v1

# Whose batches come in an order that only native shuffles may change.
_NOT_REPLAYED = ("T12-buckets", "T12-buckets-smaller-final")
_NOT_LOWERED = {
    "T17-priority-queue": "smallest priority",
    "T17-priority-queue-trickle": "smallest priority",
}


def numbers(count, **options):
    return tf1.train.range_input_producer(count, **{"shuffle": False, "num_epochs": 1, **options}).dequeue()


def records(batches):
    """How often each record occurs in batches whose leaves all have a batch axis."""
    found = Counter()
    for batch in batches:
        for row in zip(*(leaf for _, leaf in leaves(batch)), strict=True):
            found[repr([np.asarray(value).tolist() for value in row])] += 1
    return found


# -- the gallery ------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", [e for e in gallery.entries() if not e.needs], ids=str)
def test_the_gallery_lowered(entry, tmp_path):
    program = entry.program(tmp_path)
    steps = None if program.finite else program.steps
    if not entry.lowerable or entry.name in _NOT_LOWERED:
        with pytest.raises(CannotLower, match=_NOT_LOWERED.get(entry.name)) as caught:
            to_dataset(program.build_fn, shuffle="replay")
        assert caught.value.advice
        return
    native = numpy_batches(to_dataset(program.build_fn), steps)
    assert gallery.problems(program, native) == []
    if entry.name in _NOT_REPLAYED:
        with pytest.raises(CannotLower, match="how full every queue is"):
            to_dataset(program.build_fn, shuffle="replay")
        return
    replayed = to_dataset(program.build_fn, shuffle="replay")
    batches = numpy_batches(replayed, steps)
    assert gallery.problems(program, batches) == []
    assert_same_batches(batches, lockstep(program.build_fn, steps, program))
    if program.ordered:
        assert_same_batches(native, batches)


@pytest.mark.parametrize(
    "name",
    [
        "T1-tfrecord-batch",
        "T1-tfrecord-shuffled-twice",
        "T1-tfrecord-png-flip",
        "T2-cifar-distorted",
        "T4-slices-shuffle",
        "T6-csv-batch",
        "T8-census-dict",
        "T9-dequeue-per-branch",
        "T10-batch-join-readers",
        "T13-sequence-dynamic-pad",
        "T23-maybe-shuffle-batch",
    ],
)
def test_three_epochs_and_a_second_pass(name, tmp_path):
    program = gallery.get(name).program(tmp_path, epochs=3)
    dataset = to_dataset(program.build_fn, shuffle="replay")
    batches = numpy_batches(dataset)
    assert_same_batches(batches, lockstep(program.build_fn))
    assert_same_batches(numpy_batches(dataset), batches)


# -- drawn pipelines --------------------------------------------------------------------------------


@settings(max_examples=8, deadline=None)
@given(pipelines.drawn(shuffled=False))
def test_drawn_pipelines_in_order(pipeline):
    assert_same_batches(numpy_batches(to_dataset(pipeline)), lockstep(pipeline))


@settings(max_examples=8, deadline=None)
@given(pipelines.drawn(shuffled=True))
def test_drawn_pipelines_replayed(pipeline):
    assume(not pipeline.plan["shuffle"] or pipeline.plan["batch"] <= pipeline.plan["capacity"])
    dataset = to_dataset(pipeline, shuffle="replay")
    expected = lockstep(pipeline)
    assert_same_batches(numpy_batches(dataset), expected)
    if pipeline.plan.get("work") is not None:  # may hold what nothing can save: Python, random ops in a tf.cond
        return
    iterator = iter(dataset)
    for _ in range(len(expected) // 2):
        next(iterator)
    with TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(iterator=iterator).save(f"{folder}/iterator")
        again = iter(dataset)
        tf.train.Checkpoint(iterator=again).restore(path)
        assert_same_batches(numpy_batches(again), expected[len(expected) // 2 :])


@settings(max_examples=8, deadline=None)
@given(pipelines.drawn(shuffled=True))
def test_drawn_pipelines_with_native_shuffles(pipeline):
    # Which record gets which random number follows from the order.
    assume(pipeline.plan["smaller"] and pipeline.plan["work"] not in ("cond", "draws"))
    ours, theirs = numpy_batches(to_dataset(pipeline)), lockstep(pipeline)
    without_noise_and_padding = [[batch[:2] for batch in batches] for batches in (ours, theirs)]
    assert records(without_noise_and_padding[0]) == records(without_noise_and_padding[1])
    assert [len(batch[0]) for batch in ours] == [len(batch[0]) for batch in theirs]


# -- what a dataset must keep -----------------------------------------------------------------------


def test_unseeded_readers_of_one_queue_lose_nothing_in_any_pass():
    names = pipelines.files([5, 3, 4, 6])

    def build():
        queue = tf1.train.string_input_producer(names, num_epochs=2)
        rows = []
        for _ in range(3):
            _, record = tf1.TFRecordReader().read(queue)
            rows.append([tf1.parse_single_example(record, {"n": tf1.FixedLenFeature([], tf.int64)})["n"]])
        return tf1.train.batch_join(rows, 4, allow_smaller_final_batch=True)

    dataset = to_dataset(build)
    expected = Counter([100 * index + n for index, count in enumerate([5, 3, 4, 6]) for n in range(count)] * 2)
    for _ in range(3):
        assert Counter(n for batch in dataset.as_numpy_iterator() for n in batch.tolist()) == expected


def test_structures_come_back_with_tuples_for_lists():
    pair = namedtuple("pair", ["left", "right"])

    def build():
        number = numbers(4)
        return {"list": [number, number + 1], "pair": pair(number, (number * 2,))}

    element = next(iter(to_dataset(build)))
    assert isinstance(element["list"], tuple)
    assert element["pair"].right[0].numpy() == 0
    assert to_dataset(lambda: tf1.train.batch([numbers(4)], 2)).element_spec == tf.TensorSpec([2], tf.int32)


def test_a_graph_from_a_metagraph():
    graph = tf.Graph()
    with graph.as_default():
        fetches = tf1.train.batch([numbers(10, num_epochs=3)], 4)
        saved = tf1.train.export_meta_graph()
    imported = tf.Graph()
    with imported.as_default():
        tf1.train.import_meta_graph(saved)
    dataset = to_dataset(imported, fetches.name)
    assert_same_batches(numpy_batches(dataset), lockstep(lambda: tf1.train.batch([numbers(10, num_epochs=3)], 4)))


def test_values_of_variables_come_from_the_session():
    graph = tf.Graph()
    with graph.as_default():
        offset = tf1.get_variable("offset", [], tf.int32, tf1.zeros_initializer())
        batch = tf1.train.batch([numbers(4) + offset], 2)
        assign = offset.assign(40)
        initial = tf1.global_variables_initializer()
    with pytest.raises(CannotLower, match="changes while it runs"):
        to_dataset(graph, batch)
    session = tf1.Session(graph=graph)
    session.run(initial)
    session.run(assign)
    dataset = to_dataset(graph, batch, session=session)
    session.close()
    assert [b.tolist() for b in dataset.as_numpy_iterator()] == [[40, 41], [42, 43]]


def test_an_assertion_that_the_enqueue_waits_for_still_runs():
    def build():
        number = numbers(10)
        with tf.control_dependencies([tf1.assert_less(number, 6, message="too large")]):
            queue = tf1.FIFOQueue(10, tf.int32, [[]])
            enqueue = queue.enqueue(number)
        tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, [enqueue]))
        return queue.dequeue_many(2)

    iterator = to_dataset(build).as_numpy_iterator()
    assert [next(iterator).tolist() for _ in range(3)] == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="too large"):
        next(iterator)


@pytest.mark.parametrize("shuffle", ["native", "replay"])
def test_an_iterator_saved_in_the_middle_goes_on_where_it_was(shuffle, tmp_path):
    def build():
        number = numbers(50, num_epochs=3, shuffle=True, seed=3)
        noise = tf.cast(tf1.random_uniform([2], seed=8) * 1000, tf.int32)
        return tf1.train.shuffle_batch([number + noise], 4, 30, min_after_dequeue=10, seed=5)

    dataset = to_dataset(build, shuffle=shuffle)
    iterator = iter(dataset)
    for _ in range(9):
        next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "iterator"))
    expected = [batch.numpy().tolist() for batch in iterator]
    again = iter(dataset)
    tf.train.Checkpoint(iterator=again).restore(path)
    assert [batch.numpy().tolist() for batch in again] == expected
    assert len(expected) == 28


@pytest.mark.parametrize("taken", [4, 9])
@pytest.mark.parametrize("shuffle", ["native", "replay"])
def test_an_iterator_over_files_saved_in_the_middle_of_an_epoch(shuffle, taken, tmp_path):
    def build():
        queue = tf1.train.string_input_producer(pipelines.files([5, 3, 4, 6]), num_epochs=2, shuffle=False)
        rows = []
        for _ in range(2):
            _, record = tf1.TFRecordReader().read(queue)
            rows.append([tf1.parse_single_example(record, {"n": tf1.FixedLenFeature([], tf.int64)})["n"]])
        return tf1.train.shuffle_batch_join(rows, 3, 12, 6, seed=2, allow_smaller_final_batch=True)

    iterator = iter(to_dataset(build, shuffle=shuffle))
    first = [next(iterator).numpy().tolist() for _ in range(taken)]
    path = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "iterator"))
    rest = [batch.numpy().tolist() for batch in iterator]
    again = iter(to_dataset(build, shuffle=shuffle))  # as another process would make it
    tf.train.Checkpoint(iterator=again).restore(path)
    assert [batch.numpy().tolist() for batch in again] == rest
    found = Counter(number for batch in first + rest for number in batch)
    assert found == Counter([100 * index + n for index, count in enumerate([5, 3, 4, 6]) for n in range(count)] * 2)


# -- what cannot be lowered -------------------------------------------------------------------------


def chosen_by_queue_size():
    queue = tf1.FIFOQueue(10, tf.int32, [[]])
    enqueue = queue.enqueue(numbers(4) + queue.size())
    tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, [enqueue]))
    return queue.dequeue()


def batch_size_while_running():
    return tf1.train.batch([numbers(10)], tf1.placeholder_with_default(3, []))


def counted_in_a_variable():
    count = tf1.get_variable("count", [], tf.int32, tf1.zeros_initializer())
    return tf1.train.batch([numbers(10), tf1.assign_add(count, 1)], 2)


def changed_while_it_runs():
    step = tf1.train.get_or_create_global_step()
    tf1.assign_add(step, 1)
    return tf1.train.batch([tf.cast(numbers(10), tf.int64) + step], 2)


def two_batches_of_one_source():
    number = tf1.train.range_input_producer(10, num_epochs=1, shuffle=False)
    return tf1.train.batch([number.dequeue()], 2), tf1.train.batch([number.dequeue()], 3)


def dead_consumer():
    number = tf1.train.range_input_producer(10, num_epochs=1, shuffle=False)
    tf1.train.batch([number.dequeue()], 2, name="unused")
    return tf1.train.batch([number.dequeue()], 3)


def no_data():
    return tf.constant(1)


def not_seeded():
    return tf1.train.shuffle_batch([numbers(10)], 2, 8, min_after_dequeue=3)


def names_not_seeded():
    return numbers(10, shuffle=True)


def batch_too_large_to_replay():
    return tf1.train.shuffle_batch([numbers(10)], 4, 5, min_after_dequeue=3, seed=1)


def shuffle_without_a_bound():
    queue = tf1.RandomShuffleQueue(-1, 0, tf.int32, [[]], seed=1)
    tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, [queue.enqueue(numbers(10))]))
    return queue.dequeue()


def staged_by_the_step_before():
    batch = tf1.train.batch([numbers(10)], 2)
    staging = {"capacity": 3, "shared_name": "area"}
    put = tf.raw_ops.Stage(values=[batch], **staging)
    (taken,) = tf.raw_ops.Unstage(dtypes=[tf.int32], **staging)
    with tf.control_dependencies([put]):
        return tf.identity(taken)


def filled_by_nobody():
    return tf1.FIFOQueue(4, [tf.int32], [[]]).dequeue()


def inside_a_cond():
    queue = tf1.FIFOQueue(10, tf.int32, [[]])
    number = numbers(10)
    put = tf1.cond(number > 3, lambda: queue.enqueue(number * 2), tf.no_op)
    tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, [put]))
    return queue.dequeue()


@pytest.mark.parametrize(
    ("build_fn", "words"),
    [
        (builders.fed, "one of several queues"),
        (chosen_by_queue_size, "how full a queue is"),
        (batch_size_while_running, "decided while running"),
        (counted_in_a_variable, "changes the variable count"),
        (changed_while_it_runs, "changes while it runs"),
        (two_batches_of_one_source, "also feeds queue batch_1/fifo_queue"),
        (dead_consumer, "which no fetch depends on"),
        (no_data, "no fetch depends on a queue"),
        (not_seeded, "has no seed"),
        (names_not_seeded, "has no seed"),
        (batch_too_large_to_replay, "cannot give a batch of 4 at once"),
        (inside_a_cond, "also computed there"),
        (staged_by_the_step_before, "StagingArea that is not filled by this step alone, before it takes"),
        (filled_by_nobody, "is filled from outside, not by a queue runner of the graph"),
        (shuffle_without_a_bound, "without a bound"),
    ],
)
def test_what_cannot_be_lowered_says_why_and_what_to_do(build_fn, words):
    with pytest.raises(CannotLower, match=words) as caught:
        to_dataset(build_fn, shuffle="replay")
    assert caught.value.advice
    if build_fn is not no_data:
        assert caught.value.op
        assert (
            caught.value.source is None or build_fn.__name__ in caught.value.source or "numbers" in caught.value.source
        )


def test_a_queue_that_python_fills():
    def build():
        value = tf1.placeholder(tf.float32, [3])
        queue = tf1.FIFOQueue(4, [tf.float32], [[3]])
        queue.enqueue([value], name="feed")
        return queue.dequeue_many(2)

    with pytest.raises(CannotLower, match="Python code that runs feed") as caught:
        to_dataset(build)
    assert "float32[3]" in caught.value.advice


def test_a_fetch_that_is_no_tensor():
    graph = tf.Graph()
    with graph.as_default():
        batch = tf1.train.batch([numbers(4)], 2)
        train = tf.group(batch)
    with pytest.raises(CannotLower, match="op without a value"):
        to_dataset(graph, [batch, train])


def test_arguments():
    with pytest.raises(InvalidArgument, match="'native', 'replay'"):
        to_dataset(builders.cifar, shuffle="fast")
    with pytest.raises(InvalidArgument, match="pass fetches"):
        to_dataset(tf.Graph())
    with pytest.raises(InvalidArgument, match="returns its own"):
        to_dataset(builders.cifar, "x:0")


def test_a_python_function_behind_a_parsed_feature(tmp_path) -> None:
    path = str(tmp_path / "labels.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for number in range(5):
            feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[number]))
            writer.write(tf.train.Example(features=tf.train.Features(feature={"label": feature})).SerializeToString())

    def build_fn():
        names = tf1.train.string_input_producer([path], num_epochs=1, shuffle=False)
        record = tf1.TFRecordReader().read(names)[1]
        label = tf1.parse_single_example(record, {"label": tf1.FixedLenFeature([], tf.int64)})["label"]
        doubled = tf1.py_func(lambda value: 2 * value, [label], tf.int64)
        doubled.set_shape([])
        return tf1.train.batch([doubled], 2)

    assert [batch.tolist() for batch in numpy_batches(to_dataset(build_fn))] == [[0, 2], [4, 6]]
