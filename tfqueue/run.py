"""One run of a graph in a session: what QueuePipeline and queue_runners have in common."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import tensorflow as tf

from tfqueue import consumers, interrupts
from tfqueue.diagnosis.failure import failure
from tfqueue.engines.fed import Fed, refuse_used_queues
from tfqueue.engines.lockstep import Lockstep
from tfqueue.engines.lowered import Source, lowered
from tfqueue.engines.threads import RunnerThreads
from tfqueue.errors import PipelineError, PipelineStalled, TFQueueWarning
from tfqueue.growth import Growth
from tfqueue.rows import rows_of, unknown_rows
from tfqueue.startcheck import check_before_start
from tfqueue.stats import Accounts, PipelineStats
from tfqueue.topology.model import Topology
from tfqueue.topology.trace import trace
from tfqueue.watchdog import Watchdog

# Seconds that the threads have after every queue was closed, and again after the session was closed under them.
_GRACE = 3.0
# Seconds that a handler of the user's own has, which may not raise, before a blocked step is freed after all.
_PATIENCE_WITH_HANDLER = 0.5

_AFTER_FORK = (
    "the pipeline was started in another process: TensorFlow's threads and sessions do not survive a fork; "
    "open the pipeline in the process that reads it (multiprocessing: start method 'spawn')"
)
_first_pid: list[int] = []

# What TensorFlow says in an error of an op that eager code has run.
_EAGER = "{{function_node __wrapped__"


class Run:
    """Starts the runners, watches them, hands out steps, and stops everything.

    Args:
        graph: The graph.
        session: A session of it, initialised.
        fetches: What a step fetches; None for a session whose steps its owner runs.
        engine: ``"threads"``, ``"lockstep"``, or ``"tfdata"``, where ``graph`` is the legacy pipeline and the steps are
            those of the dataset that it was lowered to, or, without ``fetches``, are fed from such datasets.
        stall_timeout: Seconds without progress after which the run is given up.
        shuffle: With the engine ``"tfdata"``: what stands for a shuffle queue, as for `to_dataset`.
    """

    def __init__(
        self,
        graph: tf.Graph,
        session: Any,
        fetches: Any = None,
        *,
        engine: str,
        stall_timeout: float,
        shuffle: str = "native",
    ) -> None:
        refuse_after_fork()
        self.graph = graph
        self.session = session
        self.fetches = fetches
        self.runners = RunnerThreads(graph, session, before_step=self.before_step)
        self._lockstep = Lockstep(graph) if engine == "lockstep" else None
        self._fed = Fed(graph, session, shuffle=shuffle) if engine == "tfdata" and fetches is None else None
        self._source: Source | None = self._fed.source if self._fed is not None else None
        if engine == "tfdata" and fetches is not None:
            self._source = lowered(graph, session, fetches, shuffle=shuffle)
        self._stall_timeout = stall_timeout
        self._attached = ExitStack()
        self.accounts = Accounts(self.runners)
        self.runners.coord.tell_stats = lambda: self.stats
        self.ended = False
        self._growth = Growth(graph)
        self._watchdog = Watchdog(
            self.runners,
            fetches,
            stall_timeout=stall_timeout,
            on_sample=self.accounts.sampled,
            on_stall=self._stall,
            on_slow=self._warn_from_outside,
        )
        self._pid = os.getpid()
        self._owner = threading.get_ident()
        self._failure: PipelineError | None = None
        self._stalled: PipelineStalled | None = None
        self._interrupted = False
        self._told = False  # whether a step has raised the failure already
        self._raise_later: TFQueueWarning | None = None
        self._listening = False
        self._left_alive: list[threading.Thread] = []
        self._topology: Topology | None = None
        self._step: Callable[[], Any] | None = None
        self._rows_of: Callable[[Any], int | None] = unknown_rows

    @property
    def topology(self) -> Topology:
        """The topology of the graph, traced anew only when the user has added ops to it."""
        if self._topology is None:
            self._topology = trace(self.graph, self.fetches)
        return self._topology

    @property
    def stats(self) -> PipelineStats:
        """The accounts as they stand."""
        return self.accounts.stats(self.topology)

    # -- in ----------------------------------------------------------------------------------------------------------

    def check(self, *, stacklevel: int) -> None:
        """Look at the pipeline before the start; raises what cannot work, warns of what was probably not meant."""
        for finding in check_before_start(self.graph, self.session, fetches=self.fetches, topology=self.topology):
            warnings.warn(str(finding), TFQueueWarning, stacklevel=stacklevel)

    def start(self) -> None:
        """Start the runners, the watchdog, and the ear for Ctrl-C."""
        topology = self.topology  # before the ops that close and ask the queues are added, which are not the user's
        make_step: Callable[[Any], Callable[[], Any]]
        if self._source is not None:
            make_step = self._step_of_source
            if self._fed is not None:
                self.runners.handles.update(refuse_used_queues(self.graph, self.session))
                self.runners.adopt_queues()
                self._attached.enter_context(self._fed.attached())
            self._source.watch(stall_timeout=self._stall_timeout, on_slow=self._warn_from_outside, on_stall=self._stall)
        elif self._lockstep is None:
            if self.fetches is None:
                self._look_back(topology)
            self.runners.start()
            make_step = self.session.make_callable
        else:
            self.runners.adopt_queues()
            self._lockstep.start(self.session, self.runners.coord)
            self._attached.enter_context(self._lockstep.attached())
            make_step = self._lockstep.make_step
        if self.fetches is not None:
            self._step = make_step(self.fetches)
            self._rows_of = rows_of(topology, self.fetches)
        if self._source is None:
            self._watchdog.start()
        self._listening = interrupts.listen(self._interrupt)

    def _step_of_source(self, fetches: Any) -> Callable[[], Any]:
        assert self._source is not None
        take = self._source.take
        return lambda: tf.nest.pack_sequence_as(fetches, take())

    def _look_back(self, topology: Topology) -> None:
        """Say what ended runners of this session that somebody else had started before this block."""
        closed = self.runners.look_back()
        if self.runners.first_error is not None:
            failed = self.replacement_for(None)
            assert failed is not None
            raise failed
        passed_on = {cut for stage in topology.transforms if stage.target is not None for cut in stage.inputs}
        for queue in topology.queues:
            between = queue.reads or any(d.name in passed_on for d in topology.dequeues if d.queue == queue.name)
            if queue.runners and not between and closed.get(queue.name) == 0:
                warnings.warn(
                    f"queue {queue.name!r} was closed and empty before this block began: no record will come. The "
                    f"threads that had filled it were started elsewhere and have ended, at the end of their data or by "
                    f"an error, which the coordinator that they were given raises when it is joined. Let "
                    f"queue_runners start the runners, in a new session",
                    TFQueueWarning,
                    stacklevel=4,
                )

    # -- steps -------------------------------------------------------------------------------------------------------

    def before_step(self) -> None:
        """What is to be done before each step, by the thread that runs it."""
        if os.getpid() != self._pid:
            raise PipelineError(_AFTER_FORK)
        if self._raise_later is not None:
            warning, self._raise_later = self._raise_later, None
            raise warning
        if threading.get_ident() == self._owner:
            grown = self.runners.grown
            self._growth.step(grown=grown)
            if grown:
                self._topology = None
            if grown and self._lockstep is None and self._source is None:
                self.runners.rescan()
            elif grown:
                self.runners.adopt_queues()

    def step(self) -> Any:
        """One step; raises StopIteration at the clean end of the data."""
        if self.ended or self._step is None:
            raise StopIteration
        self.before_step()
        started = time.perf_counter()
        try:
            batch = self._step()
            if self._watchdog.filled:
                raise tf.errors.OutOfRangeError(None, None, "the runners have ended; the staging area is empty")
        except BaseException as error:
            self.ended = True
            replacement = self.replacement_for(error)
            if replacement is None:
                self.accounts.sampled(self._watchdog.sample())
                self.accounts.ended = True
                raise StopIteration from None
            self._told = True
            if replacement is error:
                raise
            raise replacement from replacement.__cause__
        self.accounts.stepped(time.perf_counter() - started, self._rows_of(batch))
        return batch

    # -- out ---------------------------------------------------------------------------------------------------------

    def leave(self) -> None:
        """Stop the watchdog and the runners, cancel the queues, join the threads."""
        if self._listening:
            interrupts.forget(self._interrupt)
            self._listening = False
        self._watchdog.stop()
        if self._source is None and not self.runners.stopping:
            self.accounts.sampled(self._watchdog.sample())
        self._attached.close()
        if self._source is not None:
            self._source.close()
        self._left_alive = self.runners.stop(_GRACE)
        if self._lockstep is not None:
            self._left_alive += self._lockstep.stop(_GRACE)
        if self._left_alive and self.fetches is None:  # a session of the user's own stays open
            self._name_who_is_left(self._left_alive)

    def close_session(self) -> None:
        """Close the session, which also frees what waits in it outside of queues, and name who is left even then."""
        if not self._left_alive:
            self.session.close()
            return
        # Closing waits until every step has ended, and a function inside py_func may never end.
        closer = threading.Thread(target=self.session.close, name="tfqueue-close", daemon=True)
        closer.start()
        closer.join(_GRACE)
        self._name_who_is_left(self.runners.join(0.0))

    def release(self) -> None:
        """Let go of everything that holds the session, the last thing that is done with a run."""
        self._watchdog.release()
        self.runners.release()
        self._step = None
        self._lockstep = self._source = self._fed = None
        self.session = None

    def _name_who_is_left(self, threads: list[threading.Thread]) -> None:
        for thread in threads:
            warnings.warn(
                f"the thread {thread.name} did not stop: it is inside an op that nothing can cancel (a py_func?)",
                TFQueueWarning,
                stacklevel=4,
            )

    def replacement_for(self, error: BaseException | None) -> BaseException | None:
        """What the user should see instead of ``error``, which left a step or the block: None for nothing.

        A step that ends because its queue was closed looks the same at the end of the data and after a failure
        (OutOfRangeError). Which of the two it was, the runners know.
        """
        if self._interrupted and isinstance(error, (tf.errors.OpError, RuntimeError, SystemError)):
            return KeyboardInterrupt()
        if isinstance(error, PipelineError) or (error is not None and not isinstance(error, tf.errors.OpError)):
            return error  # the user's own, or one of ours
        if error is None and self._told:
            return None  # the user has caught the failure of a step, and goes on from there
        if self._stalled is not None:
            return self._stalled
        first = self.runners.first_error
        if first is not None:
            if self._failure is None:
                op = first.runner.enqueue_op if first.runner is not None else None
                self._failure = failure(
                    first.error,
                    self.graph,
                    session=self.session,
                    enqueue_op=op,
                    fetches=self.fetches,
                    enqueued=sum(thread.enqueued for thread in self.runners.threads if thread.enqueue_op == op),
                )
                if first.coord is not None:
                    # Whoever joins it later (MonitoredSession does on its way out) would raise the bare error instead.
                    first.coord.clear_stop()
                    first.coord.request_stop((type(self._failure), self._failure, None))
            return self._failure
        if error is None or isinstance(error, tf.errors.OutOfRangeError):
            return None
        failed = self._lockstep.failed_enqueue if self._lockstep is not None else None
        op = failed.name if failed is not None else None
        return failure(
            error,
            self.graph,
            session=self.session,
            enqueue_op=op,
            fetches=self.fetches,
            lowered=self._source is not None,
        )

    def replacement_outside_of_steps(self, error: BaseException | None) -> BaseException | None:
        """What the user should see instead of ``error``, which left the block.

        An error of another session's, or of eager code, is the user's own, an OutOfRangeError included.
        """
        if self._source is None and not self._interrupted and _is_from_elsewhere(error, self.graph):
            return error
        replacement = self.replacement_for(error)
        if replacement is None and self.fetches is None and self._source is None and not self._told:
            self.runners.look_back_at_the_end()
            replacement = self.replacement_for(error)
        return replacement

    # -- told by other threads ---------------------------------------------------------------------------------------

    def _stall(self, stalled: PipelineStalled) -> None:
        if self._stalled is None:
            self._stalled = stalled

    def _warn_from_outside(self, words: str) -> None:
        try:
            warnings.warn(words, TFQueueWarning, stacklevel=1)
        except TFQueueWarning as warning:  # warnings are errors here: raised where the user can see it
            self._raise_later = warning

    def _interrupt(self) -> None:
        """SIGINT has come: free the main thread if it is blocked in a step of this run."""
        main = threading.main_thread().ident
        if main is None or self.runners.stopping:
            return
        source = self._source
        session = self.session if source is None else source.session
        if session is None:
            return  # the run has ended meanwhile
        step = consumers.look(session).in_session.get(main)
        if step is None:
            return  # Python itself raises KeyboardInterrupt there
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            deadline = time.monotonic() + _PATIENCE_WITH_HANDLER
            while time.monotonic() < deadline:
                if consumers.look(session).in_session.get(main) != step:
                    return
                time.sleep(0.02)
        self._interrupted = True
        if self._source is None:
            self.runners.cancel_queues()
        else:
            self._source.close()


def _is_from_elsewhere(error: BaseException | None, graph: tf.Graph) -> bool:
    """Whether TensorFlow has raised an error, but not in a session of this graph."""
    if not isinstance(error, tf.errors.OpError):
        return False
    return bool(error.op.graph is not graph if error.op is not None else _EAGER in str(error))


def refuse_after_fork() -> None:
    """Raise PipelineError in a process that was forked from one in which TensorFlow ran a pipeline."""
    if not _first_pid:
        _first_pid.append(os.getpid())
    elif _first_pid[0] != os.getpid():
        raise PipelineError(_AFTER_FORK)


def config_for(graph: tf.Graph) -> Any:
    """The session configuration that a graph needs; None where the usual one will do.

    A Python function, or a staging area without room, holds a thread of the pool that all sessions share, which has as
    many as the machine has cores. With all of them held no step can go on, not even the one that would say why.
    """
    blocking = {"PyFunc", "PyFuncStateless", "EagerPyFunc", "Stage", "MapStage"}
    if not any(op.type in blocking for op in graph.get_operations()):
        return None
    runners = graph.get_collection(tf.compat.v1.GraphKeys.QUEUE_RUNNERS)
    threads = sum(len(runner.enqueue_ops) for runner in runners) + (os.cpu_count() or 1)
    return tf.compat.v1.ConfigProto(use_per_session_threads=True, inter_op_parallelism_threads=threads)
