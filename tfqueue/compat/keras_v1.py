"""tf.keras of TF1 from tf_keras: graph mode, sessions, ``Input(tensor=...)``, ``target_tensors``, iterators in ``fit``.

In graph mode tf_keras still has all of these but the last: its ``fit``, ``evaluate`` and ``predict`` refuse the
iterator of a dataset. They are wrapped here so that they read it through the session of Keras. The wrapping needs the
class behind all models in graph mode, which no public module of tf_keras names; this is the one place that does.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tf_keras.api._v1 import keras as _keras
from tf_keras.src.engine import training_v1

from tfqueue.errors import InvalidArgument

tf1 = tf.compat.v1


class _Batches(Iterator[Any]):
    """The batches of an iterator of the graph as arrays, through the session that Keras uses.

    Keras takes the batches in other threads, several at a time: a generator would not do.
    """

    def __init__(self, iterator: Any) -> None:
        session = _keras.backend.get_session()  # of this thread
        self._read = session.make_callable(tf.nest.flatten(iterator.get_next()))
        self._structure = tf1.data.get_output_types(iterator)

    def __next__(self) -> Any:
        try:
            return tf.nest.pack_sequence_as(self._structure, self._read())
        except tf.errors.OutOfRangeError:
            raise StopIteration from None


def _reads_iterators(method: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(method)

    @functools.wraps(method)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        call = signature.bind(*arguments, **options)
        given = call.arguments
        x, validation = given.get("x"), given.get("validation_data")
        if isinstance(x, tf1.data.Iterator):
            given["x"] = _Batches(x)
            if method.__name__ != "predict" and given["self"].loss:
                _check_pairs(method.__name__, x)
        if isinstance(validation, tf1.data.Iterator):
            if not isinstance(x, Iterator | tf1.data.Iterator):
                raise InvalidArgument(
                    f"validation_data is an iterator and x is {type(x).__name__}: give x as an iterator, too, or "
                    "validation_data as a dataset"
                )
            given["validation_data"] = _Batches(validation)
        return method(*call.args, **call.kwargs)

    wrapped.reads_iterators = True  # type: ignore[attr-defined]
    return wrapped


def _check_pairs(method: str, iterator: Any) -> None:
    structure = tf1.data.get_output_types(iterator)
    if not isinstance(structure, tuple) or len(structure) not in (2, 3):
        raise InvalidArgument(
            f"{method} needs an iterator of (inputs, targets), or with weights; this one gives {structure}"
        )


for _name in ("fit", "evaluate", "predict"):
    _method = getattr(training_v1.Model, _name)
    if not hasattr(_method, "reads_iterators"):
        setattr(training_v1.Model, _name, _reads_iterators(_method))


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_keras, name)


def __dir__() -> list[str]:
    return dir(_keras)
