"""A stage as a function over datasets: what it computes, where it runs, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf

from tfqueue.engines.plain import plain
from tfqueue.engines.stage import StageFunction
from tfqueue.engines.vectorize import vectorize
from tfqueue.topology.subgraph import GraphView

tf1 = tf.compat.v1


@dataclass(frozen=True, slots=True)
class Run:
    """What a run of an enqueue computes: (tensor, parts of the SparseTensor it is the number of) and the condition."""

    outputs: tuple[tuple[Any, Any], ...]
    also: tuple[Any, ...]
    keeps: Callable[[Any], Any] | None


@dataclass(frozen=True, slots=True)
class SourceShuffle:
    """A RandomShuffle op of a producer, and the seeds that stand for its own."""

    op: Any
    seed: int
    seed2: int


class Call:
    """A stage as a function of flat tuples."""

    def __init__(
        self, call: Callable[..., Any], function: StageFunction, runs_python: bool, *, in_order: bool, words: str
    ) -> None:
        self.words = words
        self.call = _in_frames(call) if function.has_frames else call
        self.function = function
        self.stateful = bool(function.stateful)
        self.runs_python = runs_python
        self.in_order = in_order

    def then(self, after: Callable[..., Any]) -> Call:
        """The stage and something done to its outputs, as one function."""
        before = self.call
        return Call(
            lambda *values, **options: after(*before(*values, **options)),
            replace(self.function, has_frames=False),
            self.runs_python,
            in_order=self.in_order,
            words=self.words,
        )

    def on_batches(self, view: GraphView) -> Call | None:
        """The stage on a whole batch at once, or None where that could change a bit."""
        vector = None if self.stateful else vectorize(self.function, view)
        if vector is None:
            return None
        before = self.call
        return Call(
            lambda *values: before(*values, vector=vector), vector, False, in_order=self.in_order, words=self.words
        )

    @property
    def computes(self) -> bool:
        """Whether there is an op in it; if not, it hands on what it takes."""
        return bool(self.function.graph_def.node or self.function.also)

    @property
    def runs_parallel(self) -> bool:
        """Whether several elements may be at work at once; where nothing is computed, no thread is worth it."""
        return self.computes and not self.in_order and not self.runs_python

    @property
    def fingerprint(self) -> str:
        """Equal for stages that compute the same."""
        return self.function.fingerprint()

    def map(self, dataset: Any) -> Any:
        call = plain(self.call)
        if self.runs_python:
            return _map_until_stopped(dataset, call)
        # Ops that keep a state must be run in the order of the records.
        return dataset.map(call, num_parallel_calls=tf.data.AUTOTUNE if self.runs_parallel else None)


def _in_frames(call: Callable[..., tuple[Any, ...]]) -> Callable[..., tuple[Any, ...]]:
    """A function whose ops get no control dependencies of their own, which must not cross the frame of a loop."""

    def wrapped(*values: Any) -> tuple[Any, ...]:
        signature = [tf.TensorSpec(value.shape, value.dtype) for value in values]
        return tuple(tf1.wrap_function(lambda *inside: call(*inside), signature)(*values))

    return wrapped


def _map_until_stopped(dataset: Any, call: Callable[..., tuple[Any, ...]]) -> Any:
    """A map that ends where the function raises OutOfRange, as a queue does: a py_func raised StopIteration.

    Dataset.map takes that for an error, since it promises as many elements as it gets.
    """
    taken = dataset.element_spec if isinstance(dataset.element_spec, tuple) else (dataset.element_spec,)
    function = tf.function(call, autograph=False).get_concrete_function(*taken)
    spec = function.structured_outputs
    structure = tuple(tf.TensorSpec(output.shape, output.dtype) for output in spec)
    variant = tf.raw_ops.MapDataset(
        input_dataset=tf.data.experimental.to_variant(dataset),
        other_arguments=function.captured_inputs,
        f=function,
        output_types=[output.dtype for output in structure],
        output_shapes=[output.shape for output in structure],
        use_inter_op_parallelism=True,
        preserve_cardinality=False,
    )
    stopped = tf.data.experimental.from_variant(variant, structure)
    stopped._tfqueue_function = function
    return stopped
