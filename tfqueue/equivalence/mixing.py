"""How far a shuffle moves records: measured in a stream, and simulated for a queue or a buffer.

A buffer of b records that delivers a random one of them and takes in the next delivers the record with number
i in the source at place i - b + W, where W is geometric with mean b: its displacement is at least -b, and a
quarter of all records have one below about -0.71 b. That quarter is what is measured: it is sharp (its
relative error is 0.02 for 1,000 records), and it is proportional to b.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tfqueue.equivalence.digest import Words

Places = npt.NDArray[np.int64]

_QUANTILE = 0.25
_RUNS = 8
LEAST_TO_TELL = 1000  # records below which chance is too wide


@dataclass(frozen=True, slots=True)
class Reach:
    """How far records move, in records: the lower quarter of the displacements, taken positive.

    Attributes:
        low: The least that chance allows.
        expected: The mean over simulated runs.
        high: The most that chance allows.
    """

    low: float
    expected: float
    high: float


def source_numbers(source: Words, delivered: Words) -> tuple[Places, Places]:
    """(number in the source, place of delivery) of every record of a stream that the source has.

    Of records that come several times, the first delivered is taken for the first of the source, and so on.
    """
    order_source, order_delivered = np.argsort(source, kind="stable"), np.argsort(delivered, kind="stable")
    ones, twos = source[order_source], delivered[order_delivered]
    copy = np.arange(len(twos)) - np.searchsorted(twos, twos, side="left")
    there = np.searchsorted(ones, twos, side="left") + copy
    count = np.searchsorted(ones, twos, side="right") - np.searchsorted(ones, twos, side="left")
    found = copy < count
    return order_source[there[found]], order_delivered[found]


def reach(source: Words, delivered: Words, upto: int) -> float:
    """The lower quarter of the displacements of the records with numbers below ``upto``, taken positive."""
    numbers, places = source_numbers(source, delivered)
    known = numbers < upto
    if not known.any():
        return 0.0
    return float(-np.quantile((places - numbers)[known], _QUANTILE))


def distance(one: Words, two: Words) -> tuple[float, float]:
    """(mean, standard error) of how far the records of one order stand from their places in another."""
    numbers, places = source_numbers(one, two)
    apart = np.abs(places - numbers)
    return float(apart.mean()), float(apart.std() / np.sqrt(max(1, len(apart))))


def buffered(count: int, size: int, rng: np.random.Generator) -> Places:
    """The order in which a buffer of ``size`` records delivers the records 0..count-1."""
    size = max(1, min(size, count))
    buffer = list(range(size))
    draws = rng.random(count)
    out = np.empty(count, dtype=np.int64)
    upcoming = size
    for step in range(count):
        at = int(draws[step] * len(buffer))
        out[step] = buffer[at]
        if upcoming < count:
            buffer[at] = upcoming
            upcoming += 1
        else:
            buffer[at] = buffer[-1]
            buffer.pop()
    return out


def expected_reach(source: Words, size: int, upto: int, seed: int = 0) -> Reach:
    """The reach of a buffer of ``size`` records over a source, with what chance allows.

    The bounds are five standard deviations (at least 3 %) from the mean of simulated runs.
    """
    rng = np.random.default_rng(seed)
    values = [reach(source, source[buffered(len(source), size, rng)], upto) for _ in range(_RUNS)]
    mean, spread = float(np.mean(values)), float(np.std(values, ddof=1))
    margin = max(5 * spread, 0.03 * abs(mean), 1.0)
    return Reach(mean - margin, mean, mean + margin)
