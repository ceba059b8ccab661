"""The canonical schedule: repeatable, equal to one real thread where that has an order, and to its emulation."""

from __future__ import annotations

import contextlib
import hashlib
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import gallery
from tests.engines import emulation, pipelines
from tests.engines.running import assert_same_batches, leaves, lockstep, numpy_batches
from tests.gallery import oracle
from tfqueue import LockstepHook
from tfqueue.engines.lockstep import Lockstep
from tfqueue.engines.lockstep_queue import QueueState
from tfqueue.engines.tfdata import to_dataset
from tfqueue.errors import InvalidArgument
from tfqueue.topology.trace import trace

tf1 = tf.compat.v1


def numbers(count, **options):
    return tf1.train.range_input_producer(count, **{"shuffle": False, "num_epochs": 1, **options}).dequeue()


# -- against the emulation of a shuffle queue -------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    count=st.integers(0, 60),
    minimum=st.integers(0, 20),
    extra=st.integers(1, 20),
    batch=st.integers(1, 25),
    seed=st.integers(1, 2**31 - 2),
    up_to=st.booleans(),
    epochs=st.integers(1, 2),
)
def test_a_shuffle_queue_gives_what_its_emulation_gives(count, minimum, extra, batch, seed, up_to, epochs):
    def build():
        return tf1.train.shuffle_batch(
            [numbers(count, num_epochs=epochs)],
            batch,
            minimum + extra,
            min_after_dequeue=minimum,
            seed=seed,
            allow_smaller_final_batch=up_to,
        )

    expected = emulation.shuffled_batches(
        list(range(count)) * epochs, minimum + extra, minimum, batch, tf1.random.get_seed(seed)[0], seed, up_to=up_to
    )
    assert [batch.tolist() for batch in lockstep(build)] == list(expected)


def test_philox_is_the_published_one():
    # Known answers of the Random123 library: counter and key all zero, and all one bits.
    assert [word for word, _ in zip(emulation.philox(0, 0), range(4), strict=False)] == [
        0x6627E8D5,
        0xE169C58D,
        0xBC57AC4C,
        0x9B00DBD8,
    ]


# -- against one real thread ------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(pipelines.drawn(shuffled=False))
def test_where_one_thread_has_an_order_it_is_the_same(pipeline):
    assert_same_batches(lockstep(pipeline), pipelines.threads(pipeline))


@settings(max_examples=25, deadline=None)
@given(pipelines.drawn(shuffled=True))
def test_two_runs_are_equal(pipeline):
    assert_same_batches(lockstep(pipeline), lockstep(pipeline))


# -- the gallery ------------------------------------------------------------------------------------

_NOT_IN_STEP = {
    "T17-drop-when-full": "tf.cond",
    "T29-staging-runner": "fills none",
}
_FEEDS_FROM_THREADS = ("T15-wavenet-padding", "T15-shuffle-queue", "T29-record-input")


@pytest.mark.parametrize("entry", [e for e in gallery.entries() if not e.needs], ids=str)
def test_the_gallery_in_lockstep(entry, tmp_path):
    program = entry.program(tmp_path)
    steps = None if program.finite else program.steps
    if entry.name in _NOT_IN_STEP:
        with pytest.raises(InvalidArgument, match=_NOT_IN_STEP[entry.name]):
            lockstep(program.build_fn, steps, program)
        return
    batches = lockstep(program.build_fn, steps, program)
    assert gallery.problems(program, batches) == []
    if entry.name not in _FEEDS_FROM_THREADS:
        assert_same_batches(batches, lockstep(program.build_fn, steps, program))
    if program.ordered and not entry.random_ops:
        assert_same_batches(batches, list(oracle.run(program).batches))


@pytest.mark.parametrize("name", ["T1-tfrecord-shuffled-twice", "T10-shuffle-batch-join", "T8-census-dict"])
def test_three_epochs_of_the_gallery(name, tmp_path):
    program = gallery.get(name).program(tmp_path, epochs=3)
    batches = lockstep(program.build_fn)
    assert gallery.problems(program, batches) == []
    assert_same_batches(batches, lockstep(program.build_fn))


def shuffled_numbers():
    """Run by the test below in another process, too: everything seeded, several threads."""
    tf1.set_random_seed(11)
    number = numbers(100, num_epochs=3, shuffle=True, seed=5)
    noise = tf1.random_uniform([], seed=9)
    return tf1.train.shuffle_batch([number, noise], 7, 50, min_after_dequeue=20, num_threads=4, seed=3)


