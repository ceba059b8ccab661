"""Stages that run after the shuffle and the batch of the queue that they fill, which then hold less."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfqueue.engines.branches import as_one_stage
from tfqueue.engines.elements import Inputs, Steps, shaped
from tfqueue.engines.passes import AppliedPass
from tfqueue.engines.plain import plain
from tfqueue.engines.shuffling import is_seeded, shuffled
from tfqueue.engines.stage_call import Call
from tfqueue.topology.model import Queue, TensorInfo

if TYPE_CHECKING:
    from tfqueue.engines.lowering import Lowering


def late_stage(lowering: Lowering, queue: Queue) -> tuple[Any, Call] | None:
    """Of a queue whose stage may as well run after it: the dataset of what the stage takes, and the stage.

    That holds where all enqueue ops of the queue do the same, and give the same for the same record, whenever
    they run; or draw random numbers without a seed, which are nobody's in particular.
    """
    stages = [lowering.topology.transform(each.transform) for each in queue.enqueues]
    stage = stages[0]
    if any(each.many or each.conditional for each in queue.enqueues) or any(each.python for each in stages):
        return None
    if not stage.inputs or queue.kind == "PaddingFIFO":
        return None
    runs = [lowering.component_outputs(each) for each in queue.enqueues]
    if any(stored is not None for run in runs for _, stored in run.outputs):
        return None
    if not all(_is_whole(component) for component in queue.components):
        return None
    names = Inputs(tuple(name for cut in stage.inputs for name in lowering.names_of(cut)), None, frozenset())
    function = lowering.function(stage, names, runs[0]).function
    unseeded = lowering.shuffle == "native" and all(
        op.name in stage.random and not is_seeded(op) for op in function.stateful
    )
    if (function.stateful and not unseeded) or function.counters or function.numbered:
        return None
    inputs = lowering.inputs(stage) if len(stages) == 1 else as_one_stage(lowering, stages, runs)
    if inputs is None or inputs.sparse:
        # Only now is it known; what was lowered is used as it is.
        return None
    call = lowering.function(stage, inputs, runs[0])
    used = [index for index, name in enumerate(inputs.names) if name in {*function.inputs, *function.outputs}]
    if len(used) < len(inputs.names):
        dataset = inputs.dataset.map(plain(lambda *values: tuple(values[index] for index in used)))
        inputs = Inputs(tuple(inputs.names[index] for index in used), dataset, frozenset())
        call = lowering.function(stage, inputs, runs[0])
    return inputs.dataset, call


def taken_late(lowering: Lowering, queue: Queue, take: tuple[str, int], dataset: Any, call: Call) -> Steps:
    """What a dequeue gives, with the stage that fills the queue run after the shuffle, on batches if it can."""
    kind, size = take
    keep = kind == "dequeue_up_to"
    whole = all(spec.shape.is_fully_defined() for spec in tf.nest.flatten(dataset.element_spec))
    batches = kind != "dequeue" and whole and "decode-batches" in lowering.passes
    vector = call.on_batches(lowering.view) if batches else None
    replayed = queue.kind == "RandomShuffle" and lowering.shuffle == "replay"
    one_by_one = call.then(lambda *values: tuple(lowering.as_component(queue, (False,) * len(values), values)))
    if replayed and not whole and kind != "dequeue":
        return Steps(shuffled(lowering, queue, one_by_one.map(dataset), size, keep=keep), None, None)
    if call.computes:
        passes = {"decode-late": True, "decode-batches": vector is not None, "parallel": call.runs_parallel}
        lowering.applied.extend(AppliedPass(name, call.words) for name, applies in passes.items() if applies)
    if kind == "dequeue":
        return Steps(shuffled(lowering, queue, dataset, None, keep=keep), one_by_one, None)
    dataset = shuffled(lowering, queue, dataset, size, keep=keep)
    if vector is None:
        if replayed:
            dataset = dataset.unbatch()
        return Steps(dataset, one_by_one, lambda elements: elements.batch(size, drop_remainder=not keep))
    if not replayed:
        dataset = dataset.batch(size, drop_remainder=not keep)
    rows = None if keep else size
    shapes = [[rows, *(component.shape or ())] for component in queue.components]
    vector = vector.then(
        lambda *values: tuple(shaped(value, shape) for value, shape in zip(values, shapes, strict=True))
    )
    return Steps(dataset, vector, None)


def _is_whole(component: TensorInfo) -> bool:
    return component.shape is not None and None not in component.shape
