"""What is no stream, fails midway, or holds unusual values: clear words, and never equal where it is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tfqueue
from tfqueue.errors import InvalidArgument, InvalidStream


def batches(count: int = 3) -> list[dict[str, Any]]:
    return [{"x": np.arange(4) + 4 * i} for i in range(count)]


def failing(after: int, words: str = "boom") -> Any:
    def stream() -> Iterator[Any]:
        yield from batches(after)
        raise ValueError(words)

    return stream


def test_a_side_that_raises_midway_is_reported_with_what_was_seen() -> None:
    report = tfqueue.compare(batches(5), failing(3))
    assert report.verdict == "different"
    assert report.candidate.records == 12
    assert "ValueError: boom" in report.check("end").summary
    both = tfqueue.compare(failing(2)(), failing(2)).check("end")
    assert (both.status, both.summary) == ("same", "both fail with ValueError: boom")
    other = tfqueue.compare(failing(2)(), failing(2, "bang")).check("end")
    assert (other.status, other.summary) == ("same", "both fail with ValueError: boom; in the candidate: bang")


def test_an_error_that_a_pipeline_wraps_is_the_same_error(tmp_path: Path) -> None:
    path = str(tmp_path / "absent")

    def legacy() -> Any:
        queue = tf.compat.v1.train.string_input_producer([path], num_epochs=1)
        return tf.compat.v1.train.batch([tf.compat.v1.TFRecordReader().read(queue)[1]], 2)

    report = tfqueue.compare(
        tfqueue.QueuePipeline(legacy, check=False), lambda: tf.data.TFRecordDataset(path).map(lambda s: (s,)).batch(2)
    )
    assert report.check("end").status == "same", report.check("end").summary
    assert "function_node" not in str(report)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (np.array([2**64 - 1, 0], np.uint64), np.array([2**64 - 2, 0], np.uint64)),
        (np.array([2**60 + 1, 0]), np.array([2**60, 0])),
        (np.array([1.0, np.inf]), np.array([1.0, -np.inf])),
        (np.array([1.0, np.inf]), np.array([1.0, 7.0])),
        (np.array([b"", b""], dtype=object), np.array([b"", b"\0"], dtype=object)),
        (np.array([b"\xff\xfe"], dtype=object), np.array([b"\xff\xfd"], dtype=object)),
        (np.array([200, 1], np.uint8), np.array([-56, 1], np.int8)),
        (np.array([-1, 1]), np.array([2**64 - 1, 1], np.uint64)),
        (np.array([2, 1]), np.array([2.5, 1.0])),
        (np.array([1 + 1j, np.nan]), np.array([1 + 1j, np.nan])),
    ],
)
@pytest.mark.parametrize("order", ["strict", "any"])
def test_unequal_values_are_never_equal(left: Any, right: Any, order: str) -> None:
    report = tfqueue.compare([{"x": left}], [{"x": right}], order=order, rtol=0.0)
    assert not report.equivalent, str(report)
    assert report.to_json()


@pytest.mark.parametrize("tolerance", [{"rtol": 1.0}, {"atol": 1e6}])
def test_an_infinity_is_near_nothing_else(tolerance: dict[str, float]) -> None:
    for right in (-np.inf, 7.0):
        assert not tfqueue.compare([np.array([1.0, np.inf])], [np.array([1.0, right])], **tolerance).equivalent
    assert tfqueue.compare([np.array([1.0, np.inf])], [np.array([1.1, np.inf])], **tolerance).equivalent


def test_nan_in_ragged_values_is_found_too() -> None:
    ragged = [{"x": tf.ragged.constant([[1.0], [2.0, float("nan")]])}]
    assert tfqueue.compare(ragged, ragged).check("values").status == "different"
    assert tfqueue.compare(ragged, ragged, equal_nan=True).equivalent


@pytest.mark.parametrize("rank", [0, 5])
def test_any_rank(rank: int) -> None:
    values = [np.full((2,) * rank, i, np.float32) for i in range(4)]
    assert tfqueue.compare(values, [v.copy() for v in values]).equivalent
    assert not tfqueue.compare(values, [v + (1 if i == 2 else 0) for i, v in enumerate(values)]).equivalent


def test_a_feature_that_appears_or_goes_midway() -> None:
    more = [*batches(2), {"x": np.arange(4) + 8, "y": np.arange(4)}]
    for stream, words in (
        (more, "has the feature y, which earlier batches lacked"),
        ([*batches(2), {"y": np.arange(4)}], "x"),
    ):
        report = tfqueue.compare(batches(3), stream)
        assert not report.equivalent
        assert words in report.check("end").summary


def test_one_pipeline_cannot_be_both_sides() -> None:
    pipeline = tfqueue.QueuePipeline(lambda: tf.constant([1]))
    with pytest.raises(InvalidArgument, match="make a second one"):
        tfqueue.compare(pipeline, pipeline)


@pytest.mark.parametrize(
    "thing", [None, 5, object(), b"x", {"x": 1}, np.zeros(3), [None], [[]], [{}], [object()], lambda: 5]
)
def test_what_is_no_stream(thing: Any) -> None:
    with pytest.raises(InvalidStream):
        tfqueue.compare(batches(), thing)


def test_numbers_of_numpy_are_options_as_well() -> None:
    assert tfqueue.compare(batches(), batches(), max_records=np.int64(5), rtol=np.float32(0.5)).equivalent


def test_a_report_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="cannot write the report"):
        tfqueue.compare(batches(), batches()).to_json(tmp_path / "absent" / "report.json")
