"""How far a shuffle moves records: measured in a stream, and simulated for a queue or a buffer.

A buffer of b records that delivers a random one of them and takes in the next delivers the record with number
i in the source at place i - b + W, where W is geometric with mean b: its displacement is at least -b, and a
quarter of all records have one below about -0.71 b. That quarter is what is measured: it is sharp (its
relative error is 0.02 for 1,000 records), and it is proportional to b.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tfqueue.equivalence.digest import Words
from tfqueue.equivalence.evidence import fraction_kept

Places = npt.NDArray[np.int64]

_QUANTILE = 0.25
_RUNS = 32
_NATS = 14.0  # exp(-14) is about 1e-6
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
    """(mean, standard error) of how far the records of one order stand from their places in another.

    Records that were batched before they were shuffled move together, so the error is also taken from the means over
    blocks of neighbours, from each to the next (von Neumann, 1941), and the larger counts.
    """
    numbers, places = source_numbers(one, two)
    apart = np.abs(places - numbers)[np.argsort(numbers, kind="stable")]
    error = float(apart.std() / np.sqrt(max(1, len(apart))))
    length = int(np.sqrt(len(apart)))
    if length > 1:
        blocks = apart[: length * length].reshape(length, length).mean(axis=1)
        error = max(error, float(np.sqrt(np.mean(np.diff(blocks) ** 2) / 2 / length)))
    return float(apart.mean()), error


def buffered(count: int, size: int, rng: np.random.Generator) -> Places:
    """The order in which a buffer of ``size`` records delivers the records 0..count-1.

    Each step delivers what stands in a random slot and puts the next record there. So a step delivers the record that
    the step before it with the same slot brought in, or the slot's first record; what is left when no more records
    come is delivered in any order with equal chance.
    """
    size = max(1, min(size, count))
    slots = rng.integers(0, size, count - size)
    order = np.argsort(slots, kind="stable")
    ordered = slots[order]
    new = np.ones(len(ordered) + 1, dtype=bool)
    new[1:-1] = ordered[1:] != ordered[:-1]
    first, last = order[new[:-1]], order[new[1:]]  # the first and the last step of each slot that is used
    brought = order + size
    delivered = np.empty(count - size, dtype=np.int64)
    delivered[order[1:]] = brought[:-1]
    delivered[first] = slots[first]
    left = np.arange(size)
    left[slots[last]] = last + size
    return np.concatenate([delivered, rng.permutation(left)])


def earliest(source: Words, delivered: Words) -> int:
    """How many places early a record comes at most; a buffer of b records delivers none b places early or more."""
    numbers, places = source_numbers(source, delivered)
    return int((numbers - places).max(initial=0))


def least_earliness(size: int, count: int) -> float:
    """How early the earliest record comes at least, but for one stream in a million, from a buffer of ``size`` records.

    While the buffer is full, a delivery takes a record that is x * size places early or more with a probability of
    1 - exp(x - 1), so that in n deliveries none is with one of exp(-n * (1 - x)). A buffer that holds all records gives
    them in any order with equal chance; of count records, none x * count places early then has a chance of about
    exp(-count * (1 - x)**2 / 2).

    Args:
        size: Records in the buffer.
        count: Records in the source.
    """
    if size >= count:
        return count - float(np.sqrt(2 * _NATS * count))
    return size * (1 - _NATS / (count - size))


def still_near(source: Words, delivered: Words, within: int) -> float:
    """The share of deliveries that follow a record at most ``within`` places away in the source.

    The larger the buffer, the smaller it is; and it hardly changes when whole blocks of the source, such as files, come
    in another order, as records of other blocks are far away.
    """
    numbers, places = source_numbers(source, delivered)
    ordered = numbers[np.argsort(places, kind="stable")]
    return float(np.mean(np.abs(np.diff(ordered)) <= within)) if len(ordered) > 1 else 0.0


def most_still_near(source: Words, size: int, within: int, seed: int = 0) -> float:
    """The most that chance allows `still_near` of a buffer of ``size`` records to be, by simulated runs."""
    rng = np.random.default_rng(seed)
    values = [still_near(source, source[buffered(len(source), size, rng)], within) for _ in range(_RUNS)]
    return float(np.mean(values) + max(6 * np.std(values, ddof=1), 0.1 * np.mean(values)))


def most_together(source: Words, size: int, seed: int = 0) -> float:
    """The most that chance allows `fraction_kept` of a source and a buffer of ``size`` records to be.

    Of a buffer of b records, about one delivery in b is followed by its neighbour.
    """
    rng = np.random.default_rng(seed)
    count = len(source)
    mean = float(np.mean([fraction_kept(source, source[buffered(count, size, rng)]) for _ in range(_RUNS // 4)]))
    return chance_together(1.5 * mean, count)


def chance_together(share: float, count: int) -> float:
    """The most that chance makes of a share of ``count`` neighbours: eight standard deviations, and 20 neighbours.

    Their number is about a Poisson number, which eight deviations of a few do not bound.
    """
    return share + 8 * float(np.sqrt(share / count)) + 20 / count


def whole_pass_reach(source: Words, passes: int, upto: int, seed: int = 0) -> Reach:
    """As `expected_reach`, for whole passes in any order with equal chance."""
    length = max(1, len(source) // max(1, passes))
    starts = range(0, len(source), length)
    ends = [min(start + length, len(source)) for start in starts]

    def order(rng: np.random.Generator) -> Places:
        return np.concatenate([rng.permutation(np.arange(a, b)) for a, b in zip(starts, ends, strict=True)])

    return _simulated(source, order, upto, seed, deviations=5, share=0.0)


def expected_reach(source: Words, size: int, upto: int, seed: int = 0) -> Reach:
    """The reach of a buffer of ``size`` records over a source, with what chance allows.

    The bounds are five standard deviations (at least 3 %, and one record) from the mean of simulated runs.
    """
    return _simulated(source, lambda rng: buffered(len(source), size, rng), upto, seed, deviations=5, share=0.03)


def _simulated(
    source: Words,
    order: Callable[[np.random.Generator], Places],
    upto: int,
    seed: int,
    *,
    deviations: float,
    share: float,
) -> Reach:
    """The reach of an order that is drawn again and again.

    Args:
        source: The records in the order of the source.
        order: Draws the order in which they are delivered.
        upto: Records with numbers below it are looked at.
        seed: Of the runs.
        deviations: How many standard deviations of the runs chance is allowed.
        share: The least that it is allowed, as a share of the mean.
    """
    rng = np.random.default_rng(seed)
    values = [reach(source, source[order(rng)], upto) for _ in range(_RUNS)]
    mean, spread = float(np.mean(values)), float(np.std(values, ddof=1))
    margin = max(deviations * spread, share * abs(mean), 1.0)
    return Reach(mean - margin, mean, mean + margin)


def whole_passes_by_chance(size: int, ends: int) -> float:
    """The probability that a buffer of ``size`` records keeps passes apart, at as many ``ends`` of a pass.

    At the end of a pass it must deliver all that it holds, in ``size`` draws, and none that has come since:
    size! / size**size, which Stirling's formula tells to be about exp(-size).
    """
    return math.exp(ends * (math.lgamma(size + 1) - size * math.log(size)))


def repeat_distance(digests: Words) -> tuple[int, float] | None:
    """(least, median) places between two deliveries of one record; None where each record comes once."""
    order = np.argsort(digests, kind="stable")
    again = digests[order][1:] == digests[order][:-1]
    if not again.any():
        return None
    steps = np.diff(order)[again]
    return int(steps.min()), float(np.median(steps))
