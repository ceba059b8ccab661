"""The sides of a comparison: anything that delivers batches, opened the same way.

A side is a build function (as the reference), a QueuePipeline that is not entered, a tf.data.Dataset, a
zero-argument callable that returns a Dataset or an iterable (as the candidate), an iterable of batches, or
the path of a golden.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfqueue.equivalence.leaves import named
from tfqueue.equivalence.ordering import Ordering, of_dataset, of_graph
from tfqueue.errors import InvalidArgument, InvalidStream, TFQueueError

ROLES = ("reference", "candidate")


@dataclass(slots=True)
class Run:
    """One pass over a side.

    Attributes:
        batches: The batches as the pipeline delivers them.
        ordering: What is known about the order of the records.
        endless: True if the stream is known never to end.
        pipeline: The running QueuePipeline, if the side is one.
        skeleton: The structure in words, where the batches do not show it.
        static: The static shape of each feature, batch axis included, in words; empty where there is none.
        fresh: True if no batch shares memory with another, so that batches may be kept without a copy.
        dataset: The Dataset, if the side is one.
    """

    batches: Iterator[Any]
    ordering: Ordering = field(default_factory=Ordering)
    endless: bool = False
    pipeline: Any = None
    skeleton: str = ""
    static: Mapping[str, str] = field(default_factory=dict)
    fresh: bool = False
    dataset: Any = None


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two streams, not yet running.

    Attributes:
        role: ``"reference"`` or ``"candidate"``.
        kind: ``"build function"``, ``"QueuePipeline"``, ``"tf.data.Dataset"``, ``"callable"``, ``"iterable"``
            or ``"iterator"`` (which can be read once only).
        name: What the user gave, in a few words.
        open: Starts a pass; a context manager that gives a Run.
        repeatable: True if a second pass can be started.
    """

    role: str
    kind: str
    name: str
    open: Callable[[], AbstractContextManager[Run]]
    repeatable: bool


@dataclass(frozen=True, slots=True)
class Returned:
    """What a zero-argument function returns, as a side wherever a function alone would be a build function.

    Attributes:
        function: Returns a Dataset or an iterable of batches.
    """

    function: Callable[[], Any]


def side_of(value: Any, role: str) -> Side:
    """Recognise what was given as a side.

    Raises:
        InvalidArgument: A callable that cannot be called without arguments.
        InvalidStream: Nothing that could deliver batches.
    """
    if isinstance(value, Returned):
        return _callable_side(value.function, role)
    if _is_pipeline(value):
        return Side(role, "QueuePipeline", repr(value), lambda: _run_pipeline(value), True)
    if _is_dataset(value):
        return Side(role, "tf.data.Dataset", "a tf.data.Dataset", lambda: _run_dataset(value, role), True)
    if _is_tensor(value):
        raise InvalidStream(_one_batch(role, type(value).__name__))
    if isinstance(value, (Mapping, np.ndarray, np.generic)):
        raise InvalidStream(_one_batch(role, type(value).__name__))
    if isinstance(value, (str, os.PathLike)):
        from tfqueue.equivalence.golden import golden_side

        return golden_side(os.fspath(value), role)
    if isinstance(value, bytes):
        raise InvalidStream(f"the {role} is a bytes object, which is no stream of batches; {_EXPECTED[role]}")
    if isinstance(value, Iterator):
        return Side(role, "iterator", f"a {type(value).__name__}", lambda: _run_iterable(value), False)
    if isinstance(value, Iterable):
        return Side(role, "iterable", f"a {type(value).__name__}", lambda: _run_iterable(value), True)
    if callable(value):
        _check_signature(value, role)
        name = str(getattr(value, "__qualname__", None) or type(value).__qualname__)
        if role == "reference":
            from tfqueue.pipeline import QueuePipeline

            pipeline = QueuePipeline(value)
            return Side(role, "build function", name, lambda: _run_pipeline(pipeline), True)
        return _callable_side(value, role)
    if hasattr(type(value), "__getitem__") and hasattr(type(value), "__len__"):
        return Side(role, "iterable", f"a {type(value).__name__}", lambda: _run_iterable(value), True)
    raise InvalidStream(f"the {role} is {_a(type(value).__name__)}, which is no stream of batches; {_EXPECTED[role]}")


def _callable_side(function: Callable[[], Any], role: str) -> Side:
    _check_signature(function, role)
    name = str(getattr(function, "__qualname__", None) or type(function).__qualname__)
    return Side(role, "callable", name, lambda: _run_callable(function, role, name), True)


_EXPECTED = {
    "reference": "expected a build function, a QueuePipeline, a tf.data.Dataset, an iterable of batches, "
    "or the path of a golden",
    "candidate": "expected a tf.data.Dataset, a function returning one, a QueuePipeline or an iterable of batches",
}


def _one_batch(role: str, kind: str) -> str:
    return (
        f"the {role} is {_a(kind)}, which is one batch at most, not a stream of batches; "
        f"put it into a list for a stream of one batch, or give what delivers the batches"
    )


def _a(word: str) -> str:
    return f"an {word}" if word[:1].lower() in "aeiou" else f"a {word}"


