"""A tf.data.Dataset as plain data: the chain of its transformations, read from the graph that it stands for.

Public means only: ``tf.data.experimental.to_variant`` and the op DatasetToGraphV2 give the graph of a Dataset; the
names and inputs of its ops are those that tf.raw_ops documents.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfqueue.errors import InvalidArgument

_KIND = re.compile(r"(?P<kind>\w+?)Dataset(V\d+)?$")
_FUNCTION = re.compile(r"(?:__inference_)?Dataset_(?:flat_map|[a-z]+)_(?P<name>\w+?)_\d+$")
_NOTABLE = re.compile(r"Decode|Parse|Resize|Crop|Flip|Random|PyFunc|Lookup|(Record|TextLine|Csv|Generator|Sql)Dataset")
# No transformations of the data; a user has not written them as such.
_TRANSPARENT = frozenset({"Options", "Model", "Finalize", "AssertCardinality"})
_IGNORE_STATE = 1
# The inputs that say most of an op, by their place (from the end for those after inputs of any number).
_INPUTS: dict[str, dict[str, int]] = {
    "Shuffle": {"buffer_size": 1},
    "ShuffleAndRepeat": {"buffer_size": 1, "count": 4},
    "Repeat": {"count": 1},
    "Batch": {"batch_size": 1, "drop_remainder": 2},
    "ParallelBatch": {"batch_size": 1, "drop_remainder": 3},
    "PaddedBatch": {"batch_size": 1, "drop_remainder": -1},
    "DenseToRaggedBatch": {"batch_size": 1, "drop_remainder": 2},
    "Prefetch": {"buffer_size": 1},
    "Take": {"count": 1},
    "Skip": {"count": 1},
    "Shard": {"num_shards": 1, "index": 2},
    "Window": {"size": 1, "shift": 2, "stride": 3},
    "Range": {"start": 0, "stop": 1, "step": 2},
    "ParallelMap": {"num_parallel_calls": -1},
    "Interleave": {"cycle_length": -2, "block_length": -1},
    "ParallelInterleave": {"cycle_length": -5, "block_length": -4, "num_parallel_calls": -1},
    "TFRecord": {"compression_type": 1},
    "TextLine": {"compression_type": 1},
    "FixedLengthRecord": {"record_bytes": 2},
}
_BUFFERS = frozenset({"Shuffle", "ShuffleAndRepeat", "Prefetch", "Cache"})
_SHOWN, _MOST = 3, 40


def is_dataset(value: Any) -> bool:
    """Whether a value is a tf.data.Dataset; imports nothing."""
    tf = sys.modules.get("tensorflow")
    return tf is not None and isinstance(value, (tf.data.Dataset, tf.compat.v1.data.Dataset))


@dataclass(frozen=True, slots=True)
class Transformation:
    """One transformation of a Dataset.

    Attributes:
        name: The name of its op, which is its own in the chain.
        kind: ``"source"``, ``"buffer"``, ``"batch"`` or ``"stage"``.
        title: What it is, such as ``"ParallelMap: decode"``.
        lines: Its options and what its function does, in words.
        sources: The names of the transformations that it takes its elements from.
    """

    name: str
    kind: str
    title: str
    lines: tuple[str, ...]
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DatasetChain:
    """How a Dataset was made.

    Attributes:
        transformations: From the last one to the sources, at most the 40 last.
        length: How many there are.
        delivers: Dtype and shape of each component of an element, in words.
        elements: How many elements it delivers, in words.
    """

    transformations: tuple[Transformation, ...]
    length: int
    delivers: str
    elements: str


class Unread:
    """The chain of a Dataset that is read when it is asked for: arrays inside of the Dataset make that slow.

    It is pickled as the chain that it reads.

    Args:
        dataset: The tf.data.Dataset.
    """

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._chain: DatasetChain | None = None

    def chain(self) -> DatasetChain | None:
        """The chain, or None if the Dataset does not tell how it was made."""
        if self._dataset is not None:
            try:
                self._chain = chain_of(self._dataset)
            except InvalidArgument:
                self._chain = None
            self._dataset = None
        return self._chain

    def __reduce__(self) -> tuple[Any, ...]:
        return _known, (self.chain(),)


def _known(chain: DatasetChain | None) -> Unread:
    unread = Unread(None)
    unread._chain = chain
    return unread


def chain_of(dataset: Any) -> DatasetChain:
    """Read the chain of transformations of a Dataset.

    Raises:
        InvalidArgument: The Dataset does not tell how it was made.
    """
    nodes, functions = _graph_of(dataset)
    chain = _chain(nodes)
    if not chain:
        raise InvalidArgument("the Dataset does not tell how it was made: its graph holds no transformation")
    shown = chain[:_MOST]
    known = {node.name for node in shown}
    steps = []
    for node in shown:
        title, lines = _words(node, nodes, functions)
        sources = _sources(node, nodes)
        steps.append(
            Transformation(
                node.name,
                _role(node, sources),
                title,
                tuple(lines),
                tuple(source.name for source in sources if source.name in known),
            )
        )
    return DatasetChain(tuple(steps), len(chain), _delivers(dataset), _cardinality(dataset))


def _graph_of(dataset: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The nodes of the graph that a Dataset stands for, and the functions that it calls, by name."""
    import tensorflow as tf
    from google.protobuf.message import DecodeError

    try:
        with tf.init_scope():
            serialized = tf.raw_ops.DatasetToGraphV2(
                input_dataset=tf.data.experimental.to_variant(dataset),
                external_state_policy=_IGNORE_STATE,
                strip_device_assignment=True,
            ).numpy()
        graph = tf.compat.v1.GraphDef.FromString(serialized)
    except (
        tf.errors.OpError,
        AttributeError,
        NotImplementedError,
        RuntimeError,
        TypeError,
        ValueError,
        DecodeError,
    ) as error:
        raise InvalidArgument(f"the Dataset does not tell how it was made: {error}") from error
    functions = {function.signature.name: function for function in graph.library.function}
    return {node.name: node for node in graph.node}, functions


