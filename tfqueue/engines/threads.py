"""The engine "threads": the real queue runners of a graph, started once, watched, and stopped cleanly.

The runners are TensorFlow's own `QueueRunner` objects (or subclasses of it), run by their own `create_threads`, so
that a program that also calls `start_queue_runners` does not start them twice. What they do is seen through the
coordinator that they are given: a runner thread asks `should_stop` once before each enqueue, and hands its error to
`request_stop`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from tfqueue.consumers import coordinators_of, look, raised_in
from tfqueue.engines.ending import join_all
from tfqueue.engines.queue_ops import (
    QUEUE_TYPES,
    QueueHandle,
    StagingHandle,
    queue_operations,
    reopened,
    runs_at_once,
    staging_operations,
)

tf1 = tf.compat.v1

# How long runners have to end by themselves, and how often they are looked at meanwhile.
_QUIET_SECONDS = 0.5
_QUIET_PAUSE = 0.0005

_ENDINGS = (tf.errors.OutOfRangeError, tf.errors.CancelledError)


@dataclass(slots=True)
class RunnerThread:
    """One thread of a queue runner: which op it runs, how often it did, how it ended."""

    runner: str
    enqueue_op: str
    queue: str
    thread: threading.Thread
    counted: bool = True  # whether it asks once before each enqueue; a class of the user's own may do otherwise
    turns: int = field(default=0)

    @property
    def enqueued(self) -> int:
        """The enqueue steps finished; the newest turn is under way, or was the one that met the end."""
        return max(0, self.turns - 1)


@dataclass(frozen=True, slots=True)
class FirstError:
    """What was raised first in a pipeline, and by which of its threads (None: by none that we started).

    ``coord`` is the coordinator that has it, where that is none of ours.
    """

    error: BaseException
    runner: RunnerThread | None
    coord: Any = None


class WatchedCoordinator(tf1.train.Coordinator):  # type: ignore[misc,name-defined]
    """A coordinator that counts the turns of the runner threads and keeps the first error with its origin."""

    def __init__(
        self,
        before_step: Callable[[], None] | None = None,
        after_error: Callable[[], None] | None = None,
        before_join: Callable[[], None] | None = None,
    ) -> None:
        super().__init__()
        self._after_error = after_error
        self._before_join = before_join
        self._closers: set[threading.Thread] = set()
        self._close_now = threading.Event()
        self._runner_threads: dict[threading.Thread, RunnerThread] = {}
        self._here = threading.local()  # .runner: the RunnerThread of the thread that asks, if it is one
        self._before_step = before_step
        self._first_error: FirstError | None = None
        self._first_error_lock = threading.Lock()
        self.tell_stats: Callable[[], Any] | None = None
        self.stopping = False
        """Like `should_stop`, for who only looks."""

    @property
    def stats(self) -> Any:
        """The accounts of the run so far, a `PipelineStats`; they stay after the run. None before the start."""
        return self.tell_stats() if self.tell_stats is not None else None

    @property
    def first_error(self) -> FirstError | None:
        """What a thread handed to `request_stop` first, or None."""
        return self._first_error

    def release(self) -> None:
        """Forget whom to tell; the accounts stay as they are now."""
        stats = self.stats
        self._before_step = self._after_error = self._before_join = None
        self.tell_stats = lambda: stats

    def hold(self, closer: threading.Thread) -> None:
        """Let this thread of a runner's, which cancels its queue on a stop, wait until `close_now`."""
        self._closers.add(closer)

    def close_now(self) -> None:
        """Let the threads that cancel the runners' queues do so."""
        self._close_now.set()

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        if threading.current_thread() in self._closers:
            return self._close_now.wait(timeout)
        return bool(super().wait_for_stop(timeout))

    def join(self, *arguments: Any, **options: Any) -> None:
        if self._before_join is not None and self.stopping:
            self._before_join()
        super().join(*arguments, **options)

    def watch(self, runner: RunnerThread) -> None:
        """Count the turns of this runner thread from now on."""
        self._runner_threads[runner.thread] = runner

    def should_stop(self) -> bool:
        # Asked before each enqueue, so it costs what counts: no call, no lock, no look-up of the thread.
        try:
            runner = self._here.runner
        except AttributeError:  # the first time, or no runner
            runner = self._runner_threads.get(threading.current_thread())
            if runner is not None:
                self._here.runner = runner
        if runner is not None:
            runner.turns += 1
        elif self._before_step is not None and not self.stopping:
            self._before_step()
        return self.stopping

    def clear_stop(self) -> None:
        super().clear_stop()
        self.stopping = False

    def request_stop(self, ex: Any = None) -> None:
        if ex is not None:
            error = ex[1] if isinstance(ex, tuple) else ex
            # The end of the input, or of the queue that was waited for, is how a runner ends, not what went wrong.
            if not isinstance(error, _ENDINGS):
                with self._first_error_lock:
                    if self._first_error is None and not self.stopping:
                        runner = self._runner_threads.get(threading.current_thread())
                        self._first_error = FirstError(error, runner)
        if self.joined:  # a straggler's error after the end: there is nobody left to hear it
            return
        super().request_stop(ex)
        self.stopping = True
        if ex is not None:
            self.close_now()
        if ex is not None and self._after_error is not None:
            # The runners' own threads close their queues on a stop, too; but measured, when an assertion inside a
            # tf.cond fails, in two runs of five a queue stays open, and who waits for it waits for ever.
            self._after_error()


