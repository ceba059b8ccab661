"""What is known about a failure: the root message, the op, the stage, the record; gathered once, used by all rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from tfqueue.engines.stage import COPIED_STAGE
from tfqueue.topology.model import FETCHES, Producer, Topology, Transform
from tfqueue.topology.subgraph import CALL_TYPES, GraphView
from tfqueue.topology.trace import trace

_NODE = re.compile(r"\{\{(?:colocation_)?node ([^}]+)\}\}")
_FUNCTION = re.compile(r"\{\{function_node ([^}]+)\}\}")
_TRAILER = re.compile(r"\n?\s*\[\[\{\{.*", re.DOTALL)
_HEADER = re.compile(r"^Graph execution error:.*?\nNode: '[^']*'\n", re.DOTALL)
# What tf.data puts before the words of an op in a map; and the parser of batches, where records have no names.
_IN_DATASET = re.compile(r"^(?:Error in user-defined function passed to \S+ transformation with iterator: \S+: )+")
_NAMELESS = "Name: <unknown>, "


@dataclass(slots=True)
class Place:
    """The record that failed, as far as it could be found.

    Attributes:
        file: The data file, or None.
        record: The 0-based number of the record in the file, or None.
        payload: The record's bytes, or None.
        damage: What is damaged in the file, in words, or None.
        element: The 0-based number of the element of an input producer that led here, or None.
        read_file: The file that a `tf.read_file` before the failed op had read, or None.
    """

    file: str | None = None
    record: int | None = None
    payload: bytes | None = None
    damage: str | None = None
    element: int | None = None
    read_file: str | None = None


@dataclass(slots=True)
class Evidence:
    """What is known about one failure.

    Attributes:
        error: What was raised.
        message: The kernel's own words, without TensorFlow's wrapping.
        op: The op that failed, or None.
        stage: The stage that the op belongs to, or None.
        topology: The topology of the graph, or None when it could not be traced.
        source: The user's line that built the op or the stage, or None.
        place: The record that failed.
        headline: What to say first instead of the error's own words, or None.
        details: Further lines of the message.
        by_runner: Whether a queue runner met the failure, and it is known which.
        lowered: Whether the dataset that the graph was lowered to met it: in a copy of the op, perhaps on a batch.
    """

    error: BaseException
    message: str
    graph: Any
    op: Any = None
    stage: Transform | None = None
    producer: Producer | None = None
    topology: Topology | None = None
    source: str | None = None
    place: Place = field(default_factory=Place)
    headline: str | None = None
    details: list[str] = field(default_factory=list)
    by_runner: bool = False
    lowered: bool = False

    @property
    def stage_words(self) -> str | None:
        """The stage in words: what it does, and the queue it fills."""
        if self.producer is not None and self.producer.kind == "fed":
            return f"feeding queue {self.producer.queue!r}"
        if self.producer is not None:
            return f"producing {self.producer.kind} for queue {self.producer.queue!r}"
        if self.stage is None:
            return None
        name = "the fetched tensors" if self.stage.name == FETCHES else f"queue {self.stage.target!r}"
        doing = f"in {self.op.type} {self.op.name!r} " if self.op is not None else ""
        return f"{doing}on the way to {name}"


def gather(
    error: BaseException, graph: tf.Graph, *, enqueue_op: str | None, fetches: Any, lowered: bool = False
) -> Evidence:
    """Gather what the error and the graph say; never raises."""
    evidence = Evidence(error, root_message(error), graph, by_runner=enqueue_op is not None, lowered=lowered)
    try:
        evidence.topology = trace(graph, fetches)
    except Exception:  # noqa: BLE001 - a failure to explain must not hide the failure itself
        evidence.topology = None
    evidence.op = _copied_op(error, graph) if lowered else _failed_op(error, graph)
    topology = evidence.topology
    if topology is not None:
        _find_stage(evidence, topology, enqueue_op)
    if evidence.op is not None:
        evidence.source = GraphView(graph).source_of(evidence.op)
    if evidence.source is None:
        node = evidence.stage or evidence.producer
        evidence.source = node.source if node is not None else None
    return evidence


def root_message(error: BaseException) -> str:
    """The kernel's own words in an error, without the graph traceback that TensorFlow puts around them."""
    text = str(getattr(error, "message", None) or error)
    text = _HEADER.sub("", text).removeprefix("Graph execution error:").lstrip()
    text = _IN_DATASET.sub("", text).removeprefix(_NAMELESS)
    text = text.split("\n\nOriginal stack trace for")[0]
    return _TRAILER.sub("", text).strip()


