"""A queue-runner pipeline as a picture: from its sources at the top to what is fetched at the bottom."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tfqueue.errors import InvalidArgument
from tfqueue.topology.dataset import DatasetChain, chain_of, is_dataset
from tfqueue.topology.model import (
    Dequeue,
    Node,
    Producer,
    Queue,
    Reader,
    Topology,
    Transform,
)
from tfqueue.views import style
from tfqueue.views.dataset import draw_chain
from tfqueue.views.flow import BATCH, BUFFER, READER, SOURCE, STAGE, UNKNOWN, Step, draw_flow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS: dict[type[Any], tuple[str, str]] = {
    Producer: SOURCE,
    Queue: BUFFER,
    Reader: READER,
    Transform: STAGE,
    Dequeue: BATCH,
}
_SHOWN = 3


def plot_topology(topology: Any, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw the producers, queues, readers, stages and dequeues of a pipeline, and how data flows between them.

    Args:
        topology: A `tfqueue.topology.Topology`, or what `tfqueue.explain` returned; or a tf.data.Dataset, of which the
            chain of transformations is drawn.
        path: PNG file to write as well; its folder must exist.

    Returns:
        A matplotlib Figure with one Axes.

    Raises:
        InvalidArgument: There is nothing to draw, a Dataset does not tell how it was made, or ``path`` cannot be
            written.
    """
    target = style.check_path(path)
    if is_dataset(topology):
        topology = chain_of(topology)
    if isinstance(topology, DatasetChain):
        figure = draw_chain(topology)
        return style.save(figure, target, str(figure.get_label()))
    model = getattr(topology, "topology", topology)
    if not isinstance(model, Topology):
        raise InvalidArgument(
            f"topology is a {type(topology).__name__}; expected a Topology, what tfqueue.explain returned, or a Dataset"
        )
    if not model.nodes:
        raise InvalidArgument("the topology is empty: its graph has no queue, no reader and no fetches")
    figure = draw_flow(_steps(model), _heading(model), _facts(model), list(model.warnings))
    return style.save(figure, target, str(figure.get_label()))


def _steps(topology: Topology) -> list[Step]:
    steps = []
    # The ops that make a producer's elements are a stage of their own in the model; here they are the producer.
    produced = {producer.name for producer in topology.producers}
    for node in topology.nodes:
        if isinstance(node, Transform) and node.name in produced:
            continue
        title, lines = _words(topology, node)
        sources = [(id(source), _edge_words(topology, source, node)) for source in topology.upstream(node)]
        steps.append(Step(id(node), node.name, title, lines, _COLOURS.get(type(node), UNKNOWN), sources))
    return steps


def _edge_words(topology: Topology, source: Node, node: Node) -> str:
    """How data gets from one node to the next: the threads of an enqueue."""
    if not isinstance(node, Queue):
        return ""
    for enqueue in node.enqueues:
        if source.name in (enqueue.name, enqueue.transform):
            many = "enqueue_many" if enqueue.many else "enqueue"
            return f"{many}, {style.plural(enqueue.copies, 'thread') if enqueue.copies else 'no queue runner'}"
    return ""


def _heading(topology: Topology) -> str:
    threads = sum(queue.threads for queue in topology.queues)
    parts = [style.plural(len(topology.queues), "queue"), style.plural(len(topology.readers), "reader")]
    return f"Pipeline of {', '.join(parts)} and {style.plural(threads, 'thread')}"


def _facts(topology: Topology) -> str:
    fetched = ", ".join(str(info) for info in topology.fetches)
    return f"Fetches {fetched}." if fetched else "Traced without fetches."


def _words(topology: Topology, node: Node) -> tuple[str, list[str]]:
    """Title and lines of a node."""
    lines: list[str] = []
    if isinstance(node, Producer):
        title = {
            "files": "Files",
            "range": "Range",
            "array": "Constant array",
            "variable": "Variable",
            "python": "Python function",
            "fed": "Fed by Python code",
            "random": "Random numbers",
            "computed": "Computed",
        }[node.kind]
        if node.elements is not None and node.kind == "files":
            names = [os.path.basename(str(element)) for element in node.elements[:_SHOWN]]
            more = len(node.elements) - len(names)
            lines.append(", ".join(names) + (f" and {more} more" if more > 0 else ""))
        elif node.count is not None:
            lines.append(style.plural(node.count, "element"))
        epochs = "without end" if node.num_epochs is None else style.plural(node.num_epochs, "epoch")
        lines.append(epochs + (", shuffled each epoch" if node.shuffle else ", in order"))
    elif isinstance(node, Queue):
        title = f"{node.kind} queue"
        room = "unbounded" if node.capacity is None else f"capacity {node.capacity:,}"
        if node.kind == "RandomShuffle":
            room += f", min_after_dequeue {node.min_after_dequeue:,}"
        lines += [room, ", ".join(str(component) for component in node.components)]
    elif isinstance(node, Reader):
        title = f"{node.kind} reader" + (f", {node.compression}" if node.compression else "")
        lines += [f"read_up_to {read.up_to or '?'}" for read in node.reads if read.many][:1]
    elif isinstance(node, Dequeue):
        title = {"dequeue": "Dequeue one"}.get(node.kind, f"{node.kind} {node.batch_size or '?'}")
        if node.kind == "dequeue_many":
            lines.append("a last partial batch is dropped")
        elif node.kind == "dequeue_up_to":
            lines.append("a last partial batch is delivered")
    elif isinstance(node, Transform):
        title = "Fetches" if node.target is None else "Stage"
        lines += _stage_lines(node)
    else:
        title, lines = f"Unknown: {node.op_type}", [node.reason]
    if node.source:
        lines.append(node.source)
    elif not (isinstance(node, Transform) and node.target is None):
        lines.append(node.name)
    return title, lines


def _stage_lines(stage: Transform) -> list[str]:
    lines = []
    for spec in stage.parses[:_SHOWN]:
        columns = "CSV columns " if spec.kind == "csv" else ""
        lines.append(f"parse {columns}{', '.join(feature.key for feature in spec.features)}")
    if stage.decodes:
        lines.append(", ".join(decode.op_type for decode in stage.decodes[:_SHOWN]))
    for words, names in (("random", stage.random), ("py_func", stage.python), ("control flow", stage.control_flow)):
        if names:
            lines.append(f"{words}: {', '.join(names[:_SHOWN])}")
    if stage.outputs:
        lines.append("gives " + ", ".join(str(info) for info in stage.outputs))
    return lines
