"""Looks at a running pipeline from outside: samples its queues, sees a stall, and frees who waits in vain.

The watchdog only looks, until it is certain that nothing will ever move: cancelling or timing out a dequeue of many
loses the records that it has collected.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from tfqueue import consumers, stall
from tfqueue.engines.queue_ops import runs_at_once
from tfqueue.engines.threads import RunnerThreads, enqueue_operations
from tfqueue.errors import PipelineStalled, TFQueueError
from tfqueue.stall import QueueState, RunnerState
from tfqueue.topology.model import Topology
from tfqueue.topology.trace import trace

PATIENCE = 10
"""A pipeline that may just be slow is given up after so many times the stall timeout."""

_LONGEST_PAUSE = 0.5


class Watchdog:
    """One thread that looks at one run.

    Args:
        runners: The runners of the run.
        fetches: What a step of the run fetches, where a step's stack does not tell.
        stall_timeout: Seconds without progress after which a stall is reported.
        on_sample: Told the sizes of the queues at each look.
        on_stall: Told the stall, once; the watchdog then cancels the queues.
        on_slow: Told in words that a stage has been busy for the stall timeout, then for twice as long, and so on.
    """

    def __init__(
        self,
        runners: RunnerThreads,
        fetches: Any,
        *,
        stall_timeout: float,
        on_sample: Callable[[Mapping[str, QueueState]], None],
        on_stall: Callable[[PipelineStalled], None],
        on_slow: Callable[[str], None],
    ) -> None:
        self._runners = runners
        self._fetches = fetches
        self._stall_timeout = stall_timeout
        self._on_sample = on_sample
        self._on_stall = on_stall
        self._on_slow = on_slow
        self.filled = False  # whether a step may have been given a worthless element of a staging area
        self._end = threading.Event()
        self._ask: Callable[[], Any] | None = None
        self._asked: list[str] = []
        self._thread = threading.Thread(target=self._watch, name="tfqueue-watchdog", daemon=True)

    def start(self) -> None:
        """Start looking."""
        self._thread.start()

    def stop(self) -> None:
        """Stop looking, and join the thread."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()

    def release(self) -> None:
        """Forget whom to tell, and the session."""
        self._ask = None
        self._on_sample = self._on_stall = self._on_slow = _nobody

    def sample(self) -> dict[str, QueueState]:
        """The queues as they are now; empty where they cannot be asked (a closed session)."""
        handles = list(self._runners.handles.values())
        if not handles:
            return {}
        if self._ask is None or len(self._asked) != len(handles):
            self._asked = [handle.name for handle in handles]
            self._ask = runs_at_once(self._runners.session, [[handle.size, handle.is_closed] for handle in handles])
        try:
            answers = self._ask()
        except (tf.errors.OpError, RuntimeError):
            return {}
        return {
            name: QueueState(int(size), bool(closed)) for name, (size, closed) in zip(self._asked, answers, strict=True)
        }

    def _watch(self) -> None:
        pause = min(_LONGEST_PAUSE, max(0.01, self._stall_timeout / 10))
        moved_at = time.monotonic()
        seen: Any = None
        tell_after = self._stall_timeout
        waited: frozenset[tuple[int, int]] = frozenset()
        waits_since = moved_at
        tell_of_wait_after = self._stall_timeout
        while not self._end.wait(pause):
            now = time.monotonic()
            stacks = consumers.look(self._runners.session, self._runners.foreign)
            waiting = self._waiting(stacks)
            queues = {} if self._runners.stopping else self.sample()
            if waiting and waiting == waited:
                self._wake_who_waits_in_vain(queues)
            else:
                waits_since, tell_of_wait_after = now, self._stall_timeout
            waited = waiting
            if self._runners.stopping:
                continue
            if self._runners.first_error is not None:  # of a runner that somebody started without a coordinator
                self._runners.coord.request_stop()
                continue
            if queues:
                self._on_sample(queues)
            signature = (
                waiting,
                tuple((name, state.size, state.closed) for name, state in queues.items()),
                self._runners.turns,
            )
            if signature != seen or not waiting:
                seen, moved_at, tell_after = signature, now, self._stall_timeout
                if waiting and now - waits_since >= tell_of_wait_after:
                    tell_of_wait_after *= 2
                    self._judge(queues, stacks, now - waits_since, tell=True, moving=True)
                continue
            seconds = now - moved_at
            if seconds < self._stall_timeout:
                continue
            self._judge(queues, stacks, seconds, tell=seconds >= tell_after)
            if seconds >= tell_after:
                tell_after *= 2  # a stage that is slow once will be slow again: say it ever more rarely

    def _wake_who_waits_in_vain(self, queues: Mapping[str, QueueState]) -> None:
        if self._runners.stopping:
            # A failure closes the queues of runners only; a step may wait for one that a thread of the user's fed.
            self._runners.cancel_queues()
        else:
            self._runners.close_ended()
        if self._runners.has_staging_areas and self._nothing_will_come(queues):
            self.filled = True
            self._runners.fill_staging_areas()

    def _nothing_will_come(self, queues: Mapping[str, QueueState]) -> bool:
        """Whether the runners were stopped, or have all ended and closed their queues."""
        if self._runners.stopping:
            return True
        alive = any(runner.thread.is_alive() for runner in self._runners.threads)
        return not alive and all(state.closed for state in queues.values())

    def _waiting(self, stacks: consumers.Stacks) -> frozenset[tuple[int, int]]:
        """The threads, other than runners, that are inside a step, each with the call it is in."""
        runners = self._runners.thread_idents().union(stacks.of_runners)
        return frozenset((t, step.call) for t, step in stacks.in_session.items() if t not in runners)

    def _judge(
        self,
        queues: Mapping[str, QueueState],
        stacks: consumers.Stacks,
        seconds: float,
        *,
        tell: bool,
        moving: bool = False,
    ) -> None:
        topology = self._topology(stacks)
        runners = self._runner_states(stacks)
        finding = stall.find(
            topology,
            queues,
            runners,
            in_python_function=stacks.in_python_function,
            other_threads=self._other_threads(stacks),
        )
        if moving:  # the runners are at work, but the step goes on waiting
            if finding.cause_name != stall.COMPUTING:
                self._on_slow(
                    f"a step has waited {seconds:.3g} s so far, though the runners are at work: does a filter "
                    f"(maybe_batch, keep_input, a tf.cond around an enqueue) let anything pass?"
                )
            return
        given_up = finding.cause_name != stall.COMPUTING and seconds >= PATIENCE * self._stall_timeout
        if finding.certain and self.sample() != queues:
            return  # a runner has closed its queue and ended since the first look at the queues
        if finding.certain or given_up:
            self._on_stall(stall.report(finding, topology, queues, runners, seconds))
            self._runners.cancel_queues()
        elif tell:
            self._on_slow(f"a step has taken {seconds:.3g} s so far: {finding.words}; {finding.advice}")

    def _topology(self, stacks: consumers.Stacks) -> Topology:
        """The topology of the graph, with what the waiting steps fetch."""
        mine = self._runners.thread_idents().union(stacks.of_runners)
        fetched = [step.fetches for thread, step in stacks.in_session.items() if thread not in mine]
        try:
            return trace(self._runners.graph, [self._fetches if f is None else f for f in fetched])
        except (TFQueueError, ValueError, TypeError):
            # Fetches of a kind that only the session understands: any queue may be the one that is waited for.
            return trace(self._runners.graph, self._fetches)

    def _runner_states(self, stacks: consumers.Stacks) -> list[RunnerState]:
        """The threads of all runners; those that somebody else had started as far as their stacks show them."""
        states = [
            RunnerState(r.enqueue_op, r.thread.name, r.thread.is_alive(), r.enqueued if r.counted else None)
            for r in self._runners.threads
        ]
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        seen = stacks.of_runners
        states += [RunnerState(op, names.get(thread, "?"), True, None) for thread, op in seen.items() if op]
        unseen = {op.name for runner in self._runners.foreign for op in enqueue_operations(runner)} - set(seen.values())
        # A class of the user's own may run them in a thread that does not show which.
        return states + [RunnerState(op, "?", "" in seen.values(), None) for op in sorted(unseen)]

    def _other_threads(self, stacks: consumers.Stacks) -> bool:
        known = self._runners.thread_idents().union(stacks.in_session, stacks.of_runners)
        return any(
            thread.ident is not None
            and thread.ident not in known
            and not thread.name.startswith("tfqueue-")
            and consumers.may_feed(thread.ident)
            for thread in threading.enumerate()
            if thread is not threading.main_thread() and thread is not threading.current_thread()
        )


def _nobody(_: object) -> None:
    """Told what nobody wants to know any more."""
