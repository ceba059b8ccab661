"""Several enqueue ops that fill one queue: branches of a join, readers side by side, buckets.

In the canonical schedule they take turns, one run each, in the order of the queue runners.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfqueue.engines.conditional import enqueued
from tfqueue.engines.elements import Inputs, batched, words_of
from tfqueue.engines.plain import plain
from tfqueue.engines.sparse import stored_sparse
from tfqueue.engines.stage_call import Call, Run
from tfqueue.errors import CannotLower
from tfqueue.topology.model import Dequeue, Queue, Transform

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
    if len(set(streams)) == 1 and all(len(stage.inputs) == 1 for stage in stages):
        return _branches_of_one_stream(lowering, queue, stages, runs)
    if all(not (a & b) for i, a in enumerate(streams) for b in streams[i + 1 :]):
        return _independent_branches(lowering, queue, stages, runs)
    raise CannotLower(
        f"the {len(stages)} enqueue ops of {words_of(queue)} take from some queues together and from others "
        f"apart; which records meet depends on the timing of threads",
        op=queue.name,
        source=queue.source,
        advice="let every branch take from the same queue, or each from its own",
    )


def _branches_of_one_stream(
    lowering: Lowering, queue: Queue, stages: Sequence[Transform], runs: Sequence[Run]
) -> tuple[Any, tuple[bool, ...]]:
    """Branch i of M gets every M-th of what one queue or reader gives, beginning with the i-th."""
    first = lowering.inputs(stages[0], consumers=stages)
    takes = {lowering.take_of(lowering.cuts[stage.inputs[0]]) for stage in stages}
    if len(takes) > 1:
        raise CannotLower(
            f"the branches that fill {words_of(queue)} take different numbers of elements from one queue",
            op=queue.name,
            source=queue.source,
            advice="dequeue the same number in every branch",
        )
    functions = []
    for stage, run in zip(stages, runs, strict=True):
        names = lowering.names_of(stage.inputs[0])
        functions.append(lowering.function(stage, Inputs(names, None, _renamed(first, names)), run, number_runs=False))
    count = len(stages)
    flags = lowering.passed_through(first, runs[0], queue)
    numbered = first.dataset.enumerate().map(plain(lambda *item: (item[0] % count, item[1])))
    return _choose(lowering, numbered, functions), flags


def _independent_branches(
    lowering: Lowering, queue: Queue, stages: Sequence[Transform], runs: Sequence[Run]
) -> tuple[Any, tuple[bool, ...]]:
    """Branches with a queue or reader each: their runs in turn, those that have ended left out."""
    datasets = []
    flags: tuple[bool, ...] = ()
    for stage, run in zip(stages, runs, strict=True):
        dataset, flags = lowering.run_with_flags(stage, lowering.inputs(stage, siblings=stages), run, queue)
        datasets.append(dataset)
    choices = tf.data.Dataset.range(len(datasets)).repeat()
    return tf.data.Dataset.choose_from_datasets(datasets, choices, stop_on_empty_dataset=False), flags


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
        return batches.map(plain(lambda *values: (number, values)))

    def complete(number: Any, values: Any) -> Any:
        drops = tf.gather(tf.constant([cut.kind == "dequeue_many" for cut in takes]), number)
        return ~drops | tf.equal(tf.shape(values[0], tf.int64)[0], size_of(number))

    dataset = dataset.filter(plain(lambda *values: tf.reduce_any(keeps(*values))))
    batches = dataset.group_by_window(key_func=plain(key), reduce_func=plain(batch), window_size_func=plain(size_of))
    functions = [
        lowering.function(s, Inputs(lowering.names_of(cut.name), None, frozenset()), run, number_runs=False)
        for s, cut, run in zip(stages, takes, runs, strict=True)
    ]
    return _choose(lowering, batches.filter(plain(complete)), functions), (False,) * len(queue.components)


def _choose(lowering: Lowering, dataset: Any, functions: Sequence[Call]) -> Any:
    """Map (number, values) by the function with that number."""
    if len({function.fingerprint for function in functions}) == 1:
        return functions[0].map(dataset.map(plain(lambda _, values: values)))

    def choose(number: Any, values: Any) -> tuple[Any, ...]:
        taken = tf.nest.flatten(values)
        branches = [lambda function=function: function.call(*taken) for function in functions]
        chosen: tuple[Any, ...] = tf.switch_case(tf.cast(number, tf.int32), branches)
        return chosen

    in_order = any(function.in_order for function in functions)
    return dataset.map(plain(choose), num_parallel_calls=None if in_order else tf.data.AUTOTUNE)


def _renamed(inputs: Inputs, names: Sequence[str]) -> frozenset[str]:
    return frozenset(new for old, new in zip(inputs.names, names, strict=True) if old in inputs.sparse)
