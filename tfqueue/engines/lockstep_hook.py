"""The engine "lockstep" under a MonitoredSession."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import tensorflow as tf

from tfqueue.engines.lockstep import Lockstep
from tfqueue.errors import PipelineError

tf1 = tf.compat.v1


class LockstepHook(tf1.train.SessionRunHook):  # type: ignore[misc, name-defined]
    """Runs the queues of a MonitoredSession in the canonical schedule.

        with tf.compat.v1.train.MonitoredTrainingSession(hooks=[LockstepHook()]) as session:
            while not session.should_stop():
                session.run(train_op)

    A MonitoredSession starts the queue runners of its graph itself, so the hook takes them out of the
    graph's collection while the session is being made. The end of the data ends the session as usual: the step raises
    tf.errors.OutOfRangeError, which the session takes for the sign to stop.

    Raises:
        InvalidArgument: When the session is made: the graph has an enqueue that cannot be run step by step.
        PipelineError: The session was lost and made again, or the hook is used without a session.
    """

    def __init__(self) -> None:
        self._engine: Lockstep | None = None
        self._started = False
        self._hidden: tuple[list[Any], list[Any]] = ([], [])
        self._attached = ExitStack()

    def begin(self) -> None:
        graph = tf1.get_default_graph()
        self._engine = Lockstep(graph)
        self._started = False
        runners = graph.get_collection_ref(tf1.GraphKeys.QUEUE_RUNNERS)
        self._hidden = (runners, list(runners))
        runners.clear()

    def after_create_session(self, session: Any, coord: Any) -> None:
        runners, hidden = self._hidden
        runners.extend(hidden)
        if self._started:
            raise PipelineError(
                "the session was lost and made again, and with it the contents of the queues; lockstep cannot "
                "go on in the middle: start the program again"
            )
        self._started = True
        self._running.start(session, coord)
        # The session below, so that the steps of threads that feed, and what other hooks fetch, are in the schedule.
        self._attached.enter_context(self._running.attached())

    def end(self, session: Any) -> None:
        self._attached.close()
        self._running.stop()

    @property
    def _running(self) -> Lockstep:
        if self._engine is None:
            raise PipelineError("LockstepHook works as a hook of a MonitoredSession only")
        return self._engine
