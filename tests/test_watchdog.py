"""Stalls of real pipelines: what is certain is raised, what may be slow is warned about, and no record is lost."""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
import warnings

import numpy as np
import pytest
import tensorflow as tf

import tfqueue
from tests.pipelines import LABEL, numbers, parse, tf1
from tfqueue import consumers
from tfqueue.errors import PipelineStalled, TFQueueWarning
from tfqueue.stall import QueueState


@pytest.fixture
def path(tmp_path):
    return numbers(tmp_path / "numbers.tfrecord")


@pytest.fixture(autouse=True)
def no_thread_stays_behind():
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) - before == set()


def waiting_for(event, path):
    """A build function whose stage waits for an event at the record with label 3."""

    def wait(label):
        if label == 3:
            assert event.wait(60)
        return label

    def build_fn():
        label = tf1.py_func(wait, [parse([path], LABEL)["label"]], tf.int64)
        label.set_shape([])
        return tf1.train.batch([label], 4)

    return build_fn


def test_a_queue_that_nobody_fills_is_a_stall() -> None:
    def build_fn():
        return tf1.FIFOQueue(3, tf.int32, [[]], name="mine").dequeue_many(2)

    with tfqueue.QueuePipeline(build_fn, check=False, stall_timeout=0.3) as pipeline:
        with pytest.raises(PipelineStalled, match="no queue runner fills it") as caught:
            next(pipeline)
        assert list(pipeline) == []
    assert (caught.value.cause_name, caught.value.queue, caught.value.size) == ("no-runner", "mine", 0)


def test_a_step_of_a_session_of_ones_own_that_waits_for_nothing() -> None:
    with tf.Graph().as_default(), tf1.Session() as session:
        value = tf1.FIFOQueue(3, tf.int32, [[]], name="mine").dequeue()
        with (
            pytest.raises(PipelineStalled, match="mine"),
            tfqueue.queue_runners(session, check=False, stall_timeout=0.3),
        ):
            session.run(value)


def test_a_step_is_seen_though_another_library_replaced_run_before(monkeypatch: pytest.MonkeyPatch) -> None:
    original = tf1.Session.run
    monkeypatch.setattr(tf1.Session, "run", lambda self, *a, **k: original(self, *a, **k))
    spec = importlib.util.spec_from_file_location("imported_after_that", consumers.__file__)
    assert spec is not None
    assert spec.loader is not None
    looks = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, looks)
    spec.loader.exec_module(looks)
    with tf.Graph().as_default(), tf1.Session() as session:
        queue = tf1.FIFOQueue(3, tf.int32, [[]])
        value, enqueue = queue.dequeue(), queue.enqueue(7)
        found: list[int] = []
        thread = threading.Thread(target=lambda: found.append(int(session.run(value))))
        thread.start()
        pause = threading.Event()
        while thread.ident not in looks.look(session).in_session:
            assert thread.is_alive()
            pause.wait(0.01)
        session.run(enqueue)
        thread.join(60)
    assert found == [7]


def test_a_slow_stage_is_warned_about_and_loses_nothing(path) -> None:
    event = threading.Event()
    told: list[str] = []

    def show(message, *_args, **_kwargs) -> None:
        told.append(str(message))
        if "py_func" in told[-1]:  # on a busy machine the thread may not have come to the function yet
            event.set()

    with warnings.catch_warnings():
        warnings.simplefilter("always", TFQueueWarning)
        warnings.showwarning = show
        with tfqueue.QueuePipeline(waiting_for(event, path), stall_timeout=0.2) as pipeline:
            got = np.concatenate(list(pipeline)).tolist()
    assert got == list(range(20))
    assert "a function given to py_func is running" in told[-1]


def test_where_warnings_are_errors_the_next_step_raises_it(path) -> None:
    event = threading.Event()
    with tfqueue.QueuePipeline(waiting_for(event, path), stall_timeout=0.1) as pipeline:
        # The watchdog speaks in its own thread, where nobody would see an error; the waiting stage is released then.
        threading.Thread(target=_release_when_told, args=(pipeline._run, event)).start()
        next(pipeline)
        with pytest.raises(TFQueueWarning, match="a step has taken"):
            next(pipeline)


