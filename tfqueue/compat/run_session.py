"""One session of a program that is run unmodified: its queues on the engine that was asked for, and its life cycle."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import tensorflow as tf

from tfqueue import consumers
from tfqueue.compat.run_graphs import ProgramGraph
from tfqueue.diagnosis.failure import failure
from tfqueue.engines.lockstep import Lockstep
from tfqueue.engines.queue_ops import apart
from tfqueue.engines.threads import FirstError, RunnerThreads, WatchedCoordinator
from tfqueue.errors import PipelineError, PipelineStalled, TFQueueWarning
from tfqueue.growth import Growth
from tfqueue.stats import Accounts, PipelineStats
from tfqueue.watchdog import Watchdog

tf1 = tf.compat.v1

_GRACE = 3.0
_PATIENCE_WITH_HANDLER = 0.5
_ENDINGS = (tf.errors.OutOfRangeError, tf.errors.CancelledError)


class LinkedCoordinator(WatchedCoordinator):
    """What the runner threads are given instead of the program's coordinators: it passes everything on to them.

    Args:
        runners: The runners of the session.
        name_failure: Gives what the program should see instead of the error of a runner.
    """

    def __init__(self, runners: RunnerThreads, name_failure: Callable[[], BaseException]) -> None:
        super().__init__(after_error=runners.cancel_queues)
        self._end_quietly = runners.end_quietly
        self._name_failure = name_failure
        self._ending = threading.Lock()
        self._ended = False
        self.programs: list[Any] = []
        self._asks: dict[threading.Thread, Any] = {}  # which of them each thread that cancels a queue waits for

    def link(self, coord: Any) -> None:
        """A coordinator of the program's own takes part from now on."""
        if coord is not None:
            self.programs = [known for known in self.programs if known is not coord] + [coord]

    def hold(self, closer: threading.Thread) -> None:
        super().hold(closer)
        if self.programs:
            self._asks[closer] = self.programs[-1]

    def register_thread(self, thread: threading.Thread) -> None:
        super().register_thread(thread)
        for coord in self.programs:
            coord.register_thread(thread)

    def request_stop(self, ex: Any = None) -> None:
        super().request_stop(ex)
        error = ex[1] if isinstance(ex, tuple) else ex
        if error is not None and not isinstance(error, _ENDINGS):
            error = self._name_failure()
        self.tell(error)

    def tell(self, error: BaseException | None) -> None:
        """Stop the program's coordinators, with an error that their ``join`` will raise."""
        # As a triple: of an error alone a coordinator keeps what is being handled at that moment, which is another one.
        told = None if error is None else (type(error), error, error.__traceback__)
        for coord in self.programs:
            if not coord.joined:  # one that was joined raises what it is told
                coord.request_stop(told)

    def waits_for_stop(self, thread: threading.Thread) -> bool:
        """Whether this thread of a runner is the one that cancels its queue on a stop."""
        return thread in self._closers

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """The threads that cancel the queues come here: they wait for the program, and give the runners a moment."""
        asked = self._asks.get(threading.current_thread())
        if asked is None and self.programs:  # of a runner that lockstep has started, since it feeds placeholders
            asked = self.programs[-1]
        if asked is None:
            return super().wait_for_stop(timeout)
        stopped = bool(asked.wait_for_stop(timeout))
        # Told here, so that the runners need not ask the program's coordinator before each enqueue.
        self.stopping = self.stopping or stopped
        with self._ending:
            if stopped and not self._ended and self.first_error is None:
                self._ended = True
                self._end_quietly()
        return stopped


class Plan:
    """What one way of calling ``session.run`` needs.

    Attributes:
        takes: The dequeue and read ops that it needs.
        begun: Whether it was run before.
    """

    __slots__ = ("begun", "leaves", "replaced", "takes")

    def __init__(self, leaves: list[Any], takes: tuple[str, ...], replaced: Mapping[int, Any]) -> None:
        self.leaves = leaves  # kept, so that their ids stay theirs
        self.takes = takes
        self.replaced = replaced
        self.begun = False


