"""Why nothing moves, judged from queues and runners alone."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tests.pipelines import tf1
from tfqueue import stall
from tfqueue.stall import QueueState, RunnerState
from tfqueue.topology.trace import trace

NAMES, BATCH = "input_producer", "batch/fifo_queue"
PRODUCE, ENQUEUE = "input_producer/input_producer_EnqueueMany", "batch/fifo_queue_enqueue"


@pytest.fixture(scope="module")
def topology():
    def build_fn():
        names = tf1.train.string_input_producer(["a", "b"], num_epochs=1)
        return tf1.train.batch([tf1.TFRecordReader().read(names)[1]], 4, capacity=8)

    return trace(build_fn)


def find(topology, names, batch, *, produce=True, enqueue=True, python=False, others=False):
    """The finding for sizes of the two queues (None: closed and empty) and the state of the two threads."""
    states = {n: QueueState(size or 0, size is None) for n, size in ((NAMES, names), (BATCH, batch))}
    runners = [
        RunnerState(op, f"thread {op}", alive, 3)
        for op, alive in ((PRODUCE, produce), (ENQUEUE, enqueue))
        if alive is not None
    ]
    return stall.find(topology, states, runners, in_python_function=python, other_threads=others)


def test_a_runner_that_has_input_and_room_is_working(topology) -> None:
    found = find(topology, 1, 0)
    assert (found.cause_name, found.certain) == ("stage-busy", False)
    assert ENQUEUE in found.words


def test_a_function_of_python_that_runs_is_working(topology) -> None:
    assert find(topology, 0, 0, python=True).cause_name == "stage-busy"


def test_full_queues_are_no_stall(topology) -> None:
    found = find(topology, 32, 8)
    assert (found.cause_name, found.certain) == ("not-a-queue", False)


def test_the_starved_queue_nearest_to_the_source_is_blamed(topology) -> None:
    found = find(topology, 0, 0, produce=False)
    assert (found.cause_name, found.certain, found.queue) == ("runner-ended", True, NAMES)


def test_runners_that_were_never_started(topology) -> None:
    found = find(topology, 0, 0, produce=None, enqueue=None)
    assert (found.cause_name, found.certain, found.queue) == ("runners-not-started", True, NAMES)
    assert "start_queue_runners" in found.advice


def test_a_queue_that_is_closed_is_not_starved(topology) -> None:
    assert find(topology, None, 0).cause_name == "stage-busy"  # the reader may be inside its last file


def test_a_queue_without_a_runner_may_be_fed_by_a_thread() -> None:
    def build_fn():
        return tf1.FIFOQueue(3, tf.int32, [[]], name="mine").dequeue()

    topology = trace(build_fn)
    for others in (False, True):
        found = stall.find(topology, {"mine": QueueState(0, False)}, [], in_python_function=False, other_threads=others)
        assert (found.cause_name, found.certain, found.queue) == ("no-runner", not others, "mine")


def test_a_shuffle_queue_is_starved_at_min_after_dequeue() -> None:
    def build_fn():
        return tf1.train.shuffle_batch([tf.constant(1)], 2, capacity=20, min_after_dequeue=5)

    topology = trace(build_fn)
    queue = topology.queues[0]
    runner = RunnerState(queue.enqueues[0].name, "t", False, 5)
    for size, cause in ((5, "runner-ended"), (6, "not-a-queue")):
        found = stall.find(
            topology,
            {queue.name: QueueState(size, False)},
            [runner],
            in_python_function=False,
            other_threads=False,
        )
        assert found.cause_name == cause


def test_the_report_names_queues_sizes_lines_and_threads(topology) -> None:
    states = {NAMES: QueueState(0, False), BATCH: QueueState(0, False)}
    runners = [RunnerState(PRODUCE, "one", False, 1), RunnerState(ENQUEUE, "two", True, 0)]
    found = stall.find(topology, states, runners, in_python_function=False, other_threads=False)
    error = stall.report(found, topology, states, runners, 60.0)
    assert (error.queue, error.size, error.alive, error.cause_name) == (NAMES, 0, ("two",), "runner-ended")
    text = str(error)
    assert "nothing has moved for 60 s" in text
    assert f"queue {BATCH}: 0 of 8 elements, built at test_stall.py:" in text
    assert f"alive: {ENQUEUE} (waits for {NAMES})" in text
    assert f"ended: {PRODUCE}, after 1 run" in text


def test_what_nobody_has_counted_is_not_reported(topology) -> None:
    states = {NAMES: QueueState(0, False), BATCH: QueueState(0, False)}
    for runs, words in ((None, f"ended: {PRODUCE}"), (0, f"ended: {PRODUCE}, after 0 runs"), (1, ", after 1 run")):
        runners = [RunnerState(PRODUCE, "one", False, runs)]
        found = stall.find(topology, states, runners, in_python_function=False, other_threads=False)
        assert any(line.endswith(words) for line in str(stall.report(found, topology, states, runners, 1)).splitlines())
