"""A topology told to people (a text tree, a Graphviz picture) and to programs (JSON)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfqueue.errors import CannotLower, InvalidArgument
from tfqueue.topology.findings import Finding, findings
from tfqueue.topology.model import (
    Dequeue,
    Enqueue,
    Node,
    ParseSpec,
    Producer,
    Queue,
    Reader,
    TensorInfo,
    Topology,
    Transform,
    Unknown,
)

if TYPE_CHECKING:
    import tensorflow as tf

# Ops that carry no meaning for a reader of the tree.
_ENQUEUES = ("QueueEnqueue", "QueueEnqueueV2", "QueueEnqueueMany", "QueueEnqueueManyV2")
_SILENT = frozenset({"Const", "Identity", "NoOp", "Placeholder", *_ENQUEUES})
_SHOWN_ELEMENTS = 3
_SHOWN_TYPES = 12


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a pipeline is: ``print`` it, or take its JSON or Graphviz form.

    Attributes:
        topology: The topology it tells about.
        findings: What a person should know, the gravest first.
        passes: The speed passes that apply when it is turned into tf.data, in words; None where that was not asked.
        cannot_lower: Why it cannot be turned into tf.data, or None.
    """

    topology: Topology
    findings: tuple[Finding, ...]
    passes: tuple[str, ...] | None = None
    cannot_lower: str | None = None

    def __str__(self) -> str:
        return "\n".join((*_text(self.topology, self.findings), *self._lowering()))

    def _lowering(self) -> Iterator[str]:
        if self.cannot_lower is not None:
            yield from ("", f"tf.data: {self.cannot_lower}")
        elif self.passes is not None:
            yield from ("", "tf.data: can be lowered; speed passes that apply" + ("" if self.passes else ": none"))
            yield from (f"  - {words}" for words in self.passes)

    def _repr_png_(self) -> bytes:
        """The picture of the pipeline, for notebooks."""
        from tfqueue.views import plot_topology
        from tfqueue.views.style import png

        return png(plot_topology(self.topology))

    def to_dict(self) -> dict[str, Any]:
        """Everything as dicts, lists, strings and numbers."""
        plain: dict[str, Any] = _plain(self.topology)
        plain["findings"] = [_plain(finding) for finding in self.findings]
        if self.passes is not None or self.cannot_lower is not None:
            plain["tfdata"] = {"passes": list(self.passes or ()), "cannot_lower": self.cannot_lower}
        plain["order_is_defined"] = not any(finding.kind == "order" for finding in self.findings)
        return plain

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """The JSON text; also written to ``path`` when that is given."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=True)
        if path is not None:
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text

    def to_dot(self, path: str | PathLike[str] | None = None) -> str:
        """The picture as Graphviz text (``dot -Tsvg``); also written to ``path`` when that is given."""
        text = "\n".join(_dot(self.topology)) + "\n"
        if path is not None:
            Path(path).write_text(text, encoding="utf-8", errors="backslashreplace")
        return text


def explain(
    target: Callable[[], Any] | tf.Graph | Topology, fetches: Any = None, *, tfdata: bool = False
) -> Explanation:
    """Explain a queue-runner pipeline: its stages, where they were written, its buffers, what to beware of.

    Args:
        target: A build function, a graph, or a topology.
        fetches: With a graph: what a step fetches.
        tfdata: Say also whether it can be turned into a tf.data.Dataset, and which speed passes of `to_dataset` apply
            to which of its stages. It is lowered for that, which runs the initialisers of what it reads (variables,
            tables), but reads no data.

    Raises:
        InvalidArgument: ``target`` or ``fetches`` cannot be used, see ``trace``.
        InvalidBuildFunction: The build function returned no tensors of its graph.
    """
    if tfdata:
        return _explain_lowering(target, fetches)
    if not isinstance(target, Topology):
        from tfqueue.topology.trace import trace  # here, since a topology needs no TensorFlow to be explained

        target = trace(target, fetches)
    return Explanation(target, findings(target))


def _explain_lowering(target: Callable[[], Any] | tf.Graph | Topology, fetches: Any) -> Explanation:
    import tensorflow as tf

    from tfqueue.build import build
    from tfqueue.engines.tfdata import applied_passes
    from tfqueue.topology.trace import trace

    if isinstance(target, Topology):
        raise InvalidArgument("a topology holds no ops that tf.data could run; pass the build function or the graph")
    if not isinstance(target, tf.Graph):
        graph = tf.Graph()
        target, fetches = graph, build(target, graph)
    topology = trace(target, fetches)
    try:
        passes = applied_passes(target, fetches)
    except CannotLower as error:
        words = f"{error}; {error.advice}" if error.advice else str(error)
        return Explanation(topology, findings(topology), cannot_lower=words)
    return Explanation(topology, findings(topology), passes=tuple(map(str, passes)))


# -- text -------------------------------------------------------------------------------------------


def _text(topology: Topology, found: tuple[Finding, ...]) -> Iterator[str]:
    stage = topology.fetch_stage
    told: set[str] = set()
    if stage is not None:
        yield from _tree(topology, stage, told)
    else:
        used = {name for queue_stage in topology.transforms for name in queue_stage.inputs}
        sinks: list[Node] = [dequeue for dequeue in topology.dequeues if dequeue.name not in used]
        sinks = sinks or [queue for queue in topology.queues if not queue.dequeues and not queue.reads]
        for sink in sinks:
            yield from _tree(topology, sink, told)
    if not topology.queues:
        yield "no queue in this graph"
    total, unknown = _memory(topology)
    if topology.queues:
        yield ""
        parts = [human_bytes(total)] if total or not unknown else []
        parts.extend([f"{unknown} of unknown size (strings, or shapes left open)"] if unknown else [])
        yield f"memory of the full buffers: {', and '.join(parts)}"
    order = [finding for finding in found if finding.kind == "order"]
    rest = [finding for finding in found if finding.kind != "order"]
    if topology.queues and not order:
        fed = any(finding.kind == "fed-from-outside" for finding in found)
        yield f"order of the records: {'that of the Python code that feeds it' if fed else 'defined'}"
    if found:
        yield ""
        yield "warnings"
        yield from (f"  - {finding}" for finding in (*rest, *order))


def _tree(topology: Topology, node: Node, told: set[str], first: str = "", rest: str = "") -> Iterator[str]:
    """A node and what it takes its data from, indented."""
    if node.name in told and not isinstance(node, (Dequeue, Reader)):
        yield f"{first}{_title(node)} (see above)"
        return
    told.add(node.name)
    yield f"{first}{_title(node)}{_at(node.source)}"
    sources = _sources(topology, node)
    bar = "│  " if sources else "   "
    for detail in _details(node, told):
        yield f"{rest}{bar}{detail}"
    for index, source in enumerate(sources):
        last = index == len(sources) - 1
        yield from _tree(
            topology, source, told, f"{rest}{'└─ ' if last else '├─ '}", f"{rest}{'   ' if last else '│  '}"
        )


def _sources(topology: Topology, node: Node) -> tuple[Node, ...]:
    # A reader has several reads; each is told with the stage that makes it, so its queue comes once.
    return topology.upstream(node)


def _title(node: Node) -> str:
    if isinstance(node, Transform):
        return f"fetches: {_tensors(node.outputs)}" if node.target is None else f"stage {node.name}"
    if isinstance(node, Dequeue):
        return _dequeue_title(node)
    if isinstance(node, Queue):
        return f"{node.kind} queue {node.name}: {_queue_numbers(node)}"
    if isinstance(node, Reader):
        return f"{node.kind} reader {node.name}{_reader_numbers(node)}"
    if isinstance(node, Producer):
        return _producer_title(node)
    return f"unknown: {node.name} ({node.op_type}): {node.reason}"


def _dequeue_title(node: Dequeue) -> str:
    size = "a number decided while running" if node.batch_size is None else node.batch_size
    title = {
        "dequeue": "dequeue one",
        "dequeue_many": f"dequeue_many {size} (a last partial batch is dropped)",
        "dequeue_up_to": f"dequeue_up_to {size} (a last partial batch is delivered)",
    }[node.kind]
    if node.conditional:
        title += ", inside a tf.cond"
    elif len(node.candidates) > 1:
        title += ", from one of several queues chosen while running"
    return f"{title} [{node.name}]"


def _queue_numbers(queue: Queue) -> str:
    parts = ["capacity " + ("unbounded" if queue.capacity is None else str(queue.capacity))]
    if queue.kind == "RandomShuffle":
        parts.append(f"min_after_dequeue {queue.min_after_dequeue}")
        seeded = queue.seed or queue.seed2
        parts.append(f"seed ({queue.seed}, {queue.seed2})" if seeded else "no seed")
    if queue.shared_name:
        parts.append(f"shared as {queue.shared_name!r}")
    return ", ".join(parts)


def _reader_numbers(reader: Reader) -> str:
    parts = []
    if reader.compression:
        parts.append(reader.compression)
    for name in ("header_bytes", "record_bytes", "footer_bytes", "hop_bytes", "skip_header_lines"):
        value = getattr(reader, name)
        if value:
            parts.append(f"{name} {value}")
    for read in reader.reads:
        if read.many:
            parts.append(f"read_up_to {read.up_to if read.up_to is not None else '?'}")
    return f": {', '.join(parts)}" if parts else ""


def _producer_title(producer: Producer) -> str:
    words = {
        "files": "strings" if producer.count != 1 else "string",
        "range": "range",
        "array": "constant array",
        "variable": f"variable {producer.variable}",
        "python": "a Python function (py_func)",
        "fed": "placeholders, fed by Python code",
        "random": "random numbers",
        "computed": "computed in the graph",
    }[producer.kind]
    if producer.pattern is not None:
        parts = [f"files that match {', '.join(map(_printable, producer.pattern.splitlines()))}"]
    elif producer.kind == "files":
        parts = [words if producer.count is None else f"{producer.count} {words}"]
        if producer.elements:
            shown = ", ".join(_printable(str(element)) for element in producer.elements[:_SHOWN_ELEMENTS])
            more = len(producer.elements) - _SHOWN_ELEMENTS
            parts[0] += f": {shown}" + (f", ... {more} more" if more > 0 else "")
    else:
        parts = [words if producer.count is None else f"{words} of {producer.count}"]
    if producer.num_epochs is not None:
        parts.append("1 epoch" if producer.num_epochs == 1 else f"{producer.num_epochs} epochs")
    elif producer.kind in ("files", "range", "array", "variable"):
        parts.append("without end")
    if producer.shuffle:
        seeded = producer.seed or producer.seed2
        parts.append("shuffled each epoch, " + (f"seed ({producer.seed}, {producer.seed2})" if seeded else "no seed"))
    return f"source: {'; '.join(parts)}"


def _details(node: Node, told: set[str]) -> Iterator[str]:
    if isinstance(node, Queue):
        size = node.buffer_bytes
        memory = f"full: {human_bytes(size)}" if size is not None else "full: of unknown size"
        yield f"element: {_tensors(node.components)}; {memory}"
        for enqueue in node.enqueues:
            yield _enqueue_line(enqueue)
    elif isinstance(node, Transform):
        yield from _stage_details(node, told)
    elif isinstance(node, Producer) and node.sliced:
        yield f"selects rows of: {', '.join(f'{info.name} {info}' for info in node.sliced)}"


def _enqueue_line(enqueue: Enqueue) -> str:
    kind = "enqueue_many" if enqueue.many else "enqueue"
    threads = {0: "no queue runner", 1: "1 thread"}.get(enqueue.copies, f"{enqueue.copies} threads")
    condition = ", only when a tf.cond says so" if enqueue.conditional else ""
    return f"{kind}, {threads}{condition} [{enqueue.name}]"


def _stage_details(stage: Transform, told: set[str]) -> Iterator[str]:
    for spec in stage.parses:
        # The branches of a join parse alike, as a rule.
        what = f"{_options(spec.options)} {spec.features}"
        again = f": the same {len(spec.features)} {_parts(spec)} as above" if what in told else ""
        yield f"parse {_PARSED[spec.kind]}{_options(spec.options)}{again}{_at(spec.source)}"
        if not again:
            told.add(what)
            yield from (f"    {line}" for line in _feature_lines(spec))
    for decode in stage.decodes:
        yield f"{decode.op_type}{_options(decode.options)}{_at(decode.source)}"
    for words, names in (
        ("random", stage.random),
        ("py_func", stage.python),
        ("placeholders", stage.placeholders),
        ("variables", stage.variables),
        ("lookup tables", stage.tables),
        ("control flow", stage.control_flow),
    ):
        if names:
            shown = ", ".join(names[:_SHOWN_ELEMENTS])
            more = f", ... {len(names) - _SHOWN_ELEMENTS} more" if len(names) > _SHOWN_ELEMENTS else ""
            yield f"{words}: {shown}{more}"
    types = Counter(op_type for op_type in stage.op_types if op_type not in _SILENT)
    if types:
        shown = ", ".join(f"{name} x{n}" if n > 1 else name for name, n in list(types.items())[:_SHOWN_TYPES])
        yield f"ops: {shown}{', ...' if len(types) > _SHOWN_TYPES else ''}"


_PARSED = {"example": "tf.train.Example", "sequence_example": "tf.train.SequenceExample", "csv": "CSV"}


def _parts(spec: ParseSpec) -> str:
    word = "column" if spec.kind == "csv" else "feature"
    return word if len(spec.features) == 1 else f"{word}s"


def _feature_lines(spec: ParseSpec) -> Iterator[str]:
    for feature in spec.features:
        name = f"column {feature.key}" if feature.kind == "column" else repr(feature.key)
        kind = {
            "fixed": "fixed",
            "fixed_sequence": "list of",
            "var": "sparse",
            "ragged": "ragged",
            "column": "",
        }[feature.kind]
        info = TensorInfo("", feature.dtype, feature.shape)
        dtype = f"{kind} {info if feature.shape else feature.dtype}".strip()
        if feature.default is not None:
            shown = ", ".join(repr(value) for value in feature.default[:_SHOWN_ELEMENTS])
            need = f", default {shown}" + (", ..." if len(feature.default) > _SHOWN_ELEMENTS else "")
        else:
            need = ", required" if feature.required else ""
        where = f" of the {feature.where}" if feature.where in ("context", "feature_list") else ""
        yield f"{name}{where}: {dtype}{need}"


def _options(options: tuple[tuple[str, object], ...]) -> str:
    usual = (None, "", False, 0, (), "UNKNOWN")
    shown = [f"{name}={value}" for name, value in options if value not in usual]
    return f" ({', '.join(shown)})" if shown else ""


def _tensors(tensors: tuple[TensorInfo, ...]) -> str:
    return ", ".join(str(info) if info.shape != () else info.dtype for info in tensors) or "nothing"


def _at(source: str | None) -> str:
    return f"  <- {source}" if source else ""


def _memory(topology: Topology) -> tuple[int, int]:
    """Bytes of all live buffers whose size is known, and the number of those whose size is not."""
    live = set(topology.live_queues())
    sizes = [queue.buffer_bytes for queue in topology.queues if queue.name in live]
    return sum(size for size in sizes if size is not None), sizes.count(None)


def human_bytes(size: int) -> str:
    """A size as a person reads it, in powers of 1000: ``"12.3 MB"``."""
    if size < 1000:
        return f"{size} B"
    value = size / 1000
    units = ["kB", "MB", "GB", "TB"]
    while value >= 999.5 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.3g} {units[0]}"


# -- Graphviz ---------------------------------------------------------------------------------------

_SHAPES = {
    Producer: ("folder", "#d9ead3"),
    Queue: ("cylinder", "#cfe2f3"),
    Reader: ("note", "#fff2cc"),
    Dequeue: ("cds", "#eeeeee"),
    Transform: ("box", "#fce5cd"),
    Unknown: ("octagon", "#f4cccc"),
}


def _dot(topology: Topology) -> Iterator[str]:
    produced = {producer.name for producer in topology.producers}
    nodes = [node for node in topology.nodes if not (isinstance(node, Transform) and node.name in produced)]
    ids = {id(node): f"n{index}" for index, node in enumerate(nodes)}
    live = set(topology.live_queues())
    yield "digraph topology {"
    yield '  rankdir=LR; node [style=filled, fontname="Helvetica", fontsize=10]; edge [fontsize=9];'
    for node in nodes:
        shape, colour = _SHAPES[type(node)]
        style = ', style="filled,dashed"' if isinstance(node, Queue) and node.name not in live else ""
        label = _escape("\n".join(_label(node)))
        yield f'  {ids[id(node)]} [shape={shape}, fillcolor="{colour}"{style}, label="{label}"];'
    for node in nodes:
        for source in topology.upstream(node):
            threads = ""
            if isinstance(node, Queue):
                copies = sum(e.copies for e in node.enqueues if source.name in (e.name, e.transform))
                threads = f' [label="{copies} threads"]' if copies > 1 else ""
            yield f"  {ids[id(source)]} -> {ids[id(node)]}{threads};"
    yield "}"


def _label(node: Node) -> Iterator[str]:
    if isinstance(node, Transform):
        yield "fetches" if node.target is None else "stage"
        yield from (spec.op_type for spec in node.parses)
        yield from (decode.op_type for decode in node.decodes)
        if node.random:
            yield f"{len(node.random)} random ops"
        if node.python:
            yield f"{len(node.python)} py_func"
        yield f"{len(node.ops)} ops"
    elif isinstance(node, Queue):
        yield f"{node.kind} queue"
        yield node.name
        yield _queue_numbers(node)
    elif isinstance(node, Producer):
        yield from _producer_title(node).removeprefix("source: ").split("; ")
    else:
        yield _title(node)
    if node.source:
        yield node.source


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


# -- JSON -------------------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    """Dataclasses as dicts, public fields only; text that is no UTF-8 with its bytes escaped."""
    if is_dataclass(value) and not isinstance(value, type):
        plain = {f.name: _plain(getattr(value, f.name)) for f in fields(value) if not f.name.startswith("_")}
        if isinstance(value, Queue):
            plain["buffer_bytes"] = value.buffer_bytes
            plain["threads"] = value.threads
        return plain
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return _no_surrogates(value) if isinstance(value, str) else value


def _no_surrogates(text: str) -> str:
    """Bytes that were no UTF-8 (a file name may hold any) as escapes, so that the text can be written."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _printable(text: str) -> str:
    """Text on one line that no terminal takes for a command."""
    clean = _no_surrogates(text)
    return clean if clean.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in clean)
