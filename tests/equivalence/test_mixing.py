"""The simulated shuffles against those of TensorFlow, and the check's error rates on them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from benchmarks import shuffle_power as power
from tfqueue.equivalence.checks import shuffle
from tfqueue.equivalence.mixing import Places, buffered, whole_passes_by_chance

tf1 = tf.compat.v1
COUNT, LEAST, CAPACITY = 4000, 200, 320


def displacements(order: Places) -> Places:
    return np.arange(len(order)) - order


def apart(one: Places, two: Places) -> float:
    """The largest distance between the distributions of two orders' displacements (Kolmogorov and Smirnov)."""
    return float(stats.ks_2samp(displacements(one), displacements(two)).statistic)


def simulated(draw: Callable[[np.random.Generator], Places], runs: int = 30) -> Places:
    """The orders of many runs, one after the other, each counted from its own beginning."""
    rng = np.random.default_rng(5)
    return np.concatenate([draw(rng) + COUNT * run for run in range(runs)])


def dataset_order(size: int) -> Places:
    return np.array(list(tf.data.Dataset.range(COUNT).shuffle(size, seed=11).as_numpy_iterator()))


def queue_order(least: int, capacity: int) -> Places:
    """A RandomShuffleQueue that is filled to the levels of `shuffle_power.queued` before each batch."""
    levels = np.random.default_rng(7).random(COUNT // power.BATCH + 1)
    with tf.Graph().as_default(), tf1.Session() as session:
        queue = tf1.RandomShuffleQueue(capacity, 0, tf.int64, shapes=[[]], seed=11)
        values, size = tf1.placeholder(tf.int64, [None]), tf1.placeholder(tf.int32, [])
        enqueue, dequeue = queue.enqueue_many([values]), queue.dequeue_many(size)
        found: list[Places] = []
        held = upcoming = 0
        for batch in range(COUNT // power.BATCH):
            level = least + power.BATCH + int(levels[batch] * (capacity - least - power.BATCH + 1))
            more = min(COUNT, upcoming + max(0, level - held))
            session.run(enqueue, {values: np.arange(upcoming, more)})
            held, upcoming = held + more - upcoming - power.BATCH, more
            found.append(session.run(dequeue, {size: power.BATCH}))
    return np.concatenate(found)


def test_a_simulated_buffer_is_that_of_a_dataset() -> None:
    """The orders are not drawn anew: the seeds are fixed."""
    found = dataset_order(LEAST)
    assert apart(found, simulated(lambda rng: buffered(COUNT, LEAST, rng))) < 0.05
    assert apart(found, simulated(lambda rng: buffered(COUNT, LEAST // 2, rng))) > 0.2
    assert apart(found, simulated(lambda rng: buffered(COUNT, LEAST * 5 // 4, rng))) > 0.1


def test_a_simulated_queue_is_that_of_tensorflow() -> None:
    found = queue_order(LEAST, CAPACITY)
    assert apart(found, simulated(lambda rng: power.queued(COUNT, LEAST, CAPACITY, rng))) < 0.05
    assert apart(found, simulated(lambda rng: power.queued(COUNT, LEAST // 2, CAPACITY // 2, rng))) > 0.2


def test_a_buffer_gives_every_order_as_often_as_its_steps_do() -> None:
    """Exactly: each order of a few records, against the slots drawn one after the other."""

    def orders(held: tuple[int, ...], upcoming: int, chance: float) -> Counter[tuple[int, ...]]:
        if not held:
            return Counter({(): chance})  # type: ignore[dict-item]
        found: Counter[tuple[int, ...]] = Counter()
        for at, taken in enumerate(held):
            rest = held[:at] + held[at + 1 :] + ((upcoming,) if upcoming < 5 else ())
            for order, part in orders(rest, upcoming + 1, chance / len(held)).items():
                found[(taken, *order)] += part
        return found

    expected = orders((0, 1, 2), 3, 1.0)
    rng = np.random.default_rng(0)
    runs = 20_000
    found = Counter(tuple(buffered(5, 3, rng).tolist()) for _ in range(runs))
    assert set(found) == set(expected)
    assert stats.chisquare([found[o] for o in expected], [runs * expected[o] for o in expected]).pvalue > 1e-3


@pytest.mark.parametrize(("size", "ends"), [(2, 1), (4, 1), (4, 2)])
def test_how_often_a_buffer_keeps_passes_apart_by_chance(size: int, ends: int) -> None:
    length, runs, rng = 20, 4000, np.random.default_rng(1)
    apart = 0
    for _ in range(runs):
        passes = buffered(length * (ends + 1), size, rng) // length
        apart += bool(np.all(np.diff(passes) >= 0))
    expected = whole_passes_by_chance(size, ends)
    assert abs(apart / runs - expected) < 5 * math.sqrt(expected / runs)


@pytest.mark.parametrize("family", power.FAMILIES, ids=lambda family: family.__name__)
def test_the_families_of_the_benchmark(family: Callable[..., power.Case], monkeypatch: pytest.MonkeyPatch) -> None:
    """A few runs of each: no false alarm, and the smaller buffer is found."""
    monkeypatch.setattr(power, "SHARES", (0.05, 0.2))
    for name in power.SIMULATIONS:
        monkeypatch.setattr(shuffle, name, power.remembered(getattr(shuffle, name)))
    rng = np.random.default_rng(3)
    for _ in range(3):
        case = family(12_000, rng)
        again = case.again or (None, None, None)
        assert not power.differs(case, case.equal, again[1])
        assert case.half is None or power.differs(case, case.half, again[2])
