"""tf.train.Supervisor where eager execution is on: its service threads work in its graph.

TensorFlow's own starts threads that save checkpoints, write summaries and count steps; each asks for the global step,
which is read eagerly in a thread without a graph, and fails. The coordinator that these threads run under is kept under
a private name of the class; this is the one place that sets it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

__all__ = ["Supervisor"]

tf1 = tf.compat.v1


class _GraphCoordinator(tf1.train.Coordinator):  # type: ignore[misc, name-defined]
    """A coordinator under which threads work in a graph."""

    def __init__(self, graph: Any) -> None:
        super().__init__()
        self._graph = graph

    @contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        with self._graph.as_default(), super().stop_on_exception():
            yield


class Supervisor(tf1.train.Supervisor):  # type: ignore[misc, name-defined]
    """tf.train.Supervisor, with the arguments of TensorFlow's own."""

    def __init__(self, graph: Any = None, *arguments: Any, **options: Any) -> None:
        super().__init__(graph, *arguments, **options)
        self._own_graph = tf1.get_default_graph() if graph is None else graph
        self._coord = _GraphCoordinator(self._own_graph)

    def start_standard_services(self, sess: Any) -> Any:
        """Start the threads that save, summarize and count; they are given back."""
        with self._own_graph.as_default():
            return super().start_standard_services(sess)