def _chain(nodes: Mapping[str, Any]) -> list[Any]:
    """The transformations from the last one to the sources."""
    ends = [nodes[_name(text)] for node in nodes.values() if node.op == "_Retval" for text in node.input]
    found: dict[str, Any] = {}
    waiting = _resolved(ends, nodes)
    while waiting:
        node = waiting.pop(0)
        if node.name not in found:
            found[node.name] = node
            waiting += _sources(node, nodes)
    return list(found.values())


def _sources(node: Any, nodes: Mapping[str, Any]) -> list[Any]:
    return _resolved([nodes[_name(text)] for text in node.input if _name(text) in nodes], nodes)


def _resolved(found: Sequence[Any], nodes: Mapping[str, Any]) -> list[Any]:
    """The transformations among some nodes, those that are none replaced by what they take."""
    resolved = []
    for node in found:
        kind = _kind(node)
        if kind in _TRANSPARENT:
            resolved += _sources(node, nodes)
        elif kind is not None:
            resolved.append(node)
    return resolved


def _name(text: str) -> str:
    """The node that an input comes from: ``name``, ``name:1`` or ``^name``."""
    return text.lstrip("^").split(":")[0]


def _kind(node: Any) -> str | None:
    found = _KIND.match(node.op)
    return found["kind"] if found else None


def _role(node: Any, sources: Sequence[Any]) -> str:
    kind = _kind(node) or ""
    if not sources:
        return "source"
    if kind in _BUFFERS:
        return "buffer"
    return "batch" if kind.endswith("Batch") else "stage"