def _release_when_told(run, event) -> None:
    pause = threading.Event()
    while run._raise_later is None:
        pause.wait(0.01)
    event.set()


def test_a_stage_that_is_busy_for_ever_is_given_up(path) -> None:
    event = threading.Event()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TFQueueWarning)
        with tfqueue.QueuePipeline(waiting_for(event, path), stall_timeout=0.05) as pipeline:
            with pytest.raises(PipelineStalled) as caught:
                next(pipeline)
            event.set()
    assert caught.value.cause_name == "stage-busy"
    assert caught.value.alive


def test_a_long_step_of_the_users_is_no_stall(path) -> None:
    # The step itself waits (a training step), while every queue is full.
    event = threading.Event()
    with tf.Graph().as_default(), tf1.Session() as session:
        batch = tf1.train.batch([tf.constant(1)], 2, capacity=4)
        step = tf1.py_func(lambda x: (event.wait(60), x)[1], [batch], tf.int32)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TFQueueWarning)
            with tfqueue.queue_runners(session, stall_timeout=0.05) as coord:
                watch = threading.Thread(target=_release_after_looks, args=(coord, event), daemon=True)
                watch.start()
                assert session.run(step).tolist() == [1, 1]
                watch.join(60)


def _release_after_looks(coord, event) -> None:
    pause = threading.Event()
    for _ in range(5):
        pause.wait(0.05)
    event.set()


def test_a_feeder_that_fails_frees_the_step_that_waits_for_it() -> None:
    def build_fn():
        queue = tf1.FIFOQueue(3, tf.int32, [[]], name="mine")
        value = tf1.placeholder(tf.int32, [])
        queue.enqueue(value, name="put")
        return queue.dequeue()

    def feed(coord) -> None:
        with coord.stop_on_exception():
            raise OSError("the disk is gone")

    pipeline = tfqueue.QueuePipeline(build_fn, check=False)
    with pytest.raises(tfqueue.errors.PipelineFailed, match="the disk is gone"), pipeline:
        feeder = threading.Thread(target=feed, args=(pipeline.coord,))
        feeder.start()
        next(pipeline)


def test_an_assertion_inside_a_cond_never_leaves_the_step_waiting(path) -> None:
    # In plain TensorFlow the step stays blocked for ever in two runs of five: its queue is never closed.
    def build_fn():
        label = parse([path], LABEL)["label"]
        with tf1.control_dependencies([tf1.assert_less(label, tf.constant(5, tf.int64))]):
            return tf1.train.batch([tf1.identity(label)], 2)

    for _ in range(10):
        pipeline = tfqueue.QueuePipeline(build_fn, check=False)
        with pytest.raises(tfqueue.errors.PipelineFailed) as caught, pipeline:
            list(pipeline)
        assert caught.value.cause_name == "assertion"


def _told_while_waiting(monkeypatch, target, done: threading.Event) -> list[str]:
    """What is warned of while a step waits for a queue without runners, beside a thread of the process."""
    # Other tests may have left threads in the process (Keras and summaries keep some): they are not asked about here.
    may_feed = consumers.may_feed
    left = {thread.ident for thread in threading.enumerate() if thread.ident and may_feed(thread.ident)}
    monkeypatch.setattr(consumers, "may_feed", lambda ident: ident not in left and may_feed(ident))
    other = threading.Thread(target=target)
    other.start()
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", TFQueueWarning)
            pipeline = tfqueue.QueuePipeline(
                lambda: tf1.FIFOQueue(3, tf.int32, [[]]).dequeue(), check=False, stall_timeout=0.05
            )
            with pipeline, pytest.raises(PipelineStalled) as caught:
                next(pipeline)
    finally:
        done.set()
        other.join()
    assert caught.value.cause_name == "no-runner"
    return [str(warning.message) for warning in told]


