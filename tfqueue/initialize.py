"""Runs the initialisers of a graph in an order that works."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfqueue.engines.queue_ops import apart

tf1 = tf.compat.v1

# Their first input is the table.
_FILL_TABLES = ("InitializeTableV2", "InitializeTableFromTextFileV2", "LookupTableImportV2")
# What an initialiser says whose own inputs (a variable, a table) are not initialised yet.
_NOT_YET = (tf.errors.FailedPreconditionError, tf.errors.NotFoundError)


def initialize_all(graph: tf.Graph, session: Any) -> None:
    """Run the global, local and table initialisers of a graph that nobody else initialises.

    One kind may need another (a variable that looks a word up, a table filled from a variable), in either
    direction; so those that fail for want of another are run again after it.

    Raises:
        tf.errors.OpError: What the first initialiser that cannot run said.
    """
    with apart(graph):
        pending = [
            tf1.global_variables_initializer(),
            tf1.local_variables_initializer(),
            tf1.tables_initializer(),
        ]
    while pending:
        failed: list[tuple[Any, Exception]] = []
        for initializer in pending:
            try:
                session.run(initializer)
            except _NOT_YET as error:
                failed.append((initializer, error))
        if len(failed) == len(pending):
            raise failed[0][1]
        pending = [initializer for initializer, _ in failed]


def initialize_missing(graph: tf.Graph, session: Any) -> list[str]:
    """Initialise only what has no value yet in a session that belongs to the user.

    Values that the user set or restored are left alone. A variable whose initial value must be fed is left to the
    user, too. A finalized graph (Supervisor, MonitoredSession) is initialised by its owner, and left alone.

    Returns:
        The names of the variables that were initialised.
    """
    if graph.finalized:
        return []
    variables = _unique(
        graph.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES) + graph.get_collection(tf1.GraphKeys.LOCAL_VARIABLES)
    )
    missing = variables
    if variables:
        with apart(graph):
            questions = [tf1.is_variable_initialized(variable) for variable in variables]
        missing = [v for v, known in zip(variables, session.run(questions), strict=True) if not known]
    # If every variable has a value, the user may have filled the tables, too: then only empty ones are filled.
    tables = _table_initializers(graph, session, empty_only=bool(variables) and not missing)
    pending = [variable.initializer for variable in missing] + tables
    done: list[Any] = []
    while pending:
        left = []
        for initializer in pending:
            try:
                session.run(initializer)
                done.append(initializer)
            except (*_NOT_YET, tf.errors.InvalidArgumentError):
                left.append(initializer)
        if len(left) == len(pending):
            break
        pending = left
    return [variable.name for variable in missing if variable.initializer in done]


def _table_initializers(graph: tf.Graph, session: Any, *, empty_only: bool) -> list[Any]:
    """The ops that fill tables; an iterator is none, and would be put back to its start."""
    found = [op for op in graph.get_collection(tf1.GraphKeys.TABLE_INITIALIZERS) if op.type != "MakeIterator"]
    if not empty_only:
        return found
    found = [op for op in found if op.type in _FILL_TABLES]
    if not found:
        return []
    with apart(graph):
        questions = [tf.raw_ops.LookupTableSizeV2(table_handle=op.inputs[0]) for op in found]
    return [op for op, size in zip(found, session.run(questions), strict=True) if size == 0]


def _unique(variables: list[Any]) -> list[Any]:
    seen: set[int] = set()
    return [v for v in variables if not (id(v) in seen or seen.add(id(v)))]  # type: ignore[func-returns-value]
