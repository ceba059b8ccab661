"""Figures on values: the same whether elements are looked at in blocks or at once."""

from __future__ import annotations

import numpy as np
import pytest

from tfqueue.equivalence.align import ValueStats, add_values
from tfqueue.equivalence.leaves import Dense
from tfqueue.equivalence.options import checked


def options(atol):
    return checked(
        order="auto",
        key=None,
        rtol=0.0,
        atol=atol,
        tolerances=None,
        equal_nan=False,
        max_records=None,
        samples=5,
    )


@pytest.mark.parametrize("shape", [(200, 180, 3), (40_000,), (70,), ()])
@pytest.mark.parametrize("dtype", ["f4", "u1", "i8"])
def test_figures_of_large_records_are_those_of_all_their_elements(shape, dtype) -> None:
    rng = np.random.default_rng(0)
    one = rng.integers(0, 100, (6, *shape)).astype(dtype)
    two = one.copy()
    two[2] = two[2] + 1
    two.reshape(6, -1)[4, -1] += 7
    two.reshape(6, -1)[5, 0] += 7
    rows, far = np.array([2, 4, 5]), np.zeros(6, dtype=bool)
    stats = ValueStats("image")
    add_values(stats, Dense(one), Dense(two), rows, 10, options(2.0), far)
    apart = np.abs(two[rows].astype(float) - one[rows].astype(float))
    assert (stats.records, stats.elements, stats.incomparable) == (3, apart.size, 0)
    assert (stats.differing, stats.beyond) == (np.count_nonzero(apart), np.count_nonzero(apart > 2))
    assert (stats.max_abs, stats.sum_abs) == (apart.max(), apart.sum())
    assert far.tolist() == [False, False, False, False, True, True]
    place = np.unravel_index(int(apart.argmax()), apart.shape)
    index = tuple(int(i) for i in place[1:])
    at = (int(rows[place[0]]), *index)
    assert stats.worst == (10 + at[0], index, one[at].item(), two[at].item())


def test_strings_and_empty_records_have_figures() -> None:
    one, two = (np.array(words, dtype=object).reshape(2, 1) for words in ([b"a", b"b"], [b"a", b"c"]))
    stats, far = ValueStats("name"), np.zeros(2, dtype=bool)
    add_values(stats, Dense(one), Dense(two), np.array([0, 1]), 0, options(0.0), far)
    assert (stats.differing, stats.beyond, stats.worst) == (1, 1, (1, (0,), b"b", b"c"))
    assert far.tolist() == [False, True]
    empty = Dense(np.zeros((2, 0)))
    add_values(stats := ValueStats("none"), empty, empty, np.array([0, 1]), 0, options(0.0), far)
    assert (stats.elements, stats.worst) == (0, None)
