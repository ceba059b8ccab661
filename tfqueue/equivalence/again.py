"""A second pass over a side, once the first has shown that the sides differ."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tfqueue.equivalence.chunk import Chunk
from tfqueue.equivalence.observe import Observation
from tfqueue.equivalence.streams import Side
from tfqueue.errors import TFQueueWarning

Harvest = Callable[[Chunk], None]


def run_again(
    first: Observation,
    harvest: Harvest | None = None,
    *,
    side: Side | None = None,
    limit: int | None = None,
) -> Observation | None:
    """Run a side once more, as it was run the first time.

    Args:
        first: The first run; features, casts and the cut are taken from it.
        harvest: Called with every chunk, so that values can be picked out.
        side: The side to run in its place: the same pipeline with something changed.
        limit: How many records to read at most.

    Returns:
        The new run, or None if the side cannot be run again or fails to start.
    """
    side = side or first.side
    if not side.repeatable:
        return None
    if limit is None and first.ended in ("cut", "going on"):
        limit = first.count
    failed: list[Exception] = []
    try:
        with _without_warnings(), side.open() as run:
            second = Observation(side, run, limit)
            if second.peek() is None:
                return None
            second.prepare(first.names, first.batched, first.casts, first.nested, first.rounded)
            while not failed and (chunk := second.pull()) is not None:
                try:
                    if harvest is not None:
                        harvest(chunk)
                except Exception as error:  # noqa: BLE001 - raised below, when the side is closed
                    failed.append(error)
    except Exception:  # noqa: BLE001 - the first run has told what is wrong with a side; this one only adds to it
        return None
    if failed:
        raise failed[0]
    return second


@contextmanager
def _without_warnings() -> Iterator[None]:
    """What a pipeline warns of was said when it ran for the first time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TFQueueWarning)
        yield