def _tf() -> Any:
    """TensorFlow if this process uses it already; a value of TensorFlow cannot come from anywhere else."""
    return sys.modules.get("tensorflow")


def _is_pipeline(value: Any) -> bool:
    module = sys.modules.get("tfqueue.pipeline")
    return module is not None and isinstance(value, module.QueuePipeline)


def _is_dataset(value: Any) -> bool:
    tf = _tf()
    return tf is not None and isinstance(value, (tf.data.Dataset, tf.compat.v1.data.Dataset))


def _is_tensor(value: Any) -> bool:
    tf = _tf()
    return tf is not None and isinstance(value, (tf.Tensor, tf.Variable, tf.SparseTensor, tf.RaggedTensor))


def _check_signature(function: Callable[..., Any], role: str) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind()
    except TypeError as error:
        raise InvalidArgument(
            f"the {role} {getattr(function, '__qualname__', function)!r} cannot be called without arguments "
            f"({error}); wrap it: lambda: function(...)"
        ) from None


@contextmanager
def _run_pipeline(pipeline: Any) -> Iterator[Run]:
    with pipeline as entered:
        yield Run(iter(entered), of_graph(entered.graph), pipeline=entered, static=_static(entered.fetches), fresh=True)


@contextmanager
def _run_dataset(dataset: Any, role: str) -> Iterator[Run]:
    tf = _tf()
    with _eager():
        eager = tf.executing_eagerly()
    if not eager:
        with _dataset_in_session(dataset) as run:
            yield run
        return
    with _eager():
        try:
            iterator = iter(dataset)  # as_numpy_iterator would make SparseTensors dense
        except TypeError as error:
            raise InvalidStream(
                f"the {role} is a Dataset whose elements are no tensors: {dataset.element_spec}; {error}"
            ) from error
        except RuntimeError as error:
            raise InvalidStream(
                f"the {role} is a Dataset that was built inside a tf.Graph, so it cannot be iterated; "
                "give a function that builds and returns it"
            ) from error
        endless = int(dataset.cardinality()) == tf.data.INFINITE_CARDINALITY
    yield Run(
        _eagerly(iterator),
        of_dataset(dataset),
        endless,
        static=_static(dataset.element_spec),
        fresh=True,
        dataset=dataset,
    )


def _static(structure: Any) -> dict[str, str]:
    shapes = {name: getattr(part, "shape", None) for name, part in named(structure)}
    return {
        name: "unknown" if shape is None or shape.rank is None else str(shape.as_list()).replace("None", "?")
        for name, shape in shapes.items()
    }


@contextmanager
def _dataset_in_session(dataset: Any) -> Iterator[Run]:
    """Where eager execution is off for the whole process, a Dataset is read through a session of its own
    graph.
    """
    tf = _tf()
    graph = tf.data.experimental.to_variant(dataset).graph
    with graph.as_default():
        iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
        element = iterator.get_next()
    with tf.compat.v1.Session(graph=graph) as session:
        session.run(iterator.initializer)
        step = session.make_callable(element)

        def batches() -> Iterator[Any]:
            while True:
                try:
                    batch = step()
                except tf.errors.OutOfRangeError:
                    return
                yield batch

        yield Run(batches(), of_dataset(dataset))


@contextmanager
def _run_callable(function: Callable[[], Any], role: str, name: str) -> Iterator[Run]:
    with _eager():
        try:
            made = function()
        except TFQueueError:
            raise
        except RuntimeError as error:
            if "eager execution" not in str(error):
                raise
            raise InvalidStream(
                f"the {role} {name} is TF1 graph code, which a plain call cannot run ({error}); "
                f"give tfqueue.QueuePipeline({name})"
            ) from error
    if made is None:
        raise InvalidStream(f"the {role} {name} returned None; it must return a Dataset or an iterable of batches")
    if callable(made) and not isinstance(made, Iterable):
        raise InvalidStream(f"the {role} {name} returned a function; call it, or return its result")
    if _is_tensor(made) or isinstance(made, (Mapping, np.ndarray)):
        raise InvalidStream(
            f"the {role} {name} returned {_a(type(made).__name__)}, not a stream of batches; return a "
            f"Dataset or an "
            f"iterable of batches (for TF1 graph code give tfqueue.QueuePipeline({name}))"
        )
    inner = side_of(made, role)
    with inner.open() as run:
        yield run


@contextmanager
def _run_iterable(iterable: Any) -> Iterator[Run]:
    with _eager():
        iterator = iter(iterable)
    try:
        yield Run(_eagerly(iterator))
    finally:
        close = getattr(iterator, "close", None)
        if close is not None and inspect.isgenerator(iterator):
            close()


def _eagerly(iterator: Iterator[Any]) -> Iterator[Any]:
    """The same items, each fetched outside of any graph that the caller, or the other side, has entered."""
    if _tf() is None:
        yield from iterator
        return
    while True:
        with _eager():
            try:
                item = next(iterator)
            except StopIteration:
                return
        yield item


@contextmanager
def _eager() -> Iterator[None]:
    """Outside of every graph, if TensorFlow is loaded and a graph is being built."""
    tf = _tf()
    if tf is None or tf.executing_eagerly():
        yield
    else:
        with tf.init_scope():
            yield
