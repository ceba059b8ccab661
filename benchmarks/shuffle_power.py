"""The shuffle check's error rates: false alarms on equal pipelines, and half-sized buffers that it finds.

Both sides are simulated as orders of records, without TensorFlow (tests/equivalence/test_mixing.py sets the simulation
against its queues and Datasets); the checks are those of `tfqueue.compare`. An alarm is a shuffle or epochs check that
finds two equal pipelines different. Prints both rates with their exact 95 % bounds (Clopper and Pearson, one-sided);
the last lines sum them up.

    python benchmarks/shuffle_power.py [runs of each family, default 3000] [records, default 1000 and 10000]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from tfqueue.equivalence.checks import epochs, shuffle
from tfqueue.equivalence.digest import Words, fingerprint, fmix
from tfqueue.equivalence.evidence import Evidence
from tfqueue.equivalence.mixing import Places, buffered
from tfqueue.equivalence.options import Options
from tfqueue.equivalence.ordering import Ordering
from tfqueue.equivalence.report import DIFFERENT

SIMULATIONS = ("expected_reach", "whole_pass_reach", "most_still_near", "most_together")  # with seeds that are fixed
BATCH = 32
RECORDS = (1_000, 10_000)
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 0.95)  # of min_after_dequeue in the records of a pass


@dataclass(frozen=True)
class Case:
    """One comparison.

    Attributes:
        ordering: What is known of the reference.
        source: The records in the order of the source, where compare learns it; else None.
        reference: The records as the reference delivers them.
        equal: The records as an equal candidate does.
        half: The records as a candidate does whose buffer has half the size; None where that is no mistake.
        again: Second runs of the reference and of both candidates, where compare makes them.
    """

    ordering: Ordering
    source: Words | None
    reference: Words
    equal: Words
    half: Words | None
    again: tuple[Words, Words, Words] | None = None


def words(count: int) -> Words:
    return fmix(np.arange(1, count + 1, dtype=np.uint64))


def queued(count: int, least: int, capacity: int, rng: np.random.Generator) -> Places:
    """The order in which a RandomShuffleQueue delivers the records 0..count-1, in batches.

    Before each batch the threads fill the queue to anywhere between what the batch needs and its capacity.
    """
    queue: list[int] = []
    out = np.empty(count, dtype=np.int64)
    draws, levels = rng.random(count), rng.random(count // BATCH + 1)
    upcoming = done = 0
    while done < count:
        size = min(BATCH, count - done)
        level = least + size + int(levels[done // BATCH] * (capacity - least - size + 1))
        if len(queue) < level and upcoming < count:
            more = min(count, upcoming + level - len(queue))
            queue.extend(range(upcoming, more))
            upcoming = more
        for _ in range(size):
            at = int(draws[done] * len(queue))
            out[done] = queue[at]
            queue[at] = queue[-1]
            queue.pop()
            done += 1
    return out


def overtaking(count: int, threads: int, rng: np.random.Generator) -> Places:
    """The order in which threads that each hold one record at a time bring the records 0..count-1."""
    return np.argsort(np.arange(count) + rng.random(count) * (threads - 1), kind="stable")


def _sizes(count: int, rng: np.random.Generator) -> tuple[int, int]:
    """(min_after_dequeue, capacity), the capacity as the manual of TF1 advises it or with more room."""
    least = max(4, int(rng.choice(SHARES) * count))
    return least, least + int(rng.choice([3, 10])) * BATCH


def _of_queue(least: int, capacity: int, **more: Any) -> Ordering:
    return Ordering(False, "", capacity, least, True, **more)


def queue(count: int, rng: np.random.Generator) -> Case:
    """shuffle_batch against Dataset.shuffle(min_after_dequeue)."""
    return _against_buffer(words(count), *_sizes(count, rng), rng)


def _against_buffer(source: Words, least: int, capacity: int, rng: np.random.Generator) -> Case:
    count = len(source)
    return Case(
        _of_queue(least, capacity),
        source,
        source[queued(count, least, capacity, rng)],
        source[buffered(count, least, rng)],
        source[buffered(count, least // 2, rng)],
    )


def queues(count: int, rng: np.random.Generator) -> Case:
    """shuffle_batch against shuffle_batch, as another engine runs it."""
    case = queue(count, rng)
    assert case.source is not None
    assert case.ordering.min_after_dequeue
    assert case.ordering.capacity
    order = queued(count, case.ordering.min_after_dequeue, case.ordering.capacity, rng)
    return replace(case, equal=case.source[order])


def threads(count: int, rng: np.random.Generator) -> Case:
    """Several threads before the queue."""
    least, capacity = _sizes(count, rng)
    many = int(rng.integers(2, 17))
    source = words(count)
    brought = source[overtaking(count, many, rng)]
    return Case(
        _of_queue(least, capacity, threads=many),
        source,
        brought[queued(count, least, capacity, rng)],
        source[buffered(count, least, rng)],
        source[buffered(count, least // 2, rng)] if least >= 8 * many else None,
    )


def labels(count: int, rng: np.random.Generator) -> Case:
    """Records of which many are equal, such as labels alone, in blocks as files of one class each hold them."""
    case = queue(count, rng)
    assert case.source is not None
    classes = np.sort(rng.integers(0, count // 5, count))
    back = dict(zip(case.source.tolist(), words(count)[classes].tolist(), strict=True))

    def labelled(order: Words) -> Words:
        return np.array([back[word] for word in order.tolist()], dtype=np.uint64)

    assert case.half is not None
    return Case(
        case.ordering, labelled(case.source), labelled(case.reference), labelled(case.equal), labelled(case.half)
    )


def blurred(count: int, rng: np.random.Generator) -> Case:
    """Three passes through one queue, against repeat(3).shuffle(min_after_dequeue)."""
    least, capacity = _sizes(count // 3, rng)
    return _against_buffer(np.tile(words(-(-count // 3)), 3), least, capacity, rng)


def long(count: int, rng: np.random.Generator) -> Case:
    """A stream of which compare learns only the beginning of the source."""
    least, capacity = _sizes(count // 3, rng)
    source = words(count)
    return Case(
        _of_queue(least, capacity),
        source[: max(1_000, count // 3, 4 * capacity)],
        source[queued(count, least, capacity, rng)],
        source[buffered(count, least, rng)],
        source[buffered(count, least // 2, rng)],
    )


def _passes(count: int, times: int, size: int, rng: np.random.Generator) -> Places:
    return np.concatenate([buffered(count, size, rng) for _ in range(times)])


def producer(count: int, rng: np.random.Generator) -> Case:
    """A producer that shuffles whole passes, against shuffle(all).repeat(), reshuffled each time."""
    times = int(rng.choice([1, 3]))
    length = -(-count // times)
    source = words(length)
    return Case(
        Ordering(False, "", None, None, True, True, producer="records"),
        np.tile(source, times),
        source[_passes(length, times, length, rng)],
        source[_passes(length, times, length, rng)],
        source[_passes(length, times, length // 2, rng)],
    )


def producer_and_queue(count: int, rng: np.random.Generator) -> Case:
    """A producer that shuffles whole passes, and a shuffling queue behind it, against two shuffles."""
    times = int(rng.choice([1, 3]))
    length = -(-count // times)
    least, capacity = _sizes(length // 2, rng)
    source = words(length)
    total = length * times
    return Case(
        _of_queue(least, capacity, passes_shuffled=True, producer="records"),
        np.tile(source, times),
        source[_passes(length, times, length, rng)][queued(total, least, capacity, rng)],
        source[_passes(length, times, length, rng)][buffered(total, least, rng)],
        source[_passes(length, times, length // 2, rng)] if times == 1 else None,
    )


def files(count: int, rng: np.random.Generator) -> Case:
    """Files in any order and a queue behind them, against shuffle(files).flat_map(read).shuffle(min_after_dequeue)."""
    many = int(rng.choice([4, 10, 20]))
    source = words(count)
    parts = np.array_split(source, many)
    least = max(16, int(rng.choice(SHARES[:5]) * count))
    capacity = least + 3 * BATCH

    def read() -> Words:
        return np.concatenate([parts[i] for i in rng.permutation(many)])

    return Case(
        _of_queue(least, capacity, passes_shuffled=True, producer="files"),
        source,
        read()[queued(count, least, capacity, rng)],
        read()[buffered(count, least, rng)],
        read()[buffered(count, least // 2, rng)],
    )


def second_runs(count: int, rng: np.random.Generator) -> Case:
    """Two Datasets, of which nothing is known but what their second runs tell."""
    size, _ = _sizes(count, rng)
    source = words(count)

    def run(size: int) -> Words:
        return source[buffered(count, size, rng)]

    return Case(
        Ordering(False, "", None, size, True),
        None,
        run(size),
        run(size),
        run(size // 2),
        (run(size), run(size), run(size // 2)),
    )


def second_runs_of_batches(count: int, rng: np.random.Generator) -> Case:
    """Two Datasets that shuffle whole batches, of which nothing is known but what their second runs tell."""
    many = count // BATCH
    size = max(4, int(rng.choice(SHARES) * many))
    source = words(many * BATCH)

    def run(size: int) -> Words:
        return source.reshape(many, BATCH)[buffered(many, size, rng)].reshape(-1)

    # Of few batches, half of the buffer is not told: their number is what counts, not that of the records.
    half = run(size // 2) if many >= 1_000 else None
    again = run(size), run(size), run(size // 2)
    return Case(Ordering(False, "", None, size, True), None, run(size), run(size), half, again)


FAMILIES: tuple[Callable[[int, np.random.Generator], Case], ...] = (
    queue,
    queues,
    threads,
    labels,
    blurred,
    long,
    producer,
    producer_and_queue,
    files,
    second_runs,
    second_runs_of_batches,
)


@dataclass
class Seen:
    """What a check reads of one side."""

    role: str
    digests: Words
    ordering: Ordering = field(default_factory=Ordering)
    fingerprint: int = 0
    kept: tuple[Any, ...] = ()
    views: tuple[Any, ...] = ()
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.fingerprint = fingerprint(self.digests)
        self.count = len(self.digests)
        self.side = SimpleNamespace(role=self.role)
        self.sizes = [[BATCH, self.count // BATCH], [self.count % BATCH, 1]]


def differs(case: Case, candidate: Words, again: Words | None) -> bool:
    """Whether the checks call the sides different."""
    seen: Any = Seen("reference", case.reference, case.ordering), Seen("candidate", candidate)
    look: Any = SimpleNamespace(
        source=None if case.source is None else Seen("reference", case.source),
        reference_again=None if case.again is None else Seen("reference", case.again[0]),
        candidate_again=None if again is None else Seen("candidate", again),
        remainder=None,
    )
    aligned: Any = SimpleNamespace(compared=0, equal=0)
    shapes: Any = None
    evidence = Evidence(seen[0], seen[1], None, aligned, shapes, Options(), look)
    return any(
        result.status == DIFFERENT for result in (shuffle.check_shuffle(evidence), epochs.check_epochs(evidence))
    )


def remembered(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same, simulated once for each source and size, as its seed is fixed."""
    known: dict[Any, Any] = {}

    def call(source: Words, *rest: Any) -> Any:
        key = (hash(source.tobytes()), *rest)
        if key not in known:
            known[key] = function(source, *rest)
        return known[key]

    return call


