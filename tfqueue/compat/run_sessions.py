"""Everything a program that is run unmodified does with sessions, queue runners and coordinators.

`Sessions.installed` lets the public classes of TensorFlow tell of what happens to them: a class attribute each, put
back at the end. However a program starts its runners (start_queue_runners, create_threads, Supervisor,
MonitoredSession, tf_slim), it comes through `QueueRunner.create_threads`.
"""

from __future__ import annotations

import concurrent.futures.thread
import functools
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import tensorflow as tf

from tfqueue import interrupts
from tfqueue.compat.run_graphs import ProgramGraph
from tfqueue.compat.run_session import ProgramSession
from tfqueue.errors import InvalidArgument

tf1 = tf.compat.v1


class _Here(threading.local):
    """What this thread is doing."""

    inside = False  # whether that is tfqueue's own doing

    def __init__(self, all_of_them: WeakKeyDictionary[threading.Thread, list[int]]) -> None:
        self.taken = [0]  # the steps of this thread that took something from a queue; shared with who counts them
        all_of_them[threading.current_thread()] = self.taken


class StepsReached(SystemExit):
    """The program has run as many steps as it was to; a SystemExit, so that no ``except Exception`` holds it up."""

    def __init__(self, steps: int) -> None:
        super().__init__(0)
        self.steps = steps