class RunnerThreads:
    """Starts, watches and stops the queue runners of one graph in one session.

    Args:
        graph: The graph; its `QUEUE_RUNNERS` collection is what is run.
        session: A session that runs `graph`.
        before_step: Called when a thread that is no runner asks the coordinator whether to stop.
    """

    def __init__(self, graph: tf.Graph, session: Any, *, before_step: Callable[[], None] | None = None) -> None:
        self.graph = graph
        self.session = session
        self.coord = WatchedCoordinator(before_step, after_error=self.cancel_queues, before_join=self.end_quietly)
        self.threads: list[RunnerThread] = []
        self.handles: dict[str, QueueHandle] = {}
        self.foreign: list[Any] = []  # runners that somebody else had started in this session
        self._foreign_coords: list[Any] = []
        self._earlier: FirstError | None = None
        self._all_threads: list[threading.Thread] = []
        self._known_runners: set[int] = set()
        self._cancel_calls: dict[str, Callable[[], Any]] = {}
        self._staging_calls: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {}
        self._graph_version = -1
        self._lock = threading.Lock()

    # -- start ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Make the handles of all queues, then start every runner of the collection."""
        self.adopt_queues()
        self._start_new_runners()

    def rescan(self) -> None:
        """Start runners that were added to the graph since the last look; does nothing if the graph is unchanged."""
        if self.grown:
            self.start()

    @property
    def grown(self) -> bool:
        """Whether ops were added to the graph since the last `start` or `rescan`."""
        return bool(self.graph.version != self._graph_version)

    def adopt_queues(self) -> None:
        """Make the ops that look at, close and wake the queues and staging areas of the graph as it is now."""
        queues = [op for op in queue_operations(self.graph) if op.name not in self._cancel_calls]
        areas = [op for op in staging_operations(self.graph) if op.name not in self._staging_calls]
        # Some have handles already, made before the graph was finalized, by who saw that coming.
        new = [op for op in queues if op.name not in self.handles]
        if new or areas:
            with reopened(self.graph):
                self.handles.update({op.name: QueueHandle(op) for op in new})
                staging = {op.name: StagingHandle(op) for op in areas}
            for name, area in staging.items():
                calls = (runs_at_once(self.session, area.clear_op), runs_at_once(self.session, area.fill_op))
                self._staging_calls[name] = calls
        for operation in queues:
            self._cancel_calls[operation.name] = runs_at_once(self.session, self.handles[operation.name].cancel_op)
        self._graph_version = self.graph.version

    def look_back(self) -> dict[str, int]:
        """Look, before the start, for queues that were closed in this session already, by runners of somebody else's.

        If an error has ended them, it is the `first_error` from then on.

        Returns:
            The number of elements in each closed queue.
        """
        self.adopt_queues()
        if not self.handles:
            return {}
        ask = runs_at_once(self.session, {h.name: [h.is_closed, h.size] for h in self.handles.values()})
        closed = {name: int(size) for name, (is_closed, size) in ask().items() if is_closed}
        runners = self.graph.get_collection(tf1.GraphKeys.QUEUE_RUNNERS)
        self._find_earlier(runner for runner in runners if queue_of_runner(runner) in closed)
        return closed

    def look_back_at_the_end(self) -> None:
        """Look once more for what `look_back` looks for: a runner may have failed between it and our start.

        Then nothing but a closed queue was left for the threads that we started for it.
        """
        for runner in self.graph.get_collection(tf1.GraphKeys.QUEUE_RUNNERS):
            ops = {op.name for op in enqueue_operations(runner)}
            threads = [thread for thread in self.threads if thread.enqueue_op in ops]
            if threads and all(thread.counted and thread.turns <= 1 for thread in threads):
                self._find_earlier([runner])

    def _find_earlier(self, runners: Iterable[Any]) -> None:
        for runner in runners:
            if self._earlier is not None:
                return
            found = raised_in(runner, self.session)
            if found is not None and not isinstance(found[1], _ENDINGS):
                self._earlier = FirstError(found[1], None, found[0])

    def _start_new_runners(self) -> None:
        for runner in self.graph.get_collection(tf1.GraphKeys.QUEUE_RUNNERS):
            if id(runner) not in self._known_runners:
                self.start_runner(runner)

    def start_runner(self, runner: Any, *, start: bool = True) -> list[threading.Thread]:
        """Make the threads of one runner, watch them, and start them; empty where somebody else has them running."""
        self._known_runners.add(id(runner))
        threads: list[threading.Thread] = runner.create_threads(
            self.session, coord=self.coord, daemon=True, start=False
        )
        if not threads:
            self.foreign.append(runner)
            self._foreign_coords += coordinators_of(runner)
        enqueue_ops = enqueue_operations(runner)
        for position, thread in enumerate(threads):
            # create_threads gives one thread an enqueue op, in order, and then the one that closes the queue.
            if position < len(enqueue_ops):
                op = enqueue_ops[position]
                watched = RunnerThread(runner.name, op.name, _queue_name(runner, op), thread, _counts(runner))
                self.coord.watch(watched)
                self.threads.append(watched)
            else:
                self.coord.hold(thread)
            self._all_threads.append(thread)
        for thread in threads:
            if start and thread.ident is None:  # a class of the user's own may have started it already
                thread.start()
        return threads

    # -- look ----------------------------------------------------------------------------------------------------

    @property
    def first_error(self) -> FirstError | None:
        """What went wrong first in a runner, or None."""
        if self._earlier is not None:
            return self._earlier
        if self.coord.first_error is not None:
            return self.coord.first_error
        for runner in self.foreign:
            for error in runner.exceptions_raised:
                if not isinstance(error, _ENDINGS):
                    return FirstError(error, None)
        for coord in self._foreign_coords:
            try:
                coord.raise_requested_exception()
            except _ENDINGS:
                continue
            except Exception as error:  # noqa: BLE001 - whatever a thread of the runner has raised
                return FirstError(error, None, coord)
        return None

    @property
    def stopping(self) -> bool:
        """Whether a stop was requested, by a failure or by the end of the block."""
        return self.coord.stopping

    @property
    def turns(self) -> tuple[int, ...]:
        """How often each runner thread has begun a turn: changes while anything is enqueued."""
        return tuple(thread.turns for thread in self.threads)

    def thread_idents(self) -> set[int]:
        """The identifiers of all threads that the runners have."""
        return {thread.ident for thread in self._all_threads if thread.ident is not None}

    # -- stop ----------------------------------------------------------------------------------------------------

    def cancel_queues(self) -> None:
        """Close every queue and cancel what waits in it, so that no thread stays blocked in one."""
        with self._lock:
            clears = [clear for clear, _ in self._staging_calls.values()]
            for cancel in (*self._cancel_calls.values(), *clears):
                try:
                    cancel()
                except (tf.errors.OpError, RuntimeError):
                    continue  # already closed, or the session is gone: either way nobody waits in it any more

    def close_ended(self) -> None:
        """Close, if need be again, the queues whose runner threads have all ended.

        The last thread of a runner closes the queue when its input has ended. Seen, if seldom: the threads have ended,
        and who waits for the queue waits for ever all the same, in plain TensorFlow too. A close wakes whoever waits.
        """
        for name, close in list(self._cancel_calls.items()):
            threads = [runner.thread for runner in self.threads if runner.queue == name]
            if threads and not any(thread.is_alive() for thread in threads):
                try:
                    close()
                except (tf.errors.OpError, RuntimeError):
                    continue

    def fill_staging_areas(self) -> None:
        """Give who waits for an element of a staging area a worthless one.

        Only once nothing else can come: the step that takes it must not be delivered.
        """
        with self._lock:
            for _, fill in self._staging_calls.values():
                try:
                    fill()
                except (tf.errors.OpError, RuntimeError):
                    continue

    @property
    def has_staging_areas(self) -> bool:
        """Whether the graph carries data through a staging area."""
        return bool(self._staging_calls)

    def stop(self, grace: float) -> list[threading.Thread]:
        """Ask all threads to stop, free those that wait in a queue, and join them.

        Args:
            grace: Seconds that the threads have together, as for `join_all`.

        Returns:
            The threads that are still alive.
        """
        self.coord.request_stop()
        # A runner that somebody else had started takes a cancelled queue for an error, unless its coordinator stops.
        for coord in self._foreign_coords:
            if not coord.should_stop():
                coord.request_stop()
        self.end_quietly()
        self.cancel_queues()
        return self.join(grace)

    def end_quietly(self) -> None:
        """After a stop without an error: let the runners end by themselves, as far as they can in a moment.

        A cancelled enqueue makes TensorFlow print a warning for each queue. So a runner that waits for room is given
        it, and sees the stop; one that waits for an element learns that there will be none. What is still alive after
        that is cancelled.
        """
        deadline = time.monotonic() + _QUIET_SECONDS
        calls: dict[str, tuple[Callable[[], Any], ...]] = {}
        filled = {runner.queue for runner in self.threads}
        while self.first_error is None and self.handles and time.monotonic() < deadline:
            alive = {runner.queue for runner in self.threads if runner.thread.is_alive()}
            if not alive or set(look(self.session).in_session) - self.thread_idents() - {threading.get_ident()}:
                break  # somebody else takes from the queues: what we would take might be waited for
            for name, handle in list(self.handles.items()):
                if name not in calls:
                    ops = (handle.size, handle.take_op, handle.is_closed, handle.close_op)
                    calls[name] = tuple(runs_at_once(self.session, op) for op in ops)
                size, take, is_closed, close = calls[name]
                try:
                    if name in alive and 0 <= handle.capacity <= size():
                        take()
                    elif name not in alive and name in filled and not is_closed():
                        close()
                except (tf.errors.OpError, RuntimeError):
                    continue
            time.sleep(_QUIET_PAUSE)
        self.coord.close_now()

    def join(self, grace: float) -> list[threading.Thread]:
        """Join the runner threads, as `join_all` does; returns those still alive."""
        return join_all(self._all_threads, grace)

    def release(self) -> None:
        """Let go of the session: in the cycles of these objects it would stay until the garbage collector comes by."""
        with self._lock:
            self._cancel_calls.clear()
            self._staging_calls.clear()
            self.handles.clear()
            self._foreign_coords.clear()
            self._earlier = None
        self.coord.release()
        self.session = None


def enqueue_operations(runner: Any) -> Sequence[tf.Operation]:
    """The ops that a queue runner runs, one for each of its threads."""
    return [op.op if hasattr(op, "op") else op for op in runner.enqueue_ops]


def _counts(runner: Any) -> bool:
    """Whether a runner asks the coordinator once before each enqueue, as a class of the user's own need not."""
    return type(runner) is tf1.train.QueueRunner


def _queue_name(runner: Any, enqueue_op: tf.Operation) -> str:
    """The queue's op name; a runner's op may enqueue through others (tf.group), then its own queue is asked."""
    for tensor in enqueue_op.inputs:
        if tensor.op.type in QUEUE_TYPES:
            return str(tensor.op.name)
    return queue_of_runner(runner) or str(runner.name)


def queue_of_runner(runner: Any) -> str | None:
    """The op name of the queue that a runner says it fills; None when it says none."""
    queue = runner.queue
    # A runner that comes from a MetaGraph has the queue's op, or its output, where others have a queue object.
    found = getattr(queue, "queue_ref", queue)
    found = getattr(found, "op", found)
    return str(found.name) if found is not None else None
