"""The reference once more, with one thing changed in its graph: an experiment to tell what a candidate did.

A queue-runner graph can be written out, changed in one op, and run again: without shuffling, to learn in
which order the source delivers its records; with another resize or JPEG decoding, to see whether that gives
what the candidate has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tfqueue.equivalence.again import run_again
from tfqueue.equivalence.observe import Observation
from tfqueue.equivalence.streams import Side, side_of
from tfqueue.errors import TFQueueError

Node = Any
Edit = Callable[["Nodes"], bool]

_RESIZES = ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic")
_KERNELS = (*_RESIZES, "ResizeArea")
_QUEUE_SEEDS = ("min_after_dequeue", "seed", "seed2")


class Blueprint:
    """The graph of a pipeline side, written out so that it can be changed and built again.

    Args:
        side: A side that is a QueuePipeline or a build function.

    Raises:
        TFQueueError: The pipeline cannot be opened.
    """

    def __init__(self, side: Side) -> None:
        import tensorflow as tf

        self._tf = tf
        tf1 = tf.compat.v1
        with side.open() as run:
            graph, fetches = run.pipeline.graph, run.pipeline.fetches
            runners = graph.get_collection(tf1.GraphKeys.QUEUE_RUNNERS)
            with graph.as_default():  # a queue knows the name of its op only inside its graph
                self._runners = [runner.to_proto() for runner in runners]
                self._meta = tf1.train.export_meta_graph(graph=graph)
        self._meta.collection_def.pop(tf1.GraphKeys.QUEUE_RUNNERS, None)
        for node in self.nodes():
            node.attr.pop("_output_shapes", None)  # shapes that an edit may change
        self._names = tf.nest.map_structure(lambda t: t.name, fetches, expand_composites=False)

    def nodes(self) -> Nodes:
        """The nodes of the graph and of its functions."""
        return _nodes(self._meta.graph_def)

    def edited(self, edit: Edit) -> Callable[[], Any] | None:
        """A build function of the graph after ``edit``, or None if ``edit`` found nothing to change."""
        meta = type(self._meta)()
        meta.CopyFrom(self._meta)
        if not edit(_nodes(meta.graph_def)):
            return None
        tf1 = self._tf.compat.v1

        def build() -> Any:
            tf1.train.import_meta_graph(meta)
            graph = tf1.get_default_graph()
            for proto in self._runners:
                runner = tf1.train.QueueRunner(
                    _Queue(graph.as_graph_element(proto.queue_name)),
                    [graph.as_graph_element(name) for name in dict.fromkeys(proto.enqueue_op_name)],
                    close_op=graph.as_graph_element(proto.close_op_name),
                    cancel_op=graph.as_graph_element(proto.cancel_op_name),
                    queue_closed_exception_types=(self._tf.errors.OutOfRangeError, self._tf.errors.CancelledError),
                )
                tf1.train.add_queue_runner(runner)
            return self._tf.nest.map_structure(graph.get_tensor_by_name, self._names)

        return build


class _Queue:
    """What a QueueRunner needs of its queue, when only the op is there."""

    def __init__(self, op: Any) -> None:
        self.name = op.name
        self.queue_ref = op.outputs[0]


class Nodes(list[Node]):
    """The nodes of a graph and of its functions.

    Args:
        graph_def: The GraphDef; new nodes are put into it.
    """

    def __init__(self, graph_def: Any) -> None:
        super().__init__(graph_def.node)
        self.graph_def = graph_def
        self.outside = len(self)  # so many stand in the graph itself
        for function in graph_def.library.function:
            self.extend(function.node_def)

    def named(self, name: str) -> Node | None:
        """The node of the graph that makes a tensor."""
        name = name.removeprefix("^").split(":")[0]
        return next((node for node in self[: self.outside] if node.name == name), None)


def _nodes(graph_def: Any) -> Nodes:
    return Nodes(graph_def)


def blueprint_of(first: Observation) -> Blueprint | None:
    """The blueprint of the side of a run; None if it is no pipeline, or cannot be written out."""
    if first.side.kind not in ("QueuePipeline", "build function"):
        return None
    try:
        return Blueprint(first.side)
    except (TFQueueError, AttributeError, RuntimeError, TypeError, ValueError):
        # Graphs that cannot be exported, such as those with composite fetches, are compared without experiments.
        return None


def run_edited(first: Observation, blueprint: Blueprint, edit: Edit, limit: int | None = None) -> Observation | None:
    """Run an edited reference; None if there is nothing to edit or it does not run."""
    build = blueprint.edited(edit)
    if build is None:
        return None
    try:
        side = side_of(build, "reference")
    except TFQueueError:
        return None
    return run_again(first, side=side, limit=limit)


def unshuffled(nodes: Nodes) -> bool:
    """Queues that shuffle become queues that do not; producers keep the order of their input."""
    for node in nodes:
        if node.op == "RandomShuffleQueueV2":
            node.op = "FIFOQueueV2"
            for name in _QUEUE_SEEDS:
                node.attr.pop(name, None)
        elif node.op == "RandomShuffle":
            node.op = "Identity"
            for name in [key for key in node.attr if key != "T"]:
                node.attr.pop(name)
    return True


def reseeding(seed: int) -> Edit:
    """Another seed for everything that shuffles."""

    def edit(nodes: Nodes) -> bool:
        found = [node for node in nodes if node.op in ("RandomShuffleQueueV2", "RandomShuffle")]
        for node in found:
            node.attr["seed"].i, node.attr["seed2"].i = 7919 * seed, 104729 * seed
        return bool(found)

    return edit


def decoding_edits(nodes: Nodes) -> Iterator[tuple[str, str, Edit]]:
    """(cause, what was changed, edit) for every other way to resize or decode that the graph's ops allow."""
    kinds = {node.op for node in nodes}
    if kinds & set(_KERNELS):
        yield "resize-half-pixel", "half_pixel_centers changed", _toggle_half_pixel
        yield "resize-align-corners", "align_corners changed", _toggle_align_corners
        yield "resize-kernel", "the kernel Area", _kernel("ResizeArea", None)
        for kind in _RESIZES:
            words = kind.removeprefix("Resize")
            yield "resize-kernel", f"the kernel {words}", _kernel(kind, None)
            yield "resize-kernel", f"the kernel {words} with half-pixel centres", _kernel(kind, True)
        yield "resize-antialias", "antialias=True and half-pixel centres", resized_by("bilinear", True)
        for method in _METHODS:
            yield "resize-kernel", f"tf.image.resize(method={method!r})", resized_by(method, False)
        for method in ("bicubic", *_METHODS[1:]):
            yield "resize-kernel", f"tf.image.resize(method={method!r}, antialias=True)", resized_by(method, True)
    if kinds & {"DecodeJpeg", "DecodeAndCropJpeg"}:
        yield "jpeg-dct", "dct_method INTEGER_ACCURATE", _jpeg("dct_method", "INTEGER_ACCURATE")
        yield "jpeg-dct", "dct_method INTEGER_FAST", _jpeg("dct_method", "INTEGER_FAST")
        yield "jpeg-upscaling", "fancy_upscaling changed", _jpeg("fancy_upscaling", None)
    for node, reshape in _planes(nodes):
        yield (
            "channels-first",
            "the pixels reshaped to [height, width, channels] at once",
            _reshaped(node, reshape, False),
        )
        yield "transposed", "height and width exchanged after the reshape", _reshaped(node, reshape, True)