def digest():
    found = hashlib.sha256()
    for batch in lockstep(shuffled_numbers):
        for _, leaf in leaves(batch):
            found.update(np.ascontiguousarray(leaf).tobytes())
    return found.hexdigest()


def test_another_process_gives_the_same():
    code = "from tests.engines import test_lockstep; print(test_lockstep.digest())"
    root = Path(__file__).parents[2]
    told = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert told.stdout.split()[-1] == digest()


def test_what_a_thread_feeds_may_come_between_two_looks_at_its_queue(tmp_path):
    # Seen: not there when the schedule looked, there when it was asked what it waits for, so the step ran too early,
    # and held what the thread needed to bring more. One run in some thirty.
    program = gallery.get("T16-feeding-runner").program(tmp_path)
    for _ in range(40):
        assert gallery.problems(program, lockstep(program.build_fn)) == []


# -- the schedule in odd places ---------------------------------------------------------------------


def test_a_batch_larger_than_the_queue_is_served_in_pieces():
    def build():
        return tf1.train.batch([numbers(20)], 8, capacity=3)

    assert [batch.tolist() for batch in lockstep(build)] == [list(range(8)), list(range(8, 16))]


def test_pieces_of_a_padded_batch_are_padded_to_the_longest_of_all():
    def build():
        number = numbers(7)
        word = tf.fill([number % 3], tf.as_string(number))
        return tf1.train.batch(
            [tf.fill([number % 4], number), word], 5, capacity=2, dynamic_pad=True, allow_smaller_final_batch=True
        )

    assert_same_batches(lockstep(build), pipelines.threads(build))


def test_an_enqueue_many_larger_than_the_room_keeps_its_order():
    def build():
        number = numbers(6)
        rows = tf.range(number * 10, number * 10 + number)
        return tf1.train.batch([rows], 4, capacity=4, enqueue_many=True, allow_smaller_final_batch=True)

    values = [value for batch in lockstep(build) for value in batch.tolist()]
    assert values == [n * 10 + i for n in range(6) for i in range(n)]


def some_kept(capacity):
    number = numbers(12)
    rows = tf.range(number * 10, number * 10 + number % 4)
    return tf1.train.maybe_batch(
        [rows], number % 3 > 0, 4, capacity=capacity, enqueue_many=True, allow_smaller_final_batch=True
    )


@pytest.mark.parametrize("capacity", [2, 5, 30])
def test_an_enqueue_many_inside_a_tf_cond(capacity):
    def build():
        return some_kept(capacity)

    batches = lockstep(build)
    kept = [n * 10 + i for n in range(12) if n % 3 for i in range(n % 4)]
    assert [value for batch in batches for value in batch.tolist()] == kept
    assert_same_batches(batches, pipelines.threads(build))
    assert_same_batches(batches, numpy_batches(to_dataset(build)))


def grouped():
    """One runner op fills two queues from one dequeue: two rows into the first, one into the second."""
    number = numbers(9)
    rows = tf1.FIFOQueue(3, tf.int32, [[]])
    ones = tf1.FIFOQueue(8, tf.int32, [[]])
    told = tf1.get_variable("told", [], tf.int32, tf1.zeros_initializer(), use_resource=True)
    with tf.control_dependencies([tf1.assign_add(told, 1)]):
        both = tf.group(rows.enqueue_many([tf.stack([number, -number])]), ones.enqueue([number]), tf.no_op())
    tf1.train.add_queue_runner(tf1.train.QueueRunner(rows, [both], close_op=tf.group(rows.close(), ones.close())))
    return rows.dequeue_many(2), ones.dequeue()


def test_an_enqueue_many_inside_a_tf_group():
    batches = [(rows.tolist(), int(one)) for rows, one in lockstep(grouped)]
    assert batches == [([n, -n], n) for n in range(9)]
    assert batches == [(rows.tolist(), int(one)) for rows, one in pipelines.threads(grouped)]


def test_an_enqueue_many_of_what_is_computed_in_the_tf_cond_is_refused():
    def build():
        number = numbers(4)
        queue = tf1.FIFOQueue(9, tf.int32, [[]])
        put = tf.cond(number > 1, lambda: queue.enqueue_many([tf.fill([2], number)]), tf.no_op)
        tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, [put]))
        return queue.dequeue()

    with pytest.raises(InvalidArgument, match="what is also computed there"):
        lockstep(build)


