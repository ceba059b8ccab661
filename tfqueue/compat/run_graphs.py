"""One graph of a program that is run unmodified: its queues found, and made ready for the engine.

A graph can only be changed before it is finalized, and ops that a session has seen cannot be changed at all. So what
an engine needs is done at the last moment at which it still can be: before the first step, or before the program (its
Supervisor, its MonitoredSession) finalizes the graph.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import tensorflow as tf

from tfqueue.engines.lockstep import Lockstep
from tfqueue.engines.queue_ops import QUEUE_TYPES, QueueHandle, queue_operations
from tfqueue.engines.rewire import Rewired, rewire
from tfqueue.errors import CannotLower, InvalidArgument, TFQueueWarning
from tfqueue.topology.model import Dequeue, Topology
from tfqueue.topology.trace import trace

tf1 = tf.compat.v1

_TAKES = ("QueueDequeue", "ReaderRead")
_OURS = "tfqueue/"


class ProgramGraph:
    """What is known of one graph.

    Args:
        graph: The graph.
        engine: ``"threads"``, ``"lockstep"`` or ``"tfdata"``.

    Attributes:
        engine: What runs the queues: the engine that was asked for, or ``"threads"`` once `cannot` has been met.
        rewired: What stands for queues, with the engine tfdata.
        cannot: Why nothing can stand for others of them.
        topology: The topology of the pipelines, as the program built them.
        run_by_runners: The ops that queue runners run, by id.
    """

    def __init__(self, graph: tf.Graph, engine: str) -> None:
        self.graph = graph
        self.engine = engine
        self.rewired: Rewired | None = None
        self.topology: Topology | None = None
        self.handles: dict[str, QueueHandle] = {}
        self.run_by_runners: dict[int, Any] = {}
        self._runners: list[Any] = []
        self._lockstep: Lockstep | None = None
        self.cannot: CannotLower | None = None
        self._version = self._traced = -1
        self._looked_at = 0
        self._has_queues = False
        self._changed = False  # whether ops of ours are in the graph

    def note_runner(self, runner: Any) -> None:
        """A queue runner was made; programs do not always add it to the collection."""
        self._runners.append(runner)
        self.run_by_runners.update((id(op), op) for op in runner.enqueue_ops)
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
        """Trace the pipelines as they are now; what tf.data has replaced stays as it was before."""
        self._collect_runners()
        if self.rewired is None and self._traced != self.graph.version:
            self.topology = self._trace()
            self._traced = self.graph.version

    def look_at_the_end(self) -> Mapping[str, Dequeue]:
        """Trace once more; returns the dequeue ops that were added since tf.data has replaced queues."""
        self.look()
        return {} if self.rewired is None else {dequeue.name: dequeue for dequeue in self._trace().dequeues}

    def _trace(self) -> Topology:
        found = trace(self.graph)
        return _of_the_program(found) if self._changed else found

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
            if self.cannot is None:
                return
            self.fall_back(self.cannot)
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
        if self.graph.finalized or self.engine != "tfdata":
            return
        self.look()
        try:
            self.rewired = rewire(self.graph) if self.rewired is None else self.rewired.extend()
            self._changed = True
            self.cannot = None
        except CannotLower as error:
            self.cannot = error
        except InvalidArgument:  # no step takes anything from a queue, so far
            self.cannot = None

    def check_rewired(self) -> None:
        """Let the threads run the queues for which nothing can stand."""
        if self.rewired is None:
            self.try_to_rewire()
        if self.cannot is not None and self.engine == "tfdata":
            self.fall_back(self.cannot)

    def fall_back(self, cannot: CannotLower) -> None:
        """From now on the threads of the runners fill the queues that tf.data has not replaced."""
        self.engine = "threads"
        place = f" ({cannot.source})" if cannot.source and cannot.source not in str(cannot) else ""
        which = "the queues of this graph" if self.rewired is None else "its queue"
        warnings.warn(
            f"not on tf.data: {cannot}{place}. {which} stay queues, and their runners fill them, as with --engine "
            f"threads. To be on tf.data: {cannot.advice or 'see tfqueue.to_dataset'}",
            TFQueueWarning,
            stacklevel=1,
        )

    def is_replaced(self, runner: Any) -> bool:
        """Whether tf.data does what this runner was for."""
        return self.rewired is not None and any(runner is replaced for replaced in self.rewired.runners)

    def refuse_replaced(self, takes: Iterable[str]) -> None:
        """Raise CannotLower where a step would wait for a queue that nothing fills any more."""
        if self.rewired is None or self.engine == "tfdata":
            return
        replaced = {old.rpartition(":")[0] for old in self.rewired.tensors}
        for name in takes:
            op = self.graph.get_operation_by_name(name)
            queue = op.inputs[0].op.name if op.inputs else ""
            if queue in self.rewired.datasets and name not in replaced:
                raise CannotLower(
                    f"{name} takes from the queue {queue}, which tf.data has replaced in the steps before: "
                    f"{self.cannot}",
                    op=name,
                )

    # -- lockstep ----------------------------------------------------------------------------------------------------

    def take_lockstep(self) -> Lockstep:
        """An engine for one session; only one can be had of a finalized graph.

        Raises:
            InvalidArgument: A second session runs a finalized graph.
        """
        engine, self._lockstep = self._lockstep, None
        if engine is None:
            self.look()
            self._changed = True
            engine = Lockstep(self.graph, self.topology)
            self._traced = self.graph.version
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
                if not op.name.startswith(_OURS):
                    found[op.name] = None
            elif not op.type.startswith("QueueEnqueue"):
                pending.extend(tensor.op for tensor in op.inputs)
                pending.extend(op.control_inputs)
        return tuple(sorted(found))


def _of_the_program(topology: Topology) -> Topology:
    """A topology without the ops that were added to look at the queues, or to run them step by step."""

    def kept(nodes: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(node for node in nodes if not node.name.startswith(_OURS))

    queues = tuple(
        replace(
            queue,
            enqueues=kept(queue.enqueues),
            dequeues=tuple(name for name in queue.dequeues if not name.startswith(_OURS)),
        )
        for queue in topology.queues
    )
    return replace(
        topology,
        queues=queues,
        transforms=kept(topology.transforms),
        dequeues=kept(topology.dequeues),
        unknown=kept(topology.unknown),
    )
