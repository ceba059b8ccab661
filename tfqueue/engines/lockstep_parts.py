"""Enqueue ops inside a tf.cond or tf.group, taken apart: computed by one run, enqueued by others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfqueue.engines.conditional import enqueued
from tfqueue.engines.lockstep_queue import Lane, Part
from tfqueue.engines.queue_ops import apart
from tfqueue.errors import CannotLower, InvalidArgument
from tfqueue.topology.model import Enqueue
from tfqueue.topology.subgraph import GraphView


def take_apart(graph: tf.Graph, lane: Lane, targets: Sequence[Enqueue], op: Any) -> None:
    """Let a lane run what a tf.cond or tf.group enqueues, instead of the op, which waits where there is no room.

    Args:
        graph: The graph, to which ops are added.
        lane: The lane; its parts are set here.
        targets: The enqueues of its op, in the order of the lane's queues.
        op: What the queue runner runs.

    Raises:
        InvalidArgument: What is enqueued is computed inside the tf.cond, or the op does more once it is enqueued.
    """
    view = GraphView(graph)
    try:
        what = [enqueued(view, target) for target in targets]
    except CannotLower as error:
        raise InvalidArgument(f"lockstep cannot run {lane.enqueue.name} step by step: {error}") from error
    enqueues = {target.name for target in targets}
    around, _ = view.closure([op], stop=lambda other: other.name in enqueues)
    besides = [each for target in what for each in target.also]
    # An op without a state is not missed where nobody asks for what it gives.
    besides.extend(each for each in around if each.op_def.is_stateful and each.name not in enqueues)
    ops, _ = view.closure(besides, stop=lambda _: False)
    if enqueues & {each.name for each in ops}:
        raise InvalidArgument(
            f"lockstep cannot run {op.name} ({view.source_of(op)}) step by step: it waits for the enqueue_many "
            f"{lane.enqueue.name} and does more then; give the QueueRunner the enqueue ops themselves"
        )
    lane.besides = besides
    lane.asked = []
    for state, target, each in zip(lane.targets, targets, what, strict=True):
        state.prepare_slices()
        with apart(graph):
            keeps = None if each.condition is None else each.keeps(each.condition)
        lane.parts.append(Part(state, list(each.tensors), keeps, target.many))
