"""The parts of a topology: producers, readers, stages, queues and dequeues, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

FETCHES = "fetches"
"""The name of the stage that computes what the user fetches."""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor, or one component of a queue.

    Attributes:
        name: The tensor's name (``"ParseSingleExample:0"``), or ``""`` for a component of a queue.
        dtype: The name of the dtype (``"float32"``, ``"string"``).
        shape: The static shape, None for an unknown dimension; None as a whole when the rank is unknown.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...] | None

    @property
    def nbytes(self) -> int | None:
        """Bytes of one value; None when the shape is not fully known or the dtype has no fixed size."""
        size = _ITEM_SIZES.get(self.dtype)
        if size is None or self.shape is None:
            return None
        known = [dimension for dimension in self.shape if dimension is not None]
        return size * prod(known) if len(known) == len(self.shape) else None

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.dtype} of unknown shape"
        dimensions = ", ".join("?" if dimension is None else str(dimension) for dimension in self.shape)
        return f"{self.dtype}[{dimensions}]"


_ITEM_SIZES = {
    **dict.fromkeys(("bool", "int8", "uint8", "qint8", "quint8"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16", "qint16", "quint16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32", "qint32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
    "complex128": 16,
}


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature of a parse spec, or one column of a CSV line.

    Attributes:
        key: The feature's key; for CSV the number of the column.
        kind: ``"fixed"`` (FixedLenFeature), ``"fixed_sequence"`` (FixedLenSequenceFeature), ``"var"``
            (VarLenFeature), ``"ragged"`` (RaggedFeature) or ``"column"`` (CSV).
        dtype: The dtype asked for.
        shape: The shape asked for; None for ``"var"`` and ``"ragged"``.
        required: True when a record without the feature is an error.
        default: The default value, flattened; None when there is none or when it is no constant of the graph.
        where: ``"example"``, ``"context"`` or ``"feature_list"`` (of a SequenceExample), or ``"line"`` (CSV).
    """

    key: str
    kind: str
    dtype: str
    shape: tuple[int | None, ...] | None
    required: bool
    default: tuple[object, ...] | None = None
    where: str = "example"


