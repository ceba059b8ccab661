"""Functions of values: each is named by its kind, with its formula; noise and other mistakes are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfqueue
from tests.equivalence.batches import cut
from tfqueue.equivalence.causes.functions import function_causes
from tfqueue.equivalence.causes.numbers import _line

RANDOM = np.random.default_rng(3)
NUMBERS = np.arange(64)
FLAT = RANDOM.gamma(2, 1, (64, 6)).astype(np.float32) + np.float32(0.05)
IMAGES = RANDOM.uniform(0, 1, (64, 8, 8, 3)).astype(np.float32)

Function = Callable[[np.ndarray], np.ndarray]

WRONG: dict[str, tuple[np.ndarray, Function, str, str]] = {
    "log": (FLAT, np.log, "function-applied", "candidate = log(reference)"),
    "decibels": (FLAT, lambda x: 20 * np.log10(x), "function-applied", "candidate = 8.68589 * log(reference)"),
    "log1p": (FLAT, np.log1p, "function-applied", "candidate = log1p(reference)"),
    "log of a sum": (
        np.where(FLAT < 1, 0, FLAT),
        lambda x: np.log(x + 1e-6),
        "function-applied",
        "candidate = log(reference + 1e-06)",
    ),
    "sqrt with zeros": (np.where(FLAT < 1, 0, FLAT), np.sqrt, "function-applied", "= reference ** 0.5"),
    "exp": (FLAT, np.exp, "function-applied", "candidate = exp(reference)"),
    "sqrt": (FLAT, np.sqrt, "function-applied", "= reference ** 0.5"),
    "gamma": (IMAGES, lambda x: x ** np.float32(2.2), "function-applied", "= reference ** 2.2"),
    "reciprocal": (FLAT, lambda x: 1 / x, "function-applied", "= reference ** -1"),
    "abs": (FLAT - 1.5, np.abs, "function-applied", "candidate = abs(reference)"),
    "square": (FLAT - 1.5, np.square, "function-applied", "candidate = square(reference)"),
    "tanh": (FLAT - 1.5, np.tanh, "function-applied", "candidate = tanh(reference)"),
    "sigmoid": (FLAT - 1.5, lambda x: 1 / (1 + np.exp(-x)), "function-applied", "sigmoid(reference)"),
    "one minus": (IMAGES, lambda x: 1 - x, "scaled", "candidate = -1 * reference +1"),
    "relu": (FLAT - 1.5, lambda x: np.maximum(x, 0), "clipped", "clipped: none below 0"),
    "clip": (IMAGES, lambda x: np.clip(x, 0.2, 0.8), "clipped", "none below 0.2 and none above 0.8"),
    "columns": (
        FLAT,
        lambda x: (x - x.mean(0)) / x.std(0),
        "scaled",
        "each column is scaled and moved by constants of its own",
    ),
    "l2": (
        FLAT,
        lambda x: x / np.linalg.norm(x, axis=1, keepdims=True),
        "normalised",
        "squares of the values add up to 1",
    ),
    "l1": (FLAT, lambda x: x / x.sum(1, keepdims=True), "normalised", "the values add up to 1"),
    "min-max": (
        IMAGES,
        lambda x: (x - x.min((1, 2, 3), keepdims=True)) / np.ptp(x, axis=(1, 2, 3), keepdims=True),
        "normalised",
        "the values run from 0 to 1",
    ),
    "largest": (FLAT, lambda x: x / x.max(1, keepdims=True), "normalised", "the largest value is 1"),
    "contrast": (
        IMAGES,
        lambda x: (x - x.mean((1, 2, 3), keepdims=True)) * 1.5 + x.mean((1, 2, 3), keepdims=True),
        "normalised",
        "each record is scaled and moved by constants of its own",
    ),
}


@pytest.mark.parametrize("forgotten", [False, True], ids=["added", "forgotten"])
@pytest.mark.parametrize("name", WRONG)
def test_a_function_is_named(name: str, forgotten: bool) -> None:
    values, function, cause, words = WRONG[name]
    made = function(values).astype(np.float32)
    sides = [cut({"n": NUMBERS, "x": x}) for x in ((made, values) if forgotten else (values, made))]
    report = tfqueue.compare(*sides)
    assert not report.equivalent
    assert [(found.name, found.feature) for found in report.causes] == [(cause, "x")], report.causes
    if not forgotten:
        assert words in report.causes[0].evidence


def test_what_is_no_function_is_not_named() -> None:
    noise = RANDOM.normal(size=FLAT.shape).astype(np.float32)
    for wrong in (noise, FLAT + noise / 10, FLAT * (1 + noise / 100), np.sort(FLAT, axis=0)):
        report = tfqueue.compare(cut({"n": NUMBERS, "x": FLAT}), cut({"n": NUMBERS, "x": wrong}))
        assert not report.equivalent
        assert not {"function-applied", "clipped", "normalised", "scaled"} & {cause.name for cause in report.causes}


@settings(max_examples=200)
@given(st.integers(0, 1 << 30), st.integers(8, 40), st.integers(1, 9), st.sampled_from(("f", "i")))
def test_two_unlike_features_have_no_function(seed: int, records: int, width: int, kind: str) -> None:
    random = np.random.default_rng(seed)
    both = random.normal(size=(2, records, width)) * 50
    if kind == "i":
        both = np.rint(both)
    assert list(function_causes(*both, _line)) == []
