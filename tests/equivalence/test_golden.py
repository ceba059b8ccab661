"""Goldens: written as documented, read back as a side, refused when damaged."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

import tfqueue
from tests.equivalence.batches import changed, cut, records, taken
from tfqueue.equivalence import digest, record_golden
from tfqueue.equivalence.leaves import Dense
from tfqueue.errors import InvalidArgument, InvalidStream


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    path = tmp_path / "stream.golden"
    info = record_golden(cut(records()), path)
    assert (info.records, info.batches, info.features) == (40, 5, ("image", "label", "name"))
    return path


def test_the_bytes_are_as_documented(golden: Path) -> None:
    data = golden.read_bytes()
    assert data[:16] == b"TFQGOLDN" + struct.pack("<II", 1, 1)
    start, checksum, end = struct.unpack("<QI8s", data[-20:])
    assert end == b"TFQGOLDN"
    assert checksum == zlib.crc32(data[:-12])
    index = json.loads(data[start:-20])
    assert index["features"][0] == {"name": "image", "kind": "dense", "dtype": "uint8"}
    assert (index["records"], index["batches"], index["batched"]) == (40, 5, True)
    count, flags, nan, rank = struct.unpack_from("<IBIB", data, 16)
    assert (count, flags, nan, rank) == (8, 0, 0, 3)
    assert struct.unpack_from("<3I", data, 26) == (5, 4, 3)
    expected = digest.feature_digests(Dense(records()["image"][:8]))
    assert np.frombuffer(data, "<u8", 8, 38).tolist() == expected.tolist()


def test_a_golden_is_a_side(golden: Path) -> None:
    report = tfqueue.compare(golden, cut(records()))
    assert report.equivalent, str(report)
    assert tfqueue.compare(cut(records()), str(golden)).equivalent
    assert tfqueue.compare(golden, golden).equivalent


def test_records_features_and_batches_that_differ_are_named(golden: Path) -> None:
    report = tfqueue.compare(golden, cut(changed(records(), "label", (9,), 99)))
    assert not report.equivalent
    (difference,) = report.differences
    assert (difference.feature, difference.reference.record, difference.reference_value) == ("label", 9, None)
    assert "label differ; a golden holds no values" in " ".join(str(report).split())
    assert not tfqueue.compare(golden, cut(records(), 10)).equivalent
    other = records()
    other["label"] = other["label"].astype(np.int32)
    assert [r.name for r in tfqueue.compare(golden, cut(other)).checks if r.status == "different"] == ["dtype"]


def test_a_shuffled_candidate_is_matched(golden: Path) -> None:
    data = changed(records(), "image", (9, 0, 0, 0), 3)
    report = tfqueue.compare(golden, cut(taken(data, np.random.default_rng(0).permutation(40))), order="any")
    (difference,) = report.differences
    assert (difference.kind, difference.feature, difference.reference.record) == ("changed", "image", 9)
    report.to_json()


def test_streams_that_never_end_are_cut(tmp_path: Path) -> None:
    info = record_golden((np.arange(4) for _ in iter(int, 1)), tmp_path / "g", max_records=10)
    assert info.records == 10
    assert tfqueue.compare(tmp_path / "g", (np.arange(4) for _ in range(3)), max_records=10).equivalent
    with pytest.raises(InvalidArgument, match="max_records"):
        record_golden([], tmp_path / "h", max_records=0)


def test_what_cannot_be_recorded_leaves_nothing(tmp_path: Path) -> None:
    def failing():
        yield np.arange(3)
        raise OSError("disk on fire")

    with pytest.raises(OSError, match="disk on fire"):
        record_golden(failing(), tmp_path / "g")
    with pytest.raises(InvalidStream, match="no batch"):
        record_golden([], tmp_path / "g")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InvalidArgument, match="cannot write"):
        record_golden(cut(records()), tmp_path / "nowhere" / "g")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: b"something else, long enough", "is no golden"),
        (lambda data: data[:8] + struct.pack("<II", 9, 1) + data[16:], "format 9"),
        (lambda data: data[:-30], "is cut"),
        (lambda data: data[:20], "is cut"),
        (lambda data: data[:100] + bytes([data[100] ^ 1]) + data[101:], "is damaged"),
        (lambda data: b"", "is no golden"),
    ],
)
def test_damaged_goldens_are_refused(golden: Path, damage, words: str) -> None:
    golden.write_bytes(damage(golden.read_bytes()))
    with pytest.raises(InvalidStream, match=words):
        tfqueue.compare(golden, cut(records()))


def test_a_path_without_a_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidStream, match="cannot read the golden"):
        tfqueue.compare(tmp_path / "none", cut(records()))


def test_nan_and_padding_survive(tmp_path: Path) -> None:
    data = [np.array([[1.0, np.nan], [2.0, 0.0]]), np.array([[1.0, 0.0], [2.0, 0.0]])]
    record_golden(data, tmp_path / "g")
    assert "value is NaN in 1 record" in str(tfqueue.compare(tmp_path / "g", data))
    assert tfqueue.compare(tmp_path / "g", data, equal_nan=True).equivalent


def test_a_golden_of_a_later_version_that_knows_more_of_the_order(golden: Path) -> None:
    data = golden.read_bytes()
    start = struct.unpack("<QI8s", data[-20:])[0]
    index = json.loads(data[start:-20])
    index["ordering"]["something_new"] = 3
    body = data[:start] + json.dumps(index).encode() + struct.pack("<Q", start)
    golden.write_bytes(body + struct.pack("<I8s", zlib.crc32(body), b"TFQGOLDN"))
    assert tfqueue.compare(golden, cut(records())).equivalent
