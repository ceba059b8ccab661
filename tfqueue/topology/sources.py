"""Where elements come from: file names, ranges, epochs and shuffles, read out of the stage of a producer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfqueue.topology.model import Enqueue, Producer, TensorInfo, Transform
from tfqueue.topology.subgraph import (
    GraphView,
    attribute,
    constant,
    constant_int,
    constant_values,
    describe_tensor,
    text,
)

_PASS_THROUGH = frozenset({"Identity", "Snapshot", "StopGradient", "EnsureShape"})
_VARIABLE_TYPES = frozenset({"VarHandleOp", "VariableV2", "Variable", "TemporaryVariable"})
_COUNTER_TYPES = frozenset({"CountUpTo", "ResourceCountUpTo"})
_GATHER_TYPES = frozenset({"Gather", "GatherV2", "ResourceGather"})


def read_producer(view: GraphView, enqueue: Enqueue, stage: Transform) -> Producer:
    """The producer behind an enqueue whose stage reads no queue and no reader."""
    ops = [view.by_name[name] for name in stage.ops]
    counter = next((op for op in ops if op.type in _COUNTER_TYPES), None)
    first = view.by_name[enqueue.name].inputs
    origin, shuffle = _origin(first[1]) if len(first) > 1 else (None, None)
    variable = _variable_behind(origin) if origin is not None else None
    kind = _kind(stage, origin, variable)
    elements = None
    count = None
    if enqueue.many and origin is not None and kind in ("files", "range", "array"):
        elements = constant_values(origin) if kind != "array" else None
        count = origin.shape.as_list()[0] if origin.shape.rank else None
        if count is None and elements is not None:
            count = len(elements)
        if elements is None and kind == "range" and count is not None:
            elements = _range(origin.op, count)
    return Producer(
        name=enqueue.name,
        queue=enqueue.queue,
        kind=kind,
        elements=elements,
        count=count,
        num_epochs=None if counter is None else int(attribute(counter, "limit", 0)),
        epoch_counter=None if counter is None else counter.inputs[0].op.name,
        shuffle=shuffle is not None,
        seed=0 if shuffle is None else int(attribute(shuffle, "seed", 0)),
        seed2=0 if shuffle is None else int(attribute(shuffle, "seed2", 0)),
        pattern=_pattern(view, origin, variable),
        variable=None if variable is None else variable.name,
        sliced=_sliced(view, enqueue.queue),
        ops=stage.ops,
        source=enqueue.source,
    )


def _origin(tensor: Any) -> tuple[Any, Any | None]:
    """The tensor that the elements start as, and the RandomShuffle op on the way from it."""
    shuffle = None
    while True:
        op = tensor.op
        if op.type == "RandomShuffle":
            shuffle = op
        elif op.type not in _PASS_THROUGH:
            return tensor, shuffle
        tensor = op.inputs[0]


def _kind(stage: Transform, origin: Any, variable: Any) -> str:
    if stage.placeholders:
        return "fed"
    if stage.python:
        return "python"
    if origin is not None:
        if origin.dtype.base_dtype.name == "string" and (
            variable is not None or origin.op.type in ("Const", "MatchingFiles") or constant(origin) is not None
        ):
            return "files"
        if variable is not None:
            return "variable"
        if origin.op.type == "Range":
            return "range"
        if origin.op.type == "Const" or constant(origin) is not None:
            return "array"
    return "random" if stage.random else "computed"


def _variable_behind(tensor: Any) -> Any | None:
    op = tensor.op
    if op.type == "ReadVariableOp":
        op = op.inputs[0].op
    return op if op.type in _VARIABLE_TYPES else None


def _range(op: Any, count: int) -> tuple[object, ...] | None:
    """The elements of a Range whose length is known, though its limit is computed."""
    start, delta = constant_int(op.inputs[0]), constant_int(op.inputs[2])
    return None if start is None or delta is None else tuple(range(start, start + count * delta, delta))


def _pattern(view: GraphView, origin: Any, variable: Any) -> str | None:
    """The file pattern behind MatchingFiles, read directly or once into a variable."""
    matching = origin.op if origin is not None and origin.op.type == "MatchingFiles" else None
    if variable is not None:
        for consumer in variable.outputs[0].consumers():
            if consumer.type in ("Assign", "AssignVariableOp"):
                candidate = consumer.inputs[1]
                while candidate.op.type in _PASS_THROUGH:
                    candidate = candidate.op.inputs[0]
                if candidate.op.type == "MatchingFiles":
                    matching = candidate.op
    if matching is None:
        return None
    values: Sequence[object] | None = constant_values(matching.inputs[0])
    return None if values is None else "\n".join(text(value) for value in values)


def _sliced(view: GraphView, queue: str) -> tuple[TensorInfo, ...]:
    """The tensors whose rows the elements of this queue select."""
    found: dict[str, TensorInfo] = {}
    for dequeue in view.by_name[queue].outputs[0].consumers():
        if not dequeue.type.startswith("QueueDequeue"):
            continue
        for output in dequeue.outputs:
            for consumer in output.consumers():
                if consumer.type in _GATHER_TYPES and consumer.inputs[1] is output:
                    params = consumer.inputs[0]
                    found[params.name] = describe_tensor(params)
    return tuple(found.values())
