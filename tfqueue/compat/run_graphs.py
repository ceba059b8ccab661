"""One graph of a program that is run unmodified: its queues found, and made ready for the engine.

A graph can only be changed before it is finalized, and ops that a session has seen cannot be changed at all. So what
an engine needs is done at the last moment at which it still can be: before the first step, or before the program (its
Supervisor, its MonitoredSession) finalizes the graph.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from tfqueue.engines.lockstep import Lockstep
from tfqueue.engines.queue_ops import QUEUE_TYPES, QueueHandle, queue_operations
from tfqueue.engines.rewire import Rewired, rewire
from tfqueue.errors import CannotLower, InvalidArgument
from tfqueue.topology.model import Topology
from tfqueue.topology.trace import trace

tf1 = tf.compat.v1

_TAKES = ("QueueDequeue", "ReaderRead")


class ProgramGraph:
    """What is known of one graph.

    Args:
        graph: The graph.
        engine: ``"threads"``, ``"lockstep"`` or ``"tfdata"``.

    Attributes:
        rewired: What stands for the queues, with the engine tfdata.
        cannot: Why nothing can stand for them, with the engine tfdata.
        topology: The topology of the pipelines, as the program built them.
    """

    def __init__(self, graph: tf.Graph, engine: str) -> None:
        self.graph = graph
        self.engine = engine
        self.rewired: Rewired | None = None
        self.topology: Topology | None = None
        self.handles: dict[str, QueueHandle] = {}
        self._runners: list[Any] = []
        self._lockstep: Lockstep | None = None
        self.cannot: CannotLower | None = None
        self._version = -1
        self._looked_at = 0
        self._has_queues = False
        self._changed = False  # whether ops of ours are in the graph

    def note_runner(self, runner: Any) -> None:
        """A queue runner was made; programs do not always add it to the collection."""
        self._runners.append(runner)
        self._has_queues = True

    @property
    def has_queues(self) -> bool:
        """Whether the graph has a queue so far."""
        if not self._has_queues and self.graph.version != self._version:
            self._version = self.graph.version
            ops = self.graph.get_operations()
            self._has_queues = any(op.type in QUEUE_TYPES for op in ops[self._looked_at :])
            self._looked_at = len(ops)
        return self._has_queues

    def look(self) -> None:
        """Trace the pipelines as they are, while nothing of ours is among them."""
        if not self._changed:
            self._collect_runners()
            self.topology = trace(self.graph)

    def _collect_runners(self) -> None:
        """Add the runners to the graph's collection that stand in none: trace and the engines look there."""
        known: set[int] = set()
        for key in self.graph.get_all_collection_keys():
            known.update(id(item) for item in self.graph.get_collection_ref(key))
        for runner in self._runners:
            if id(runner) not in known:
                self.graph.add_to_collection(tf1.GraphKeys.QUEUE_RUNNERS, runner)
        self._runners = []

    def before_finalize(self) -> None:
        """Do what can only be done before the graph is finalized."""
        if self.graph.finalized or not self.has_queues:
            return
        self.look()
        if self.engine == "tfdata":
            self.try_to_rewire()
            return
        self._changed = True
        if self.engine == "lockstep" and self._lockstep is None:
            self._lockstep = Lockstep(self.graph, self.topology)
        for operation in queue_operations(self.graph):
            if operation.name not in self.handles:
                self.handles[operation.name] = QueueHandle(operation)

    def adopted(self, handles: dict[str, QueueHandle]) -> None:
        """Ops that look at the queues were made; a second session of the graph uses them, too."""
        self._changed = True
        self.handles.update(handles)

    # -- tfdata ------------------------------------------------------------------------------------------------------

    def try_to_rewire(self) -> None:
        """Put datasets in the place of the queues if that can be done now; the graph may not be complete yet."""
        if self.rewired is None:
            if self.graph.finalized:
                return
            self.look()
            try:
                self.rewired = rewire(self.graph)
                self._changed = True
                self.cannot = None
            except CannotLower as error:
                self.cannot = error
            except InvalidArgument:  # no step takes anything from a queue, so far
                self.cannot = None
        else:
            self.rewired.extend()

    def check_rewired(self) -> None:
        """Raise CannotLower where a queue has no counterpart in tf.data; a program that reads no queue may go on."""
        if self.rewired is None:
            self.try_to_rewire()
        if self.cannot is not None:
            raise self.cannot
        new = [runner.name for runner in self.graph.get_collection(tf1.GraphKeys.QUEUE_RUNNERS)]
        if new and self.rewired is not None:
            raise CannotLower(
                f"the queue runner {new[0]} was added after the first session.run, when the queues had been replaced",
                op=new[0],
                advice="build every pipeline before the first session.run, or use --engine threads",
            )

    def require_rewired(self) -> Rewired:
        """What stands for the queues, for a step that takes something from one.

        Raises:
            CannotLower: They have no counterpart in tf.data.
        """
        self.check_rewired()
        if self.rewired is None:
            raise CannotLower("a step takes something that no queue of the graph gives")
        return self.rewired

    # -- lockstep ----------------------------------------------------------------------------------------------------

    def take_lockstep(self) -> Lockstep:
        """An engine for one session; only one can be had of a finalized graph."""
        engine, self._lockstep = self._lockstep, None
        if engine is None:
            self.look()
            self._changed = True
            engine = Lockstep(self.graph, self.topology)
        return engine

    # -- what a step takes -------------------------------------------------------------------------------------------

    def takes(self, elements: Iterable[Any]) -> tuple[str, ...]:
        """The dequeue and read ops that these fetches need, by name."""
        stands_for = {}
        if self.rewired is not None:
            stands_for = {new.op.name: old.rpartition(":")[0] for old, new in self.rewired.tensors.items()}
        found: dict[str, None] = {}
        seen: set[str] = set()
        pending = [getattr(element, "op", element) for element in elements]
        while pending:
            op = pending.pop()
            if op.name in seen:
                continue
            seen.add(op.name)
            if op.name in stands_for:
                found[stands_for[op.name]] = None
            elif op.type.startswith(_TAKES):
                found[op.name] = None
            elif not op.type.startswith("QueueEnqueue"):
                pending.extend(tensor.op for tensor in op.inputs)
                pending.extend(op.control_inputs)
        return tuple(sorted(found))
