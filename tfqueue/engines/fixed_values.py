"""Values of variables and lookup tables that a stage reads, taken out of the legacy graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfqueue.engines.stage import TABLE_TYPES, VARIABLE_TYPES
from tfqueue.errors import CannotLower
from tfqueue.topology.subgraph import GraphView

tf1 = tf.compat.v1

_RESTORES = ("RestoreV2", "Restore", "RestoreSlice")


class FixedValues:
    """Finds out what variables hold and tables map, once for each.

    Args:
        view: The legacy graph.
        session: A session that has initialised, trained or loaded them; without one their initialisers are run
            in a graph of their own.

    Attributes:
        resources: Objects that must live as long as a dataset that uses the values.
    """

    def __init__(self, view: GraphView, session: Any | None) -> None:
        self._view = view
        self._session = session
        self._values: dict[str, Any] = {}
        self.resources: list[Any] = []

    def of(self, ops: Sequence[Any]) -> dict[str, Any]:
        """For each variable its value, for each table a handle with the same contents, by the op's name.

        Raises:
            CannotLower: A variable that changes while the pipeline runs, or that cannot be initialised.
        """
        for op in ops:
            if op.name not in self._values:
                if op.type in VARIABLE_TYPES:
                    self._values[op.name] = self._variable(op)
                elif op.type in TABLE_TYPES:
                    self._values[op.name] = self._table(op)
        return {op.name: self._values[op.name] for op in ops}

    def _variable(self, op: Any) -> Any:
        assigns = [user for user in self._users(op) if user.type.startswith(("Assign", "Scatter", "ResourceScatter"))]
        initial = self._initial_assign(op, assigns)
        for user in assigns:
            restored = len(user.inputs) > 1 and user.inputs[1].op.type in (*_RESTORES, "Identity")
            if user is not initial and not restored and self._session is None:
                source = self._view.source_of(user)
                raise CannotLower(
                    f"the pipeline reads the variable {op.name}, which {user.name} ({source}) changes while it runs; "
                    f"a dataset would keep the value of one moment",
                    op=op.name,
                    source=source,
                    advice="compute with it after the dataset, or pass session= to take the value it has there",
                )
        if self._session is not None:
            name = "read_variable_op" if op.type == "VarHandleOp" else "identity"
            reads = [user for user in self._users(op) if user.type in ("ReadVariableOp", "Identity")]
            if reads:
                return self._session.run(reads[0].outputs[0])
            raise CannotLower(f"the variable {op.name} has no {name} op to read it with", op=op.name)
        if initial is None:
            raise CannotLower(
                f"the pipeline reads the variable {op.name}, and nothing in the graph gives it a value",
                op=op.name,
                source=self._view.source_of(op),
                advice="pass session=, a session in which it has one",
            )
        return self._run_apart([initial.inputs[1]], [])[0]

    def _initial_assign(self, op: Any, assigns: Sequence[Any]) -> Any | None:
        for key in (tf1.GraphKeys.GLOBAL_VARIABLES, tf1.GraphKeys.LOCAL_VARIABLES):
            for variable in self._view.graph.get_collection(key):
                initializer = getattr(variable, "initializer", None)
                if initializer is not None and initializer in assigns and variable.op.name == op.name:
                    return initializer
        return next((assign for assign in assigns if assign.name == f"{op.name}/Assign"), None)

    def _users(self, op: Any) -> list[Any]:
        return list(op.outputs[0].consumers())

    def _table(self, op: Any) -> Any:
        if not tf.executing_eagerly() and tf1.get_default_graph() is self._view.graph:
            # The dataset is made in the graph of the table, whose session initialises it as before.
            return op.outputs[0]
        changes = [user for user in self._users(op) if user.type.startswith(("LookupTableInsert", "LookupTableRemove"))]
        if changes:
            raise CannotLower(
                f"the pipeline looks up the table {op.name}, which {changes[0].name} changes while it runs",
                op=op.name,
                source=self._view.source_of(changes[0]),
                advice="fill the table before, or look up after the dataset",
            )
        initializers = [
            user for user in self._users(op) if user.type.startswith(("InitializeTable", "LookupTableImport"))
        ]
        keys_type, values_type = op.get_attr("key_dtype"), op.get_attr("value_dtype")
        if self._session is not None and not self._view.graph.finalized:
            with self._view.graph.as_default(), tf.control_dependencies(None):
                keys, values = self._session.run(_export(op.outputs[0], keys_type, values_type))
        else:
            keys, values = self._run_apart([op.outputs[0]], initializers, export=(keys_type, values_type))
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(tf.constant(keys, keys_type), tf.constant(values, values_type)),
            # Each lookup of the legacy graph brings its own default.
            default_value=tf.zeros([], values_type) if values_type != tf.string else tf.constant(""),
        )
        self.resources.append(table)
        return table.resource_handle

    def _run_apart(self, tensors: Sequence[Any], first: Sequence[Any], *, export: Any = None) -> list[Any]:
        """Run some tensors of the legacy graph in a copy of what they need."""
        ops, _ = self._view.closure([*(tensor.op for tensor in tensors), *first], stop=lambda _: False)
        graph_def = tf1.GraphDef(versions=self._view.versions)
        for op in ops:
            node = graph_def.node.add()
            node.CopyFrom(op.node_def)
            node.device = ""
            node.attr.pop("_class", None)
        graph_def.library.CopyFrom(self._view.library())
        with tf.Graph().as_default():
            found = tf1.import_graph_def(
                graph_def,
                return_elements=[*(tensor.name for tensor in tensors), *(op.name for op in first)],
                name="",
            )
            fetches = found[: len(tensors)]
            with tf1.Session() as session:
                # One variable's initial value may read another; tables come after them.
                for op in tf1.get_default_graph().get_operations():
                    if op.type in ("Assign", "AssignVariableOp"):
                        session.run(op)
                session.run(found[len(tensors) :])
                if export is not None:
                    return list(session.run(_export(fetches[0], *export)))
                return list(session.run(fetches))


def _export(handle: Any, keys: Any, values: Any) -> Any:
    return tf.raw_ops.LookupTableExportV2(table_handle=handle, Tkeys=keys, Tvalues=values)