def bound(events: int, runs: int) -> float:
    """The upper 95 % bound of a rate."""
    return 1.0 if events >= runs else float(_beta().ppf(0.95, events + 1, runs - events))


@lru_cache
def _beta() -> Any:
    from scipy.stats import beta

    return beta


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    sizes = [int(word) for word in sys.argv[2:]] or RECORDS
    for name in SIMULATIONS:
        setattr(shuffle, name, remembered(getattr(shuffle, name)))
    totals = [0, 0, 0, 0]
    worst = 1.0
    for family in FAMILIES:
        for count in sizes:
            start = time.perf_counter()
            rng = np.random.default_rng(count)
            alarms = found = halves = 0
            for _ in range(runs):
                case = family(count, rng)
                second = case.again or (None, None, None)
                alarms += differs(case, case.equal, second[1])
                if case.half is not None:
                    halves += 1
                    found += differs(case, case.half, second[2])
            print(
                f"{family.__name__:<18} {count:>6,} records: false alarms {alarms} of {runs} "
                f"(below {bound(alarms, runs):.3%}), half-sized buffers found {found} of {halves} "
                f"(above {1 - bound(halves - found, max(1, halves)):.2%}) [{time.perf_counter() - start:.0f} s]",
                flush=True,
            )
            totals[0] += alarms
            totals[1] += runs
            if count >= 10_000:
                totals[2] += halves - found
                totals[3] += halves
                worst = min(worst, found / halves if halves else 1.0)
    print(f"false alarms in all: {totals[0]} of {totals[1]:,} (below {bound(totals[0], totals[1]):.4%})")
    print(
        f"half-sized buffers missed at 10,000 records: {totals[2]} of {totals[3]:,} "
        f"(below {bound(totals[2], totals[3]):.3%}); the family hardest to tell: {worst:.2%} found"
    )


if __name__ == "__main__":
    main()
