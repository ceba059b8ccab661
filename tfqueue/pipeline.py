"""The life cycle of a queue-runner pipeline: graph, session, initialisers, runners, and the way out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import tensorflow as tf

from tfqueue.build import build, name_of
from tfqueue.diagnosis.failure import failure
from tfqueue.engines.tfdata import SHUFFLES
from tfqueue.engines.threads import WatchedCoordinator, queue_of_runner
from tfqueue.errors import InvalidArgument, PipelineError
from tfqueue.initialize import initialize_all, initialize_missing
from tfqueue.run import Run, config_for, refuse_after_fork
from tfqueue.stats import PipelineStats
from tfqueue.topology.model import Topology
from tfqueue.topology.trace import trace

tf1 = tf.compat.v1

ENGINES = ("threads", "lockstep", "tfdata")
"""The engines by name."""

_P = TypeVar("_P", bound="QueuePipeline")


def _seconds(stall_timeout: Any) -> float:
    if not isinstance(stall_timeout, (int, float, np.number)) or not stall_timeout > 0:
        raise InvalidArgument(f"stall_timeout is a number of seconds above 0; got {stall_timeout!r}")
    return float(stall_timeout)


def _shuffle(shuffle: Any, engine: str) -> str:
    if shuffle not in SHUFFLES:
        raise InvalidArgument(f"shuffle is {shuffle!r}; known are {', '.join(map(repr, SHUFFLES))}")
    if shuffle != "native" and engine != "tfdata":
        raise InvalidArgument(
            f"shuffle={shuffle!r} is for engine='tfdata'; the engine {engine!r} runs the queues themselves"
        )
    return str(shuffle)


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
        engine: How the queues are run: ``"threads"``, the real queue runners; or ``"lockstep"``, the same graph in one
            canonical order, which gives the same batches on every run and every machine, shuffles included; or
            ``"tfdata"``, the same batches from a tf.data.Dataset that the graph is lowered to (`to_dataset`), far
            faster.
        shuffle: With ``engine="tfdata"``, what stands for a shuffle queue, as for `to_dataset`: ``"native"``, which
            mixes as well, but draws otherwise; or ``"replay"``, the order of the engine "lockstep".
        check: Look at files, the first record, queues and buffers before the start: what cannot work is raised at
            once, what was probably not meant is a TFQueueWarning. It takes milliseconds.
        stall_timeout: Seconds. When nothing has moved for so long and nothing can move any more, PipelineStalled is
            raised; a stage that is only slow is warned about.
        session_config: A `tf.compat.v1.ConfigProto` for the session. Without one, a graph with ops that block a thread
            of TensorFlow's pool (py_func, staging areas) gets a pool of its own with room for all runners.
        init_fn: Called with the session after the initialisers and before the runners start, for values that must
            be fed or restored.

    Attributes:
        graph: The `tf.Graph` of the run.
        session: The `tf.compat.v1.Session` of the run.
        coord: The `tf.compat.v1.train.Coordinator` of the run.
        fetches: What ``build_fn`` returned.
        topology: The `tfqueue.topology.Topology` of the graph.
        stats: The accounts of the run so far; they stay after the block was left.

    Raises:
        InvalidArgument: An argument that cannot work.
        CannotLower: On entry, with ``engine="tfdata"``: a part of the pipeline has no exact counterpart in tf.data.
        InvalidBuildFunction: On entry, when ``build_fn`` returns no tensor, or one of another graph.
        PipelineFailed: On entry or in a step: what went wrong first.
        PipelineStalled: In a step: nothing moves any more.
    """

    def __init__(
        self,
        build_fn: Callable[[], Any],
        *,
        engine: str = "threads",
        shuffle: str = "native",
        check: bool = True,
        stall_timeout: float = 60.0,
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
        self._stall_timeout = _seconds(stall_timeout)
        self._engine = engine
        self._shuffle = _shuffle(shuffle, engine)
        self._check = check
        self._session_config = session_config
        self._init_fn = init_fn
        self._run: Run | None = None
        self._last_stats: PipelineStats | None = None

    def __repr__(self) -> str:
        state = "running" if self._run is not None else "not entered"
        return f"<QueuePipeline of {name_of(self._build_fn)}, engine {self._engine!r}, {state}>"

    def _repr_png_(self) -> bytes | None:
        """The pipeline as a picture, for notebooks."""
        topology = trace(self._build_fn) if self._run is None else self.topology
        return topology._repr_png_()

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

    @property
    def topology(self) -> Topology:
        return self._entered().topology

    @property
    def stats(self) -> PipelineStats:
        if self._run is None and self._last_stats is not None:
            return self._last_stats
        return self._entered().stats

    def _entered(self) -> Run:
        if self._run is None:
            raise PipelineError(
                f"the pipeline of {name_of(self._build_fn)} is not running; enter it first: "
                f"with QueuePipeline(build_fn) as pipeline: ..."
            )
        return self._run

    # -- what else reads it ------------------------------------------------------------------------------------------

    def to_dataset(self) -> Any:
        """The batches as a tf.data.Dataset, for `fit` and whatever else reads one; the pipeline need not be entered.

        With ``engine="tfdata"`` it is the dataset of `tfqueue.to_dataset`. Otherwise every pass over it is a fresh run
        of the queues, behind a Python function, so that such a dataset cannot be serialized.
        """
        from tfqueue.compat.keras import pipeline_dataset
        from tfqueue.engines.tfdata import to_dataset

        if self._engine == "tfdata":
            return to_dataset(self._build_fn, shuffle=self._shuffle)
        return pipeline_dataset(self._build_fn, self._fresh)

    def as_keras(
        self,
        *,
        x: str | Sequence[str] | None = None,
        y: str | Sequence[str] | None = None,
        validation: bool = False,
        steps_per_epoch: int | None = None,
    ) -> dict[str, Any]:
        """The arguments with which Keras trains on this pipeline: ``model.fit(**pipeline.as_keras(), epochs=5)``.

        The pipeline must deliver (inputs, targets), (inputs, targets, weights), or a dictionary.

        Args:
            x: Of a dictionary: the name of the input, or the names; all that are no target when not given.
            y: Of a dictionary: the name of the target, or the names.
            validation: For ``validation_data`` instead: ``fit(**train.as_keras(), **test.as_keras(validation=True))``.
            steps_per_epoch: Batches of one epoch of Keras; derived from the records and the batch size when not given:
                one epoch is one pass over the data.

        Returns:
            ``x`` (a dataset that starts again at its end), ``steps_per_epoch`` and ``shuffle=False`` (the pipeline
            shuffles), or ``validation_data`` and ``validation_steps``.

        Raises:
            InvalidArgument: The pipeline delivers something else, or ``steps_per_epoch`` cannot be derived.
        """
        from tfqueue.compat.keras import fit_arguments

        return fit_arguments(
            self.to_dataset().repeat(),
            self._build_fn,
            x=x,
            y=y,
            validation=validation,
            steps_per_epoch=steps_per_epoch,
        )

    def _fresh(self) -> QueuePipeline:
        return QueuePipeline(
            self._build_fn,
            engine=self._engine,
            shuffle=self._shuffle,
            check=self._check,
            stall_timeout=self._stall_timeout,
            session_config=self._session_config,
            init_fn=self._init_fn,
        )

    # -- life --------------------------------------------------------------------------------------------------------

    def __enter__(self: _P) -> _P:
        if self._run is not None:
            raise PipelineError("the pipeline is running already; make a second QueuePipeline to run it twice at once")
        refuse_after_fork()
        graph = tf.Graph()
        fetches = build(self._build_fn, graph)
        session = tf1.Session(graph=graph, config=self._session_config or config_for(graph))
        try:
            try:
                initialize_all(graph, session)
                if self._init_fn is not None:
                    self._init_fn(session)
            except tf.errors.OpError as error:
                raise failure(error, graph, fetches=fetches) from error
            run = Run(
                graph,
                session,
                fetches,
                engine=self._engine,
                stall_timeout=self._stall_timeout,
                shuffle=self._shuffle,
            )
            try:
                if self._check:
                    run.check(stacklevel=4)
                run.start()
            except BaseException:
                run.leave()
                raise
        except BaseException:
            session.close()
            raise
        self._run = run
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        run = self._entered()
        self._run = None
        try:
            run.leave()
            replacement = run.replacement_outside_of_steps(error)
            self._last_stats = run.stats
        finally:
            try:
                run.close_session()
            finally:
                run.release()
        if replacement is None:
            return True
        if replacement is error:
            return False
        raise replacement

    def __iter__(self) -> Iterator[Any]:
        self._entered()
        return self

    def __next__(self) -> Any:
        return self._run.step() if self._run is not None else self._entered()


# Sessions with a live Run of queue_runners: a block inside another on the same session is part of the outer one.
_OWNED: WeakKeyDictionary[Any, Run] = WeakKeyDictionary()


# The queues that an earlier block has closed, by session: TensorFlow cannot open them again.
_CLOSED: WeakKeyDictionary[Any, frozenset[str]] = WeakKeyDictionary()


def _refuse_closed_queues(session: Any) -> None:
    for runner in session.graph.get_collection(tf1.GraphKeys.QUEUE_RUNNERS):
        name = queue_of_runner(runner)
        if name in _CLOSED.get(session, frozenset()):
            raise InvalidArgument(
                f"queue {name!r} of this session was closed when an earlier queue_runners block ended, and a closed "
                f"queue cannot be opened again: open a new session for a second pass, or put both passes into one block"
            )


class queue_runners:  # noqa: N801 - used like a function, as design and TF1's own start_queue_runners are
    """Run the queue runners of a session that you own, for the length of a ``with`` block.

    Initialises what has no value yet, starts every runner of ``sess.graph`` (whatever the default graph is) and gives
    the coordinator. The end of the data ends the block quietly; what went wrong first in a runner is raised as
    PipelineFailed. On the way out the runners are stopped, every queue is cancelled and the threads are joined; the
    session stays open; ``coord.stats`` are the accounts, also after the block. A closed queue cannot be opened again:
    for a second pass, open a new session.

        with tf.compat.v1.Session(graph=graph) as sess, tfqueue.queue_runners(sess) as coord:
            while not coord.should_stop():
                sess.run(train_op)

    Args:
        sess: A `tf.compat.v1.Session`, or a session that wraps one (`MonitoredSession`).
        engine: ``"threads"``, ``"lockstep"`` or ``"tfdata"``, as for QueuePipeline. With lockstep every ``sess.run``
            first brings the queues up to it. With tfdata every ``sess.run`` that needs a batch is fed it from a
            dataset; that must begin before anything was started or taken from a queue in the session. (`rewire`,
            called before the session is made, spares the feeding, and serves sessions that start runners themselves.)
        shuffle: With ``engine="tfdata"``: as for QueuePipeline.
        check: Look before the start, as for QueuePipeline.
        stall_timeout: Seconds without progress after which PipelineStalled is raised, as for QueuePipeline.

    Raises:
        InvalidArgument: ``sess`` is no session, its queues were closed by an earlier block, or, with
            ``engine="tfdata"``, have been used before.
        CannotLower: With ``engine="tfdata"``: a queue has no exact counterpart in tf.data.
        PipelineFailed: What went wrong first.
    """

    def __init__(
        self,
        sess: Any,
        *,
        engine: str = "threads",
        shuffle: str = "native",
        check: bool = True,
        stall_timeout: float = 60.0,
    ) -> None:
        if engine not in ENGINES:
            raise InvalidArgument(f"queue_runners has no engine {engine!r}; it has {', '.join(map(repr, ENGINES))}")
        stall_timeout = _seconds(stall_timeout)
        if hasattr(sess, "run_step_fn"):  # a MonitoredSession gives its plain session only inside a step
            sess = sess.run_step_fn(lambda step_context: step_context.session)
        if not (hasattr(sess, "graph") and hasattr(sess, "make_callable")):
            raise InvalidArgument(f"queue_runners needs a tf.compat.v1.Session; got {type(sess).__name__}")
        self._session = sess
        self._engine = engine
        self._shuffle = _shuffle(shuffle, engine)
        self._check = check
        self._stall_timeout = stall_timeout
        self._run: Run | None = None
        self._outer: Run | None = None

    def __enter__(self) -> WatchedCoordinator:
        self._outer = _OWNED.get(self._session)
        if self._outer is not None:
            return self._outer.runners.coord
        refuse_after_fork()
        graph = self._session.graph
        _refuse_closed_queues(self._session)
        initialize_missing(graph, self._session)
        run = Run(graph, self._session, engine=self._engine, stall_timeout=self._stall_timeout, shuffle=self._shuffle)
        try:
            if self._check:
                run.check(stacklevel=4)
            run.start()
        except BaseException:
            run.leave()
            raise
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
        try:
            run.leave()
            closed = {queue.name for queue in run.topology.queues}
            _CLOSED[self._session] = _CLOSED.get(self._session, frozenset()) | closed
            replacement = run.replacement_outside_of_steps(error)
        finally:
            run.release()
        if replacement is None:
            return True
        if replacement is error:
            return False
        raise replacement
