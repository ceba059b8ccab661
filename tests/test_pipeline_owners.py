"""queue_runners where somebody else owns the session, or had started the runners: what they raise is not lost."""

from __future__ import annotations

import contextlib
import threading

import pytest
import tensorflow as tf

import tfqueue
from tests.pipelines import graph_of, labels, numbers, tf1
from tfqueue.engines.threads import RunnerThreads
from tfqueue.errors import PipelineFailed, PipelineStalled, TFQueueWarning


@pytest.fixture
def path(tmp_path):
    return numbers(tmp_path / "numbers.tfrecord")


@pytest.fixture(autouse=True)
def no_thread_stays_behind():
    before = set(threading.enumerate())
    yield
    left = set(threading.enumerate()) - before
    for thread in left:  # the threads of an owner, which need not wait for them
        thread.join(30)
    assert not any(thread.is_alive() for thread in left)


def test_a_monitored_session(path) -> None:
    graph, batch = graph_of(labels([path], 5))
    got = []
    with graph.as_default():
        tf1.train.get_or_create_global_step()
        with tf1.train.MonitoredSession() as session, tfqueue.queue_runners(session):
            while not session.should_stop():
                got.extend(session.run(batch).tolist())
    assert got == list(range(20))


def test_a_supervisor_that_started_the_runners_itself(path) -> None:
    for paths, problem in (([path], None), ([path, path + ".gone"], PipelineFailed)):
        graph, batch = graph_of(labels(paths, 5))
        got = []
        with graph.as_default(), contextlib.ExitStack() as stack:
            if problem is not None:
                stack.enter_context(pytest.raises(problem, match="No such file"))
            supervisor = tf1.train.Supervisor(summary_op=None)
            session = stack.enter_context(supervisor.managed_session())
            with tfqueue.queue_runners(session, check=False):
                while not supervisor.should_stop():
                    got.extend(session.run(batch).tolist())
        assert got == list(range(20 if problem is None else len(got)))  # a failure closes the queues at once


def test_runners_that_died_before_the_block_are_started_again(path) -> None:
    graph, batch = graph_of(labels([path], 5))
    # Runners without a coordinator raise in their threads: the producer's before the initialisers have run, the
    # others' when their session is closed. So they are waited for inside of the block that takes their errors.
    with _errors_of_threads() as errors:
        with tf1.Session(graph=graph) as session:
            threads = tf1.train.start_queue_runners(session)
            for thread in threads:
                if "input_producer" in thread.name:
                    thread.join(30)
            assert errors
            with tfqueue.queue_runners(session):
                assert session.run(batch).tolist() == [0, 1, 2, 3, 4]
        for thread in threads:
            thread.join(30)


def test_the_failure_of_runners_that_were_started_with_another_coordinator(path) -> None:
    graph, batch = graph_of(labels([*[path] * 5, "missing.tfrecord"], 5))  # more than the queue holds at the start
    with graph.as_default(), tf1.Session() as session:
        session.run(tf1.local_variables_initializer())
        coord = tf1.train.Coordinator()
        threads = tf1.train.start_queue_runners(session, coord)
        with pytest.raises(PipelineFailed) as caught, tfqueue.queue_runners(session, check=False):
            while True:
                session.run(batch)
        with pytest.raises(PipelineFailed) as joined:  # and not the bare error, if that is seen last
            coord.join(threads)
    assert joined.value is caught.value
    assert caught.value.cause_name == "missing-file"
    assert isinstance(caught.value.__cause__, tf.errors.NotFoundError)


def started_and_ended(session):
    """Starts the runners of a graph as a TF1 program does, and waits until their threads have ended."""
    session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
    coord = tf1.train.Coordinator()
    threads = tf1.train.start_queue_runners(session, coord)
    for thread in threads:
        if "close_on_stop" not in thread.name:  # that one waits for the coordinator
            thread.join(30)
            assert not thread.is_alive()
    return coord


def test_runners_that_failed_before_the_block_began(path) -> None:
    graph, batch = graph_of(labels([path, "missing.tfrecord"], 5))
    with graph.as_default(), tf1.Session() as session:
        coord = started_and_ended(session)
        with pytest.raises(PipelineFailed) as caught, tfqueue.queue_runners(session, check=False):
            session.run(batch)
        with pytest.raises(PipelineFailed):
            coord.join()
    assert (caught.value.cause_name, caught.value.file) == ("missing-file", "missing.tfrecord")


