"""The engine "tfdata": pipelines lowered to datasets, and what takes from them.

The datasets run in a graph and session of their own, so that they work whether or not eager execution is on, and give
what `session.run` gives: numpy arrays, and SparseTensorValues.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfqueue.engines.tfdata import to_dataset
from tfqueue.errors import CannotLower, PipelineStalled
from tfqueue.initialize import initialize_all
from tfqueue.topology.model import Topology
from tfqueue.topology.subgraph import GraphView

tf1 = tf.compat.v1

# A dataset that may just be slow is given up after so many times the stall timeout.
_PATIENCE = 10
_LONGEST_PAUSE = 0.5
_CHANGES = ("AssignAdd", "AssignSub", "Scatter", "ResourceScatter", "Apply", "ResourceApply", "SparseApply")


class Source:
    """The batches of some datasets.

    Args:
        make: Makes the datasets, called where their graph is the default one.

    Attributes:
        session: The session in which they run.

    Raises:
        CannotLower: As `to_dataset`.
    """

    def __init__(self, make: Callable[[], Sequence[Any]]) -> None:
        with tf.Graph().as_default() as own:
            self._datasets = list(make())  # kept: they hold what their functions use
            iterators = [tf1.data.make_initializable_iterator(dataset) for dataset in self._datasets]
            nexts = [tf.nest.flatten(iterator.get_next()) for iterator in iterators]
        self.session = tf1.Session(graph=own)
        initialize_all(own, self.session)  # the tables that the datasets read, before the iterators are made
        self.session.run([iterator.initializer for iterator in iterators])
        self._calls = [self.session.make_callable(values) for values in nexts]
        self._watch: _Watch | None = None

    def watch(
        self,
        *,
        stall_timeout: float,
        on_slow: Callable[[str], None],
        on_stall: Callable[[PipelineStalled], None],
    ) -> None:
        """From now on tell who waits for a batch longer than ``stall_timeout`` seconds, and at last give up."""
        self._watch = _Watch(stall_timeout, on_slow=on_slow, on_stall=on_stall, give_up=self.session.close)

    def take(self, index: int = 0) -> list[Any]:
        """The next batch of a dataset, flat; OutOfRangeError at its end."""
        if self._watch is None:
            return list(self._calls[index]())
        with self._watch:
            return list(self._calls[index]())

    def close(self) -> None:
        """End the watch and close the session."""
        if self._watch is not None:
            self._watch.stop()
        self.session.close()


def lowered(graph: tf.Graph, session: Any, fetches: Any, *, shuffle: str) -> Source:
    """A pipeline as the source of the batches that its fetches give.

    Args:
        graph: The graph of the legacy pipeline; its queue runners must not be started.
        session: A session of it, initialised: variables and tables are read from it.
        fetches: What a step fetches.
        shuffle: As for `to_dataset`.

    Raises:
        CannotLower: A part of the pipeline has no exact counterpart.
    """
    return Source(lambda: [to_dataset(graph, fetches, session=session, shuffle=shuffle)])


def refuse_changing_variables(topology: Topology, view: GraphView) -> None:
    """Refuse a pipeline that reads what training changes: a dataset keeps the value of one moment.

    Raises:
        CannotLower: A stage before a queue reads a variable that an op of the graph adds to, or trains.
    """
    for stage in topology.transforms:
        if stage.target is None:
            continue
        for name in stage.variables:
            for user in view.by_name[name].outputs[0].consumers():
                if user.type.startswith(_CHANGES):
                    raise CannotLower(
                        f"the stage that fills {stage.target} reads the variable {name}, which {user.name} "
                        f"({view.source_of(user)}) changes while it runs; a dataset would keep the value of one moment",
                        op=name,
                        source=stage.source,
                        advice="compute with the variable behind the queue, in the training step",
                    )


class _Watch:
    """Looks at how long whoever takes a batch has been waiting for it."""

    def __init__(
        self,
        stall_timeout: float,
        *,
        on_slow: Callable[[str], None],
        on_stall: Callable[[PipelineStalled], None],
        give_up: Callable[[], None],
    ) -> None:
        self._stall_timeout = stall_timeout
        self._on_slow, self._on_stall, self._give_up = on_slow, on_stall, give_up
        self._since: dict[int, float] = {}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, name="tfqueue-watchdog", daemon=True)
        self._thread.start()

    def __enter__(self) -> None:
        self._since[threading.get_ident()] = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._since.pop(threading.get_ident(), None)

    def stop(self) -> None:
        self._end.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _look(self) -> None:
        told: tuple[float, float] = (0.0, 0.0)  # since when somebody has waited, and after how long to tell it
        while not self._end.wait(min(_LONGEST_PAUSE, max(0.01, self._stall_timeout / 10))):
            since = min(list(self._since.values()), default=None)
            if since is None:
                continue
            if since != told[0]:
                told = (since, self._stall_timeout)
            seconds = time.monotonic() - since
            words = (
                f"a step has waited {seconds:.3g} s for the dataset: a stage is at work, or blocks (a py_func?), or a "
                f"filter (maybe_batch, keep_input) lets nothing pass"
            )
            if seconds >= _PATIENCE * self._stall_timeout:
                advice = "run it with engine='threads', which says what each runner waits for"
                self._on_stall(
                    PipelineStalled(f"{words}\n  advice: {advice}", cause_name="dataset-stalled", advice=advice)
                )
                self._give_up()
                return
            if seconds >= told[1]:
                self._on_slow(words)
                told = (since, 2 * told[1])
