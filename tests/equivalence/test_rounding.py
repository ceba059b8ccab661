"""Rounding does not hide what else differs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tfqueue
from tests.equivalence.batches import cut
from tfqueue.equivalence.leaves import Dense
from tfqueue.equivalence.rounding import Rounded, fine

COUNT = 96
DATA = {
    "image": np.random.default_rng(0).integers(0, 256, (COUNT, 8, 8, 3)).astype(np.float32),
    "label": np.arange(COUNT) // 12,
}


def rounded(data: dict[str, Any]) -> dict[str, Any]:
    """The same numbers, divided in another way."""
    return data | {"image": data["image"] * np.float32(1 / 255)}


REFERENCE = DATA | {"image": DATA["image"] / np.float32(255)}
CANDIDATE = rounded(DATA)


def rows(data: dict[str, Any], order: Any) -> dict[str, Any]:
    return {name: values[order] for name, values in data.items()}


def names(report: Any) -> list[str]:
    assert not report.equivalent, str(report)
    return [cause.name for cause in report.causes]


@pytest.mark.parametrize(
    ("wrong", "cause"),
    [
        (cut(CANDIDATE, 10), "remainder-kept"),
        (cut(rows(CANDIDATE, np.r_[0:24, 36:90]), 10), "file-missing"),
        (cut(rows(CANDIDATE, np.r_[48:90, 0:48]), 10), "file-order"),
        (cut(rows(CANDIDATE, np.r_[0:90, 12:24]), 10), "file-twice"),
        (cut(rows(CANDIDATE | {"label": DATA["label"] + 1}, np.arange(90)), 10), "label-off-by-one"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_mistake_behind_it_is_named_first(wrong: Any, cause: str) -> None:
    found = names(tfqueue.compare(cut(rows(REFERENCE, np.arange(90)), 10), wrong))
    assert found[0] == cause
    assert found[-1] == "rounding"


def test_alone_it_is_a_difference_of_values_only_within_a_tolerance_none() -> None:
    left, right = cut(REFERENCE, 12), cut(CANDIDATE, 12)
    report = tfqueue.compare(left, right)
    assert names(report) == ["rounding"]
    assert report.check("order").status == "same"
    assert tfqueue.compare(left, right, rtol=1e-6).equivalent


def test_within_a_tolerance_it_is_no_cause() -> None:
    assert names(tfqueue.compare(cut(rows(REFERENCE, np.arange(90)), 10), cut(CANDIDATE, 10), rtol=1e-6)) == [
        "remainder-kept"
    ]


def test_one_digest_for_what_is_near_and_its_own_for_what_is_not() -> None:
    feature = Rounded(1e-6)
    feature.add(Dense(REFERENCE["image"]))
    feature.add(Dense(CANDIDATE["image"]))
    feature.learnt()
    own = np.arange(COUNT, dtype=np.uint64)
    ones, twos = feature.words(Dense(REFERENCE["image"]), own), feature.words(Dense(CANDIDATE["image"]), own)
    assert np.array_equal(ones, twos)
    assert len(np.unique(ones)) == COUNT
    assert np.array_equal(feature.words(Dense(REFERENCE["image"] + 0.5), own), own)


def test_what_is_rounding() -> None:
    assert fine(REFERENCE["image"], CANDIDATE["image"])
    assert not fine(REFERENCE["image"], REFERENCE["image"].astype(np.float16).astype(np.float32))
    assert not fine(DATA["label"], DATA["label"] + 1)
