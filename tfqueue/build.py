"""Runs a build function in a graph of its own, and makes sure that tensors of that graph come back."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from tfqueue.diagnosis.building import failure_of_build
from tfqueue.errors import InvalidArgument, InvalidBuildFunction
from tfqueue.topology.subgraph import user_line

tf1 = tf.compat.v1


def build(build_fn: Callable[[], Any], graph: tf.Graph) -> Any:
    """Call ``build_fn`` inside ``graph``.

    Args:
        build_fn: Zero-argument TF1 code that returns the tensors to fetch.
        graph: The (fresh) graph to build in.

    Returns:
        What ``build_fn`` returned: a tensor, or any nest of tuples, namedtuples, lists and dicts of tensors,
        SparseTensors and RaggedTensors.

    Raises:
        InvalidArgument: ``build_fn`` cannot be called without arguments.
        PipelineFailed: TensorFlow refused what it built, in a way that is known (an empty list of files, a shape that
            is not fully defined).
        InvalidBuildFunction: It returned no tensor, something else than tensors, or a tensor of another graph.
    """
    if not callable(build_fn):
        raise InvalidArgument(
            f"build_fn must be a function without arguments that builds the TF1 pipeline and returns its tensors; "
            f"got {_brief(build_fn)}"
        )
    try:
        with graph.as_default(), tf1.variable_creator_scope(_string_variable_of_file_names):
            fetches = build_fn()
    except (ValueError, TypeError, AssertionError) as error:
        failed = failure_of_build(error, user_line(traceback.extract_tb(error.__traceback__)))
        if failed is None:
            raise
        raise failed from error
    check_fetches(fetches, graph, of=f"build_fn {name_of(build_fn)}")
    return fetches


def name_of(function: Any) -> str:
    """A name by which a person recognises a function."""
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)


def check_fetches(fetches: Any, graph: tf.Graph, *, of: str) -> None:
    """Raise InvalidBuildFunction unless ``fetches`` is a nest of tensors of ``graph``, and holds at least one."""
    leaves = list(_leaves(fetches, ""))
    if not leaves:
        raise InvalidBuildFunction(
            f"{of} returned no tensor, but {_brief(fetches)}; it must return what a step should deliver: "
            f"a tensor, or a tuple, list or dict of tensors"
        )
    for place, leaf in leaves:
        where = f" at {place}" if place else ""
        if isinstance(leaf, tf.Tensor) and not hasattr(leaf, "graph"):
            raise InvalidBuildFunction(f"{of} returned an eager tensor{where}, made outside its own graph")
        leaf_graph = _graph_of(leaf)
        if leaf_graph is None:
            hint = "; call the function, or wrap the value in tf.constant" if leaf is not None else ""
            raise InvalidBuildFunction(f"{of} returned {_brief(leaf)}{where}, where a tensor was expected{hint}")
        if leaf_graph is not graph:
            raise InvalidBuildFunction(
                f"{of} returned a tensor of another graph{where}: {leaf.name if hasattr(leaf, 'name') else leaf}; "
                f"build everything inside build_fn, which is called in a fresh graph, and do not enter another "
                f"tf.Graph or return tensors made outside"
            )


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """(place, leaf) of a nest; the place reads like Python, ``[0]['image']``."""
    if isinstance(value, dict):
        for key in value:
            yield from _leaves(value[key], f"{place}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        fields = getattr(value, "_fields", None)
        for index, item in enumerate(value):
            yield from _leaves(item, f"{place}.{fields[index]}" if fields else f"{place}[{index}]")
    elif value is not None or place:
        yield place, value


def _graph_of(leaf: Any) -> tf.Graph | None:
    if isinstance(leaf, tf.RaggedTensor):
        leaf = leaf.flat_values
    if isinstance(leaf, (tf.Tensor, tf.SparseTensor, tf.IndexedSlices, tf.Variable)):
        try:
            return leaf.graph
        except AttributeError:  # an eager tensor
            return None
    return None


def _brief(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"


def _string_variable_of_file_names(next_creator: Callable[..., Any], **arguments: Any) -> Any:
    """Lets ``string_input_producer(match_filenames_once(...))`` be built at all.

    `match_filenames_once` makes a variable that `string_input_producer` then tests with ``not``; a resource
    variable refuses that test (OperatorNotAllowedInGraphError), a reference variable answers it. A variable creator
    scope belongs to the graph, so nothing global changes.
    """
    initial_value = arguments.get("initial_value")
    operation = getattr(initial_value, "op", None)
    if operation is not None and operation.type == "MatchingFiles":
        arguments["use_resource"] = False
    return next_creator(**arguments)