def _planes(nodes: Nodes) -> list[tuple[str, str]]:
    """(transpose, reshape) of images that are read as planes of one channel: the names of the ops."""
    found = []
    for node in nodes[: nodes.outside]:
        if node.op == "Transpose" and _constant(nodes, node.input[1]) == [1, 2, 0]:
            reshape = nodes.named(node.input[0])
            shape = None if reshape is None or reshape.op != "Reshape" else _constant(nodes, reshape.input[1])
            if reshape is not None and shape is not None and len(shape) == 3:
                found.append((node.name, reshape.name))
    return found


def _constant(nodes: Nodes, name: str) -> list[int] | None:
    """The integers of a constant; None if the tensor is none."""
    node = nodes.named(name)
    if node is None or node.op != "Const":
        return None
    import tensorflow as tf

    return [int(value) for value in tf.make_ndarray(node.attr["value"].tensor).ravel()]


def _reshaped(transpose: str, reshape: str, exchanged: bool) -> Edit:
    def edit(nodes: Nodes) -> bool:
        turn, shape = nodes.named(transpose), nodes.named(reshape)
        if turn is None or shape is None:
            return False
        depth, height, width = _constant(nodes, shape.input[1]) or (0, 0, 0)
        if exchanged:
            _set_constant(nodes, turn, [2, 1, 0])
        else:
            _set_constant(nodes, turn, [0, 1, 2])
            _set_constant(nodes, shape, [height, width, depth])
        return bool(depth)

    return edit


def _set_constant(nodes: Nodes, node: Node, values: list[int]) -> None:
    """Give an op another constant as its second input, as the old one may have more consumers."""
    import tensorflow as tf

    old: Any = nodes.named(node.input[1])
    new = nodes.graph_def.node.add()
    new.CopyFrom(old)
    new.name = f"{node.name}/other"
    new.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(values, tf.as_dtype(old.attr["dtype"].type)))
    node.input[1] = new.name


