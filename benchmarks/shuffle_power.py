"""The shuffle check's error rates: false alarms on equal pipelines, and half-sized buffers that it finds.

A queue with capacity = min_after_dequeue + 3 * batch against Dataset.shuffle(min_after_dequeue), and against half of
that; both sides are simulated, the check is the one of `tfqueue.compare`. Prints the rates with their 95 % bounds.

    python benchmarks/shuffle_power.py [runs]
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from tfqueue.equivalence.digest import Words, fmix
from tfqueue.equivalence.mixing import buffered, expected_reach, reach

CASES = ((1_000, 50), (1_000, 200), (10_000, 100), (10_000, 1_000), (10_000, 5_000))  # (records, min_after_dequeue)
BATCH = 32
SEEDS = 20  # simulations of what is expected; compare makes one


def bound(events: int, runs: int) -> float:
    """The upper 95 % bound of a rate (Clopper and Pearson, one-sided)."""
    from scipy.stats import beta

    return float(beta.ppf(0.95, events + 1, runs - events)) if events < runs else 1.0


def verdict(value: float, low: Any, high: Any) -> str:
    return "too small" if value < low.low else "too large" if value > high.high else "same"


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    rng = np.random.default_rng(1)
    for records, least in CASES:
        start = time.perf_counter()
        source: Words = fmix(np.arange(1, records + 1, dtype=np.uint64))
        capacity = least + 3 * BATCH
        alarms = found = 0
        expected = [
            (expected_reach(source, least, records, seed=s), expected_reach(source, capacity, records, seed=s))
            for s in range(SEEDS)
        ]
        for run in range(runs):
            low, high = expected[run % SEEDS]
            equal = source[buffered(records, int(rng.integers(least, capacity + 1)), rng)]
            half = source[buffered(records, least // 2, rng)]
            alarms += verdict(reach(source, equal, records), low, high) != "same"
            found += verdict(reach(source, half, records), low, high) == "too small"
        print(
            f"{records:>6,} records, min_after_dequeue {least:>5,}: false alarms {alarms} of {runs} "
            f"(below {bound(alarms, runs):.2%}), half-sized buffers found {found} of {runs} "
            f"[{time.perf_counter() - start:.0f} s]"
        )


if __name__ == "__main__":
    main()
