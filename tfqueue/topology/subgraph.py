"""Walking a tf.Graph: what an op needs, which queue it touches, which line of the user's code built it.

Reads only public attributes of graphs, ops and node definitions, and changes nothing.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfqueue.topology.model import TensorInfo

tf1 = tf.compat.v1

QUEUE_KINDS = {
    f"{kind}Queue{version}": kind
    for kind in ("FIFO", "RandomShuffle", "PaddingFIFO", "Priority")
    for version in ("", "V2")
}
READER_KINDS = {
    f"{kind}Reader{version}": kind
    for kind in ("TFRecord", "TextLine", "FixedLengthRecord", "WholeFile", "Identity", "LMDB")
    for version in ("", "V2")
}
READ_TYPES = frozenset({"ReaderRead", "ReaderReadV2", "ReaderReadUpTo", "ReaderReadUpToV2"})
DEQUEUE_KINDS = {
    f"Queue{name}{version}": kind
    for name, kind in (
        ("Dequeue", "dequeue"),
        ("DequeueMany", "dequeue_many"),
        ("DequeueUpTo", "dequeue_up_to"),
    )
    for version in ("", "V2")
}
ENQUEUE_TYPES = {
    f"Queue{name}{version}": many
    for name, many in (("Enqueue", False), ("EnqueueMany", True))
    for version in ("", "V2")
}
CUT_TYPES = READ_TYPES | DEQUEUE_KINDS.keys()
CALL_TYPES = frozenset({"If", "StatelessIf", "Case", "StatelessCase", "PartitionedCall", "StatefulPartitionedCall"})
FUNCTION_TYPES = CALL_TYPES | {"While", "StatelessWhile"}
RANDOM_WORDS = (
    "Random",
    "Multinomial",
    "TruncatedNormal",
    "SampleDistortedBoundingBox",
    "StatelessTruncated",
)
_CONSTANT_LIMIT = 100_000


class GraphView:
    """One graph, its ops read once.

    Attributes:
        graph: The graph.
        ops: Its ops, in the order they were added.
        position: The index of each op in ``ops``, by name.
    """

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.ops: list[Any] = graph.get_operations()
        self.types: list[str] = [op.type for op in self.ops]
        self.by_name: dict[str, Any] = {op.name: op for op in self.ops}
        self.position: dict[str, int] = {name: index for index, name in enumerate(self.by_name)}
        self._definition: Any | None = None
        self._functions: dict[str, Any] | None = None
        self._skipped_folders = _skipped_folders()

    @property
    def versions(self) -> Any:
        """The versions under which the graph's ops were made."""
        return self.graph.graph_def_versions

    def of_type(self, types: Iterable[str]) -> Iterator[Any]:
        """The ops of some types, in graph order."""
        wanted = frozenset(types)
        return (op for op, op_type in zip(self.ops, self.types, strict=True) if op_type in wanted)

    def closure(self, ends: Iterable[Any], *, stop: Callable[[Any], bool]) -> tuple[list[Any], list[Any]]:
        """The ops that some ops need in order to run.

        Args:
            ends: The ops to start from; they are part of the result even where ``stop`` holds for them.
            stop: Says of an op that the walk ends there.

        Returns:
            The ops of the closure, and the ops at which it stopped; both in graph order.
        """
        first = list(ends)
        seen = {op.name: op for op in first}
        stopped: dict[str, Any] = {}
        waiting = list(first)
        while waiting:
            op = waiting.pop()
            needed = [tensor.op for tensor in op.inputs]
            needed.extend(op.control_inputs)
            for other in needed:
                name = other.name
                if name in seen or name in stopped:
                    continue
                if stop(other):
                    stopped[name] = other
                else:
                    seen[name] = other
                    waiting.append(other)
        return self.sorted(seen.values()), self.sorted(stopped.values())

    def sorted(self, ops: Iterable[Any]) -> list[Any]:
        """Ops in graph order."""
        return sorted(ops, key=lambda op: self.position.get(op.name, len(self.position)))

    def queues_behind(self, tensor: Any) -> list[Any]:
        """The queue ops that a handle may stand for, found through Identity, Switch, Enter, Pack, Gather."""
        found: dict[str, Any] = {}
        seen = {tensor.name}
        waiting = [tensor]
        while waiting:
            op = waiting.pop().op
            if op.type in QUEUE_KINDS:
                found[op.name] = op
                continue
            for source in op.inputs:
                if source.name not in seen and (source.dtype == tf.resource or source.dtype.name == "string_ref"):
                    seen.add(source.name)
                    waiting.append(source)
        return self.sorted(found.values())

    def called_types(self, op: Any) -> frozenset[str]:
        """The types of the ops in the functions that an op may call (tf.cond of today), nested ones too."""
        found: set[str] = set()
        waiting = list(_called_functions(op.node_def.attr.values()))
        seen = set(waiting)
        while waiting:
            definition = self.function(waiting.pop())
            if definition is None:
                continue
            for node in definition.node_def:
                found.add(node.op)
                for name in _called_functions(node.attr.values()):
                    if name not in seen:
                        seen.add(name)
                        waiting.append(name)
        return frozenset(found)

    def calls_functions(self, op: Any) -> bool:
        """Whether an op calls functions of the graph's library (tf.cond, tf.while_loop, tf.function)."""
        return any(True for _ in _called_functions(op.node_def.attr.values()))

    def library(self) -> Any:
        """The functions and gradients of the graph."""
        if self._definition is None:
            # The only public way to the functions; paid only by graphs that call some.
            self._definition = self.graph.as_graph_def()
        return self._definition.library

    def function(self, name: str) -> Any | None:
        """The FunctionDef with this name, or None."""
        if self._functions is None:
            self._functions = {item.signature.name: item for item in self.library().function}
        return self._functions.get(name)

    def source_of(self, op: Any) -> str | None:
        """The user's line that built an op, ``"file.py:87 in read_cifar10"``; None when it is not known."""
        try:
            frames = list(op.traceback)
        except (AttributeError, TypeError, ValueError):
            return None
        return user_line(frames, self._skipped_folders)