def test_a_queue_that_a_thread_might_still_feed_is_given_up_late(monkeypatch) -> None:
    done = threading.Event()

    def function_of_the_program() -> None:
        done.wait()

    told = _told_while_waiting(monkeypatch, function_of_the_program, done)
    assert "no queue runner fills it" in told[0]


def test_a_thread_that_runs_nothing_of_the_program_feeds_no_queue(monkeypatch) -> None:
    # A timer, or the threads of a notebook's kernel and of what distributes tests.
    done = threading.Event()
    assert _told_while_waiting(monkeypatch, done.wait, done) == []


def test_functions_that_hold_all_threads_of_tensorflow_do_not_hold_the_way_out(path) -> None:
    count = (os.cpu_count() or 1) + 2
    inside, stopping = threading.Semaphore(0), threading.Event()
    in_time: list[bool] = []

    def hold(label):
        inside.release()
        in_time.append(stopping.wait(60))
        return label

    def build_fn():
        label = tf1.py_func(hold, [parse([path], LABEL)["label"]], tf.int64)
        label.set_shape([])
        return tf1.train.batch([label], 4, num_threads=count)

    with tfqueue.QueuePipeline(build_fn, stall_timeout=0.2, check=False) as pipeline:
        assert inside.acquire(timeout=60)
        pause = threading.Event()
        while inside.acquire(timeout=0.3):  # until no more of them get a thread
            pause.wait(0.05)

        def release(coord) -> None:
            coord.wait_for_stop(60)
            stopping.set()

        releaser = threading.Thread(target=release, args=(pipeline.coord,))
        releaser.start()
    releaser.join()
    assert in_time
    assert all(in_time)


def test_blocked_functions_do_not_hold_up_the_failure_of_another(path) -> None:
    # More functions block than TensorFlow's shared pool has threads.
    event = threading.Event()

    def work(label):
        if label == 3:
            raise ValueError("no such case")
        if label > 3:
            event.wait(60)
        return label

    def build_fn():
        label = tf1.py_func(work, [parse([path], LABEL)["label"]], tf.int64)
        label.set_shape([])
        return tf1.train.batch([label], 20, num_threads=8)

    pipeline = tfqueue.QueuePipeline(build_fn, check=False)
    with pytest.raises(tfqueue.errors.PipelineFailed, match="no such case"), pipeline:
        try:
            next(pipeline)
        finally:
            assert not event.is_set()
            event.set()


def test_a_filter_that_lets_nothing_pass_is_told_while_it_runs(path) -> None:
    told = threading.Event()
    words: list[str] = []

    def build_fn():
        label = parse([path], LABEL, num_epochs=None)["label"]
        keep = tf1.py_func(told.is_set, [], tf.bool)
        keep.set_shape([])
        return tf1.train.maybe_batch([label], keep, 4)

    def show(message, *_args, **_kwargs) -> None:
        words.append(str(message))
        if "does a filter" in words[-1]:  # on a busy machine the thread may seem slow first
            told.set()  # from now on it lets everything pass

    with warnings.catch_warnings():
        warnings.simplefilter("always", TFQueueWarning)
        warnings.showwarning = show
        with tfqueue.QueuePipeline(build_fn, check=False, stall_timeout=0.2) as pipeline:
            assert len(next(pipeline)) == 4
    assert "does a filter" in words[-1]


def test_a_runner_that_ends_after_a_slow_last_element_is_asked_for_again(path) -> None:
    # Between the look at the queues and the judgement it closes its queue and ends, which is no stall.
    def build_fn():
        return tf1.train.batch([parse([path], LABEL)["label"]], 4)

    pipeline = tfqueue.QueuePipeline(build_fn)
    with pipeline:
        assert len(list(pipeline)) == 5
        run, watchdog = pipeline._run, pipeline._run._watchdog
        before = {name: QueueState(0, False) for name in watchdog.sample()}
        assert before
        stacks = consumers.look(pipeline.session)
        watchdog._judge(before, stacks, 60.0, tell=True)
        assert run._stalled is None
        watchdog.sample = lambda: before
        watchdog._judge(before, stacks, 60.0, tell=True)
        assert run._stalled.cause_name == "runner-ended"
        run._stalled = None