class Sessions:
    """The graphs and sessions of one program.

    Args:
        engine: ``"threads"``, ``"lockstep"`` or ``"tfdata"``.
        steps: End the program after so many steps that take something from a queue; None: when it ends itself.
        stall_timeout: Seconds without progress after which PipelineStalled is raised in the step that waits.
    """

    def __init__(self, engine: str, *, steps: int | None = None, stall_timeout: float = 60.0) -> None:
        self.engine = engine
        self.steps_left = steps
        self.steps_taken = 0
        self.graphs: list[ProgramGraph] = []
        self.sessions: list[ProgramSession] = []
        self.left_alive: list[str] = []
        self._steps = steps
        self._stall_timeout = stall_timeout
        self._state_of: WeakKeyDictionary[Any, ProgramGraph] = WeakKeyDictionary()
        self._session_of: dict[Any, ProgramSession] = {}  # each keeps its session anyway
        self._coordinators: WeakSet[Any] = WeakSet()
        self._taken_by: WeakKeyDictionary[threading.Thread, list[int]] = WeakKeyDictionary()
        self._here = _Here(self._taken_by)
        self._lock = threading.RLock()

    # -- what is known -----------------------------------------------------------------------------------------------

    def _graph(self, graph: tf.Graph) -> ProgramGraph:
        state = self._state_of.get(graph)
        if state is None:
            with self._lock:
                state = self._state_of.setdefault(graph, ProgramGraph(graph, self.engine))
        return state

    def _session(self, session: Any) -> ProgramSession | None:
        """What is known of a session; None while its graph has no queue."""
        known = self._session_of.get(session)
        if known is None:
            state = self._graph(session.graph)
            if not state.has_queues:
                return None
            with self._lock:
                known = self._session_of.get(session)
                if known is None:
                    known = self._session_of[session] = ProgramSession(session, state, self._stall_timeout)
                    self.sessions.append(known)
                    if state not in self.graphs:
                        self.graphs.append(state)
        return known

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """While open, what this thread does is tfqueue's own doing."""
        before = self._here.inside
        self._here.inside = True
        try:
            yield
        finally:
            self._here.inside = before

    # -- what happens ------------------------------------------------------------------------------------------------

    def _run(self, original: Callable[..., Any], session: Any, fetches: Any, feed_dict: Any, *more: Any) -> Any:
        here = self._here
        if here.inside:
            return original(session, fetches, feed_dict, *more)
        known = self._session_of.get(session) or self._session(session)
        if known is None:
            return original(session, fetches, feed_dict, *more)
        here.inside = True
        try:
            plan = known.plan(fetches)
            takes = plan.takes
            if takes:
                here.taken[0] += 1
                if self.steps_left is not None and self.steps_left <= 0:
                    raise StepsReached(self.steps_taken)
                if not plan.begun:
                    known.before_first_step(plan)
            result = known.run(plan, original, fetches, feed_dict, *more)
        finally:
            here.inside = False
        if takes:
            self.steps_taken += 1
            if self.steps_left is not None:
                self.steps_left -= 1
                if self.steps_left == 0:  # a loop that asks its coordinator ends by itself, and what follows it runs
                    for coord in list(self._coordinators):
                        coord.request_stop()
        return result

    def _make_callable(
        self,
        original: Callable[..., Any],
        session: Any,
        fetches: Any,
        feed_list: Any = None,
        accept_options: bool = False,
    ) -> Callable[..., Any]:
        known = None if self._here.inside else self._session(session)
        takes: tuple[str, ...] = ()
        if known is not None and id(fetches) not in known.state.run_by_runners:
            # Before TensorFlow looks at the graph: what it has seen cannot be rewired any more.
            takes = self._takes(known, fetches)
        made: Callable[..., Any] = original(session, fetches, feed_list, accept_options)
        if not takes or feed_list is not None:  # with feeds TensorFlow's own goes through `run`
            return made
        return functools.partial(session.run, fetches)

    def _partial_run_setup(
        self, original: Callable[..., Any], session: Any, fetches: Any, *arguments: Any, **options: Any
    ) -> Any:
        known = None if self._here.inside else self._session(session)
        if known is not None and (takes := self._takes(known, fetches)):
            if known.state.engine != "threads" or known.state.rewired is not None:
                raise InvalidArgument(
                    f"partial_run takes from {takes[0]} in several parts of one step, which only the queues themselves "
                    f"can serve"
                )
            known.count(takes)
        return original(session, fetches, *arguments, **options)

    def _takes(self, known: ProgramSession, fetches: Any) -> tuple[str, ...]:
        """What these fetches need of the queues, however they will be run."""
        with self._inside():
            return known.plan(fetches).takes

    def _create_threads(
        self,
        original: Callable[..., Any],
        runner: Any,
        sess: Any,
        coord: Any = None,
        daemon: bool = False,
        start: bool = False,
    ) -> Any:
        if self._here.inside:
            return original(runner, sess, coord=coord, daemon=daemon, start=start)
        self._graph(sess.graph).note_runner(runner)
        with self._inside():
            known = self._session(sess)
            assert known is not None  # a graph with a runner has a queue
            return known.start_runner(runner, coord, start=start)

    def _made_runner(self, original: Callable[..., Any], runner: Any, *arguments: Any, **options: Any) -> None:
        original(runner, *arguments, **options)
        if not self._here.inside:
            self._graph(tf1.get_default_graph()).note_runner(runner)

    def _made_coordinator(self, original: Callable[..., Any], coord: Any, *arguments: Any, **options: Any) -> None:
        original(coord, *arguments, **options)
        if not self._here.inside:
            self._coordinators.add(coord)

    def _finalize(self, original: Callable[..., Any], graph: Any) -> None:
        if not self._here.inside and type(graph) is tf.Graph and not graph.finalized:
            with self._inside():
                self._graph(graph).before_finalize()
        original(graph)

    def _close(self, original: Callable[..., Any], session: Any) -> None:
        known = self._session_of.get(session)
        if known is not None and not self._here.inside:
            with self._inside():
                self.left_alive += known.leave()
        original(session)

    # -- life --------------------------------------------------------------------------------------------------------

    @contextmanager
    def installed(self) -> Iterator[None]:
        """While open, TensorFlow's classes tell what the program does."""
        watched: list[tuple[Any, str, Callable[..., Any]]] = [
            (tf1.train.QueueRunner, "__init__", self._made_runner),
            (tf1.train.QueueRunner, "create_threads", self._create_threads),
            (tf1.train.Coordinator, "__init__", self._made_coordinator),
            (tf.Graph, "finalize", self._finalize),
            (tf1.Session, "close", self._close),
            (tf1.InteractiveSession, "close", self._close),
        ]
        with ExitStack() as stack:
            for owner, name, told in watched:
                stack.enter_context(_replaced(owner, name, _method(getattr(owner, name), told)))
            for owner in (tf1.Session, tf1.InteractiveSession):
                stack.enter_context(_replaced(owner, "run", self._run_method(owner.run)))
                for name, told in (
                    ("make_callable", self._make_callable),
                    ("partial_run_setup", self._partial_run_setup),
                ):
                    stack.enter_context(_replaced(owner, name, _method(getattr(owner, name), told)))
            listening = interrupts.listen(self._interrupt)
            try:
                yield
            finally:
                if listening:
                    interrupts.forget(self._interrupt)
                self.leave()

    def wait_for_threads(self, others: Collection[threading.Thread]) -> None:
        """Wait for the threads that take from queues, as Python at its exit waits for those that are no daemons.

        A thread that only feeds would keep Python waiting for ever once nobody takes; it is not waited for. Nor is
        any for longer than ``stall_timeout`` without a step. Threads in ``others`` are not the program's.
        """

        def is_waited_for(thread: threading.Thread) -> bool:
            taken = self._taken_by.get(thread)
            if thread.daemon or thread in others or taken == [0] or (taken is None and self.steps_left == 0):
                return False
            frame = sys._current_frames().get(thread.ident or 0)
            # The idle worker of an executor ends only when Python does.
            return frame is not None and frame.f_code.co_filename != concurrent.futures.thread.__file__

        seen: Any = None
        deadline = 0.0
        while True:
            waited_for = [thread for thread in threading.enumerate() if is_waited_for(thread)]
            now = {thread: list(self._taken_by.get(thread, ())) for thread in waited_for}
            if not waited_for or (now == seen and time.monotonic() > deadline):
                return
            if now != seen:
                seen, deadline = now, time.monotonic() + self._stall_timeout
            waited_for[0].join(min(0.1, self._stall_timeout))

    def leave(self) -> None:
        """Stop whatever the program has left running."""
        with self._inside():
            for known in self.sessions:
                self.left_alive += known.leave()

    def _run_method(self, original: Callable[..., Any]) -> Callable[..., Any]:
        run_step = self._run

        @functools.wraps(original)
        def run(self: Any, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
            return run_step(original, self, fetches, feed_dict, options, run_metadata)

        return run

    def _interrupt(self) -> None:
        with self._inside():
            for known in list(self.sessions):
                known.interrupt()


def _method(original: Callable[..., Any], told: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        return told(original, self, *arguments, **options)

    return method


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Sets a class attribute for a while; one that was inherited is inherited again afterwards."""
    own = name in vars(owner)
    before = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)