_METHODS = ("nearest", "lanczos3", "lanczos5", "gaussian", "mitchellcubic")


def resized_by(method: str, antialias: bool) -> Edit:
    """`tf.image.resize` in the place of every op that resizes: a piece of another graph is put in."""

    def edit(nodes: Nodes) -> bool:
        import tensorflow as tf

        found = [node for node in nodes[: nodes.outside] if node.op in _KERNELS]
        for node in found:
            with tf.Graph().as_default() as piece:
                image = tf.compat.v1.placeholder(tf.as_dtype(node.attr["T"].type), [None, None, None, None])
                size = tf.compat.v1.placeholder(tf.int32, [2])
                made = tf.image.resize(image, size, method=method, antialias=antialias)
                # A kernel that keeps the dtype is followed by what expects it.
                keeps = node.op == "ResizeNearestNeighbor" and node.attr["T"].type != tf.float32.as_datatype_enum
                made = tf.cast(made, image.dtype if keeps else tf.float32)
            _put_in(nodes, node, piece.as_graph_def(), [image.op.name, size.op.name], made)
        return bool(found)

    return edit


def _put_in(nodes: Nodes, node: Node, piece: Any, inputs: list[str], output: Any) -> None:
    """Replace an op by a piece of another graph.

    Args:
        nodes: The graph.
        node: The op; it becomes the identity of the piece's output.
        piece: The GraphDef of the piece.
        inputs: The names of the piece's placeholders, which stand for the op's inputs.
        output: The tensor of the piece that takes the place of the op's, the first output of its op.
    """
    given = dict(zip(inputs, node.input, strict=False))
    prefix = f"{node.name}/put_in/"
    for new in piece.node:
        if new.name in given:
            continue
        copy = nodes.graph_def.node.add()
        copy.CopyFrom(new)
        copy.name = prefix + new.name
        copy.input[:] = [_renamed(name, prefix, given) for name in new.input]
    kept = [name for name in node.input if name.startswith("^")]
    node.op = "Identity"
    node.input[:] = [prefix + output.op.name, *kept]
    for key in list(node.attr):
        node.attr.pop(key)
    node.attr["T"].type = output.dtype.as_datatype_enum


def _renamed(name: str, prefix: str, given: dict[str, str]) -> str:
    control, plain = ("^", name[1:]) if name.startswith("^") else ("", name)
    op, colon, output = plain.partition(":")
    if op in given:
        return control + given[op]
    return f"{control}{prefix}{op}{colon}{output}"


def _toggle_half_pixel(nodes: Nodes) -> bool:
    changed = False
    for node in nodes:
        if node.op in _RESIZES:
            node.attr["half_pixel_centers"].b = not node.attr["half_pixel_centers"].b
            if node.attr["half_pixel_centers"].b:
                node.attr["align_corners"].b = False  # the kernels refuse both together
            changed = True
    return changed


def _toggle_align_corners(nodes: Nodes) -> bool:
    changed = False
    for node in nodes:
        if node.op in _RESIZES:
            node.attr["align_corners"].b = not node.attr["align_corners"].b
            if node.attr["align_corners"].b:
                node.attr["half_pixel_centers"].b = False
            changed = True
    return changed


def _kernel(kind: str, half_pixel: bool | None) -> Edit:
    def edit(nodes: Nodes) -> bool:
        changed = False
        for node in nodes:
            # Nearest keeps the dtype of its input, the others give float32; only float32 can stand for both.
            if node.op in _KERNELS and (node.op != "ResizeNearestNeighbor" or node.attr["T"].type == 1):
                if kind == "ResizeNearestNeighbor" and node.attr["T"].type != 1:
                    continue
                changed = changed or node.op != kind
                node.op = kind
                if kind == "ResizeArea":
                    node.attr.pop("half_pixel_centers", None)
                if half_pixel is not None:
                    node.attr["half_pixel_centers"].b = half_pixel
                    if half_pixel:
                        node.attr["align_corners"].b = False
        return changed

    return edit


def _jpeg(name: str, value: str | None) -> Edit:
    def edit(nodes: Nodes) -> bool:
        changed = False
        for node in nodes:
            if node.op in ("DecodeJpeg", "DecodeAndCropJpeg"):
                if value is None:
                    node.attr[name].b = not node.attr[name].b
                    changed = True
                elif node.attr[name].s != value.encode():
                    node.attr[name].s = value.encode()
                    changed = True
        return changed

    return edit
