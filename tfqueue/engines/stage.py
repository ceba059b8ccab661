"""One stage of a queue graph as a function of what it takes from its queues and readers.

The ops between the cuts are copied out of the legacy graph, node by node, and imported where the function is
traced. Placeholders stand for everything that lives outside the stage: the values of its cuts, the number of the
epoch, variables and lookup tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from tfqueue.engines.random_ops import add_numbered, can_be_numbered
from tfqueue.errors import CannotLower
from tfqueue.topology.subgraph import (
    CUT_TYPES,
    ENQUEUE_TYPES,
    QUEUE_KINDS,
    READER_KINDS,
    GraphView,
    draws_in_functions,
)

tf1 = tf.compat.v1

# Under this name a stage is given the number of the run.
RUN = "number of the run"
# The scope of the copied ops; what they raise names it.
COPIED_STAGE = "tfqueue_stage"
COUNTER_TYPES = frozenset({"CountUpTo", "ResourceCountUpTo"})
VARIABLE_TYPES = frozenset({"VarHandleOp", "VariableV2", "Variable"})
TABLE_TYPES = frozenset({"HashTableV2", "MutableHashTableV2", "MutableDenseHashTableV2"})
STORED_SPARSE = {"AddSparseToTensorsMap": False, "AddManySparseToTensorsMap": True}
TAKEN_SPARSE = "TakeManySparseFromTensorsMap"
# All there is in the branches of an assertion of today.
_GUARDS = frozenset({"Assert", "Const", "Identity", "NoOp", "Placeholder"})
_STAGING = ("Stage", "Unstage", "StagePeek", "StageSize", "StageClear")
_LOOKS_AT_QUEUES = frozenset({"QueueSize", "QueueSizeV2", "QueueIsClosed", "QueueIsClosedV2"})
_FRAMES = frozenset({"Enter", "Switch", "Merge"})
_PLACEHOLDERS = frozenset({"Placeholder", "PlaceholderV2"})
_READS = frozenset({"ReadVariableOp", "ResourceGather", "VarIsInitializedOp"})
_FOREIGN = {
    **dict.fromkeys(
        ("Stage", "Unstage", "StagePeek", "StageSize", "MapStage", "MapUnstage"),
        "a StagingArea that is not filled by this step alone, before it takes from it",
    ),
    "RecordInput": "RecordInput, which reads in threads of its own in no defined order",
    **dict.fromkeys(("IteratorGetNext", "IteratorGetNextSync"), "a tf.data iterator"),
    **dict.fromkeys(("Barrier", "BarrierTakeMany"), "a Barrier"),
    "HashTable": "a lookup table of the time before TensorFlow 1.0",
}


@dataclass(frozen=True, slots=True)
class StageFunction:
    """The ops of a stage, ready to be imported.

    Attributes:
        graph_def: The nodes; placeholders stand for what comes from outside.
        inputs: The legacy tensors that a caller gives, by name.
        outputs: The names of the legacy tensors that a call returns.
        cuts: The dequeue and read ops that it takes its data from.
        also: Ops that run with every call, though no output needs them.
        fixed: Of variables and tables the legacy op; a caller gives their values under the op's name.
        counters: The epoch counters and their dtypes; a caller gives the number of the epoch under the op's name.
        stateful: The ops that change a state from call to call (random ops, py_func).
        numbered: Whether a caller gives the number of the run, under the name `RUN`.
        has_frames: Whether it holds a tf.while_loop or tf.cond of the time before functions.
        hides_state: Whether a function that it calls draws random numbers, which tf.data does not see.
    """

    graph_def: Any
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    cuts: tuple[str, ...]
    also: tuple[str, ...]
    fixed: tuple[Any, ...]
    counters: Mapping[str, Any]
    stateful: tuple[Any, ...]
    has_frames: bool
    numbered: bool
    placeholders: Mapping[str, str] = field(default_factory=dict)
    hides_state: bool = False

    def fingerprint(self) -> str:
        """Equal for stages that compute the same from the same inputs: branches that differ in names only."""
        numbers = {node.name: str(index) for index, node in enumerate(self.graph_def.node)}
        lines = []
        for node in self.graph_def.node:
            inputs = [_renumbered(name, numbers) for name in node.input]
            attributes = sorted((key, value.SerializeToString(deterministic=True)) for key, value in node.attr.items())
            lines.append(repr((node.op, inputs, attributes)))
        # What is taken from the cuts is the same if it is the same output of the cut in the same place.
        given = [self._identity(name) for name in self.placeholders]
        outputs = [
            _renumbered(name, numbers) if name.partition(":")[0] in numbers else self._identity(name)
            for name in self.outputs
        ]
        return "\n".join([*lines, repr(given), repr(outputs), repr(self.also and True)])

    def _identity(self, name: str) -> str:
        op, _, output = name.partition(":")
        return f"cut {self.cuts.index(op)}:{output}" if op in self.cuts else name

    def __call__(self, given: Mapping[str, Any]) -> list[Any]:
        """Import the ops into the current graph.

        Args:
            given: A tensor for each input tensor, and for each variable, table and counter, by name.

        Returns:
            The output tensors, in the order of ``outputs``.
        """
        # A copy in the graph of the caller: import_graph_def takes no eager tensor, and none of an outer function.
        input_map = {
            f"{placeholder}:0": tf.cast(given[name], self.counters[name])
            if name in self.counters
            else tf.identity(given[name])
            for name, placeholder in self.placeholders.items()
        }
        direct = {name: given[name] for name in self.outputs if name in given}
        wanted = [name for name in self.outputs if name not in direct]
        if not wanted and not self.also:
            return [direct[name] for name in self.outputs]
        found = tf1.import_graph_def(
            self.graph_def, input_map=input_map, return_elements=[*wanted, *self.also], name=COPIED_STAGE
        )
        values = {**direct, **dict(zip(wanted, found, strict=False))}
        # What the enqueue had to wait for (an assertion) must run here, too.
        with tf.control_dependencies(found[len(wanted) :]):
            return [tf.identity(values[name]) if self.also else values[name] for name in self.outputs]


def extract(
    view: GraphView,
    outputs: Sequence[Any],
    *,
    cuts: Sequence[Any],
    also: Sequence[Any] = (),
    replaced: Sequence[Any] = (),
    number_runs: bool = False,
    words: str,
) -> StageFunction:
    """Copy a stage out of a graph.

    Args:
        view: The graph.
        outputs: The tensors to compute.
        cuts: The dequeue and read ops whose outputs are given to the function.
        also: Ops that must run with it, though no output needs them.
        replaced: Tensors inside the stage that the caller gives instead of having them computed.
        number_runs: Whether seeded random ops are worked out from the number of the run, where that can be done.
        words: What the stage is, for errors.

    Raises:
        CannotLower: The stage contains an op that has no meaning outside of the queue graph.
    """
    cut_names = {op.name for op in cuts}
    given_ops = {tensor.op.name for tensor in replaced}

    def stop(op: Any) -> bool:
        return (
            op.name in cut_names
            or op.name in given_ops
            or op.type in CUT_TYPES
            or op.type in COUNTER_TYPES
            or op.type in VARIABLE_TYPES
            or op.type in TABLE_TYPES
            or op.type in QUEUE_KINDS
            or op.type in READER_KINDS
        )

    ends = [op for op in (*(tensor.op for tensor in outputs), *also) if not stop(op)]
    ops, stopped = view.closure(ends, stop=stop)
    stopped_ops = {op.name: op for op in (*stopped, *(t.op for t in outputs if stop(t.op)))}
    staged = dict(_staged(view, ops))
    passing = {op.name for pair in staged.items() for op in (view.by_name[pair[0]], pair[1])}
    for op in (*ops, *stopped_ops.values()):
        if op.name not in passing:
            _check(view, op, cut_names, words)
    graph_def = tf1.GraphDef()
    graph_def.versions.CopyFrom(view.versions)
    placeholders: dict[str, str] = {}

    def placeholder(name: str, dtype: Any) -> str:
        if name not in placeholders:
            placeholders[name] = f"tfqueue_input_{len(placeholders)}"
            node = graph_def.node.add(op="Placeholder", name=placeholders[name])
            node.attr["dtype"].type = dtype.base_dtype.as_datatype_enum
        return placeholders[name]

    inside = {op.name for op in ops}
    has_frames = any(op.type in _FRAMES for op in ops)
    # In a branch or loop of those, an op does not run once for each run of the stage.
    number_runs = number_runs and not has_frames
    for op in ops:
        node = graph_def.node.add()
        node.CopyFrom(op.node_def)
        node.device = ""
        node.attr.pop("_class", None)
        inputs = [
            placeholder(_given_name(tensor), _given_dtype(tensor))
            if tensor.op.name in stopped_ops
            else _reference(tensor)
            for tensor in op.inputs
        ]
        if number_runs and can_be_numbered(op):
            del graph_def.node[-1]
            add_numbered(graph_def, op, inputs, placeholder(RUN, tf.int64))
            continue
        if _is_float_division_by_constant(op):
            reciprocal = graph_def.node.add(op="Reciprocal", name=f"{op.name}/tfqueue_reciprocal", input=[inputs[1]])
            reciprocal.attr["T"].type = op.get_attr("T").as_datatype_enum
            node.op = "Mul"
            inputs[1] = reciprocal.name
        if op.name in staged:
            inputs = [
                placeholder(_given_name(tensor), _given_dtype(tensor))
                if tensor.op.name in stopped_ops
                else _reference(tensor)
                for tensor in staged[op.name].inputs
            ]
            node.CopyFrom(tf1.NodeDef(op="IdentityN", name=op.name))
            node.attr["T"].list.type.extend(dtype.as_datatype_enum for dtype in op.get_attr("dtypes"))
        elif op.name in passing:
            node.CopyFrom(tf1.NodeDef(op="NoOp", name=op.name))
            inputs = []
        if op.type == "ReadVariableOp":
            node.CopyFrom(_identity(op.name, inputs[0], op.get_attr("dtype")))
            inputs = []
        elif op.type == "ResourceGather":
            axis = graph_def.node.add(op="Const", name=f"{op.name}/tfqueue_axis")
            axis.attr["dtype"].type = tf.int32.as_datatype_enum
            axis.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(op.get_attr("batch_dims"), tf.int32))
            node.CopyFrom(_gather(op, inputs, axis.name))
            inputs = []
        if inputs:
            del node.input[:]
            node.input.extend(inputs)
        elif not op.inputs:
            del node.input[:]
        node.input.extend(f"^{other.name}" for other in op.control_inputs if other.name in inside)
        # An epoch counter that is only waited for needs no stand-in.
    library = view.library() if any(view.calls_functions(op) for op in ops) else None
    if library is not None:
        graph_def.library.CopyFrom(library)
    return StageFunction(
        graph_def=graph_def,
        inputs=tuple(name for name in placeholders if ":" in name),
        outputs=tuple(tensor.name for tensor in outputs),
        cuts=tuple(op.name for op in cuts),
        also=tuple(op.name for op in also if not stop(op)),
        fixed=tuple(
            op for op in stopped_ops.values() if op.type in VARIABLE_TYPES | TABLE_TYPES and op.name in placeholders
        ),
        counters={op.name: op.outputs[0].dtype for op in stopped_ops.values() if op.type in COUNTER_TYPES},
        stateful=tuple(
            op
            for op in ops
            if _keeps_state(view, op) and op.name not in passing and not (number_runs and can_be_numbered(op))
        ),
        hides_state=any(draws_in_functions(view, op) for op in ops),
        numbered=RUN in placeholders,
        has_frames=has_frames,
        placeholders=placeholders,
    )


def _staged(view: GraphView, ops: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """(name of an Unstage op, the Stage op whose values it gives) where both run in one step, one after the other."""
    areas: dict[Any, list[Any]] = {}
    for op in view.of_type(_STAGING):
        if not op.name.startswith("tfqueue/"):
            areas.setdefault((op.get_attr("container"), op.get_attr("shared_name") or op.name), []).append(op)
    inside = {op.name for op in ops}
    for area in areas.values():
        kinds = {op.type: op for op in area}
        if len(area) != 2 or set(kinds) != {"Stage", "Unstage"} or not all(op.name in inside for op in area):
            continue
        before, _ = view.closure([kinds["Unstage"]], stop=lambda _: False)
        if any(op is kinds["Stage"] for op in before):
            yield kinds["Unstage"].name, kinds["Stage"]


def _renumbered(name: str, numbers: Mapping[str, str]) -> str:
    control = "^" if name.startswith("^") else ""
    op, colon, output = name.removeprefix("^").partition(":")
    return f"{control}{numbers[op]}{colon}{output}"


def _given_name(tensor: Any) -> str:
    """Under which name a caller gives a value: variables, tables and counters by op, all else by tensor."""
    if tensor.op.type in VARIABLE_TYPES | TABLE_TYPES | COUNTER_TYPES:
        return str(tensor.op.name)
    return str(tensor.name)


def _given_dtype(tensor: Any) -> Any:
    if tensor.op.type == "VarHandleOp":
        return tensor.op.get_attr("dtype")
    return tensor.dtype


def _reference(tensor: Any) -> str:
    return tensor.op.name if tensor.value_index == 0 else f"{tensor.op.name}:{tensor.value_index}"


def _identity(name: str, source: str, dtype: Any) -> Any:
    node = tf1.NodeDef(op="Identity", name=name, input=[source])
    node.attr["T"].type = dtype.as_datatype_enum
    return node


def _gather(op: Any, inputs: Sequence[str], axis: str) -> Any:
    node = tf1.NodeDef(op="GatherV2", name=op.name, input=[inputs[0], inputs[1], axis])
    node.attr["Tparams"].type = op.get_attr("dtype").as_datatype_enum
    node.attr["Tindices"].type = op.get_attr("Tindices").as_datatype_enum
    node.attr["Taxis"].type = tf.int32.as_datatype_enum
    node.attr["batch_dims"].i = op.get_attr("batch_dims")
    return node


def _is_float_division_by_constant(op: Any) -> bool:
    """A session multiplies with the reciprocal instead (grappler's constant folding), which rounds differently.

    The functions of a dataset are not optimised that way, so what the session does is written out.
    """
    if op.type not in ("RealDiv", "Div") or not op.get_attr("T").is_floating:
        return False
    return tf.get_static_value(op.inputs[1]) is not None


def _keeps_state(view: GraphView, op: Any) -> bool:
    if draws_in_functions(view, op):
        return True
    if op.op_def is None or not op.op_def.is_stateful:
        return False
    if op.type == "If" and view.called_types(op) <= _GUARDS:
        return False
    # Marked as stateful so that they are not folded or merged, but the same input gives the same output.
    return op.type not in ("Assert", "Print", "PrintV2", "ReadVariableOp", "ResourceGather", "LookupTableFindV2")


def _check(view: GraphView, op: Any, cut_names: set[str], words: str) -> None:
    """Refuse what has no meaning outside of the queue graph."""
    reason = advice = None
    if op.type in _LOOKS_AT_QUEUES:
        reason = "it looks at how full a queue is, which depends on the timing of threads"
        advice = "decide from the record itself, or leave the decision out"
    elif op.type in _PLACEHOLDERS:
        reason = "it is a placeholder, which Python code must feed at every step"
        advice = "write the feeding code as a generator and use tf.data.Dataset.from_generator"
    elif op.type in _FOREIGN:
        reason = f"it is {_FOREIGN[op.type]}"
        advice = "take it out of the input pipeline; Dataset.prefetch does what it is for"
    elif op.type in CUT_TYPES and op.name not in cut_names:
        reason = "it takes from a queue in a place that the topology does not follow"
        advice = "take it out of the tf.cond or loop"
    elif op.type in ENQUEUE_TYPES:
        reason = "it enqueues as a side effect of another stage"
        advice = "give it a queue runner of its own"
    elif op.type.startswith(("Assign", "ResourceScatter", "Scatter")) and op.inputs[0].op.type in VARIABLE_TYPES:
        reason = f"it changes the variable {op.inputs[0].op.name}: a state that the pipeline keeps itself"
        advice = "count with Dataset.enumerate, or keep the state with Dataset.scan"
    if reason is not None:
        source = view.source_of(op)
        raise CannotLower(
            f"{words} cannot become a tf.data map: {op.name} ({op.type}{f', {source}' if source else ''}): {reason}",
            op=op.name,
            source=source,
            advice=advice,
        )
