"""The engine "tfdata": a pipeline lowered to a dataset, and its steps.

The dataset runs in a graph and session of its own, so that it works whether or not eager execution is on, and gives
what `session.run` gives: numpy arrays, and SparseTensorValues.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfqueue.engines.tfdata import to_dataset
from tfqueue.initialize import initialize_all

tf1 = tf.compat.v1


class Lowered:
    """A pipeline as a dataset.

    Args:
        graph: The graph of the legacy pipeline; its queue runners must not be started.
        session: A session of it, initialised: variables and tables are read from it.
        fetches: What a step fetches.

    Attributes:
        session: The session in which the dataset runs.

    Raises:
        CannotLower: A part of the pipeline has no exact counterpart.
    """

    def __init__(self, graph: tf.Graph, session: Any, fetches: Any) -> None:
        with tf.Graph().as_default() as own:
            dataset = to_dataset(graph, fetches, session=session)
            iterator = tf1.data.make_initializable_iterator(dataset)
            self._next = tf.nest.pack_sequence_as(fetches, tf.nest.flatten(iterator.get_next()))
        self.session = tf1.Session(graph=own)
        initialize_all(own, self.session)  # the tables that the dataset reads, before the dataset is made
        self.session.run(iterator.initializer)

    def make_step(self, fetches: Any) -> Callable[[], Any]:
        """A function that gives the next batch, in the structure of the fetches; OutOfRangeError at the end."""
        return self.session.make_callable(self._next)  # type: ignore[no-any-return]

    def close(self) -> None:
        """Close the session."""
        self.session.close()
