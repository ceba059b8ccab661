"""Runs a program as a careful TF1 user would, with plain TensorFlow only: the gallery's oracle."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v1 as tf

from .registry import Program

_QUEUE_TYPES = {
    "FIFOQueueV2",
    "RandomShuffleQueueV2",
    "PaddingFIFOQueueV2",
    "PriorityQueueV2",
}


@dataclass(frozen=True, slots=True)
class Run:
    """What one run delivered, and the first error of a runner, a feeder or a step; None after a clean end."""

    batches: tuple[Any, ...]
    error: BaseException | None


def run(program: Program, *, steps: int | None = None, timeout: float = 60.0, graph_optimizer: bool = True) -> Run:
    """Runs `program` to the end of its data (an endless one for ``program.steps`` batches).

    Args:
        program: What to run, in a graph and session of its own.
        steps: Stop after so many batches.
        timeout: Seconds after which the run counts as hung.
        graph_optimizer: False leaves TensorFlow's graph optimiser out, which takes a third of a short run's time.

    Raises:
        TimeoutError: It hung. Its daemon threads stay behind: nothing ends a blocked ``session.run`` safely.
    """
    # TensorFlow sometimes loses the close of a queue, and a sound program then waits for ever: it is run anew.
    for _ in range(2):
        try:
            return _run_once(program, steps, timeout, graph_optimizer)
        except TimeoutError:
            continue
    return _run_once(program, steps, timeout, graph_optimizer)


def _run_once(program: Program, steps: int | None, timeout: float, graph_optimizer: bool) -> Run:
    config = tf.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = not graph_optimizer
    results: list[Run] = []
    failures: list[BaseException] = []
    done = threading.Event()

    def work() -> None:
        try:
            results.append(_run(program, steps if steps is not None or program.finite else program.steps, config))
        except BaseException as error:  # noqa: BLE001 - handed to the caller's thread
            failures.append(error)
        finally:
            done.set()

    threading.Thread(target=work, name=f"gallery {program.name}", daemon=True).start()
    if not done.wait(timeout):
        raise TimeoutError(f"{program.name} did not end within {timeout} s")
    if failures:
        raise failures[0]
    return results[0]


def _run(program: Program, steps: int | None, config: tf.ConfigProto) -> Run:
    batches: list[Any] = []
    error: BaseException | None = None
    with tf.Graph().as_default() as graph:
        fetches = program.build_fn()
        initialisers = [
            tf.global_variables_initializer(),
            tf.local_variables_initializer(),
            tf.tables_initializer(),
        ]
        queues = [op for op in graph.get_operations() if op.type in _QUEUE_TYPES]
        # Who waits for a queue that only a Python thread feeds (or for room in it) is woken by closing it.
        close = [tf.raw_ops.QueueCloseV2(handle=q.outputs[0], cancel_pending_enqueues=True) for q in queues]
        # A runner that waits for room in a full staging area cannot be cancelled: it needs the room.
        clear = [
            tf.raw_ops.StageClear(
                dtypes=op.get_attr("dtypes"),
                capacity=op.get_attr("capacity"),
                memory_limit=op.get_attr("memory_limit"),
                container=op.get_attr("container"),
                shared_name=op.get_attr("shared_name"),
            )
            for op in graph.get_operations()
            if op.type == "Stage"
        ]
        with tf.Session(graph=graph, config=config) as session:
            session.run(initialisers)
            coord = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(session, coord)
            threads += [_start(coord, feeder, session, coord) for feeder in program.feeders]
            threads.append(_start(coord, lambda: (coord.wait_for_stop(), session.run(close))))
            try:
                while not coord.should_stop() and (steps is None or len(batches) < steps):
                    step = len(batches)
                    if program.before_step is not None:
                        program.before_step(session, step)
                    feed = None if program.feed is None else dict(program.feed(step))
                    batches.append(session.run(fetches, feed_dict=feed))
            except tf.errors.OutOfRangeError:
                pass  # The end of the data, or a runner's failure, which join raises.
            except Exception as caught:  # noqa: BLE001 - join raises it, or what came before it
                coord.request_stop(caught)
            coord.request_stop()
            session.run(clear)
            try:
                coord.join(threads, stop_grace_period_secs=30)
            except Exception as caught:  # noqa: BLE001 - the caller judges it
                error = caught
    return Run(tuple(batches), error)


def _start(coord: tf.train.Coordinator, function: Callable[..., object], *args: object) -> threading.Thread:
    def work() -> None:
        # What a feeder raises after the stop (its queue was closed under it) is ignored by the coordinator.
        with coord.stop_on_exception():
            function(*args)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread
