"""Several enqueue ops that fill one queue: branches of a join, readers side by side, buckets.

In the canonical schedule they take turns, one run each, in the order of the queue runners.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfqueue.engines.conditional import enqueued
from tfqueue.engines.elements import Inputs, batched, words_of
from tfqueue.engines.file_records import keys_needed
from tfqueue.engines.passes import AppliedPass
from tfqueue.engines.plain import plain
from tfqueue.engines.reading import read_records, read_values
from tfqueue.engines.sparse import stored_sparse
from tfqueue.engines.stage_call import Call, Run
from tfqueue.errors import CannotLower
from tfqueue.topology.model import Dequeue, Queue, Read, Transform

if TYPE_CHECKING:
    from tfqueue.engines.lowering import Lowering


def in_turns(
    lowering: Lowering, queue: Queue, stages: Sequence[Transform], runs: Sequence[Run]
) -> tuple[Any, tuple[bool, ...]]:
    """The runs of the enqueue ops of a queue, which take turns."""
    if len(stages) == 1:
        inputs = lowering.inputs(stages[0])
        return lowering.run_with_flags(stages[0], inputs, runs[0], queue)
    bucketed = _bucketed(lowering, queue, stages, runs)
    if bucketed is not None:
        return bucketed
    streams = [frozenset(lowering.stream(cut) for cut in stage.inputs) for stage in stages]
    shared = bool(streams[0]) and len(set(streams)) == 1  # sources take nothing, and so share nothing
    if shared and all(len(stage.inputs) == len(streams[0]) for stage in stages):
        return _branches_of_same_streams(lowering, queue, stages, runs)
    if all(not (a & b) for i, a in enumerate(streams) for b in streams[i + 1 :]):
        return _independent_branches(lowering, queue, stages, runs)
    raise CannotLower(
        f"the {len(stages)} enqueue ops of {words_of(queue)} take from some queues together and from others "
        f"apart; which records meet depends on the timing of threads",
        op=queue.name,
        source=queue.source,
        advice="let every branch take from the same queue, or each from its own",
    )


def as_one_stage(lowering: Lowering, stages: Sequence[Transform], runs: Sequence[Run]) -> Inputs | None:
    """What the first of several stages that do the same would take, if it did the work of all; else None.

    Stages that share one stream take its elements in turns. Stages with a reader each, on one queue of file names,
    may read in any order, since their threads do; with the pass "interleave", their files are read side by side.
    """
    if any(len(stage.inputs) != 1 for stage in stages):
        return None
    calls = [
        lowering.function(stage, Inputs(lowering.names_of(stage.inputs[0]), None, frozenset()), run)
        for stage, run in zip(stages, runs, strict=True)
    ]
    if len({call.fingerprint for call in calls}) > 1:
        return None
    cuts = [lowering.cuts[stage.inputs[0]] for stage in stages]
    if len({lowering.take_of(cut) for cut in cuts}) > 1:
        return None
    if len({lowering.stream(cut.name) for cut in cuts}) == 1:
        return lowering.inputs(stages[0], consumers=stages)
    return _side_by_side(lowering, stages, cuts)


def _side_by_side(lowering: Lowering, stages: Sequence[Transform], cuts: Sequence[Dequeue | Read]) -> Inputs | None:
    """The records of several readers of one queue of file names, each reader one file at a time."""
    if "interleave" not in lowering.passes or lowering.shuffle != "native":
        return None
    reads = [cut for cut in cuts if isinstance(cut, Read)]
    readers = [lowering.reader_of[read.name] for read in reads]
    alike = {replace(reader, name="", reads=(), source=None) for reader in readers}
    if len(reads) < len(cuts) or len(alike) > 1 or len({reader.name for reader in readers}) < len(readers):
        return None
    names = reads[0].queue
    if names is None or any(read.queue != names for read in reads) or (reads[0].many and reads[0].up_to is None):
        return None
    for stage, reader in zip(stages, readers, strict=True):
        lowering.only_these(reader.name, [read.name for read in reader.reads], [stage])
        if len(reader.reads) > 1:
            return None
    queue = lowering.topology.queue(names)
    lowering.only_these(queue.name, [*queue.dequeues, *queue.reads], stages)
    with_keys = any(keys_needed(lowering, read) for read in reads)

    def open_file(name: Any) -> Any:
        alone = tf.data.Dataset.from_tensors(name)
        if with_keys:
            return read_records(alone, readers[0], up_to=reads[0].up_to, with_keys=True)
        return read_values(alone, readers[0], up_to=reads[0].up_to)

    records = lowering.single_elements(queue.name).interleave(
        plain(open_file), cycle_length=len(readers), block_length=1, num_parallel_calls=tf.data.AUTOTUNE
    )
    lowering.applied.append(AppliedPass("interleave", f"the files that {words_of(queue)} names"))
    return Inputs(lowering.names_of(reads[0].name)[0 if with_keys else 1 :], records, frozenset())


def _branches_of_same_streams(
    lowering: Lowering, queue: Queue, stages: Sequence[Transform], runs: Sequence[Run]
) -> tuple[Any, tuple[bool, ...]]:
    """Branch i of M gets every M-th of what its queues and readers give, beginning with the i-th."""
    first = lowering.inputs(stages[0], consumers=stages)
    order = [lowering.stream(cut) for cut in stages[0].inputs]
    cuts = [sorted(stage.inputs, key=lambda cut: order.index(lowering.stream(cut))) for stage in stages]
    takes = {tuple(lowering.take_of(lowering.cuts[cut]) for cut in own) for own in cuts}
    if len(takes) > 1:
        raise CannotLower(
            f"the branches that fill {words_of(queue)} take different numbers of elements from one queue",
            op=queue.name,
            source=queue.source,
            advice="dequeue the same number in every branch",
        )
    functions = []
    for stage, run, own in zip(stages, runs, cuts, strict=True):
        names = tuple(name for cut in own for name in lowering.names_of(cut))
        functions.append(lowering.function(stage, Inputs(names, None, _renamed(first, names)), run))
    count = len(stages)
    flags = lowering.passed_through(first, runs[0], queue)
    in_turn = first.dataset.enumerate().map(plain(lambda index, values: (index % count, index // count, values)))
    return _choose(lowering, in_turn, functions), flags


def _independent_branches(
    lowering: Lowering, queue: Queue, stages: Sequence[Transform], runs: Sequence[Run]
) -> tuple[Any, tuple[bool, ...]]:
    """Branches with a queue or reader each: their runs in turn, those that have ended left out."""
    together = as_one_stage(lowering, stages, runs)
    if together is not None:
        return lowering.run_with_flags(stages[0], together, runs[0], queue)
    datasets = []
    flags: tuple[bool, ...] = ()
    for stage, run in zip(stages, runs, strict=True):
        dataset, flags = lowering.run_with_flags(stage, lowering.inputs(stage, siblings=stages), run, queue)
        datasets.append(dataset)
    return _round_robin(datasets), flags


def _round_robin(datasets: Sequence[Any]) -> Any:
    """An element of each dataset in turn, those that have ended left out.

    As choose_from_datasets with choices without end, of which a restored iterator hangs where a dataset had ended.
    """
    variants = [tf.data.experimental.to_variant(dataset) for dataset in datasets]
    spec = tuple(
        tf.TensorSpec(reduce(tf.TensorShape.most_specific_compatible_shape, [leaf.shape for leaf in leaves]), dtype)
        for leaves in zip(*(tf.nest.flatten(dataset.element_spec) for dataset in datasets), strict=True)
        for dtype in [leaves[0].dtype]
    )

    def one(index: Any) -> Any:
        return tf.data.experimental.from_variant(tf.gather(tf.stack(variants), index), spec)

    return tf.data.Dataset.range(len(datasets)).interleave(plain(one), cycle_length=len(datasets), block_length=1)


def _bucketed(
    lowering: Lowering, queue: Queue, stages: Sequence[Transform], runs: Sequence[Run]
) -> tuple[Any, tuple[bool, ...]] | None:
    """Buckets: one op sorts elements into several queues, and whichever has a batch hands it on."""
    cuts = [lowering.cuts[stage.inputs[0]] for stage in stages if len(stage.inputs) == 1]
    takes = [cut for cut in cuts if isinstance(cut, Dequeue) and cut.kind != "dequeue" and cut.batch_size]
    buckets = [lowering.topology.queue(cut.queue) for cut in takes if cut.queue is not None]
    sorts = [bucket.enqueues[0] for bucket in buckets if len(bucket.enqueues) == 1]
    if len(sorts) != len(stages) or len({sort.name for sort in sorts}) != 1 or len(sorts) < 2:
        return None
    if lowering.shuffle == "replay":
        raise CannotLower(
            f"the buckets before {words_of(queue)} hand on a batch when there is room for it, so the order of the "
            f"batches follows from how full every queue is",
            op=queue.name,
            source=queue.source,
            advice="use shuffle='native', which gives the same batches in the order in which they become full",
        )
    for bucket, stage in zip(buckets, stages, strict=True):
        lowering.only_these(bucket.name, bucket.dequeues, [stage])
    what = [enqueued(lowering.view, sort) for sort in sorts]
    tensors = what[0].tensors
    if any([t.name for t in other.tensors] != [t.name for t in tensors] for other in what):
        raise CannotLower(
            f"the buckets before {words_of(queue)} get different tensors",
            op=sorts[0].name,
            source=sorts[0].source,
            advice="put the same tensors into every bucket",
        )
    if any(stored_sparse(lowering.view, tensor) for tensor in tensors) or len({b.kind for b in buckets}) > 1:
        raise CannotLower(
            f"the buckets before {words_of(queue)} hold SparseTensors, or are queues of several kinds",
            op=sorts[0].name,
            source=sorts[0].source,
            advice="make the tensors dense before they are put into buckets",
        )
    stage = lowering.topology.transform(sorts[0].transform)
    outputs = [(tensor, None) for tensor in (*tensors, what[0].condition)]
    dataset = lowering.run(stage, lowering.inputs(stage), outputs, what[0].also)
    width = len(tensors)

    def keeps(*values: Any) -> Any:
        return tf.stack([each.keeps(values[width]) for each in what])

    def key(*values: Any) -> Any:
        return tf.argmax(tf.cast(keeps(*values), tf.int32))

    none = (False,) * width
    sizes = [cut.batch_size or 1 for cut in takes]

    def size_of(number: Any) -> Any:
        return tf.gather(tf.constant(sizes, tf.int64), number)

    def batch(number: Any, window: Any) -> Any:
        elements = window.map(plain(lambda *v: tuple(lowering.as_component(buckets[0], none, v[:width]))))
        size = sizes[0] if len(set(sizes)) == 1 else size_of(number)
        batches = batched(elements, buckets[0], none, size, keep=True)
        return batches.map(plain(lambda *values: (number, tf.zeros([], tf.int64), values)))

    def complete(number: Any, _: Any, values: Any) -> Any:
        drops = tf.gather(tf.constant([cut.kind == "dequeue_many" for cut in takes]), number)
        return ~drops | tf.equal(tf.shape(values[0], tf.int64)[0], size_of(number))

    dataset = dataset.filter(plain(lambda *values: tf.reduce_any(keeps(*values))))
    batches = dataset.group_by_window(key_func=plain(key), reduce_func=plain(batch), window_size_func=plain(size_of))
    functions = [
        lowering.function(s, Inputs(lowering.names_of(cut.name), None, frozenset()), run, number_runs=False)
        for s, cut, run in zip(stages, takes, runs, strict=True)
    ]
    return _choose(lowering, batches.filter(plain(complete)), functions), (False,) * len(queue.components)


def _choose(lowering: Lowering, dataset: Any, calls: Sequence[Call]) -> Any:
    """Map (number of the branch, number of its run, values) by the stage of that branch."""
    for call in calls:
        if call.function.counters:
            counter = next(iter(call.function.counters))
            raise CannotLower(
                f"{call.words} stops after a number of runs ({counter}), and other stages go on without it",
                op=counter,
                advice="limit the epochs of the file names instead",
            )
    stateful = any(call.stateful for call in calls)
    # Equal branches are one function, unless each draws from a stream of random numbers of its own.
    if not stateful and len({call.fingerprint for call in calls}) == 1:
        numbered = calls[0].function.numbered

        def taken(_: Any, run: Any, values: Any) -> tuple[Any, ...]:
            return (run, *tf.nest.flatten(values)) if numbered else tuple(tf.nest.flatten(values))

        if calls[0].runs_parallel:
            lowering.applied.append(AppliedPass("parallel", calls[0].words))
        return calls[0].map(dataset.map(plain(taken)))

    def choose(branch: Any, run: Any, values: Any) -> tuple[Any, ...]:
        taken = tf.nest.flatten(values)
        branches = [
            lambda call=call: call.call(run, *taken) if call.function.numbered else call.call(*taken) for call in calls
        ]
        chosen: tuple[Any, ...] = tf.switch_case(tf.cast(branch, tf.int32), branches)
        return chosen

    in_order = any(call.in_order for call in calls)
    lowering.keep_order |= stateful and in_order
    return dataset.map(plain(choose), num_parallel_calls=None if in_order else tf.data.AUTOTUNE)


def _renamed(inputs: Inputs, names: Sequence[str]) -> frozenset[str]:
    return frozenset(new for old, new in zip(inputs.names, names, strict=True) if old in inputs.sparse)