def test_the_error_of_another_session_is_not_taken_for_ours(path) -> None:
    graph, batch = graph_of(labels([path, "missing.tfrecord"], 5, allow_smaller_final_batch=True))
    with graph.as_default(), tf1.Session() as failing:
        coord = started_and_ended(failing)
        with tf1.Session() as session, pytest.raises(PipelineFailed), tfqueue.queue_runners(session, check=False):
            assert session.run(batch).tolist() == [0, 1, 2, 3, 4]
            while True:
                session.run(batch)
        with pytest.raises(tf.errors.NotFoundError):
            coord.join()


def test_runners_that_failed_between_the_look_back_and_our_start(path, monkeypatch) -> None:
    # The queue was still open when we looked, and closed when our threads came to it.
    monkeypatch.setattr(RunnerThreads, "look_back", lambda self: {})
    graph, batch = graph_of(labels([path, "missing.tfrecord"], 5))
    with graph.as_default(), tf1.Session() as session:
        coord = started_and_ended(session)
        with pytest.raises(PipelineFailed) as caught, tfqueue.queue_runners(session, check=False):
            while True:
                session.run(batch)
        with pytest.raises(PipelineFailed):
            coord.join()
    assert caught.value.cause_name == "missing-file"


def test_what_runners_left_in_their_queues_before_the_block_is_delivered(path) -> None:
    graph, batch = graph_of(labels([path], 5))
    got = []
    with graph.as_default(), tf1.Session() as session:
        coord = started_and_ended(session)
        with tfqueue.queue_runners(session, check=False) as ours:
            while not ours.should_stop():
                got.extend(session.run(batch).tolist())
        coord.request_stop()
        coord.join()
    assert got == list(range(20))


def test_queues_that_were_used_up_before_the_block_are_told(path) -> None:
    graph, batch = graph_of(labels([path], 5))
    with graph.as_default(), tf1.Session() as session:
        coord = started_and_ended(session)
        for _ in range(4):
            session.run(batch)
        with (
            pytest.warns(TFQueueWarning, match=r"'batch/fifo_queue' was closed and empty before this block began"),
            tfqueue.queue_runners(session, check=False),
        ):
            session.run(batch)
        coord.request_stop()
        coord.join()


# -- finalized graphs ----------------------------------------------------------------------------------------------


def test_the_failure_of_a_monitored_session_is_the_last_word(path) -> None:
    graph, batch = graph_of(labels([path, "missing.tfrecord"], 5))
    with (
        graph.as_default(),
        pytest.raises(PipelineFailed) as caught,
        tf1.train.MonitoredSession() as session,
        tfqueue.queue_runners(session, check=False),
    ):
        while not session.should_stop():
            session.run(batch)
    assert caught.value.cause_name == "missing-file"


def test_a_stall_in_a_finalized_graph_is_seen_and_the_graph_stays_finalized() -> None:
    graph, value = graph_of(lambda: tf1.FIFOQueue(3, tf.int32, [[]], name="mine").dequeue())
    with graph.as_default(), tf1.train.MonitoredSession() as session:
        with (
            pytest.raises(PipelineStalled, match="mine") as caught,
            tfqueue.queue_runners(session, check=False, stall_timeout=0.3),
        ):
            session.run(value)
        assert graph.finalized
    assert (caught.value.cause_name, caught.value.size) == ("no-runner", 0)


def test_a_finalized_graph_has_accounts(path) -> None:
    graph, batch = graph_of(labels([path], 5, num_epochs=None))
    with graph.as_default(), tf1.train.MonitoredSession() as session:
        with tfqueue.queue_runners(session) as coord:
            pause = threading.Event()
            while not any(queue.fullest for queue in coord.stats.queues):
                session.run(batch)
                pause.wait(0.01)
        assert {queue.name for queue in coord.stats.queues} == {"input_producer", "batch/fifo_queue"}


@contextlib.contextmanager
def _errors_of_threads():
    errors = []
    before, threading.excepthook = threading.excepthook, errors.append
    try:
        yield errors
    finally:
        threading.excepthook = before
