"""Which ops of a stage can be run once more, out of turn, without anybody noticing.

An op that takes from a queue, draws a random number, counts, prints or calls the user's Python code changes what comes
later. All others compute the same from the same inputs, and may be run on a record to see whether it can be digested.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

from tfqueue.topology.subgraph import CUT_TYPES, GraphView

# Stateful by their definition, though running them changes nothing.
_ONLY_LOOKED_AT = frozenset(
    {
        "Assert",
        "CheckNumerics",
        "CheckNumericsV2",
        "VarHandleOp",
        "ReadVariableOp",
        "VarIsInitializedOp",
        "VariableV2",
        "Variable",
        "IsVariableInitialized",
        "LookupTableFind",
        "LookupTableFindV2",
        "LookupTableSize",
        "LookupTableSizeV2",
        "HashTable",
        "HashTableV2",
        "MutableHashTable",
        "MutableHashTableV2",
        "MutableHashTableOfTensors",
        "MutableHashTableOfTensorsV2",
        "MutableDenseHashTable",
        "MutableDenseHashTableV2",
    }
)
# Their references are passed on or asked about, not written through.
_PASSES_REFERENCE = frozenset({"IsVariableInitialized", "RefSwitch", "RefMerge", "RefEnter", "RefExit", "RefIdentity"})
# What the functions of an assertion hold (tf.Assert is wrapped in a tf.cond); such a call counts as stateful.
_CALLS = frozenset({"If", "StatefulPartitionedCall"})
_IN_ASSERTIONS = frozenset({"Assert", "Const", "Identity", "IdentityN", "LogicalAnd", "LogicalNot", "NoOp"})
_NEVER = frozenset(
    # No state of TensorFlow's, but the user's Python code; a fed value; a queue or reader.
    {"PyFuncStateless", "Placeholder", "PlaceholderV2"}
)


def is_harmless(op: Any) -> bool:
    """Whether an op, looked at alone, changes nothing when it is run."""
    definition = op.op_def
    if definition is None or op.type in _NEVER or op.type.startswith(("Queue", "Reader")):
        return False
    if any(argument.is_ref for argument in definition.input_arg) and op.type not in _PASSES_REFERENCE:
        return False
    if op.type in _CALLS:
        return bool(GraphView(op.graph).called_types(op) <= _IN_ASSERTIONS)
    return not definition.is_stateful or op.type in _ONLY_LOOKED_AT


def harmless_ops(ops: Iterable[Any], fed: Iterable[str], *, also: Container[str] = ()) -> list[Any]:
    """Those of some ops that can be run out of turn, with all that they need.

    Args:
        ops: The ops of one stage.
        fed: The names of the cut ops (reads and dequeues) all of whose outputs will be fed.
        also: The names of ops that may be run though they change something, such as a random op's sequence.

    Returns:
        The harmless ops whose inputs, too, are harmless or fed, in the given order.
    """
    stage = {op.name: op for op in ops}
    fed_names = frozenset(fed)
    users: dict[str, list[str]] = {}
    waiting: list[str] = []
    for name, op in stage.items():
        data = [tensor.op.name for tensor in op.inputs if tensor.op.name not in fed_names]
        # A control input runs the op that it names, fed or not.
        for other in (*data, *(control.name for control in op.control_inputs)):
            users.setdefault(other, []).append(name)
            if other not in stage:
                waiting.append(other)
        if op.type in CUT_TYPES or not (name in also or is_harmless(op)):
            waiting.append(name)
    harmful: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in harmful:
            harmful.add(name)
            waiting.extend(users.get(name, ()))
    return [op for name, op in stage.items() if name not in harmful]


def last_of(ops: Iterable[Any], graph: Any) -> list[Any]:
    """The fewest of some ops that must be fetched so that all of them run (those that can be fetched at all)."""
    among = {op.name: op for op in ops if graph.is_fetchable(op)}
    needed: set[str] = set()
    for op in among.values():
        needed.update(tensor.op.name for tensor in op.inputs)
        needed.update(control.name for control in op.control_inputs)
    return [op for name, op in among.items() if name not in needed]
