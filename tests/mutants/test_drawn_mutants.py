"""Drawn streams with a drawn fault: always caught, never an error from inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tfqueue
from tests.equivalence.batches import cut, taken
from tests.mutants.test_equal_pairs import DTYPES, features

Data = dict[str, np.ndarray]


def one_value(data: Data, rng: np.random.Generator) -> Data:
    name = str(rng.choice(list(data)))
    array = data[name].copy()
    place = tuple(int(rng.integers(n)) for n in array.shape)
    array[place] = (
        array[place] + b"!" if array.dtype == object else not array[place] if array.dtype == bool else array[place] + 1
    )
    return data | {name: array}


def every_value(data: Data, rng: np.random.Generator) -> Data:
    name = str(rng.choice(list(data)))
    array = data[name]
    if array.dtype == object:
        changed = np.empty_like(array)
        changed[...] = np.vectorize(lambda v: v + b"?", otypes=[object])(array)
        return data | {name: changed}
    return data | {name: ~array if array.dtype == bool else (array * 2 + 1).astype(array.dtype)}


def record_lost(data: Data, rng: np.random.Generator) -> Data:
    count = len(next(iter(data.values())))
    return taken(data, np.delete(np.arange(count), rng.integers(count)))


def record_doubled(data: Data, rng: np.random.Generator) -> Data:
    count = len(next(iter(data.values())))
    return taken(data, np.insert(np.arange(count), rng.integers(count), rng.integers(count)))


def other_dtype(data: Data, rng: np.random.Generator) -> Data:
    name = next((n for n in data if data[n].dtype.name in ("int32", "float32")), None)
    assume(name is not None)
    return data | {name: data[name].astype({"int32": "int64", "float32": "float64"}[data[name].dtype.name])}


def axis_more(data: Data, rng: np.random.Generator) -> Data:
    name = str(rng.choice(list(data)))
    return data | {name: data[name][..., np.newaxis]}


def renamed(data: Data, rng: np.random.Generator) -> Data:
    return {f"{name}x": values for name, values in data.items()}


def feature_lost(data: Data, rng: np.random.Generator) -> Data:
    assume(len(data) > 1)
    return dict(list(data.items())[1:])


def rows(data: Data) -> list[str]:
    """The records as texts, in an order of their own."""
    return sorted(map(repr, zip(*(values.tolist() for values in data.values()), strict=True)))


FAULTS: tuple[Callable[[Data, np.random.Generator], Data], ...] = (
    one_value,
    every_value,
    record_lost,
    record_doubled,
    other_dtype,
    axis_more,
    renamed,
    feature_lost,
)


@settings(deadline=None, max_examples=400)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 40),
    st.lists(
        st.tuples(st.sampled_from(DTYPES), st.lists(st.integers(1, 3), max_size=3).map(tuple)), min_size=1, max_size=3
    ),
    st.integers(1, 9),
    st.sampled_from(FAULTS),
    st.booleans(),
)
def test_drawn_faults(seed: int, count: int, kinds: Any, size: int, fault: Any, shuffled: bool) -> None:
    rng = np.random.default_rng(seed)
    data = features(rng, count, kinds)
    wrong = fault(data, rng)
    if fault is every_value:  # of few values, the others may be the same ones in another order
        assume(rows(wrong) != rows(data))
    left, right = cut(data, size), cut(wrong, size)
    if shuffled:
        right = cut(taken(wrong, rng.permutation(len(next(iter(wrong.values()))))), size)
        # Among equal values a changed record may be another one; what is checked then is that nothing fails.
        report = tfqueue.compare(left, right, order="any")
        report.to_json()
        if fault not in (record_lost, record_doubled, other_dtype, axis_more, renamed, feature_lost):
            return
    else:
        report = tfqueue.compare(left, right)
    assert not report.equivalent, str(report)
    report.to_json()
    str(report)