class ProgramSession:
    """One session.

    Args:
        session: The `tf.compat.v1.Session`.
        state: Its graph.
        stall_timeout: Seconds without progress after which PipelineStalled is raised in the step that waits.
    """

    def __init__(self, session: Any, state: ProgramGraph, stall_timeout: float) -> None:
        self.session = session
        self.state = state
        self.graph: tf.Graph = state.graph
        self.runners = RunnerThreads(self.graph, session)
        self.coord = LinkedCoordinator(self.runners, self._failure)
        self.runners.coord = self.coord
        self.accounts = Accounts(self.runners)
        self.initialised: list[str] = []
        self.ended = False
        self._stall_timeout = stall_timeout
        self._lockstep: Lockstep | None = None
        self._watchdog: Watchdog | None = None
        self._starting = threading.RLock()  # a Supervisor's threads run steps while the program starts its runners
        self._plans: dict[tuple[Any, ...], Plan] = {}
        self._known: dict[Any, Plan] = {}  # the same, by what is told of fetches at a glance
        self._steps: dict[tuple[str, ...], int] = {}
        self._counting = threading.Lock()
        self._growth = Growth(self.graph)
        self._grew = False
        self._watches_growth = False
        self._version = -1
        self._waiting_runners: list[Any] = []
        self._failed: PipelineError | None = None
        self._failing = threading.Lock()
        self._stalled: PipelineStalled | None = None
        self._interrupted = False
        self._iterators_made: set[str] = set()
        self._left = False
        self._last_stats: PipelineStats | None = None

    # -- start -------------------------------------------------------------------------------------------------------

    def start_runner(self, runner: Any, coord: Any, *, start: bool) -> list[threading.Thread]:
        """What the program's ``runner.create_threads(session, coord)`` does here; returns the threads, if any."""
        self.coord.link(coord)
        with self._starting:
            return self._start_runner(runner, coord, start=start)

    def _start_runner(self, runner: Any, coord: Any, *, start: bool) -> list[threading.Thread]:
        self.state.check_rewired()
        if self.state.is_replaced(runner):
            self.watch()
            return []
        if self.state.engine == "tfdata":  # nothing takes from its queue yet
            self._waiting_runners.append(runner)
            self.watch()
            return []
        self._initialise_locals()
        if self.state.engine == "lockstep":
            self._start_lockstep()
            self.watch()
            return []
        self.watch()
        threads = self.runners.start_runner(runner, start=start)
        # A program without a coordinator joins its threads itself, and the one that waits for a stop would not end.
        return threads if coord is not None else [t for t in threads if not self.coord.waits_for_stop(t)]

    def _start_lockstep(self) -> None:
        if self._lockstep is None:
            engine = self.state.take_lockstep()
            self.runners.handles.update(self.state.handles)
            engine.start(self.session, self.coord)
            self._lockstep = engine
            engine.start_fed_runners()

    def _initialise_locals(self) -> None:
        """Initialise local variables (counters of epochs) that the program has forgotten, which would end a runner."""
        if self.graph.finalized:
            return
        variables = [v for v in self.graph.get_collection(tf1.GraphKeys.LOCAL_VARIABLES) if hasattr(v, "initializer")]
        if not variables:
            return
        with apart(self.graph):
            questions = [tf1.is_variable_initialized(variable) for variable in variables]
        for variable, known in zip(variables, self.session.run(questions), strict=True):
            if not known:
                with suppress(tf.errors.OpError):  # its initial value needs what the program has yet to bring
                    self.session.run(variable.initializer)
                    self.initialised.append(variable.op.name)

    def watch(self) -> None:
        """Look at the queues from now on."""
        if self._watchdog is not None or self._left:
            return
        self.state.look()
        if self.state.engine == "tfdata":
            return  # nothing of it waits for a queue
        self._watchdog = Watchdog(
            self.runners,
            None,
            stall_timeout=self._stall_timeout,
            on_sample=self.accounts.sampled,
            on_stall=self._stall,
            on_slow=self._slow,
        )
        self.runners.handles.update(self.state.handles)
        self.runners.adopt_queues()
        self.state.adopted(self.runners.handles)
        self._watchdog.start()

    def before_first_step(self, plan: Plan) -> None:
        """What comes before the first step that takes something from a queue, in each way of calling it."""
        with self._starting:
            self._start_waiting_runners()
            if self.state.engine == "lockstep" and threading.current_thread() is not threading.main_thread():
                # A thread of a Supervisor's may come before the program has started its runners: what it takes must be
                # known. (If the main thread does, it has forgotten them, which it is told.)
                self._initialise_locals()
                self._start_lockstep()
            self.watch()
            if self.state.rewired is not None:
                # Those that use a lookup table; the program made its own group of initialisers before they were there.
                new = [op for op in self.state.rewired.initializers if op.name not in self._iterators_made]
                self._iterators_made.update(op.name for op in new)
                self.session.run(new)
            plan.begun = True

    def _start_waiting_runners(self) -> None:
        """Start the runners that were thought to be none of ours, now that their queues stay queues."""
        if self.state.engine == "tfdata":
            return
        waiting, self._waiting_runners = self._waiting_runners, []
        for runner in waiting:
            if not self.state.is_replaced(runner):
                self._initialise_locals()
                self.watch()
                self.runners.start_runner(runner)

    # -- steps -------------------------------------------------------------------------------------------------------

    def plan(self, fetches: Any) -> Plan:
        """What ``session.run(fetches)`` needs; worked out once for each way of calling it."""
        # What follows is done before every step: plain lists and single tensors are known by the ids of what they hold.
        kind = fetches.__class__
        glance = tuple(map(id, fetches)) if kind is list or kind is tuple else id(fetches)
        if self._version == self.graph.version:
            found = self._known.get(glance)
            if found is not None:
                return found
        with self._starting:
            return self._look_closely(fetches, glance)

    def _look_closely(self, fetches: Any, glance: Any) -> Plan:
        leaves: list[Any] = []
        _flatten(fetches, leaves)
        key = tuple([leaf if leaf.__class__ is str else id(leaf) for leaf in leaves])
        if self._version != self.graph.version:
            self._grew = self._watches_growth = True
            self.state.try_to_rewire()
            self._plans, self._known = {}, {}
        found = self._plans.get(key)
        if found is None:
            found = self._plans[key] = self._new_plan(leaves)
            self._version = self.graph.version  # rewiring has made it grow, too
        items = fetches if isinstance(glance, tuple) else [fetches]
        if len(items) == len(leaves) and all(item is leaf for item, leaf in zip(items, leaves, strict=True)):
            self._known[glance] = found  # its leaves are kept, so their ids stay theirs
        return found

    def _new_plan(self, leaves: list[Any]) -> Plan:
        elements = _elements(self.graph, leaves)
        takes = self.state.takes(elements)
        replaced: dict[int, Any] = {}
        if takes:
            self.state.check_rewired()
            self.state.refuse_replaced(takes)
        rewired = self.state.rewired
        if takes and rewired is not None:
            for leaf, element in zip(leaves, [_elements(self.graph, [leaf]) for leaf in leaves], strict=True):
                if len(element) == 1:
                    other = rewired.stand_in(element[0])
                    if other is not element[0]:
                        replaced[id(leaf)] = other
                elif len(element) == 3 and isinstance(leaf, tf.SparseTensor):
                    parts = [rewired.stand_in(tensor) for tensor in element]
                    if any(new is not old for new, old in zip(parts, element, strict=True)):
                        replaced[id(leaf)] = tf.SparseTensor(*parts)
            takes = self.state.takes(_elements(self.graph, [replaced.get(id(leaf), leaf) for leaf in leaves]))
        return Plan(leaves, takes, replaced)

    def run(self, plan: Plan, original: Callable[..., Any], fetches: Any, feed_dict: Any, *more: Any) -> Any:
        """Run one step."""
        try:
            if self._lockstep is not None:
                feeds = self._lockstep.before_run(plan.leaves, feed_dict)
                if feeds:
                    feed_dict = {**(feed_dict or {}), **feeds}
            if plan.replaced:
                fetches = _with(fetches, plan.replaced)
            result = original(self.session, fetches, feed_dict, *more)
            if self._lockstep is not None:
                self._lockstep.after_run()
        except BaseException as error:
            if self._lockstep is not None:
                self._lockstep.after_run(failed=True)
            replacement = self._replacement_for(error, plan)
            if replacement is error:
                raise
            raise replacement from replacement.__cause__
        if plan.takes:
            self.count(plan.takes)
            if self._watches_growth and threading.current_thread() is threading.main_thread():
                self._watches_growth, self._grew = self._grew, False
                self._growth.step(grown=self._watches_growth)
        return result

    def count(self, takes: tuple[str, ...]) -> None:
        """Count a step that takes from these ops."""
        with self._counting:
            self._steps[takes] = self._steps.get(takes, 0) + 1

    @property
    def steps(self) -> dict[tuple[str, ...], int]:
        """How many steps took from the queues, by the dequeue and read ops that they needed; 0 where none succeeded."""
        planned = {plan.takes: 0 for plan in list(self._plans.values()) if plan.takes}
        with self._counting:
            return planned | self._steps

    @property
    def stats(self) -> PipelineStats | None:
        """The accounts of the runners; None with the engine tfdata, which has none."""
        if self._last_stats is None and self.state.topology is not None and self._watchdog is not None:
            return self.accounts.stats(self.state.topology)
        return self._last_stats

    # -- what went wrong ---------------------------------------------------------------------------------------------

    def _replacement_for(self, error: BaseException, plan: Plan) -> BaseException:
        """What the program should see instead of what a step raised; what is the program's own stays what it is."""
        if self._interrupted and isinstance(error, (tf.errors.OpError, RuntimeError, SystemError)):
            return KeyboardInterrupt()
        if not isinstance(error, tf.errors.OpError):
            return error
        told: BaseException = error
        if self._stalled is not None:
            return self._stalled
        if self.runners.first_error is not None:
            failed = self._failure()
            self.coord.tell(failed)
            return failed
        if isinstance(error, tf.errors.OutOfRangeError):
            self.ended = self.ended or bool(plan.takes)
            return told
        failed_enqueue = self._lockstep.failed_enqueue if self._lockstep is not None else None
        op_type = getattr(getattr(error, "op", None), "type", "")
        from_dataset = self.state.rewired is not None and op_type == "IteratorGetNext"
        if failed_enqueue is not None or from_dataset:
            name = failed_enqueue.name if failed_enqueue is not None else None
            return failure(
                error,
                self.graph,
                session=self.session,
                enqueue_op=name,
                fetches=plan.leaves,
                lowered=from_dataset,
            )
        return told

    def _failure(self) -> PipelineError:
        """The PipelineFailed of the first error of a runner, always the same."""
        with self._failing:
            if self._failed is None:
                first: FirstError | None = self.runners.first_error
                if first is None:
                    return PipelineError("a queue runner has failed")
                op = first.runner.enqueue_op if first.runner is not None else None
                self._failed = failure(
                    first.error,
                    self.graph,
                    session=self.session,
                    enqueue_op=op,
                    enqueued=sum(thread.enqueued for thread in self.runners.threads if thread.enqueue_op == op),
                )
            return self._failed

    def _stall(self, stalled: PipelineStalled) -> None:
        self._stalled = stalled
        self.coord.tell(stalled)

    def _slow(self, words: str) -> None:
        with suppress(TFQueueWarning):  # a program that makes warnings errors would have none raised in this thread
            warnings.warn(words, TFQueueWarning, stacklevel=1)

    def interrupt(self) -> None:
        """SIGINT has come: free the main thread if it is blocked in a step of this session."""
        main = threading.main_thread().ident
        if main is None or self._left:
            return
        step = consumers.look(self.session).in_session.get(main)
        if step is None:
            return  # Python itself raises KeyboardInterrupt there
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            deadline = time.monotonic() + _PATIENCE_WITH_HANDLER
            while time.monotonic() < deadline:
                if consumers.look(self.session).in_session.get(main) != step:
                    return
                time.sleep(0.02)
        self._interrupted = True
        self.coord.tell(None)
        self.runners.cancel_queues()

    # -- end ---------------------------------------------------------------------------------------------------------

    def leave(self) -> list[str]:
        """Stop everything; returns the names of the threads that did not stop."""
        if self._left:
            return []
        self._left = True
        alive: list[threading.Thread] = []
        if self._watchdog is not None:
            self._watchdog.stop()
            self.accounts.sampled(self._watchdog.sample())
            self._last_stats = self.stats
            alive = self.runners.stop(_GRACE)
            self._watchdog.release()
        if self._lockstep is not None:
            alive += self._lockstep.stop(_GRACE)
            self._lockstep = None
        self.runners.release()
        return [thread.name for thread in alive]


def _flatten(fetches: Any, leaves: list[Any]) -> None:
    kind = fetches.__class__
    if kind is list or kind is tuple or isinstance(fetches, (list, tuple)):
        for item in fetches:
            _flatten(item, leaves)
    elif isinstance(fetches, Mapping):
        for item in fetches.values():
            _flatten(item, leaves)
    else:
        leaves.append(fetches)


def _with(fetches: Any, replaced: Mapping[int, Any]) -> Any:
    """The same nest with other leaves."""
    if isinstance(fetches, (list, tuple)):
        items = [_with(item, replaced) for item in fetches]
        return type(fetches)(*items) if hasattr(fetches, "_fields") else type(fetches)(items)
    if isinstance(fetches, Mapping):
        return {key: _with(item, replaced) for key, item in fetches.items()}
    return replaced.get(id(fetches), fetches)


def _elements(graph: tf.Graph, leaves: list[Any]) -> list[Any]:
    """The tensors and ops of fetches; what the session alone understands is left out."""
    found = []
    for leaf in leaves:
        try:
            parts = tf.nest.flatten(leaf, expand_composites=True) if leaf is not None else []
            found += [graph.as_graph_element(part) for part in parts]
        except (KeyError, ValueError, TypeError):
            continue
    return found
