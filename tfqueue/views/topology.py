"""A queue-runner pipeline as a picture: from its sources at the top to what is fetched at the bottom."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from tfqueue.errors import InvalidArgument
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

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _GAP, _LEVEL = 3.3, 0.35, 0.42
_PADDING = 0.09
# Light grounds of Okabe and Ito's colours: black text on them has a contrast above 10.
_GROUNDS: dict[type[Any], tuple[str, str]] = {
    Producer: ("#e3f1ec", "#009e73"),
    Queue: ("#e2eef6", style.REFERENCE),
    Reader: ("#fbeedb", "#b27700"),
    Transform: ("#f1f2f4", style.MUTED),
    Dequeue: ("#f7e8f0", "#a85584"),
}
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class _Box:
    """One node as it is drawn.

    Attributes:
        node: The node.
        title: What it is.
        lines: What else is known of it.
        level: Its row, 0 at the top.
        column: Its place in the row.
    """

    node: Node
    title: str
    lines: tuple[str, ...]
    level: int
    column: int

    @property
    def height(self) -> float:
        body = len(self.lines) * style.SMALL * style.POINT * style.LINE
        return style.BODY * style.POINT * style.LINE + body + 2 * _PADDING


def plot_topology(topology: Any, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw the producers, queues, readers, stages and dequeues of a pipeline, and how data flows between them.

    Args:
        topology: A `tfqueue.topology.Topology`, or what `tfqueue.explain` returned.
        path: PNG file to write as well; its folder must exist.

    Returns:
        A matplotlib Figure with one Axes.

    Raises:
        InvalidArgument: There is nothing to draw, or ``path`` cannot be written.
    """
    target = style.check_path(path)
    model = getattr(topology, "topology", topology)
    if not isinstance(model, Topology):
        raise InvalidArgument(
            f"topology is a {type(topology).__name__}; expected a Topology, or what tfqueue.explain returned"
        )
    if not model.nodes:
        raise InvalidArgument("the topology is empty: its graph has no queue, no reader and no fetches")
    figure = _draw(model)
    return style.save(figure, target, str(figure.get_label()))


def _draw(topology: Topology) -> Figure:
    boxes = _place(topology)
    levels: dict[int, list[_Box]] = {}
    for box in boxes:
        levels.setdefault(box.level, []).append(box)
    heights = {level: max(box.height for box in row) for level, row in levels.items()}
    widest = max(len(row) for row in levels.values())
    body = max(widest * _WIDTH + (widest - 1) * _GAP, 5.2)
    below = sum(heights.values()) + _LEVEL * (len(levels) - 1)
    figure, upper = style.header(_heading(topology), _facts(topology), list(topology.warnings), body, below + 0.02)
    total = float(figure.get_figheight())
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_label("pipeline")
    width = body + 2 * style.MARGIN
    axes.set_xlim(0, width)
    axes.set_ylim(total, 0)
    places: dict[int, tuple[float, float, float]] = {}
    top = upper
    for level in sorted(levels):
        row = levels[level]
        start = style.MARGIN + (body - len(row) * _WIDTH - (len(row) - 1) * _GAP) / 2
        for box in row:
            left = start + box.column * (_WIDTH + _GAP)
            _draw_box(figure, axes, box, left, top)
            places[id(box.node)] = (left + _WIDTH / 2, top, top + box.height)
        top += heights[level] + _LEVEL
    for box in boxes:
        for source in topology.upstream(box.node):
            _draw_arrow(figure, axes, topology, source, box.node, places)
    return figure


def _place(topology: Topology) -> list[_Box]:
    """Every node with its row: one under the lowest of those that it takes its data from."""
    levels: dict[int, int] = {}

    def level(node: Node, above: frozenset[int]) -> int:
        # A graph of queues may hold a circle (a queue that is filled from itself); it is cut where it closes.
        if id(node) not in levels:
            sources = [s for s in topology.upstream(node) if id(s) not in above]
            levels[id(node)] = 1 + max((level(s, above | {id(node)}) for s in sources), default=-1)
        return levels[id(node)]

    columns: Counter[int] = Counter()
    boxes = []
    # The ops that make a producer's elements are a stage of their own in the model; here they are the producer.
    produced = {producer.name for producer in topology.producers}
    for node in topology.nodes:
        if isinstance(node, Transform) and node.name in produced:
            continue
        row = level(node, frozenset())
        title, lines = _words(topology, node)
        fitted = tuple(style.fit(style.literal(words), style.SMALL, _WIDTH - 2 * _PADDING) for words in lines)
        boxes.append(_Box(node, title, fitted, row, columns[row]))
        columns[row] += 1
    return boxes


def _draw_box(figure: Figure, axes: Axes, box: _Box, left: float, top: float) -> None:
    ground, edge = _GROUNDS.get(type(box.node), ("#fbe4e2", style.ALARM))
    shape = FancyBboxPatch(
        (left, top),
        _WIDTH,
        box.height,
        boxstyle="round,pad=0,rounding_size=0.06",
        facecolor=ground,
        edgecolor=edge,
        linewidth=1.0,
    )
    shape.set_label(box.node.name)
    axes.add_patch(shape)
    title_line = style.BODY * style.POINT * style.LINE
    room = _WIDTH - 2 * _PADDING
    style.write(figure, left + _PADDING, top + _PADDING, box.title, weight="bold", width=room)
    for number, words in enumerate(box.lines):
        style.write(
            figure,
            left + _PADDING,
            top + _PADDING + title_line + number * style.SMALL * style.POINT * style.LINE,
            words,
            size=style.SMALL,
            colour=style.MUTED,
        )


def _draw_arrow(
    figure: Figure,
    axes: Axes,
    topology: Topology,
    source: Node,
    node: Node,
    places: dict[int, tuple[float, float, float]],
) -> None:
    start, end = places[id(source)], places[id(node)]
    arrow = FancyArrowPatch(
        (start[0], start[2]),
        (end[0], end[1]),
        arrowstyle="-|>",
        mutation_scale=9,
        color=style.MUTED,
        linewidth=1.1,
        shrinkA=1,
        shrinkB=1,
        connectionstyle="arc3,rad=0",
    )
    arrow.set_label(f"{source.name} -> {node.name}")
    axes.add_patch(arrow)
    words = _edge_words(topology, source, node)
    if words and abs(start[0] - end[0]) < 0.01:
        style.write(
            figure, start[0] + 0.1, (start[2] + end[1]) / 2 - 0.065, words, size=style.SMALL, colour=style.MUTED
        )


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
