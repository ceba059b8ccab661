"""Ctrl-C, SIGTERM and fork, in child processes, as a person or an operating system does it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.programs import ROOT

PRELUDE = """
import os, signal, sys, threading, time
import tensorflow as tf
import tfqueue
tf1 = tf.compat.v1

def starved():
    queue = tf1.FIFOQueue(3, tf.int32, [[]], name="mine")
    return queue.dequeue_many(2)

def state():
    wakeup = signal.set_wakeup_fd(-1)
    return [t.name for t in threading.enumerate()], wakeup
"""


@pytest.fixture
def start():
    """Starts a program; gives the process once it has said "ready"."""
    started = []

    def start_program(body: str, *, log_level: str = "3") -> subprocess.Popen[str]:
        environment = os.environ | {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": log_level}
        child = subprocess.Popen(
            [sys.executable, "-u", "-c", PRELUDE + body],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        started.append(child)
        for line in child.stdout:
            if line == "ready\n":
                return child
        raise AssertionError("the program ended before it was ready")

    yield start_program
    for child in started:
        child.kill()
        child.wait()
        child.stdout.close()


def end_of(child: subprocess.Popen[str]) -> tuple[int, str]:
    # Not by communicate(): it does not see what came together with the line "ready" and was read with it.
    output = child.stdout.read()
    return child.wait(timeout=60), output


def test_ctrl_c_frees_a_blocked_step_and_leaves_nothing_behind(start) -> None:
    # A pipeline of its own and a session of the user's, each blocked for ever, in one process.
    child = start("""
for kind in ("pipeline", "session"):
    try:
        if kind == "pipeline":
            with tfqueue.QueuePipeline(starved, check=False, stall_timeout=600) as pipeline:
                print("ready")
                next(pipeline)
        else:
            with tf.Graph().as_default(), tf1.Session() as session:
                value = starved()
                with tfqueue.queue_runners(session, check=False, stall_timeout=600):
                    print("ready")
                    session.run(value)
    except KeyboardInterrupt:
        print(kind, "interrupted", *state(), signal.getsignal(signal.SIGINT) is signal.default_int_handler)
""")
    for kind in ("pipeline", "session"):
        until_blocked(child)
        pressed = time.monotonic()
        child.send_signal(signal.SIGINT)
        line = child.stdout.readline()
        assert line == f"{kind} interrupted ['MainThread'] -1 True\n"
        # Not the end of the stall_timeout; a second on an idle machine: benchmarks/lifecycle.py measures it.
        assert time.monotonic() - pressed < 100
        if kind == "pipeline":
            assert child.stdout.readline() == "ready\n"
    assert end_of(child) == (0, "")


def until_blocked(child: subprocess.Popen[str]) -> None:
    """Wait until the main thread of the child sleeps in the kernel for ten looks in a row: it is inside the step."""
    asleep = 0
    for _ in range(3000):
        # Another process sends no event for this; the operating system knows ("S": sleeping).
        state = Path(f"/proc/{child.pid}/task/{child.pid}/stat").read_text().rpartition(")")[2].split()[0]
        asleep = asleep + 1 if state == "S" else 0
        if asleep == 10:
            return
        time.sleep(0.02)
    raise AssertionError("the step never blocked")


def test_a_handler_of_the_users_own_that_does_not_raise_keeps_the_pipeline_running(start) -> None:
    child = start("""
stop = []
signal.signal(signal.SIGINT, lambda *_: stop.append(1))
def endless():
    return tf1.train.batch([tf.constant(1)], 2)
with tfqueue.QueuePipeline(endless) as pipeline:
    print("ready")
    while not stop:
        next(pipeline)
    for _ in range(100):
        next(pipeline)
print("gone on", *state())
""")
    child.send_signal(signal.SIGINT)
    assert end_of(child) == (0, "gone on ['MainThread'] -1\n")


def test_sigterm_is_left_alone(start) -> None:
    child = start("""
with tfqueue.QueuePipeline(starved, check=False, stall_timeout=600) as pipeline:
    print("ready")
    next(pipeline)
""")
    until_blocked(child)
    child.send_signal(signal.SIGTERM)
    assert end_of(child)[0] == -signal.SIGTERM


def test_an_event_loop_that_listens_for_signals_still_hears_them(start) -> None:
    child = start("""
import asyncio
async def main():
    heard = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, heard.set)
    with tfqueue.QueuePipeline(starved, check=False, stall_timeout=600):
        print("ready")
        await asyncio.wait_for(heard.wait(), 30)
        print("heard")
asyncio.run(main())
""")
    child.send_signal(signal.SIGUSR1)
    assert end_of(child) == (0, "heard\n")


def test_a_fork_is_refused_with_a_reason(start) -> None:
    child = start("""
import warnings; warnings.simplefilter("ignore")  # Python 3.12 warns of a fork with threads
def endless():
    return tf1.train.batch([tf.constant(1)], 2)
with tfqueue.QueuePipeline(endless) as pipeline:
    next(pipeline)
    print("ready")
    if os.fork() == 0:
        for use in (lambda: next(pipeline), lambda: tfqueue.QueuePipeline(endless).__enter__()):
            try:
                use()
            except tfqueue.errors.PipelineError as error:
                print("refused:", "do not survive a fork" in str(error))
        os._exit(0)
    os.wait()
    next(pipeline)
print("parent goes on")
""")
    assert end_of(child) == (0, "refused: True\nrefused: True\nparent goes on\n")


def test_a_clean_stop_prints_nothing(start) -> None:
    # TensorFlow's own warnings included: a cancelled enqueue makes it print one for each queue.
    child = start(
        """
import tfqueue.engines.threads
tfqueue.engines.threads._QUIET_SECONDS = 60  # on a busy machine the runners need more of it
def endless():
    numbers = tf1.train.slice_input_producer([list(range(50))])
    return tf1.train.shuffle_batch(numbers, 3, capacity=30, min_after_dequeue=10, num_threads=3)
for _ in range(5):
    with tfqueue.QueuePipeline(endless, check=False) as pipeline:
        next(pipeline)
with tf.Graph().as_default(), tf1.Session() as session:
    batch = endless()
    with tfqueue.queue_runners(session, check=False) as coord:
        session.run(batch)
        print("ready")
        coord.request_stop()
        coord.join()
print("ended")
""",
        log_level="0",
    )
    assert end_of(child) == (0, "ended\n")