def test_a_tf_group_that_goes_on_after_an_enqueue_many_is_refused():
    def build():
        queue = tf1.FIFOQueue(9, tf.int32, [[]])
        with tf.control_dependencies([queue.enqueue_many([tf.stack([numbers(4)] * 2)])]):
            counted = tf1.assign_add(tf1.get_variable("counted", [], tf.int32, tf1.zeros_initializer()), 1)
        tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, [counted.op]))
        return queue.dequeue()

    with pytest.raises(InvalidArgument, match="does more then"):
        lockstep(build)


class _Forgetful(tf1.train.QueueRunner):
    """A runner whose thread feeds a queue from Python, and ends without closing it."""

    def create_threads(self, sess, coord=None, daemon=False, start=False):
        (enqueue,) = self.enqueue_ops
        (placeholder,) = (tensor for tensor in enqueue.inputs if tensor.op.type == "Placeholder")

        def feed():
            for number in range(5):
                sess.run(enqueue, {placeholder: number})

        threads = [threading.Thread(target=feed, daemon=daemon)]
        if start:
            threads[0].start()
        return threads


def test_who_waits_for_a_queue_whose_feeding_threads_have_ended_is_woken():
    def build():
        queue = tf1.FIFOQueue(10, tf.int32, [[]])
        enqueue = queue.enqueue([tf1.placeholder(tf.int32, [])])
        tf1.train.add_queue_runner(_Forgetful(queue, [enqueue]))
        return queue.dequeue_up_to(2)

    assert [batch.tolist() for batch in lockstep(build)] == [[0, 1], [2, 3], [4]]


def test_two_dequeues_of_one_queue_take_turns():
    def build():
        queue = tf1.train.range_input_producer(10, num_epochs=1, shuffle=False)
        return queue.dequeue(name="first"), queue.dequeue_many(2, name="second")

    assert [(int(a), b.tolist()) for a, b in lockstep(build)] == [(0, [1, 2]), (3, [4, 5]), (6, [7, 8])]


def test_more_empty_files_than_the_queue_of_names_holds(tmp_path):
    names = []
    for index in range(60):
        names.append(str(tmp_path / f"{index:02}.tfrecord"))
        with tf.io.TFRecordWriter(names[-1]) as writer:
            if index in (0, 30, 59):
                writer.write(str(index).encode())

    def build():
        queue = tf1.train.string_input_producer(names, shuffle=False, num_epochs=1, capacity=2)
        return tf1.train.batch([tf1.TFRecordReader().read(queue)[1]], 1)

    assert [batch.tolist() for batch in lockstep(build)] == [[b"0"], [b"30"], [b"59"]]


def test_a_queue_without_a_bound_is_not_filled_for_ever():
    def build():
        queue = tf1.FIFOQueue(-1, tf.int32, [[]])
        tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, [queue.enqueue(numbers(4, num_epochs=None))]))
        return queue.dequeue_many(3)

    assert [batch.tolist() for batch in lockstep(build, steps=3)] == [[0, 1, 2], [3, 0, 1], [2, 3, 0]]


def test_a_batch_size_that_is_fed():
    graph = tf.Graph()
    with graph.as_default():
        size = tf1.placeholder_with_default(3, [])
        batch = tf1.train.batch([numbers(10)], size)
    engine = Lockstep(graph)
    with graph.as_default(), tf1.Session() as session:
        session.run(tf1.local_variables_initializer())
        engine.start(session)
        with engine.attached():
            assert session.run(batch).tolist() == [0, 1, 2]
            assert session.run(batch, {size: 2}).tolist() == [3, 4]
            assert session.run(batch).tolist() == [5, 6, 7]
        assert "run" not in vars(session)
        engine.stop()


def test_what_a_stage_raises_is_raised_by_the_step():
    graph = tf.Graph()
    with graph.as_default():
        number = numbers(10)
        with tf.control_dependencies([tf1.assert_less(number, 6, message="too large")]):
            batch = tf1.train.batch([tf.identity(number)], 2, capacity=4)
    engine = Lockstep(graph)
    with graph.as_default(), tf1.Session() as session:
        session.run(tf1.local_variables_initializer())
        engine.start(session)
        step = engine.make_step(batch)
        assert step().tolist() == [0, 1]
        assert engine.failed_enqueue is None
        with pytest.raises(tf.errors.InvalidArgumentError, match="too large"):
            step()
        assert engine.failed_enqueue.name == "batch/fifo_queue_enqueue"
        engine.stop()


