"""Digests: equal to the written definition, blind to padding, sensitive to everything else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.equivalence import scalar_digest as oracle
from tfqueue.equivalence import digest
from tfqueue.equivalence.leaves import Dense, Ragged, Sparse

LETTERS = {
    "uint8": "B",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "float32": "f",
    "float64": "d",
    "float16": "e",
}


def of(array: np.ndarray) -> np.ndarray:
    return digest.feature_digests(Dense(array))


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_numbers_follow_the_definition(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(sorted(LETTERS)))
    rows = data.draw(hnp.arrays(dtype, (2, data.draw(st.integers(0, 40)))))
    for row, value in zip(rows, of(rows), strict=True):
        values = [float("nan") if v != v else v for v in row.tolist()]
        assert int(value) == oracle.numbers(LETTERS[dtype], values)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(st.binary(max_size=600), min_size=2, max_size=2), min_size=1, max_size=4))
def test_strings_follow_the_definition(rows: list[list[bytes]]) -> None:
    array = np.empty((len(rows), 2), dtype=object)
    array[:] = rows
    assert of(array).tolist() == [oracle.strings(row) for row in rows]


def test_long_rows_follow_the_definition() -> None:
    rows = np.random.default_rng(0).integers(0, 256, (2, 70_000)).astype(np.uint8)
    rows[1, 32_000:] = 0
    assert of(rows).tolist() == [oracle.numbers("B", row.tolist()) for row in rows]


SHAPES = [(0, 3), (3, 0), (5,), (7, 23), (1000, 23), (3, 11, 9), (2, 40_000), (2, 4096 * 4), (2, 70_001), (700, 13, 3)]


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", ">i4", "i8", "f2", "f4", ">f8", "c8"])
def test_rows_summed_in_parts_are_rows_summed_whole(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        whole = (50 * rng.normal(size=shape)).astype(np.int8).astype(dtype)
        if whole.dtype.kind in "fc" and whole.size:
            whole.flat[whole.size // 2] = -0.0
            whole.flat[-1] = np.nan
        for array in (whole, whole[::2], whole[..., ::2] if whole.ndim > 1 else whole):
            found, nan = digest.digests_and_nan(Dense(array))
            assert found.tolist() == digest.fmix(digest.fold(digest.number_words(array))).tolist(), shape
            assert nan == bool(np.isnan(array).any()), shape


def test_records_follow_the_definition() -> None:
    features = [of(np.arange(3)), of(np.arange(3.0))]
    expected = [oracle.record([int(a), int(b)]) for a, b in zip(*features, strict=True)]
    assert digest.record_digests(features).tolist() == expected


def test_values_are_pinned_so_that_goldens_stay_readable() -> None:
    """A change of these numbers makes every golden in the world unreadable: raise digest.VERSION instead."""
    assert digest.VERSION == 1
    assert of(np.array([[1, 2, 3]], np.int64))[0] == oracle.numbers("q", [1, 2, 3]) == 9317909928100606692
    text = np.array([b"tfqueue"], dtype=object)
    assert of(text)[0] == oracle.strings([b"tfqueue"]) == 8471857239577625804


def test_zeros_at_the_end_do_not_count() -> None:
    short, long = np.array([[1.0, 2.0]]), np.zeros((1, 9000))
    long[0, :2] = 1.0, 2.0
    assert of(short) == of(long)


def test_negative_zero_and_nan_payloads_do_not_count() -> None:
    odd_nan = np.array([[0x7FC00001, 0xFFC00000, 0x80000000]], np.uint32).view(np.float32)
    assert of(odd_nan) == of(np.array([[np.nan, np.nan, 0.0]], np.float32))


def test_byte_order_does_not_count() -> None:
    values = np.array([[1.5, -2.25, 3e9]])
    assert of(values) == of(values.astype(">f8"))


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**32 - 1), st.integers(1, 64), st.integers(1, 3))
def test_a_changed_bit_or_two_changes_the_digest(seed: int, size: int, flips: int) -> None:
    rng = np.random.default_rng(seed)
    row = rng.integers(0, 2**63, (1, size), dtype=np.uint64)
    other = row.copy()
    for place in rng.choice(size * 64, size=min(flips, size * 64), replace=False):
        other[0, place // 64] ^= np.uint64(1) << np.uint64(place % 64)
    assert of(row) != of(other)


def test_flipped_signs_never_cancel() -> None:
    """Sums of products would cancel here: the sign is the highest bit of a word."""
    rng = np.random.default_rng(0)
    row = rng.normal(size=(1, 8))
    seen = set()
    for signs in range(256):
        flip = np.array([-1.0 if signs >> i & 1 else 1.0 for i in range(8)])
        seen.add(int(of(row * flip)[0]))
    assert len(seen) == 256


def test_no_two_of_many_similar_rows_collide() -> None:
    values = np.arange(300_000, dtype=np.int64)
    assert len(np.unique(of(values))) == len(values)
    pairs = np.stack(np.meshgrid(np.arange(500), np.arange(500)), axis=-1).reshape(-1, 2)
    assert len(np.unique(of(pairs))) == len(pairs)


def test_ragged_rows_count_their_lengths() -> None:
    def ragged(lengths: list[int]) -> np.ndarray:
        splits = np.concatenate([[0], np.cumsum(lengths)])
        return digest.feature_digests(Ragged((splits,), np.arange(1, splits[-1] + 1)))

    assert ragged([2, 1])[0] == ragged([2, 5])[0]
    assert ragged([2, 1])[0] != ragged([3, 0])[0]
    one, two = (Ragged((np.array([0, 1]), np.array([0, n])), np.zeros(n)) for n in (2, 3))
    assert digest.feature_digests(one) != digest.feature_digests(two)


def test_sparse_rows_count_places_but_not_the_width_of_the_batch() -> None:
    def sparse(places: list[list[int]], values: list[int], shape: list[int]) -> np.ndarray:
        return digest.feature_digests(Sparse(np.array(places).reshape(-1, 2), np.array(values), np.array(shape)))

    assert sparse([[0, 1]], [7], [1, 3]) == sparse([[0, 1]], [7], [1, 9])
    assert sparse([[0, 1]], [7], [1, 3]) != sparse([[0, 2]], [7], [1, 3])
    assert sparse([[0, 1], [0, 2]], [7, 8], [1, 3]) != sparse([[0, 1], [0, 2]], [8, 7], [1, 3])
    assert sparse([], [], [2, 3])[0] == sparse([], [], [2, 3])[1]


def test_fingerprints_of_parts_add_up_whatever_the_order() -> None:
    values = of(np.arange(100))
    whole = digest.fingerprint(values)
    shuffled = np.random.default_rng(1).permutation(values)
    assert (digest.fingerprint(shuffled[:40]) + digest.fingerprint(shuffled[40:])) % 2**64 == whole
    assert digest.fingerprint(values[1:]) != whole


@pytest.mark.parametrize("dtype", ["bool", "uint16", "complex64", "float16"])
def test_other_dtypes_have_digests(dtype: str) -> None:
    values = np.array([[1, 0], [1, 1]]).astype(dtype)
    first, second = of(values)
    assert first != second