@dataclass(frozen=True, slots=True)
class ParseSpec:
    """What one parse op asks of a record.

    Attributes:
        op: The op's name.
        op_type: Its type, such as ``"ParseExampleV2"`` or ``"DecodeCSV"``.
        kind: ``"example"``, ``"sequence_example"`` or ``"csv"``.
        features: One for each feature or column, in the op's order (ragged, sparse, dense).
        serialized: The name of the tensor that is parsed.
        batched: True when a vector of records is parsed at once, None when the rank is not known.
        options: Further settings (CSV: field_delim, use_quote_delim, na_value, select_cols), by name.
        source: The user's line that built it.
    """

    op: str
    op_type: str
    kind: str
    features: tuple[Feature, ...]
    serialized: str
    batched: bool | None
    options: tuple[tuple[str, object], ...] = ()
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Decode:
    """An op that turns stored bytes into numbers: decode_raw, decode_jpeg, decode_png ...

    Attributes:
        op: The op's name.
        op_type: Its type, such as ``"DecodeRaw"``.
        options: Its attributes that are plain values (out_type, channels, ratio, dct_method ...), by name.
        source: The user's line that built it.
    """

    op: str
    op_type: str
    options: tuple[tuple[str, object], ...]
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Enqueue:
    """One distinct enqueue op of a queue: one stage that fills it.

    Attributes:
        name: The op that enqueues (for an enqueue inside a tf.cond function: the op that calls the function).
        queue: The queue's name.
        many: True for enqueue_many (each slice along the first dimension becomes one element).
        components: What is enqueued, one for each component of the queue; empty inside a tf.cond function.
        runs: The op that a runner thread runs, ``name`` itself in the simple case.
        copies: How often the op stands in the queue runners, that is its number of threads; 0 when no
            runner knows it (somebody else must run it).
        conditional: True when a tf.cond decides whether anything is enqueued.
        runner: The index in ``Topology.runners`` of the runner that runs it, or None.
        transform: The name of the stage that computes the components.
        source: The user's line that built it.
    """

    name: str
    queue: str
    many: bool
    components: tuple[TensorInfo, ...]
    runs: str
    copies: int
    conditional: bool
    runner: int | None
    transform: str
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Runner:
    """A QueueRunner of the graph's collections.

    Attributes:
        name: The runner's name.
        queue: The name of its queue op, or None when it names no queue of the graph.
        enqueue_ops: The names of its ops, one for each thread, repeats included.
        close_op: The op it runs when its input has ended, or None.
        closes: The queues that ``close_op`` closes.
        cancel_op: The op it runs on a stop, or None.
        closed_exceptions: The names of the exception types that mean "the input has ended".
        collection: The key of the graph collection that holds it.
    """

    name: str
    queue: str | None
    enqueue_ops: tuple[str, ...]
    close_op: str | None
    closes: tuple[str, ...]
    cancel_op: str | None
    closed_exceptions: tuple[str, ...]
    collection: str


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue.

    Attributes:
        name: The op's name.
        kind: ``"FIFO"``, ``"RandomShuffle"``, ``"PaddingFIFO"`` or ``"Priority"``.
        capacity: The most elements it holds; None when it is not bounded.
        min_after_dequeue: What a dequeue must leave in a RandomShuffle queue that is open; 0 for other kinds.
        seed: The graph-level seed of a RandomShuffle queue; with ``seed2`` 0 as well it is not seeded.
        seed2: The op-level seed.
        components: dtype and shape of each component (shape None where the queue leaves it open).
        enqueues: Its distinct enqueue ops, in the order of the runners, then of the graph.
        dequeues: The names of its dequeue ops.
        reads: The names of the ``ReaderRead*`` ops that take their work from it.
        close_ops: Its close ops.
        runners: The indices in ``Topology.runners`` of its runners.
        shared_name: The name under which other graphs or ops reach the same queue, or ``""``.
        source: The user's line that built it.
    """

    name: str
    op_type: str
    kind: str
    capacity: int | None
    min_after_dequeue: int
    seed: int
    seed2: int
    components: tuple[TensorInfo, ...]
    enqueues: tuple[Enqueue, ...] = ()
    dequeues: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    close_ops: tuple[str, ...] = ()
    runners: tuple[int, ...] = ()
    shared_name: str = ""
    source: str | None = None

    @property
    def ops(self) -> tuple[str, ...]:
        """The names of the ops that make the node."""
        return (self.name, *self.close_ops)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtype of each component."""
        return tuple(component.dtype for component in self.components)

    @property
    def shapes(self) -> tuple[tuple[int | None, ...] | None, ...]:
        """The shape of each component."""
        return tuple(component.shape for component in self.components)

    @property
    def threads(self) -> int:
        """The number of runner threads that fill the queue."""
        return sum(enqueue.copies for enqueue in self.enqueues)

    @property
    def element_bytes(self) -> int | None:
        """Bytes of one element; None when a shape is open or a component is a string."""
        sizes = [component.nbytes for component in self.components]
        known = [size for size in sizes if size is not None]
        return sum(known) if known and len(known) == len(sizes) else None

    @property
    def buffer_bytes(self) -> int | None:
        """Bytes of the full queue; None when an element's size, or the capacity, is not known."""
        if self.element_bytes is None or self.capacity is None:
            return None
        return self.element_bytes * self.capacity


@dataclass(frozen=True, slots=True)
class Dequeue:
    """A dequeue op.

    Attributes:
        name: The op's name.
        queue: The queue's name; None when it cannot be told.
        kind: ``"dequeue"``, ``"dequeue_many"`` or ``"dequeue_up_to"``.
        batch_size: How many elements it takes; None when that is decided while running.
        batch_size_tensor: The name of the tensor that says how many; None for ``"dequeue"``.
        components: Its outputs.
        candidates: All the queues it may read from, more than one for ``QueueBase.from_list``.
        consumers: The names of the stages that use it.
        conditional: True when a tf.cond decides whether, or from where, anything is taken; ``name`` is then
            the op that calls the function.
        source: The user's line that built it.
    """

    name: str
    queue: str | None
    kind: str
    batch_size: int | None
    batch_size_tensor: str | None
    components: tuple[TensorInfo, ...]
    candidates: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()
    conditional: bool = False
    source: str | None = None

    @property
    def ops(self) -> tuple[str, ...]:
        """The names of the ops that make the node."""
        return (self.name,)


