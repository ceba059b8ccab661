"""Notices a program that adds ops to its graph in every step, which makes each step slower than the one before."""

from __future__ import annotations

import warnings

import tensorflow as tf

from tfqueue.errors import TFQueueWarning
from tfqueue.topology.subgraph import GraphView

STEPS = 10
"""So many steps in a row that add ops are a habit; fewer may be a program that is still being set up."""


class Growth:
    """Counts the steps in a row before which a graph has grown, and warns once."""

    def __init__(self, graph: tf.Graph) -> None:
        self._graph = graph
        self._in_a_row = 0
        self._ops_at_first = 0
        self._warned = False

    def step(self, *, grown: bool) -> None:
        """Note a step, and whether ops of the user's were added since the one before."""
        if not grown:
            self._in_a_row = 0
            return
        if self._in_a_row == 0:
            self._ops_at_first = len(self._graph.get_operations())
        self._in_a_row += 1
        if self._in_a_row < STEPS or self._warned:
            return
        self._warned = True
        mine = [op for op in self._graph.get_operations() if not op.name.startswith("tfqueue/")]
        line = GraphView(self._graph).source_of(mine[-1])
        added = len(mine) - self._ops_at_first
        warnings.warn(
            f"the graph grows in every step: {added} ops in the last {STEPS - 1} steps, the newest is "
            f"{mine[-1].type} {mine[-1].name!r}, added at {line or 'an unknown line'}. Each step gets slower and "
            f"memory grows: build all ops before the loop, and index and compute on what session.run returned",
            TFQueueWarning,
            stacklevel=4,
        )
