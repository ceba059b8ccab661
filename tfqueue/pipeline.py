"""The life cycle of a queue-runner pipeline: graph, session, initialisers, runners, and the way out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import tensorflow as tf

from tfqueue.build import build, name_of
from tfqueue.diagnosis.failure import failure
from tfqueue.engines.threads import RunnerThreads, WatchedCoordinator
from tfqueue.errors import InvalidArgument, PipelineError, TFQueueWarning
from tfqueue.initialize import initialize_all, initialize_missing

tf1 = tf.compat.v1

ENGINES = ("threads",)

# Seconds that the threads have, after every queue is closed, before the session is closed under them, and again after.
_GRACE = 5.0

_P = TypeVar("_P", bound="QueuePipeline")


class QueuePipeline:
    """Runs a TF1 queue-runner pipeline behind a context manager.

    On entry it builds the graph, opens a session, runs the initialisers of variables and tables in an order that
    works, and starts every queue runner. Iterating gives one batch a step and stops where the data ends. On exit it
    stops the runners, cancels every queue, joins the threads and closes the session. It works whether or not eager
    execution is on, and changes no global state.

    The same object can be entered again after it was left: each time is a fresh run, in a new graph.

    Args:
        build_fn: Zero-argument TF1 code that builds the pipeline and returns the tensors to fetch: a tensor, or a
            nest of tuples, namedtuples, lists and dicts of them. It is called in a fresh `tf.Graph`.
        engine: How the queues are run: ``"threads"``, the real queue runners.
        session_config: A `tf.compat.v1.ConfigProto` for the session.
        init_fn: Called with the session after the initialisers and before the runners start, for values that must
            be fed or restored.

    Attributes:
        graph: The `tf.Graph` of the run.
        session: The `tf.compat.v1.Session` of the run.
        coord: The `tf.compat.v1.train.Coordinator` of the run.
        fetches: What ``build_fn`` returned.

    Raises:
        InvalidArgument: An argument that cannot work.
        InvalidBuildFunction: On entry, when ``build_fn`` returns no tensor, or one of another graph.
        PipelineFailed: On entry or in a step: what went wrong first.
    """

    def __init__(
        self,
        build_fn: Callable[[], Any],
        *,
        engine: str = "threads",
        session_config: Any = None,
        init_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        if not callable(build_fn):
            raise InvalidArgument(
                f"build_fn must be a function that builds the TF1 pipeline; got {type(build_fn).__name__}"
            )
        if engine not in ENGINES:
            raise InvalidArgument(f"engine {engine!r} is not known; known: {', '.join(map(repr, ENGINES))}")
        self._build_fn = build_fn
        self._engine = engine
        self._session_config = session_config
        self._init_fn = init_fn
        self._run: _Run | None = None
        self._ended = False

    def __repr__(self) -> str:
        state = "running" if self._run is not None else "not entered"
        return f"<QueuePipeline of {name_of(self._build_fn)}, engine {self._engine!r}, {state}>"

    # -- what code that needs more can use -------------------------------------------------------------------------

    @property
    def graph(self) -> tf.Graph:
        return self._entered().graph

    @property
    def session(self) -> Any:
        return self._entered().session

    @property
    def coord(self) -> WatchedCoordinator:
        return self._entered().runners.coord

    @property
    def fetches(self) -> Any:
        return self._entered().fetches

    def _entered(self) -> _Run:
        if self._run is None:
            raise PipelineError(
                f"the pipeline of {name_of(self._build_fn)} is not running; enter it first: "
                f"with QueuePipeline(build_fn) as pipeline: ..."
            )
        return self._run

    # -- life --------------------------------------------------------------------------------------------------------

    def __enter__(self: _P) -> _P:
        if self._run is not None:
            raise PipelineError("the pipeline is running already; make a second QueuePipeline to run it twice at once")
        graph = tf.Graph()
        fetches = build(self._build_fn, graph)
        session = tf1.Session(graph=graph, config=self._session_config)
        run = _Run(graph, session, fetches)
        try:
            try:
                initialize_all(graph, session)
                if self._init_fn is not None:
                    self._init_fn(session)
            except tf.errors.OpError as error:
                raise failure(error, graph, fetches=fetches) from error
            run.start()
            run.step = session.make_callable(fetches)
        except BaseException:
            run.leave()
            session.close()
            raise
        self._run = run
        self._ended = False
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        run = self._entered()
        self._run = None
        try:
            run.leave()
            replacement = run.replacement_for(error)
        finally:
            run.session.close()
            run.settle()
        if replacement is None:
            return True
        if replacement is error:
            return False
        raise replacement

    def __iter__(self) -> Iterator[Any]:
        self._entered()
        return self

    def __next__(self) -> Any:
        run = self._run
        if run is None:
            run = self._entered()
        if self._ended:
            raise StopIteration
        run.before_step()
        try:
            return run.step()
        except tf.errors.OpError as error:
            self._ended = True
            replacement = run.replacement_for(error)
            if replacement is None:
                raise StopIteration from None
            run.told = True
            raise replacement from replacement.__cause__


class _Run:
    """One run of a graph in a session: the part that QueuePipeline and queue_runners share."""

    def __init__(self, graph: tf.Graph, session: Any, fetches: Any = None) -> None:
        self.graph = graph
        self.session = session
        self.fetches = fetches
        self.runners = RunnerThreads(graph, session)
        self.step: Callable[[], Any] = self._no_step
        self._pid = os.getpid()
        self._failure: PipelineError | None = None
        self.told = False  # whether a step has raised the failure already

    def _no_step(self) -> Any:
        raise PipelineError("there is nothing to fetch")

    def start(self) -> None:
        _refuse_after_fork()
        self.runners.start()

    def before_step(self) -> None:
        if os.getpid() != self._pid:
            raise PipelineError(_AFTER_FORK)
        if self.runners.grown:
            self.runners.rescan()

    def leave(self) -> None:
        """Stop the runners, cancel the queues, join the threads."""
        self._left_alive = self.runners.stop(_GRACE)

    def settle(self) -> None:
        """After the session was closed, which frees what waited outside of queues: join again, name who is left."""
        if not self._left_alive:
            return
        for thread in self.runners.join(_GRACE):
            warnings.warn(
                f"the thread {thread.name} did not stop: it is inside an op that nothing can cancel (a py_func?)",
                TFQueueWarning,
                stacklevel=3,
            )

    def replacement_for(self, error: BaseException | None) -> BaseException | None:
        """What the user should see instead of ``error``, which left a step or the block: None for nothing.

        A step that ends because its queue was closed looks the same at the end of the data and after a failure
        (OutOfRangeError). Which of the two it was, the runners know.
        """
        if error is not None and not isinstance(error, tf.errors.OpError):
            return error  # the user's own, or one of ours
        if error is None and self.told:
            return None  # the user has caught the failure of a step, and goes on from there
        first = self.runners.first_error
        if first is not None:
            if self._failure is None:
                op = first.runner.enqueue_op if first.runner is not None else None
                self._failure = failure(
                    first.error, self.graph, session=self.session, enqueue_op=op, fetches=self.fetches
                )
            return self._failure
        if error is None or isinstance(error, tf.errors.OutOfRangeError):
            return None
        return failure(error, self.graph, session=self.session, fetches=self.fetches)


# Sessions with a live _Run of queue_runners: a block inside another on the same session is part of the outer one.
_OWNED: WeakKeyDictionary[Any, _Run] = WeakKeyDictionary()


class queue_runners:  # noqa: N801 - used like a function, as design and TF1's own start_queue_runners are
    """Run the queue runners of a session that you own, for the length of a ``with`` block.

    Initialises what has no value yet, starts every runner of ``sess.graph`` (whatever the default graph is) and gives
    the coordinator. The end of the data ends the block quietly; what went wrong first in a runner is raised as
    PipelineFailed. On the way out the runners are stopped, every queue is cancelled and the threads are joined; the
    session stays open. A closed queue cannot be opened again: for a second pass, open a new session.

        with tf.compat.v1.Session(graph=graph) as sess, tfqueue.queue_runners(sess) as coord:
            while not coord.should_stop():
                sess.run(train_op)

    Args:
        sess: A `tf.compat.v1.Session`, or a session that wraps one (`MonitoredSession`).

    Raises:
        InvalidArgument: ``sess`` is no session, or its queues were closed by an earlier block.
        PipelineFailed: What went wrong first.
    """

    def __init__(self, sess: Any) -> None:
        if hasattr(sess, "run_step_fn"):  # a MonitoredSession gives its plain session only inside a step
            sess = sess.run_step_fn(lambda step_context: step_context.session)
        if not (hasattr(sess, "graph") and hasattr(sess, "make_callable")):
            raise InvalidArgument(f"queue_runners needs a tf.compat.v1.Session; got {type(sess).__name__}")
        self._session = sess
        self._run: _Run | None = None
        self._outer: _Run | None = None

    def __enter__(self) -> WatchedCoordinator:
        self._outer = _OWNED.get(self._session)
        if self._outer is not None:
            return self._outer.runners.coord
        graph = self._session.graph
        run = _Run(graph, self._session)
        initialize_missing(graph, self._session)
        run.start()
        _OWNED[self._session] = run
        self._run = run
        return run.runners.coord

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        run, self._run = self._run, None
        if run is None:  # inside another block of the same session, which will do all this
            self._outer = None
            return False
        del _OWNED[self._session]
        run.leave()
        run.settle()
        replacement = run.replacement_for(error)
        if replacement is None:
            return True
        if replacement is error:
            return False
        raise replacement


_AFTER_FORK = (
    "the pipeline was started in another process: TensorFlow's threads and sessions do not survive a fork; "
    "open the pipeline in the process that reads it (multiprocessing: start method 'spawn')"
)
_first_pid: list[int] = []


def _refuse_after_fork() -> None:
    if not _first_pid:
        _first_pid.append(os.getpid())
    elif _first_pid[0] != os.getpid():
        raise PipelineError(_AFTER_FORK)