@dataclass(frozen=True, slots=True)
class Read:
    """One ``read`` or ``read_up_to`` of a reader.

    Attributes:
        name: The op's name.
        queue: The queue that its work (file names) comes from, or None when it cannot be told.
        up_to: The most records of one ``read_up_to``; None for ``read``, and when decided while running.
        many: True for ``read_up_to``.
        consumers: The names of the stages that use it.
        source: The user's line that built it.
    """

    name: str
    queue: str | None
    up_to: int | None
    many: bool
    consumers: tuple[str, ...] = ()
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader of records.

    Attributes:
        name: The op's name.
        kind: ``"TFRecord"``, ``"TextLine"``, ``"FixedLengthRecord"``, ``"WholeFile"``, ``"Identity"`` or
            ``"LMDB"``.
        reads: Its read ops.
        compression: ``"GZIP"``, ``"ZLIB"`` or ``""``.
        header_bytes, record_bytes, footer_bytes, hop_bytes: Of a FixedLengthRecord reader, else None.
        skip_header_lines: Of a TextLine reader, else None.
        source: The user's line that built it.
    """

    name: str
    op_type: str
    kind: str
    reads: tuple[Read, ...]
    compression: str = ""
    header_bytes: int | None = None
    record_bytes: int | None = None
    footer_bytes: int | None = None
    hop_bytes: int | None = None
    skip_header_lines: int | None = None
    shared_name: str = ""
    source: str | None = None

    @property
    def ops(self) -> tuple[str, ...]:
        """The names of the ops that make the node."""
        return (self.name, *(read.name for read in self.reads))


@dataclass(frozen=True, slots=True)
class Producer:
    """Where elements come from: an enqueue whose stage reads no queue and no reader.

    Attributes:
        name: The enqueue op's name.
        queue: The queue it fills.
        kind: ``"files"`` (strings), ``"range"`` (numbers in order), ``"array"`` (a constant), ``"variable"``,
            ``"python"`` (py_func), ``"fed"`` (placeholders), ``"random"`` or ``"computed"``.
        elements: The constant elements of ``"files"`` and ``"range"`` (strings or numbers); None when they
            are not constants of the graph, or are more than 100,000.
        count: The number of elements in one epoch, when known.
        num_epochs: The limit on epochs; None when there is none.
        epoch_counter: The name of the variable that counts epochs, or None.
        shuffle: True when each epoch is shuffled.
        seed, seed2: The seeds of that shuffle, both 0 when it has none.
        pattern: The constant file pattern(s) the elements come from (match_filenames_once), newline between.
        variable: The name of the variable that holds the elements, or None.
        sliced: The tensors whose rows are taken by the produced index (slice_input_producer).
        ops: The ops of its stage.
        source: The user's line that built it.
    """

    name: str
    queue: str
    kind: str
    elements: tuple[object, ...] | None
    count: int | None
    num_epochs: int | None
    epoch_counter: str | None
    shuffle: bool
    seed: int
    seed2: int
    pattern: str | None
    variable: str | None
    sliced: tuple[TensorInfo, ...]
    ops: tuple[str, ...]
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Transform:
    """A stage: the ops between the cuts that one enqueue (or the fetches) needs.

    Attributes:
        name: The enqueue op's name, or ``"fetches"``.
        target: The queue that the stage fills, or None for the fetches.
        inputs: The names of the read and dequeue ops that the stage takes its data from, in graph order.
        outputs: The tensors that leave the stage.
        ops: All its ops in graph order, without the inputs.
        op_types: The type of each of them.
        stateful: Those that keep or change a state (random ops, py_func, variables ...).
        random: The random ops.
        python: The py_func ops.
        placeholders: The placeholders that somebody must feed.
        variables: The variables it reads or writes.
        tables: The lookup tables it uses.
        parses: Its parse specs.
        decodes: Its decode ops.
        control_flow: Its tf.cond and tf.while_loop ops.
        source: The user's line that built its end.
    """

    name: str
    target: str | None
    inputs: tuple[str, ...]
    outputs: tuple[TensorInfo, ...]
    ops: tuple[str, ...]
    op_types: tuple[str, ...] = ()
    stateful: tuple[str, ...] = ()
    random: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    placeholders: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    parses: tuple[ParseSpec, ...] = ()
    decodes: tuple[Decode, ...] = ()
    control_flow: tuple[str, ...] = ()
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """A part of the graph that the model has no word for.

    Attributes:
        name: The op's name.
        op_type: Its type.
        reason: Why it could not be understood.
        source: The user's line that built it.
    """

    name: str
    op_type: str
    reason: str
    source: str | None = None

    @property
    def ops(self) -> tuple[str, ...]:
        """The names of the ops that make the node."""
        return (self.name,)
