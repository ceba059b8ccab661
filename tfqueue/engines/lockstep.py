"""The engine "lockstep": the real graph, run in one canonical order: every run gives the same batches.

Queue runner threads make the order of records depend on timing, even with one thread and a seed: a
shuffle queue draws among what happens to be in it. Here no runner thread runs. Before each step every
queue is filled as far as its source goes, one enqueue at a time, from source to sink; then the step's own
dequeue runs (the "canonical schedule" of the design). Shuffles, random ops and epochs come from the
graph's own kernels.

Sizes of queues are counted here, and asked of TensorFlow only where they cannot be known: a reader takes
a file name when it likes, a tf.cond may or may not enqueue. A dequeue that cannot be served at once (a
batch larger than what a queue may give away) is served in pieces, which are then fed to the run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from tfqueue.engines.ending import join_all
from tfqueue.engines.feeding import fed_names, idle_ops
from tfqueue.engines.lockstep_parts import take_apart
from tfqueue.engines.lockstep_plan import Plan
from tfqueue.engines.lockstep_queue import Cut, Lane, Pending, QueueState
from tfqueue.engines.queue_ops import apart, runs_at_once
from tfqueue.errors import InvalidArgument
from tfqueue.topology.model import Dequeue, Enqueue, Queue, Topology, Transform
from tfqueue.topology.trace import fetch_elements, trace

tf1 = tf.compat.v1

# How often a run is looked at that waits for what is not in the schedule: more file names than its queue holds (many
# empty files), or elements that Python code puts into a queue.
_LOOK_SECONDS = 0.05


class Lockstep:
    """Runs the queues of one graph in the canonical schedule; the queue runners must not be started.

    Args:
        graph: The graph. Ops are added to it here, so it must not be finalized yet.
        topology: Its topology, where it is at hand.

    Attributes:
        failed_enqueue: The enqueue whose stage raised what the last step raised, or None.

    Raises:
        InvalidArgument: The graph is finalized, or has an enqueue that cannot be run step by step.
    """

    def __init__(self, graph: tf.Graph, topology: Topology | None = None) -> None:
        if graph.finalized:
            raise InvalidArgument(
                "lockstep adds ops to the graph, but this graph is finalized; make the engine before the "
                "session is created (tfqueue.LockstepHook does that for a MonitoredSession)"
            )
        self.graph = graph
        self.topology = trace(graph) if topology is None else topology
        self.failed_enqueue: Enqueue | None = None
        self._session: Any = None
        self._coord: Any = None
        self._queues = {queue.name: QueueState(graph, queue, self._demand(queue)) for queue in self.topology.queues}
        self._order: list[QueueState] = list(self._queues.values())
        self._lanes: list[Lane] = []
        self._open_lanes: dict[int, int] = {}
        self._closers: dict[int, Callable[[], Any]] = {}
        self._refuse_foreign_runners()
        for state in self._order:
            self._add_lanes(state)
        self._plans: dict[tuple[object, ...], Plan] = {}
        self._lock = threading.Condition(threading.Lock())
        self._waiting: dict[int, Lane | Plan] = {}
        self._runs = 0
        self._stopping = threading.Event()
        self._looker: threading.Thread | None = None
        self._fed_threads: dict[int, list[threading.Thread]] = {}

    # -- preparation ------------------------------------------------------------------------------------

    def _demand(self, queue: Queue) -> int:
        sizes = [d.batch_size or 1 for d in self.topology.dequeues if d.queue == queue.name]
        return max(sizes, default=1)

    def _refuse_foreign_runners(self) -> None:
        """A runner that fills something else than a queue has no place in the schedule."""
        run = {name for runner in self.topology.runners for name in runner.enqueue_ops}
        for node in self.topology.unknown:
            if node.name in run:
                raise InvalidArgument(
                    f"lockstep knows queues only, but a queue runner runs {node.name} ({node.op_type}, "
                    f"{node.source}), which fills none; run this pipeline with engine='threads'"
                )

    def _add_lanes(self, state: QueueState) -> None:
        for enqueue in state.model.enqueues:
            stage = self.topology.transform(enqueue.transform)
            if not enqueue.copies or stage.placeholders:
                state.external = True
                continue
            targets = [other for other in self.topology.enqueues if other.runs == enqueue.runs]
            if targets[0] is not enqueue:
                continue  # one op that fills several queues belongs to the first of them
            lane = Lane(enqueue, [self._queues[target.queue] for target in targets], self._cuts(stage, self.topology))
            op = self.graph.get_operation_by_name(enqueue.runs)
            simple = enqueue.runs == enqueue.name and not enqueue.conditional
            if not simple and any(target.many for target in targets):
                take_apart(self.graph, lane, targets, op)
            with apart(self.graph), self.graph.control_dependencies([op]):
                # Asked in the same run: a run of its own would cost as much as the enqueue.
                if lane.asked:
                    lane.sizes = tf.stack([asked.size_op() for asked in lane.asked])
            if lane.many:
                state.prepare_slices()
            self._lanes.append(lane)
            state.lanes.append(lane)
            if enqueue.runner is not None:
                self._open_lanes[enqueue.runner] = self._open_lanes.get(enqueue.runner, 0) + 1

    def _cuts(self, stage: Transform, topology: Topology, idle: frozenset[str] = frozenset()) -> list[Cut]:
        dequeues = {dequeue.name: dequeue for dequeue in topology.dequeues}
        cuts = []
        for name in stage.inputs:
            if name in idle:
                continue
            node = dequeues.get(name) or topology.read(name)
            if node is None:
                raise InvalidArgument(f"lockstep cannot tell where {name}, an input of {stage.name}, reads from")
            candidates = node.candidates if isinstance(node, Dequeue) else (node.queue,)
            for queue in candidates:
                if queue is not None and queue not in self._queues:
                    raise InvalidArgument(
                        f"the queue {queue}, which {name} takes from ({node.source}), was built after lockstep had "
                        f"begun; build every pipeline before the first step"
                    )
            cut = Cut(node, [self._queues[queue] for queue in candidates if queue is not None])
            if isinstance(node, Dequeue) and node.batch_size is None and node.batch_size_tensor is not None:
                cut.size_tensor = self.graph.get_tensor_by_name(node.batch_size_tensor)
            cuts.append(cut)
        for cut in cuts:
            # Two dequeues of one queue inside one run would race for its elements.
            shared = any(other is not cut and other.queue is cut.queue for other in cuts)
            cut.fed = cut.certain and (shared or cut.is_too_large or cut.batch_size is None)
        return cuts

    def _fed_tensors(self, cuts: list[Cut]) -> list[Any]:
        return [tensor for cut in cuts if cut.fed for tensor in self._outputs(cut)]

    def _outputs(self, cut: Cut) -> list[Any]:
        return list(self.graph.get_operation_by_name(cut.node.name).outputs)

    def start(self, session: Any, coord: Any = None) -> None:
        """Connect to a session of the graph.

        Args:
            session: The session; the variables that the queues need are initialised.
            coord: A coordinator for the threads of queue runners that feed placeholders; see `start_fed_runners`.
        """
        self._session = session
        self._coord = coord
        for state in self._order:
            state.connect(session)
        for lane in self._lanes:
            self._connect(lane)
        for index, runner in enumerate(self.topology.runners):
            if runner.close_op is not None:
                self._closers[index] = runs_at_once(session, self.graph.get_operation_by_name(runner.close_op))
        if any(cut.may_wait for lane in self._lanes for cut in lane.cuts) or any(s.external for s in self._order):
            self._looker = threading.Thread(target=self._look, name="tfqueue-lockstep", daemon=True)
            self._looker.start()

    def _connect(self, lane: Lane) -> None:
        op = self.graph.get_operation_by_name(lane.enqueue.runs)
        feeds = self._fed_tensors(lane.cuts)
        # The sizes wait for the enqueue, so to fetch them is to run it. A single fetch is what runs fastest.
        lane.run = self._callable(op if lane.sizes is None else lane.sizes, feeds)
        if lane.parts:
            parts = [(part.tensors, [] if part.keeps is None else part.keeps) for part in lane.parts]
            lane.values = self._callable([parts, lane.besides], feeds)
        elif lane.many:
            values = [self.graph.get_tensor_by_name(info.name) for info in lane.enqueue.components]
            lane.static_count = values[0].shape.as_list()[0] if values[0].shape.rank else None
            # What the enqueue waits for must run, though the enqueue itself does not.
            lane.values = self._callable([values, list(op.control_inputs)], feeds)

    def start_fed_runners(self) -> None:
        """Start the queue runners that feed placeholders, which only their own Python code can run.

        The steps of their threads are steps like any other: `before_run` must be called for them, from the first on.
        """
        if self._coord is None:
            return
        fed = {
            self.topology.runners[enqueue.runner].enqueue_ops
            for enqueue in self.topology.enqueues
            if enqueue.runner is not None and self.topology.transform(enqueue.transform).placeholders
        }
        for runner in self.graph.get_collection(tf1.GraphKeys.QUEUE_RUNNERS):
            if tuple(getattr(op, "op", op).name for op in runner.enqueue_ops) in fed:
                threads = runner.create_threads(self._session, coord=self._coord, daemon=True, start=True)
                names = {getattr(op, "op", op).name for op in runner.enqueue_ops}
                for state in self._order:
                    if names & {enqueue.runs for enqueue in state.model.enqueues}:
                        self._fed_threads.setdefault(id(state), []).extend(threads)

    def stop(self, grace: float = 5.0) -> list[threading.Thread]:
        """End the helper threads; returns those that are still alive after it, as `join_all` tells."""
        self._stopping.set()
        fed = {thread for threads in self._fed_threads.values() for thread in threads}
        threads = [*fed, *([self._looker] if self._looker is not None else [])]
        return join_all(threads, grace)

    # -- steps ------------------------------------------------------------------------------------------

    def make_step(self, fetches: Any) -> Callable[[], Any]:
        """A function that runs one step and returns the numpy values of ``fetches``, in their structure.

        It raises tf.errors.OutOfRangeError at the clean end, and the first error of a stage as it comes from
        TensorFlow; ``failed_enqueue`` then names the stage.
        """
        plan = self._plan(fetches)
        run = self._callable(fetches, self._fed_tensors(plan.cuts))

        def step() -> Any:
            with self._lock:
                values = [value for _, value in self._serve(plan, {})]
                plan.step_begins()
                with self._step():
                    return self._unlocked(plan, lambda: run(*values))

        return step

    def before_run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> dict[Any, Any]:
        """Bring the queues to where a ``session.run(fetches, feed_dict)`` finds what it needs.

        Call `after_run` when that run is over; where nobody can, the next run of the same thread tells.

        Returns:
            What that run must be fed besides ``feed_dict`` (empty in the usual case).
        """
        return self._prepare(self._plan(fetches, feed_dict), feed_dict)

    def _prepare(self, plan: Plan, feed_dict: Mapping[Any, Any] | None) -> dict[Any, Any]:
        self.after_run()
        if not plan.cuts:
            # It may be a Python thread feeding the queue that a step waits for: it must not wait for the step.
            plan.step_begins()
            return {}
        with self._lock:
            feeds = dict(self._serve(plan, feed_dict or {}))
            plan.step_begins()
        return feeds

    def after_run(self, *, failed: bool = False) -> None:
        """The run of this thread is over, for which `before_run` was called."""
        for state in self._order:
            state.step_ended(failed=failed)

    @contextmanager
    def attached(self) -> Iterator[None]:
        """While open, every ``session.run`` of the session brings the queues up to it first, also those that feed."""
        session = self._session
        original = session.run

        def run(fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
            plan = self._plan(fetches, feed_dict)
            feeds = self._prepare(plan, feed_dict)
            waiting = self._begin_waiting(plan) if plan.may_wait else None
            if feeds:
                feed_dict = {**(feed_dict or {}), **feeds}
            try:
                with self._step():
                    return original(fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata)
            finally:
                if waiting is not None:
                    with self._lock:
                        del self._waiting[waiting]

        session.run = run  # on this object only; its class stays as it is
        try:
            self.start_fed_runners()
            yield
        finally:
            del session.run

    def _plan(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Plan:
        elements = fetch_elements(self.graph, fetches)
        fed = fed_names(feed_dict)
        key = (*(id(element) for element in elements), *sorted(fed))
        plan = self._plans.get(key)
        if plan is None:
            traced = trace(self.graph, elements)
            stage = traced.fetch_stage
            # What is fed in place of a batch leaves the batch in its queue.
            idle = idle_ops(self.graph, elements, fed)
            cuts = [] if stage is None else self._cuts(stage, traced, idle)
            enqueues = {enqueue.name: enqueue.queue for enqueue in self.topology.enqueues if enqueue.name not in idle}
            touched = [] if stage is None else [self._queues[enqueues[op]] for op in stage.ops if op in enqueues]
            # The elements are kept, so that their ids stay theirs.
            plan = self._plans[key] = Plan(cuts, touched, elements)
        return plan

    def _serve(self, plan: Plan, feed_dict: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
        """Fill the queues and wait for what the cuts of a step need; returns what must be fed."""
        if plan.cuts:
            while self._advance():
                pass
        feeds: list[tuple[Any, Any]] = []
        for cut in plan.cuts:
            self._know_batch_size(cut, feed_dict)
            while not cut.ready():
                if cut.fed and cut.pull():
                    continue
                if self._advance():
                    continue
                if any(lane.busy for lane in self._lanes):
                    self._lock.wait()  # another thread's step is at it
                elif not self._wait_outside(cut):
                    break
            if cut.fed and cut.is_complete():
                feeds.extend(zip(self._outputs(cut), cut.take(), strict=True))
            elif cut.fed:
                # The end of its queue: the dequeue itself says so in TensorFlow's words.
                self._original_run(self._outputs(cut))
        return feeds

    def _know_batch_size(self, cut: Cut, feed_dict: Mapping[Any, Any] | None = None) -> None:
        """Ask for a batch size that the graph computes, once for each batch."""
        if cut.size_tensor is not None and cut.is_empty:
            cut.batch_size = int(self._original_run(cut.size_tensor, dict(feed_dict or {})))

    def _wait_outside(self, cut: Cut) -> bool:
        """When nothing moves but what waits for Python code, wait with it.

        False when it is the step itself that waits for Python code, or when nothing does.
        """
        if any(state.external for state in cut.queues):
            return False
        for state in self._order:
            for lane in state.lanes:
                if not lane.ended and lane.has_room() and lane.waits_outside():
                    self._run_lane(lane)
                    return True
        return False

    @contextmanager
    def _step(self) -> Iterator[None]:
        """A step that begins here, and its end."""
        try:
            yield
        except BaseException:
            self.after_run(failed=True)
            raise
        self.after_run()

    # -- the schedule -----------------------------------------------------------------------------------

    def _advance(self, only: frozenset[str] | None = None) -> bool:
        """Run one enqueue: of the first queue from the source that has room and whose enqueue has data."""
        for state in self._order:
            if (only is None or state.name in only) and not state.closed and state.room() > 0:
                if state.pending is not None:
                    state.flush()
                    return True
                for lane in state.in_turn():
                    for cut in lane.cuts:
                        self._know_batch_size(cut)
                    if lane.pull_fed_cuts():
                        return True
                    if lane.has_room() and lane.ready():
                        state.next_lane = state.lanes.index(lane) + 1
                        self._run_lane(lane)
                        return True
        return False

    def _run_lane(self, lane: Lane) -> None:
        direct = not lane.parts and (
            not lane.many or (lane.static_count is not None and lane.static_count <= lane.queue.room())
        )
        run = lane.run if direct else lane.values
        touched = [(state, state.changes if not state.steps else -1) for state in lane.touched]
        try:
            if all(cut.is_complete() for cut in lane.cuts if cut.fed):
                feeds = [value for cut in lane.cuts if cut.fed for value in cut.take()]
                with lane.under_way(direct=direct):
                    result = self._unlocked(lane, lambda: run(*feeds))
            else:
                # The end of one of them: the dequeue itself says so in TensorFlow's words.
                self._original_run([self._outputs(cut) for cut in lane.cuts if cut.fed and cut.at_end()])
                raise AssertionError(f"{lane.enqueue.name} did not end")
        except tf.errors.OutOfRangeError:
            self._end(lane)
            return
        except BaseException:
            self.failed_enqueue = lane.enqueue
            raise
        moved = [state for state, before in touched if state.changes != before]
        if not direct:
            for cut in lane.cuts:
                cut.account()
            self._forget(moved)
            for state, values in lane.added(result[0]):
                state.pending = Pending(values)
                state.flush()
            return
        for cut in lane.cuts:
            if cut.certain:
                cut.account()
        if lane.certain:
            for state in lane.targets:
                state.add(lane.static_count if lane.many and lane.static_count is not None else 1)
        sizes = () if lane.sizes is None else result
        for state, size in zip(lane.asked, sizes, strict=True):
            state.know_size(int(size))
        self._forget(moved)

    @staticmethod
    def _forget(moved: list[QueueState]) -> None:
        """Ask again for the sizes of queues that another thread looked at, or moved elements of, during a run.

        It may have asked when the enqueue had just been done: what is added to that would count twice, and a step that
        relies on it would wait for ever.
        """
        for state in moved:
            state.forget_size()

    def _end(self, lane: Lane) -> None:
        """The input of an enqueue has ended: what its QueueRunner does when the last of its ops has ended."""
        lane.ended = True
        for cut in lane.cuts:
            cut.forget_sizes()
        index = lane.enqueue.runner
        if index is None:
            return
        self._open_lanes[index] -= 1
        if self._open_lanes[index] == 0:
            if index in self._closers:
                self._closers[index]()
            for state in self._order:
                if state.name in self.topology.runners[index].closes:
                    state.close()

    def _callable(self, fetches: Any, feeds: list[Any]) -> Callable[..., Any]:
        if not feeds:
            call: Callable[..., Any] = self._session.make_callable(fetches)
            return call
        # With feeds TensorFlow's callable is slow, and goes through the `run` that `attached` replaces.
        return lambda *values: self._original_run(fetches, dict(zip(feeds, values, strict=True)))

    def _original_run(self, *arguments: Any) -> Any:
        """The session's own run, also while `attached` stands in its place."""
        return type(self._session).run(self._session, *arguments)

    def _unlocked(self, what: Lane | Plan, run: Callable[[], Any]) -> Any:
        """Run what may wait for a file name, or for Python code, so that others can bring it meanwhile."""
        if not what.may_wait:
            return run()
        number = self._begin_waiting(what)
        what.busy = True
        self._lock.release()
        try:
            return run()
        finally:
            self._lock.acquire()
            what.busy = False
            del self._waiting[number]
            self._lock.notify_all()

    def _begin_waiting(self, what: Lane | Plan) -> int:
        self._runs += 1
        self._waiting[self._runs] = what
        return self._runs

    def _look(self) -> None:
        """Bring more file names to a read that waits for them: all those in its queue were of empty files.

        What it adds goes to the end of an empty queue, so it does not matter when it happens. Who waits for a queue
        that Python code fills, and that is closed, is woken.
        """
        seen: set[int] = set()
        while not self._stopping.wait(_LOOK_SECONDS):
            if self._coord is not None and self._coord.should_stop():
                return
            with self._lock:
                long = [what for number, what in self._waiting.items() if number in seen]
                seen = set(self._waiting)
                try:
                    for cut in (cut for what in long for cut in what.cuts):
                        if cut.is_read and cut.queue is not None:
                            self._bring_more(cut.queue)
                        for state in cut.queues:
                            if state.external:
                                self._wake(state)
                except (tf.errors.OpError, RuntimeError):
                    return  # the session is gone, or the step will meet the same error

    def _wake(self, state: QueueState) -> None:
        """Close a queue again that is closed, or whose feeding threads have ended.

        Seen, if seldom, in plain TensorFlow too: a queue is closed, and who waits for it waits for ever all the same. A
        second close wakes whoever waits, and changes nothing.
        """
        threads = self._fed_threads.get(id(state), [])
        if state.closed or (threads and not any(thread.is_alive() for thread in threads)):
            state.close_again()

    def _bring_more(self, state: QueueState) -> None:
        above = {state.name} | {node.name for node in self.topology.ancestors(state.model)}
        state.forget_size()
        while not state.closed and state.size() == 0 and self._advance(frozenset(above)):
            state.forget_size()