def draws_in_functions(view: GraphView, op: Any) -> bool:
    """Whether a function that an op calls (a branch of a tf.cond, the body of a loop) draws random numbers.

    TensorFlow makes such a tf.cond a StatelessIf, though its random ops keep a state.
    """
    return op.type in FUNCTION_TYPES and any(
        any(word in op_type for word in RANDOM_WORDS) and not op_type.startswith("Stateless")
        for op_type in view.called_types(op)
    )


# The one file of this package that builds pipelines itself, as a user would.
_DEMO = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "demo.py")


def user_line(frames: Sequence[Any], skipped: tuple[str, ...] | None = None) -> str | None:
    """The innermost frame of a traceback that is the user's own, ``"file.py:87 in read_cifar10"``; None if none is."""
    skipped = _skipped_folders() if skipped is None else skipped
    for frame in reversed(frames):
        inside = frame.filename.startswith(skipped) and frame.filename != _DEMO
        if not inside and not frame.filename.startswith("<frozen"):
            return f"{os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}"
    return None


def _skipped_folders() -> tuple[str, ...]:
    """Folders whose frames are not the user's: TensorFlow, tf_slim, Keras, this package, contextlib."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = [here + os.sep, contextlib.__file__]
    for name in ("tensorflow", "tf_slim", "tf_keras", "keras", "wrapt"):
        module = sys.modules.get(name)
        if module is not None and getattr(module, "__file__", None):
            folders.append(os.path.dirname(os.path.abspath(str(module.__file__))) + os.sep)
    # `import tensorflow` may name a package whose code lives beside it.
    folders.extend(folder.replace("_api" + os.sep + "v2" + os.sep, "") for folder in list(folders))
    return tuple(dict.fromkeys(folders))


def _called_functions(attributes: Iterable[Any]) -> Iterator[str]:
    for value in attributes:
        if value.HasField("func"):
            yield value.func.name
        elif value.HasField("list"):
            yield from (function.name for function in value.list.func)


def attribute(op: Any, name: str, default: Any = None) -> Any:
    """An attribute of an op, or the default where the op has none of that name (graphs of other versions)."""
    try:
        return op.get_attr(name)
    except ValueError:
        return default


def text(value: Any) -> str:
    """A string attribute or constant as text; bytes that are not UTF-8 survive a round trip."""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def shape_of(shape: Any) -> tuple[int | None, ...] | None:
    """A TensorShape or TensorShapeProto as a tuple, None for an unknown rank."""
    shape = tf.TensorShape(shape)
    return None if shape.rank is None else tuple(shape.as_list())


def describe_tensor(tensor: Any) -> TensorInfo:
    """A tensor as data."""
    return TensorInfo(tensor.name, tensor.dtype.base_dtype.name, shape_of(tensor.shape))


def constant(tensor: Any) -> np.ndarray[Any, Any] | None:
    """The value of a tensor that is a constant (or folds to one); None when it is not, or is large."""
    size = tensor.shape.num_elements()
    if size is not None and size > _CONSTANT_LIMIT:
        return None
    try:
        value = tf.get_static_value(tensor)
    except (TypeError, ValueError):
        return None
    return None if value is None else np.asarray(value)


def constant_int(tensor: Any) -> int | None:
    """The value of a constant scalar, or None."""
    value = constant(tensor)
    return int(value) if value is not None and value.size == 1 and value.dtype.kind in "iu" else None


def constant_values(tensor: Any) -> tuple[Any, ...] | None:
    """The values of a constant, flattened, strings as text; None when it is no constant."""
    while tensor.op.type == "Reshape":
        # Not folded by TensorFlow's own function; the flattened values are the same.
        tensor = tensor.op.inputs[0]
    value = constant(tensor)
    if value is None:
        return None
    return tuple(text(item) if isinstance(item, bytes) else item for item in value.ravel().tolist())