def test_a_runner_that_feeds_works_under_a_monitored_session(tmp_path):
    # Its thread's own steps take from queues, too: more than those hold, which would stay empty if nobody counted that.
    program = gallery.get("T16-feeding-runner").program(tmp_path, epochs=4)
    with tf.Graph().as_default():
        batch = program.build_fn()
        tf1.train.get_or_create_global_step()
        found = []
        with tf1.train.MonitoredTrainingSession(hooks=[LockstepHook()]) as session:
            while not session.should_stop():
                found.append(session.run(batch))
    assert gallery.problems(program, found) == []


@contextlib.contextmanager
def counted_queue():
    """A queue of five elements, what lockstep knows of it, and a function that takes some."""
    with tf.Graph().as_default() as graph, tf1.Session() as session:
        queue = tf1.FIFOQueue(9, [tf.int64], shapes=[[]])
        tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, [queue.enqueue(tf.constant(1, tf.int64))]))
        queue.dequeue_many(4)
        topology = trace(graph)
        state = QueueState(graph, topology.queues[0], 4)
        fill = queue.enqueue_many([tf.range(5, dtype=tf.int64)])
        count = tf1.placeholder(tf.int32, [])
        take = queue.dequeue_many(count)
        state.connect(session)
        session.run(fill)
        yield state, lambda number: session.run(take, {count: number})


def test_a_size_asked_before_a_step_takes_is_not_kept():
    with counted_queue() as (state, take):
        assert (state.size(), state.available(), state.room()) == (5, 5, 4)
        state.step_begins(4)
        assert (state.size(), state.available()) == (1, 1)
        state.forget_size()  # as after the run of an enqueue in another thread
        assert (state.size(), state.available()) == (5, 1)
        take(4)
        assert state.size() == 1
        state.step_ended(failed=False)
        assert (state.size(), state.available(), state.room()) == (1, 1, 8)


def test_nor_is_one_asked_before_a_step_took_that_is_over_when_the_answer_comes(monkeypatch):
    with counted_queue() as (state, take):
        state.step_begins(4)
        state.forget_size()
        ask = state._ask_size

        def slow():
            size = ask()
            take(4)
            state.step_ended(failed=False)
            return size

        monkeypatch.setattr(state, "_ask_size", slow)
        assert state.available() == 1
        monkeypatch.undo()
        assert (state.size(), state.available()) == (1, 1)


def test_a_step_that_failed_has_taken_nothing():
    with counted_queue() as (state, _):
        assert state.size() == 5
        state.step_begins(4)
        state.step_ended(failed=True)
        assert state.size() == 5


def test_a_finalized_graph_is_refused():
    graph = tf.Graph()
    with graph.as_default():
        tf1.train.batch([numbers(10)], 2)
    graph.finalize()
    with pytest.raises(InvalidArgument, match="finalized"):
        Lockstep(graph)


def losses(*, hook):
    """A small training loop in a MonitoredTrainingSession."""
    with tf.Graph().as_default() as graph:
        tf1.set_random_seed(4)
        number = tf.cast(numbers(40, num_epochs=2), tf.float32)
        batch = tf1.train.shuffle_batch([number], 4, 21, min_after_dequeue=10, seed=8)
        weight = tf1.get_variable("weight", [], initializer=tf1.ones_initializer())
        loss = tf.reduce_mean((weight * batch - 3.0) ** 2)
        train = tf1.train.GradientDescentOptimizer(1e-4).minimize(loss)
        found = []
        with tf1.train.MonitoredTrainingSession(hooks=[LockstepHook()] if hook else []) as session:
            while not session.should_stop():
                found.append(session.run([loss, train])[0])
        assert len(graph.get_collection(tf1.GraphKeys.QUEUE_RUNNERS)) == 2
    return found


def test_a_monitored_session_in_lockstep():
    first = losses(hook=True)
    assert len(first) == 20
    assert first == losses(hook=True)
    assert len(losses(hook=False)) == 20