def _words(node: Any, nodes: Mapping[str, Any], functions: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Title and lines of a transformation."""
    kind = _kind(node) or node.op
    options = []
    inputs = list(node.input)
    for name, place in _INPUTS.get(kind, {}).items():
        value = _constant(inputs[place], nodes) if -len(inputs) <= place < len(inputs) else None
        if value is not None and value != b"":
            options.append(_option(name, value))
    lines = [", ".join(options)] if options else []
    if kind in ("TensorSlice", "Tensor"):
        lines += _elements(node, nodes)
    title = kind
    called = next((a.func.name for key, a in node.attr.items() if a.func.name and key in ("f", "predicate")), None)
    if called is not None:
        found = _FUNCTION.match(called)
        title += f": {found['name']}" if found else ""
        ops = _notable_ops(called, functions)
        more = f" and {len(ops) - _SHOWN} more" if len(ops) > _SHOWN else ""
        lines += [", ".join(ops[:_SHOWN]) + more] if ops else []
    return title, lines


def _option(name: str, value: Any) -> str:
    if value == -1 and name in ("num_parallel_calls", "buffer_size"):
        return f"{name} AUTOTUNE"
    if (name == "count" and value == -1) or (name == "stop" and value == 2**63 - 1):
        return "without end"
    return f"{name} {value.decode(errors='backslashreplace') if isinstance(value, bytes) else value}"


def _constant(text: str, nodes: Mapping[str, Any]) -> Any:
    """The value of a scalar constant that is the input of a node, or None."""
    import tensorflow as tf

    node = nodes.get(_name(text))
    while node is not None and node.op == "Identity":
        node = nodes.get(_name(node.input[0]))
    if node is None or node.op != "Const" or node.attr["value"].tensor.tensor_shape.dim:
        return None
    try:
        return tf.make_ndarray(node.attr["value"].tensor).item()
    except (TypeError, ValueError, KeyError):
        return None


def _elements(node: Any, nodes: Mapping[str, Any]) -> list[str]:
    """What the arrays of a source are: few names in full, others by their number."""
    import tensorflow as tf

    source = nodes.get(_name(node.input[0])) if node.input else None
    while source is not None and source.op == "Identity":
        source = nodes.get(_name(source.input[0]))
    if source is None or source.op != "Const":
        return []
    tensor = source.attr["value"].tensor
    sizes = [dim.size for dim in tensor.tensor_shape.dim]
    if tensor.dtype == tf.string.as_datatype_enum and len(sizes) == 1:
        with tf.init_scope():
            items = tf.io.parse_tensor(tensor.SerializeToString(), tf.string)[:_SHOWN].numpy()
        names = [os.path.basename(item.decode(errors="backslashreplace")) for item in items]
        return [", ".join(names) + (f" and {sizes[0] - _SHOWN} more" if sizes[0] > _SHOWN else "")]
    return [_elements_words(sizes[0])] if sizes else []


def _notable_ops(name: str, functions: Mapping[str, Any]) -> list[str]:
    """The ops of a function, and of those that it calls, that say what it does; each once, in their order."""
    found: dict[str, None] = {}
    waiting, seen = [name], {name}
    while waiting:
        function = functions.get(waiting.pop(0))
        if function is None:
            continue
        for node in function.node_def:
            if _NOTABLE.search(node.op):
                found[node.op] = None
            for attribute in node.attr.values():
                called = attribute.func.name
                if called and called not in seen:
                    seen.add(called)
                    waiting.append(called)
    return list(found)


def _delivers(dataset: Any) -> str:
    import tensorflow as tf

    lines = []
    for spec in tf.nest.flatten(dataset.element_spec):
        shape, dtype = getattr(spec, "shape", None), getattr(spec, "dtype", None)
        if shape is None or dtype is None:
            lines.append(type(spec).__name__)
            continue
        dims = "?" if shape.rank is None else ", ".join("?" if d is None else str(d) for d in shape.as_list())
        lines.append(f"{dtype.name}[{dims}]")
    return ", ".join(lines)


def _cardinality(dataset: Any) -> str:
    import tensorflow as tf

    with tf.init_scope():
        count = int(dataset.cardinality())
    if count == tf.data.INFINITE_CARDINALITY:
        return "Delivers without end"
    if count == tf.data.UNKNOWN_CARDINALITY:
        return "Number of elements not known before it runs"
    return f"Delivers {_elements_words(count)}"


def _elements_words(count: int) -> str:
    return f"{count} element" + ("" if count == 1 else "s")
