"""compare: what is equal, what is different, and that the first difference is named."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tfqueue
from tests.equivalence.batches import changed, cut, records, taken
from tfqueue import errors
from tfqueue.equivalence import Report


def failed(report: Report) -> list[str]:
    return [r.name for r in report.checks if r.status == "different" and r.counts]


def test_equal_streams_are_equivalent() -> None:
    report = tfqueue.compare(cut(records()), iter(cut(records())))
    assert report.equivalent, str(report)
    assert report.verdict == "equivalent"
    assert {r.status for r in report.checks if r.counts} == {"same"}
    assert str(report).startswith("equivalent: 40 records in 5 batches")


def test_one_pixel_is_named() -> None:
    data = records()
    other = changed(data, "image", (21, 3, 2, 1), int(data["image"][21, 3, 2, 1]) ^ 1)
    report = tfqueue.compare(cut(data), cut(other))
    assert failed(report) == ["records", "values"]
    (difference,) = report.differences
    assert difference.kind == "changed"
    assert (difference.reference.batch, difference.reference.row, difference.reference.record) == (2, 5, 21)
    assert (difference.feature, difference.index) == ("image", (3, 2, 1))
    assert difference.reference_value == data["image"][21, 3, 2, 1]
    assert difference.candidate_value == other["image"][21, 3, 2, 1]
    assert difference.differing == {"image": 1}
    np.testing.assert_array_equal(difference.candidate_record["image"], other["image"][21])
    assert "record 21 (batch 2, row 5): image[3, 2, 1]" in str(report)


def test_one_label_is_named() -> None:
    report = tfqueue.compare(cut(records()), cut(changed(records(), "label", (9,), 99)))
    assert failed(report) == ["records", "values"]
    assert "label is 2 in the reference, 99 in the candidate" in " ".join(str(report).split())


def test_one_pixel_is_named_in_a_shuffled_stream() -> None:
    data = records(200)
    other = taken(
        changed(data, "image", (70, 0, 0, 0), int(data["image"][70, 0, 0, 0]) ^ 4),
        np.random.default_rng(3).permutation(200),
    )
    report = tfqueue.compare(cut(data), cut(other), order="any")
    assert "records" in failed(report)
    (difference,) = report.differences
    assert (difference.kind, difference.reference.record, difference.feature) == ("changed", 70, "image")
    assert difference.index == (0, 0, 0)


def test_one_record_missing_and_one_doubled() -> None:
    order = [i if i != 17 else 16 for i in range(40)]
    report = tfqueue.compare(cut(records()), cut(taken(records(), order)))
    assert not report.equivalent
    assert report.check("records").evidence["missing"] == report.check("records").evidence["extra"] == 1
    assert "record 17" in str(report)


def test_batch_size_is_different() -> None:
    report = tfqueue.compare(cut(records(), 8), cut(records(), 10))
    assert failed(report) == ["batches"]
    assert "batch 0 holds 8 records in the reference, 10 in the candidate" in report.check("batches").summary


def test_dropped_remainder_is_different() -> None:
    report = tfqueue.compare(cut(records(), 12), cut(records(), 12, drop=True))
    assert failed(report) == ["records", "batches"]
    assert report.check("records").evidence["missing"] == 4


def test_swapped_records_of_an_ordered_stream_are_different() -> None:
    order = np.arange(40)
    order[[5, 30]] = order[[30, 5]]
    report = tfqueue.compare(cut(records()), cut(taken(records(), order)))
    assert failed(report) == ["order"]
    assert report.check("order").evidence["first_position"] == 5
    assert "first at record 5 (batch 0, row 5)" in report.check("order").summary
    assert tfqueue.compare(cut(records()), cut(taken(records(), order)), order="any").equivalent


def test_two_shuffled_streams_are_equivalent_unless_order_is_asked_for() -> None:
    rng = np.random.default_rng(0)
    one, two = (cut(taken(records(300), rng.permutation(300))) for _ in range(2))
    assert tfqueue.compare(one, two).equivalent
    report = tfqueue.compare(one, two, order="strict")
    assert failed(report) == ["order"]


def test_dtype_alone_is_different_in_dtype_alone() -> None:
    other = records()
    other["label"] = other["label"].astype(np.int32)
    report = tfqueue.compare(cut(records()), cut(other))
    assert failed(report) == ["dtype"]
    assert "label is int64 in the reference, int32 in the candidate" in report.check("dtype").summary


def test_shape_is_different() -> None:
    other = records()
    other["image"] = other["image"][:, :, :, :1]
    report = tfqueue.compare(cut(records()), cut(other))
    assert "shape" in failed(report)
    assert "image is [5, 4, 3] in the reference, [5, 4, 1] in the candidate" in report.check("shape").summary


def test_structures() -> None:
    data = cut(records())
    pair = [(b["image"], b["label"]) for b in data]
    Both = namedtuple("Both", "image label")
    assert tfqueue.compare(pair, [list(b) for b in pair]).equivalent
    assert tfqueue.compare([Both(*b) for b in pair], [{"label": b[1], "image": b[0]} for b in pair]).equivalent
    renamed = [{"img": b["image"], "label": b["label"], "name": b["name"]} for b in data]
    report = tfqueue.compare(data, renamed)
    assert failed(report) == ["structure"]
    assert "the candidate calls image img" in str(report)
    assert failed(tfqueue.compare(pair, [(b[1], b[0]) for b in pair])) == ["structure"]
    fewer = tfqueue.compare(data, [{"image": b["image"], "label": b["label"]} for b in data])
    assert failed(fewer) == ["structure"]
    assert "the candidate lacks name" in str(fewer)


def test_sides_without_a_common_feature_are_different() -> None:
    report = tfqueue.compare([{"a": np.zeros(3)}], [{"b": np.array([b"x", b"y", b"z"]), "c": np.zeros(3)}])
    assert not report.equivalent
    assert "structure" in failed(report)


def test_empty_streams() -> None:
    both = tfqueue.compare([], [])
    assert (both.verdict, both.equivalent) == ("undecided", False)
    assert "neither side delivered a record" in str(both)
    one = tfqueue.compare(cut(records()), [])
    assert failed(one) == ["records"]
    assert "the candidate delivered no record, the reference 40 records" in str(one)


def test_empty_batches_are_batches() -> None:
    data = cut(records())
    empty = {k: v[:0] for k, v in data[0].items()}
    assert tfqueue.compare([*data, empty], [*data, empty]).equivalent
    assert failed(tfqueue.compare([*data, empty], data)) == ["batches"]


def test_nan_is_equal_only_when_asked() -> None:
    data = [np.array([1.0, np.nan, 3.0])]
    report = tfqueue.compare(data, data)
    assert failed(report) == ["values"]
    assert "value is NaN in 1 record of the reference (first: record 1 (batch 0, row 1))" in str(report)
    assert tfqueue.compare(data, data, equal_nan=True).equivalent


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4, 5, 2)])
def test_any_rank(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    stream = [rng.normal(size=shape) for _ in range(4)]
    assert tfqueue.compare(stream, [x.copy() for x in stream]).equivalent
    other = [x + (i == 2) for i, x in enumerate(stream)]
    assert not tfqueue.compare(stream, other).equivalent


def test_strings_that_are_not_utf8() -> None:
    one = [np.array([b"\xff\xfe", b"\x00", b""], dtype=object)]
    two = [np.array([b"\xff\xff", b"\x00", b""], dtype=object)]
    assert tfqueue.compare(one, one).equivalent
    report = tfqueue.compare(one, two)
    assert not report.equivalent
    assert r"\xff" in str(report)
    report.to_json()


def test_trailing_nul_bytes_of_strings_count() -> None:
    one, two = ([np.array([text, b"b"], dtype=object)] for text in (b"a", b"a\x00"))
    assert not tfqueue.compare(one, two).equivalent


def test_batches_with_unequal_numbers_of_records_end_the_side() -> None:
    data = cut(records())
    ragged = [*data[:2], data[2] | {"label": data[2]["label"][:-1]}, *data[3:]]
    report = tfqueue.compare(data, ragged)
    assert "end" in failed(report)
    words = " ".join(str(report).split())
    assert "batch 2 of the candidate holds unequal numbers of records: image 8, label 7, name 8" in words


def test_a_side_that_raises_midway_is_reported_up_to_there() -> None:
    def stream() -> Iterator[Any]:
        yield from cut(records())[:3]
        raise OSError("disk on fire")

    report = tfqueue.compare(cut(records()), stream())
    assert "end" in failed(report)
    assert report.candidate.records == 24
    words = " ".join(str(report).split())
    assert "the candidate failed after 3 batches (24 records): OSError: disk on fire" in words


def test_the_same_error_on_both_sides_is_the_same_end() -> None:
    def stream() -> Iterator[Any]:
        yield from cut(records())
        raise OSError("disk on fire")

    assert tfqueue.compare(stream(), stream()).equivalent
    with pytest.raises(KeyError):
        tfqueue.compare(stream(), stream()).check("no such check")


def test_endless_streams_are_cut() -> None:
    def endless() -> Iterator[Any]:
        i = 0
        while True:
            yield np.arange(i, i + 8)
            i += 8

    report = tfqueue.compare(endless(), endless(), max_records=100)
    assert report.equivalent, str(report)
    assert report.reference.records == 100
    finite = [np.arange(i, i + 8) for i in range(0, 80, 8)]
    beyond = tfqueue.compare(finite, endless())
    assert failed(beyond) == ["records", "batches", "end"]
    assert "still delivering" in beyond.check("end").summary


def test_values_within_a_tolerance() -> None:
    rng = np.random.default_rng(0)
    one = [rng.normal(size=(8, 6)).astype(np.float32) for _ in range(5)]
    two = [x + np.float32(1e-6) for x in one]
    assert failed(tfqueue.compare(one, two)) == ["records", "values"]
    report = tfqueue.compare(one, two, atol=1e-5)
    assert report.equivalent, str(report)
    assert "within the tolerance" in report.check("records").summary
    assert report.check("values").evidence["value"]["max_ulp"] > 0
    two[3][2, 1] += 1
    report = tfqueue.compare(one, two, tolerances={"value": (0, 1e-5)})
    assert failed(report) == ["records", "values"]
    assert report.check("values").evidence["value"]["worst"]["record"] == 26
    assert report.check("values").evidence["value"]["beyond_tolerance"] == 1


def test_a_stream_that_fills_the_same_buffer_again() -> None:
    def reusing(size: int) -> Iterator[Any]:
        buffer = np.zeros((size, 3), np.int64)
        for i in range(0, 48, size):
            buffer[:] = np.arange(i, i + size)[:, None]
            yield buffer

    report = tfqueue.compare(reusing(8), reusing(6))
    assert failed(report) == ["batches"]
    wrong = [np.repeat(np.arange(i, i + 6)[:, None], 3, axis=1) for i in range(0, 48, 6)]
    wrong[4][0, 1] = 1000
    report = tfqueue.compare(reusing(8), wrong)
    assert report.differences[0].reference_value == 24
    assert report.differences[0].candidate_value == 1000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"order": "sorted"}, "order must be one of"),
        ({"rtol": -1}, "rtol must be a finite number"),
        ({"atol": float("nan")}, "atol must be a finite number"),
        ({"max_records": 0}, "max_records must be a positive number"),
        ({"samples": -1}, "samples must be"),
        ({"key": 3}, "key must be"),
        ({"key": "id"}, "key names the feature 'id'; the reference has: image, label, name"),
        ({"tolerances": {"picture": 1}}, "tolerances names the feature 'picture'"),
        ({"tolerances": 1}, "tolerances must be a dict"),
        ({"tolerances": {"image": "a lot"}}, "the tolerance of image must be"),
    ],
)
def test_options_that_cannot_be_meant(options: dict[str, Any], words: str) -> None:
    with pytest.raises(errors.InvalidArgument, match=words):
        tfqueue.compare(cut(records()), cut(records()), **options)


def test_assert_equivalent() -> None:
    assert tfqueue.assert_equivalent(cut(records()), cut(records())) is None
    with pytest.raises(errors.NotEquivalent, match="label is 2") as caught:
        tfqueue.assert_equivalent(cut(records()), cut(changed(records(), "label", (9,), 99)))
    assert not caught.value.report.equivalent
    assert isinstance(caught.value, AssertionError)


def test_values_within_a_tolerance_in_any_order() -> None:
    rng = np.random.default_rng(0)
    one = {"x": rng.normal(size=(200, 6)).astype(np.float32), "label": np.arange(200) % 5}
    two = {"x": one["x"] * np.float32(1 + 1e-6), "label": one["label"]}
    left, right = cut(taken(one, rng.permutation(200))), cut(taken(two, rng.permutation(200)))
    report = tfqueue.compare(left, right, rtol=1e-5)
    assert report.equivalent, str(report)
    assert "within the tolerance" in report.check("records").summary
    assert failed(tfqueue.compare(left, right, rtol=1e-7)) == ["records", "values"]
    wrong = cut(taken(changed(two, "x", (77, 2), 9.0), rng.permutation(200)))
    report = tfqueue.compare(left, wrong, rtol=1e-5)
    assert "records" in failed(report)


def test_records_dropped_by_two_shuffled_sides_are_no_difference() -> None:
    def dropping() -> list[Any]:
        return cut(taken(records(45), rng.permutation(45)), 8, drop=True)

    rng = np.random.default_rng(5)
    for _ in range(5):
        report = tfqueue.compare(dropping(), dropping)
        assert report.equivalent, str(report)
    data = records(45)
    order = np.concatenate([[3], rng.permutation(np.delete(np.arange(45), 3))])
    wrong = cut(taken(changed(data, "label", (3,), 50), order), 8, drop=True)
    assert not tfqueue.compare(cut(data, 8, drop=True), wrong).equivalent


def test_a_changed_record_is_matched_wherever_it_stands() -> None:
    rng = np.random.default_rng(2)
    data = {"image": rng.integers(0, 256, (120, 12, 12, 3)).astype(np.float32)}
    drifted = {"image": data["image"] + rng.normal(size=data["image"].shape).astype(np.float32)}
    report = tfqueue.compare(cut(data), cut(taken(drifted, order := rng.permutation(120))), samples=50)
    pairs = [(d.reference.record, d.candidate.record) for d in report.differences if d.kind == "changed"]
    assert len(pairs) >= 40
    assert all(order[theirs] == ours for ours, theirs in pairs)


@pytest.mark.parametrize("key", ["id", lambda record: record["id"] * 2])
def test_records_are_paired_by_key(key: Any) -> None:
    rng = np.random.default_rng(1)
    data = {"id": np.arange(50), "x": rng.normal(size=(50, 3))}
    other = {"id": np.arange(50), "x": rng.normal(size=(50, 3))}  # nothing but the key tells which is which
    report = tfqueue.compare(cut(data), cut(taken(other, order := rng.permutation(50))), key=key, samples=50)
    pairs = [(d.reference.record, d.candidate.record) for d in report.differences if d.kind == "changed"]
    assert len(pairs) == 50
    assert all(order[theirs] == ours for ours, theirs in pairs)
    assert {d.feature for d in report.differences} == {"x"}


def test_a_key_that_fails_is_named() -> None:
    with pytest.raises(errors.InvalidArgument, match=r"key failed on record 9: KeyError: 'none'"):
        tfqueue.compare(cut(records()), cut(changed(records(), "label", (9,), 99)), key=lambda r: r["none"])


def padded(images: list[np.ndarray], size: int = 4) -> list[dict[str, np.ndarray]]:
    """Batches of images of unequal height and width, filled up to the largest of each batch."""
    batches = []
    for start in range(0, len(images), size):
        part = images[start : start + size]
        shape = [len(part), *np.max([image.shape for image in part], axis=0)]
        batch = np.zeros(shape, np.uint8)
        for row, image in zip(batch, part, strict=True):
            row[: image.shape[0], : image.shape[1]] = image
        batches.append({"image": batch})
    return batches


def test_images_padded_along_two_axes_in_another_order_are_the_same() -> None:
    rng = np.random.default_rng(0)
    images = [rng.integers(1, 256, (*rng.integers(3, 9, 2), 3)).astype(np.uint8) for _ in range(40)]
    other = [images[i] for i in rng.permutation(40)]
    assert tfqueue.compare(padded(images), padded(other), order="any").equivalent
    other[7] = other[7].copy()
    other[7][1, 1, 1] ^= 1
    assert not tfqueue.compare(padded(images), padded(other), order="any").equivalent


def test_dropped_records_that_cannot_be_verified_leave_it_undecided() -> None:
    rng = np.random.default_rng(5)
    one, two = (cut(taken(records(45), rng.permutation(45)), 8, drop=True) for _ in range(2))
    report = tfqueue.compare(one, two)
    assert report.verdict == "undecided"
    assert "or so it seems" in report.check("records").summary


def test_a_function_that_works_only_once_is_reported_for_what_it_delivered() -> None:
    streams = [cut(changed(records(), "label", (9,), 99))]

    def once() -> Any:
        return streams.pop()

    order = np.random.default_rng(0).permutation(40)
    report = tfqueue.compare(cut(taken(records(), order)), once, order="any")
    assert "records" in failed(report)
