"""What a `session.run` needs of its graph when some tensors are fed to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf


def fed_names(feed_dict: Mapping[Any, Any] | None) -> frozenset[str]:
    """The names of the tensors that a feed_dict feeds; its keys are tensors, their names, or nests of tensors."""
    if not feed_dict:
        return frozenset()
    parts = (part for key in feed_dict for part in tf.nest.flatten(key, expand_composites=True))
    return frozenset(str(part if isinstance(part, str) else part.name) for part in parts)


def idle_ops(graph: tf.Graph, elements: Iterable[Any], fed: frozenset[str]) -> frozenset[str]:
    """The names of the ops that do not run when tensors are fetched, because of what is fed.

    Args:
        graph: The graph.
        elements: What is fetched: tensors and ops of the graph.
        fed: The names of the tensors that are fed; without any, no op is idle because of it.
    """
    if not fed:
        return frozenset()
    waiting = [
        element if isinstance(element, tf.Operation) else element.op
        for element in elements
        if isinstance(element, tf.Operation) or element.name not in fed
    ]
    needed: set[str] = set()
    while waiting:
        op = waiting.pop()
        if op.name not in needed:
            needed.add(op.name)
            waiting.extend(tensor.op for tensor in op.inputs if tensor.name not in fed)
            waiting.extend(op.control_inputs)
    return frozenset(op.name for op in graph.get_operations() if op.name not in needed)
