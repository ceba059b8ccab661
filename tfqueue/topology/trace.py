"""Reading a topology out of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

from tfqueue.build import build
from tfqueue.errors import InvalidArgument
from tfqueue.topology.filling import STRANGE, Filling, captured_queues, is_cut, is_cut_or_handle
from tfqueue.topology.model import (
    FETCHES,
    Dequeue,
    Enqueue,
    Producer,
    Queue,
    Read,
    Reader,
    Runner,
    TensorInfo,
    Topology,
    Transform,
    Unknown,
)
from tfqueue.topology.sources import read_producer
from tfqueue.topology.specs import DECODE_TYPES, PARSE_TYPES, read_decode, read_parse_spec
from tfqueue.topology.subgraph import (
    CALL_TYPES,
    CUT_TYPES,
    DEQUEUE_KINDS,
    FUNCTION_TYPES,
    QUEUE_KINDS,
    RANDOM_WORDS,
    READ_TYPES,
    READER_KINDS,
    GraphView,
    attribute,
    constant_int,
    describe_tensor,
    draws_in_functions,
    shape_of,
    text,
)

_PYTHON_TYPES = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})
_PLACEHOLDER_TYPES = frozenset({"Placeholder", "PlaceholderV2"})
_VARIABLE_TYPES = frozenset({"VarHandleOp", "VariableV2", "Variable"})
_TABLE_TYPES = frozenset(
    f"{name}{version}"
    for name in ("HashTable", "MutableHashTable", "MutableDenseHashTable", "MutableHashTableOfTensors")
    for version in ("", "V2")
)
_CONTROL_FLOW_TYPES = CALL_TYPES | {"While", "StatelessWhile", "Merge", "Enter", "RefMerge", "RefEnter"}
# Other ways to carry data from step to step, which the model does not follow.
_FOREIGN = {
    **dict.fromkeys(("Stage", "Unstage", "StagePeek", "MapStage", "MapUnstage"), "a StagingArea"),
    "RecordInput": "RecordInput",
    **dict.fromkeys(("IteratorGetNext", "IteratorGetNextSync", "IteratorGetNextAsOptional"), "a tf.data iterator"),
    **dict.fromkeys(("Barrier", "BarrierTakeMany", "BarrierInsertMany"), "a Barrier"),
}


def trace(target: Callable[[], Any] | tf.Graph, fetches: Any = None) -> Topology:
    """Read the topology of a queue-runner pipeline out of its graph; nothing is run or changed.

    Args:
        target: A build function (called in a fresh graph), or a graph, also one imported from a MetaGraph.
        fetches: With a graph: the tensors, ops or names, in any nest, that a step fetches. Without them the
            topology has no stage for the fetches.

    Returns:
        The topology. Parts of the graph that cannot be understood become ``Unknown`` nodes and a warning.

    Raises:
        InvalidArgument: ``target`` is neither; ``fetches`` with a build function, or not in the graph.
        InvalidBuildFunction: The build function returned no tensors of its graph.
    """
    if isinstance(target, tf.Graph):
        return _Tracer(target).topology(fetch_elements(target, fetches))
    if fetches is not None:
        raise InvalidArgument("fetches belong to a graph; a build function returns its own")
    graph = tf.Graph()
    built = build(target, graph)
    return _Tracer(graph).topology(fetch_elements(graph, built))


def fetch_elements(graph: tf.Graph, fetches: Any) -> list[Any]:
    """The tensors and ops of a nest of fetches, flattened (SparseTensor: indices, values, dense_shape).

    Raises:
        InvalidArgument: Something in it is not of this graph.
    """
    if fetches is None:
        return []
    elements = []
    for item in tf.nest.flatten(fetches, expand_composites=True):
        if item is None:
            continue
        try:
            elements.append(graph.as_graph_element(item))
        except (KeyError, ValueError, TypeError) as error:
            raise InvalidArgument(f"fetch {item!r} is not in the graph: {error}") from error
    return elements


class _Tracer:
    """Builds the nodes of one graph."""

    def __init__(self, graph: tf.Graph) -> None:
        self.view = GraphView(graph)
        self.unknown: list[Unknown] = []
        self.warnings: list[str] = []

    def topology(self, fetches: list[Any]) -> Topology:
        view = self.view
        filling = Filling(view, self._add_unknown, self.warnings)
        enqueue_ops = filling.enqueue_ops()
        runners, drivers = filling.runners(enqueue_ops)
        enqueues: list[Enqueue] = []
        transforms: list[Transform] = []
        for op in filling.in_runner_order(enqueue_ops, drivers):
            for enqueue in filling.enqueues_of(op, enqueue_ops[op.name], drivers.get(op.name)):
                enqueues.append(enqueue)
                ends = [op] if enqueue.runs == op.name else [op, view.by_name[enqueue.runs]]
                if all(stage.name != enqueue.transform for stage in transforms):
                    transforms.append(
                        self._transform(enqueue.transform, enqueue.queue, ends, enqueue.components, enqueue.source)
                    )
        if fetches:
            ends = [getattr(element, "op", element) for element in fetches]
            outputs = tuple(describe_tensor(item) for item in fetches if isinstance(item, tf.Tensor))
            stage = self._fetch_transform(ends, outputs)
            transforms.append(stage)
        consumers: dict[str, list[str]] = {}
        for stage in transforms:
            for name in stage.inputs:
                consumers.setdefault(name, []).append(stage.name)
        dequeues = self._dequeues(consumers)
        readers = self._readers(consumers)
        stages = {stage.name: stage for stage in transforms}
        producers = [
            producer
            for enqueue in enqueues
            if not stages[enqueue.transform].inputs
            and (producer := self._guard(view.by_name[enqueue.name], self._producer, enqueue, stages))
        ]
        queues = [
            queue
            for op in view.of_type(QUEUE_KINDS)
            if (queue := self._guard(op, self._queue, enqueues, dequeues, readers, runners))
        ]
        self._foreign_ops()
        return Topology(
            queues=tuple(self._source_to_sink(queues, stages, dequeues, readers)),
            producers=tuple(producers),
            readers=tuple(readers),
            transforms=tuple(transforms),
            dequeues=tuple(dequeues),
            runners=tuple(runners),
            fetches=tuple(
                describe_tensor(item) if isinstance(item, tf.Tensor) else TensorInfo(item.name, "op", None)
                for item in fetches
            ),
            unknown=tuple(self.unknown),
            warnings=tuple(self.warnings),
        )

    # -- stages ------------------------------------------------------------------------------------

    def _fetch_transform(self, ends: list[Any], outputs: tuple[TensorInfo, ...]) -> Transform:
        ops = list({op.name: op for op in ends}.values())
        cuts = [op for op in ops if is_cut(op)]
        others = [op for op in ops if not is_cut(op)]
        last = self.view.sorted(ops)[-1]
        return self._transform(FETCHES, None, others, outputs, self.view.source_of(last), cuts)

    def _transform(
        self,
        name: str,
        target: str | None,
        ends: list[Any],
        outputs: tuple[TensorInfo, ...],
        source: str | None,
        cuts: Iterable[Any] = (),
    ) -> Transform:
        view = self.view
        ops, stops = view.closure(ends, stop=is_cut_or_handle)
        stops = [op for op in stops if is_cut(op)]
        inputs = view.sorted({op.name: op for op in (*stops, *cuts)}.values())
        types = {op.name: op.type for op in ops}
        # Dequeues and reads inside a function (tf.cond) are inputs of the stage as well.
        inside = [op for op in ops if op.type in CALL_TYPES and view.called_types(op) & CUT_TYPES]
        parses = [self._guard(op, read_parse_spec) for op in ops if op.type in PARSE_TYPES]
        decodes = [self._guard(op, read_decode) for op in ops if op.type in DECODE_TYPES]

        def named(wanted: frozenset[str]) -> tuple[str, ...]:
            return tuple(name for name, op_type in types.items() if op_type in wanted)

        return Transform(
            name=name,
            target=target,
            inputs=tuple(op.name for op in (*inputs, *inside)),
            outputs=outputs,
            ops=tuple(types),
            op_types=tuple(types.values()),
            stateful=tuple(op.name for op in ops if op.op_def is not None and op.op_def.is_stateful),
            random=tuple(
                op.name for op in ops if any(word in op.type for word in RANDOM_WORDS) or draws_in_functions(view, op)
            ),
            python=tuple(
                op.name
                for op in ops
                if op.type in _PYTHON_TYPES or (op.type in FUNCTION_TYPES and view.called_types(op) & _PYTHON_TYPES)
            ),
            placeholders=named(_PLACEHOLDER_TYPES),
            variables=named(_VARIABLE_TYPES),
            tables=named(_TABLE_TYPES),
            parses=tuple(spec for spec in parses if spec is not None),
            decodes=tuple(decode for decode in decodes if decode is not None),
            control_flow=named(frozenset(_CONTROL_FLOW_TYPES)),
            source=source,
        )

    def _producer(self, op: Any, source: str | None, enqueue: Enqueue, stages: dict[str, Transform]) -> Producer:
        return read_producer(self.view, enqueue, stages[enqueue.transform])

    # -- queues, dequeues, readers -----------------------------------------------------------------

    def _queue(
        self,
        op: Any,
        source: str | None,
        enqueues: list[Enqueue],
        dequeues: list[Dequeue],
        readers: list[Reader],
        runners: list[Runner],
    ) -> Queue:
        capacity = int(attribute(op, "capacity", -1))
        types = [tf.as_dtype(dtype).name for dtype in attribute(op, "component_types", [])]
        # No shapes at all means that every component may have any shape.
        shapes = [shape_of(shape) for shape in attribute(op, "shapes", [])] or [None] * len(types)
        kind = QUEUE_KINDS[op.type]
        if kind == "Priority":
            # The kernel adds the priority in front; the attributes list the rest.
            types, shapes = ["int64", *types], [(), *shapes][: len(types) + 1]
        return Queue(
            name=op.name,
            op_type=op.type,
            kind=kind,
            capacity=capacity if capacity >= 0 else None,
            min_after_dequeue=int(attribute(op, "min_after_dequeue", 0)),
            seed=int(attribute(op, "seed", 0)),
            seed2=int(attribute(op, "seed2", 0)),
            components=tuple(TensorInfo("", dtype, shape) for dtype, shape in zip(types, shapes, strict=False)),
            enqueues=tuple(enqueue for enqueue in enqueues if enqueue.queue == op.name),
            dequeues=tuple(dequeue.name for dequeue in dequeues if op.name in dequeue.candidates),
            reads=tuple(read.name for reader in readers for read in reader.reads if read.queue == op.name),
            close_ops=tuple(user.name for user in op.outputs[0].consumers() if user.type.startswith("QueueClose")),
            runners=tuple(index for index, runner in enumerate(runners) if runner.queue == op.name),
            shared_name=text(attribute(op, "shared_name", "")),
            source=source,
        )

    def _dequeues(self, consumers: dict[str, list[str]]) -> list[Dequeue]:
        found = []
        for op in self.view.of_type(DEQUEUE_KINDS):
            queues = self.view.queues_behind(op.inputs[0])
            if not queues:
                self._add_unknown(op, "it dequeues, but its queue could not be told")
            kind = DEQUEUE_KINDS[op.type]
            size = None if kind == "dequeue" else op.inputs[1]
            found.append(
                Dequeue(
                    name=op.name,
                    queue=queues[0].name if len(queues) == 1 else None,
                    kind=kind,
                    batch_size=1 if size is None else constant_int(size),
                    batch_size_tensor=None if size is None else size.name,
                    components=tuple(describe_tensor(tensor) for tensor in op.outputs),
                    candidates=tuple(queue.name for queue in queues),
                    consumers=tuple(consumers.get(op.name, ())),
                    source=self.view.source_of(op),
                )
            )
        for op in self.view.of_type(CALL_TYPES):
            queues = captured_queues(self.view, op)
            kinds = (
                {DEQUEUE_KINDS[name] for name in self.view.called_types(op) & DEQUEUE_KINDS.keys()} if queues else ()
            )
            if kinds:
                found.append(
                    Dequeue(
                        name=op.name,
                        queue=queues[0].name if len(queues) == 1 else None,
                        kind=max(kinds),
                        batch_size=None,
                        batch_size_tensor=None,
                        components=tuple(describe_tensor(tensor) for tensor in op.outputs),
                        candidates=tuple(queue.name for queue in queues),
                        consumers=tuple(consumers.get(op.name, ())),
                        conditional=True,
                        source=self.view.source_of(op),
                    )
                )
        return found

    def _readers(self, consumers: dict[str, list[str]]) -> list[Reader]:
        reads: dict[str, list[Read]] = {}
        for op in self.view.of_type(READ_TYPES):
            handle = self._reader_behind(op.inputs[0])
            if handle is None:
                self._add_unknown(op, "it reads, but its reader could not be told")
                continue
            queues = self.view.queues_behind(op.inputs[1])
            many = "UpTo" in op.type
            reads.setdefault(handle.name, []).append(
                Read(
                    name=op.name,
                    queue=queues[0].name if len(queues) == 1 else None,
                    up_to=constant_int(op.inputs[2]) if many else None,
                    many=many,
                    consumers=tuple(consumers.get(op.name, ())),
                    source=self.view.source_of(op),
                )
            )
        readers = (self._guard(op, _reader, tuple(reads.get(op.name, ()))) for op in self.view.of_type(READER_KINDS))
        return [reader for reader in readers if reader is not None]

    def _reader_behind(self, tensor: Any) -> Any | None:
        op = tensor.op
        while op.type not in READER_KINDS:
            if not op.inputs or op.type not in (
                "Identity",
                "Switch",
                "RefSwitch",
                "Enter",
                "RefEnter",
                "RefIdentity",
            ):
                return None
            op = op.inputs[0].op
        return op

    # -- the whole ---------------------------------------------------------------------------------

    def _source_to_sink(
        self,
        queues: list[Queue],
        stages: dict[str, Transform],
        dequeues: list[Dequeue],
        readers: list[Reader],
    ) -> list[Queue]:
        """Queues so that each comes after those it is filled from; graph order otherwise."""
        by_name = {queue.name: queue for queue in queues}
        feeding = {dequeue.name: dequeue.candidates for dequeue in dequeues}
        feeding.update({r.name: (r.queue,) for reader in readers for r in reader.reads if r.queue is not None})
        ordered: dict[str, Queue] = {}
        entered: set[str] = set()

        def visit(queue: Queue) -> None:
            entered.add(queue.name)
            for enqueue in queue.enqueues:
                for cut in stages[enqueue.transform].inputs:
                    for name in feeding.get(cut, ()):
                        if name not in entered and name in by_name:
                            visit(by_name[name])
                        elif name not in ordered and name in by_name:
                            self.warnings.append(f"queue {name} ({by_name[name].source}) is filled from itself")
            ordered[queue.name] = queue

        for queue in queues:
            if queue.name not in entered:
                visit(queue)
        return list(ordered.values())

    def _foreign_ops(self) -> None:
        for op in self.view.of_type(_FOREIGN):
            self._add_unknown(op, f"{_FOREIGN[op.type]} is not followed")

    def _add_unknown(self, op: Any | None, reason: str) -> None:
        if op is None:
            self.warnings.append(reason)
            return
        source = self.view.source_of(op)
        self.unknown.append(Unknown(op.name, op.type, reason, source))
        self.warnings.append(f"{op.name} ({op.type}, {source}): {reason}")

    def _guard(self, op: Any, read: Callable[..., Any], *arguments: Any) -> Any:
        """``read(op, source, ...)``; a strange op becomes an unknown node and a warning, not an error."""
        try:
            return read(op, self.view.source_of(op), *arguments)
        except STRANGE as error:
            self._add_unknown(op, f"it could not be read: {error}")
            return None


def _reader(op: Any, source: str | None, reads: tuple[Read, ...]) -> Reader:
    return Reader(
        name=op.name,
        op_type=op.type,
        kind=READER_KINDS[op.type],
        reads=reads,
        compression=text(attribute(op, "compression_type", attribute(op, "encoding", ""))),
        header_bytes=attribute(op, "header_bytes"),
        record_bytes=attribute(op, "record_bytes"),
        footer_bytes=attribute(op, "footer_bytes"),
        hop_bytes=attribute(op, "hop_bytes"),
        skip_header_lines=attribute(op, "skip_header_lines"),
        shared_name=text(attribute(op, "shared_name", "")),
        source=source,
    )
