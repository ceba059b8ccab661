"""Shuffles of a lowered pipeline: those of shuffle queues, native or replayed, and those of producers."""

from __future__ import annotations

from random import SystemRandom
from typing import TYPE_CHECKING, Any

from tfqueue.engines.elements import words_of
from tfqueue.engines.replay import replay_shuffle
from tfqueue.engines.stage_call import SourceShuffle
from tfqueue.errors import CannotLower
from tfqueue.topology.model import Queue, Transform
from tfqueue.topology.subgraph import FUNCTION_TYPES, attribute

if TYPE_CHECKING:
    from tfqueue.engines.lowering import Lowering


def shuffled(lowering: Lowering, queue: Queue, dataset: Any, batch: int | None, *, keep: bool) -> Any:
    """The elements of a queue in the order in which they leave it; in batches where replay needs the size."""
    if queue.kind != "RandomShuffle":
        return dataset
    if queue.capacity is None:
        raise CannotLower(
            f"{words_of(queue)} shuffles among as many elements as happen to be in it, without a bound",
            op=queue.name,
            source=queue.source,
            advice="give the queue a capacity",
        )
    if lowering.shuffle == "native":
        size = queue.min_after_dequeue + 1 if queue.min_after_dequeue else queue.capacity
        seed = _seed_of(lowering, queue.name, queue.seed, queue.seed2)
        # Copies of one shuffle must agree, whenever each is iterated.
        return dataset.shuffle(size, seed=seed, reshuffle_each_iteration=not lowering.repeated)
    if not queue.seed and not queue.seed2:
        raise _not_seeded(words_of(queue), queue.name, queue.source)
    capacity = queue.capacity
    if batch is not None and batch > capacity - queue.min_after_dequeue:
        raise CannotLower(
            f"{words_of(queue)} cannot give a batch of {batch} at once (capacity {capacity}, min_after_dequeue "
            f"{queue.min_after_dequeue}), so its order depends on each element that comes in meanwhile",
            op=queue.name,
            source=queue.source,
            advice=f"set capacity to at least {queue.min_after_dequeue + batch}, or use shuffle='native'",
        )
    return dataset.apply(
        replay_shuffle(
            capacity,
            queue.min_after_dequeue,
            queue.seed,
            queue.seed2,
            batch_size=batch,
            drop_remainder=not keep,
        )
    )


def _not_seeded(words: str, op: str, source: str | None) -> CannotLower:
    return CannotLower(
        f"{words} has no seed, so it has no order to replay",
        op=op,
        source=source,
        advice="give it a seed, or use shuffle='native'",
    )


def _seed_of(lowering: Lowering, name: str, seed: int, seed2: int) -> int | None:
    """One seed for a shuffle; where it has none and is run in several copies, one drawn for all of them."""
    if seed or seed2:
        return (seed * 1_000_003 + seed2) % 2**62
    if not lowering.repeated:
        return None
    return lowering.drawn_seeds.setdefault(name, SystemRandom().randrange(1, 2**62))


def source_shuffle(lowering: Lowering, stage: Transform) -> SourceShuffle | None:
    """The shuffle of a producer, where it is to be worked out from its seeds instead of left to the op.

    The op keeps its place in the stream of random numbers from one pass over the dataset to the next; worked
    out, every pass begins anew.
    """
    shuffles = [lowering.view.by_name[name] for name in stage.random]
    shuffles = [op for op in shuffles if op.type == "RandomShuffle"]
    if stage.inputs or len(shuffles) != 1:
        return None
    op = shuffles[0]
    seed, seed2 = int(op.get_attr("seed")), int(op.get_attr("seed2"))
    if not seed and not seed2:
        rows = op.outputs[0].shape.as_list()[0] if op.outputs[0].shape.rank else None
        if lowering.shuffle == "replay" and rows != 1:
            raise _not_seeded(f"the shuffle {op.name}", op.name, stage.source)
        if not lowering.repeated:
            return None
        seed2 = lowering.drawn_seeds.setdefault(op.name, SystemRandom().randrange(1, 2**62))
    return SourceShuffle(op, seed, seed2)


def is_seeded(op: Any) -> bool:
    """Whether a random op has a seed, so that it gives the same in every run of the program."""
    if op.type in FUNCTION_TYPES:
        return True  # Its random ops are not looked at one by one.
    return any(bool(attribute(op, name, 0)) for name in ("seed", "seed2"))
