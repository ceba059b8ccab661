"""Threads of a stopped run: slow ones are waited for, those inside a Python function only for a while."""

from __future__ import annotations

import threading

import tensorflow as tf

from tfqueue.engines.ending import join_all

tf1 = tf.compat.v1


def test_a_thread_that_is_slow_to_get_its_turn_is_waited_for() -> None:
    turn, asked = threading.Event(), threading.Event()

    class Slow(threading.Thread):
        def join(self, timeout: float | None = None) -> None:
            if asked.is_set():  # the second time, when the grace of no seconds is over
                turn.set()
            asked.set()
            super().join(timeout)

    thread = Slow(target=turn.wait, daemon=True)
    thread.start()
    assert join_all([thread], 0.0) == []


def test_a_python_function_that_does_not_end_is_given_up() -> None:
    inside, leave = threading.Event(), threading.Event()

    def stuck() -> int:
        inside.set()
        leave.wait()
        return 7

    with tf.Graph().as_default(), tf1.Session() as session:
        value = tf1.py_func(stuck, [], tf.int64)
        thread = threading.Thread(target=session.run, args=(value,), daemon=True)
        thread.start()
        assert inside.wait(60)
        assert join_all([thread], 0.01) == [thread]
        leave.set()
        assert join_all([thread], 60.0) == []