def node_names(error: BaseException) -> Sequence[str]:
    """The names of the nodes that an error names, the failing one first."""
    return _NODE.findall(str(error))


def _failed_op(error: BaseException, graph: tf.Graph) -> Any:
    for name in node_names(error):
        # A node inside a tf.cond or while function is not in the graph; the op that calls the function is.
        while name:
            try:
                return graph.get_operation_by_name(name)
            except (KeyError, ValueError):
                name = name.rpartition("/")[0]
    for name in _FUNCTION.findall(str(error)):
        caller = _caller_of(name, graph)
        if caller is not None:
            return caller
    return getattr(error, "op", None) or _caller_of_nodes(node_names(error), graph)


def _copied_op(error: BaseException, graph: tf.Graph) -> Any:
    """The op of the graph whose copy in a dataset failed."""
    for name in node_names(error):
        _, found, copied = name.partition(COPIED_STAGE + "/")
        try:
            return graph.get_operation_by_name(copied) if found else None
        except (KeyError, ValueError):
            continue
    return None


def _caller_of(function: str, graph: tf.Graph) -> Any:
    """The op that calls a function (a tf.cond or tf.while_loop), of which the runtime may have made a variant.

    A function that another one calls (a tf.cond in a branch of a tf.cond) is not named by any op of the graph; then the
    op that calls the outer one is meant.
    """
    for op in graph.get_operations():
        if op.type in (*CALL_TYPES, "While", "StatelessWhile") and _calls(op.node_def, function):
            return op
    for body in graph.as_graph_def().library.function:
        name = body.signature.name
        if not function.startswith(name) and any(_calls(node, function) for node in body.node_def):
            caller = _caller_of(name, graph)
            if caller is not None:
                return caller
    return None


def _caller_of_nodes(nodes: Sequence[str], graph: tf.Graph) -> Any:
    """The op that calls the function with one of these nodes, where the error does not name the function; None if it
    could be several.
    """
    wanted = set(nodes)
    bodies = [b for b in graph.as_graph_def().library.function if wanted & {node.name for node in b.node_def}]
    callers = {op.name: op for op in (_caller_of(body.signature.name, graph) for body in bodies) if op is not None}
    return next(iter(callers.values())) if len(callers) == 1 else None


def _calls(node: Any, function: str) -> bool:
    return any(value.HasField("func") and function.startswith(value.func.name) for value in node.attr.values())


def _find_stage(evidence: Evidence, topology: Topology, enqueue_op: str | None) -> None:
    name = evidence.op.name if evidence.op is not None else None
    # Branches share ops: the runner's own enqueue op tells which branch it was.
    if enqueue_op is not None:
        for enqueue in topology.enqueues:
            if enqueue_op in (enqueue.name, enqueue.runs):
                evidence.producer = next((p for p in topology.producers if p.name == enqueue.name), None)
                evidence.stage = next((t for t in topology.transforms if t.name == enqueue.transform), None)
                return
    if name is not None:
        evidence.stage = topology.stage_of(name)
        if evidence.stage is None:
            evidence.producer = next((p for p in topology.producers if name in p.ops), None)
    else:  # the step's own error, from inside a function whose ops are not in the graph
        evidence.stage = topology.fetch_stage
