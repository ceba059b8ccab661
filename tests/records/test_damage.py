"""Truth table: each byte of a file flipped, each length to which it can be cut, compressed and not."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tfqueue import records
from tfqueue.errors import DamagedRecord, InvalidArgument
from tfqueue.records.damage import Damage, Frame, walk
from tfqueue.records.framing import HEADER_SIZE, frames
from tfqueue.records.scan import frames as read_frames
from tfqueue.records.scan import sniff

PAYLOADS = [b"abc", b"", b"hello world" * 5, np.random.default_rng(0).bytes(90), b"\0" * 40]
PLAIN = frames(PAYLOADS)
STARTS = np.cumsum([0, *(16 + len(payload) for payload in PAYLOADS)]).tolist()
COMPRESSED = {
    "": PLAIN,
    "GZIP": gzip.compress(PLAIN, mtime=0),
    "ZLIB": zlib.compress(PLAIN),
}


def read_all(path: Path) -> tuple[list[bytes], DamagedRecord | None]:
    """Reads as far as it goes; returns the payloads and the error, or None at a clean end."""
    found = []
    try:
        for _, _, payload in read_frames(path):
            found.append(payload)
    except DamagedRecord as error:
        return found, error
    return found, None


def damage_of(path: Path) -> list[Damage]:
    return [found for found in walk(path) if isinstance(found, Damage)]


def kind_at(position: int) -> tuple[int, str]:
    """What must be said of a wrong byte: the record, and the part of its frame."""
    record = int(np.searchsorted(STARTS, position, side="right")) - 1
    inside = position - STARTS[record]
    if inside < 8:
        return record, "length"
    if inside < HEADER_SIZE:
        return record, "length-checksum"
    return record, "payload" if inside < HEADER_SIZE + len(PAYLOADS[record]) else "payload-checksum"


@pytest.mark.parametrize("change", [0x01, 0x80, 0xFF])
def test_every_byte_flipped(tmp_path: Path, change: int) -> None:
    path = tmp_path / "a"
    for position in range(len(PLAIN)):
        data = bytearray(PLAIN)
        data[position] ^= change
        path.write_bytes(data)
        record, kind = kind_at(position)

        (problem,) = records.verify(path).problems
        assert (problem.record, problem.offset, problem.kind) == (record, STARTS[record], kind), position

        found, error = read_all(path)
        assert found == PAYLOADS[:record]
        assert error is not None
        assert (error.file, error.record, error.offset) == (str(path), record, STARTS[record])

        report = records.salvage(path, tmp_path / "b", overwrite=True)
        kept = [payload for _, _, payload in read_frames(tmp_path / "b")]
        if kind == "payload":
            assert kept == PAYLOADS[:record] + PAYLOADS[record + 1 :]
            assert (report.whole, report.repaired, report.lost) == (len(PAYLOADS) - 1, 0, 1)
            assert report.bytes_lost == 16 + len(PAYLOADS[record])
        else:  # the frame is damaged, but the payload is proved by its own checksum
            assert kept == PAYLOADS
            assert (report.whole, report.repaired, report.lost) == (len(PAYLOADS) - 1, 1, 0)


def test_cut_at_every_length(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for size in range(len(PLAIN)):
        path.write_bytes(PLAIN[:size])
        record = int(np.searchsorted(STARTS, size, side="right")) - 1
        inside = size - STARTS[record]
        found, error = read_all(path)
        assert found == PAYLOADS[:record]
        problems = records.verify(path).problems
        if inside == 0:  # whole by itself: only a manifest or an index can tell
            assert error is None
            assert not problems
            continue
        assert error is not None
        assert (error.record, error.offset) == (record, STARTS[record])
        kind = "cut-header" if inside < HEADER_SIZE else "cut-payload"
        if inside >= HEADER_SIZE + len(PAYLOADS[record]):
            kind = "cut-checksum"
        assert [(p.record, p.offset, p.kind) for p in problems] == [(record, STARTS[record], kind)]
        if record:
            assert records.salvage(path, tmp_path / "b", overwrite=True).whole == record


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
@pytest.mark.parametrize("change", [0x01, 0x80, 0xFF])
def test_every_byte_of_a_compressed_file_flipped(tmp_path: Path, compression: str, change: int) -> None:
    path = tmp_path / "a"
    silent = 0
    for position in range(len(COMPRESSED[compression])):
        data = bytearray(COMPRESSED[compression])
        data[position] ^= change
        path.write_bytes(data)
        found, error = read_all(path)
        # Whatever was given before an error was really there.
        assert found == PAYLOADS[: len(found)]
        verification = records.verify(path)
        assert verification.ok == (error is None)
        if error is None:  # a byte that means nothing, such as the time in a gzip header: nothing is lost
            assert found == PAYLOADS
            silent += 1
        else:
            assert verification.problems[0].record == len(found) == error.record
    assert silent <= 9  # time, flags and system in a gzip header, and the unused bits of its last block


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_a_compressed_file_cut_at_every_length(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "a"
    for size in range(1, len(COMPRESSED[compression])):
        path.write_bytes(COMPRESSED[compression][:size])
        found, error = read_all(path)
        assert error is not None
        assert found == PAYLOADS[: len(found)]
        assert not records.verify(path).ok
        if found:
            assert records.salvage(path, tmp_path / "b", overwrite=True).whole == len(found)
    path.write_bytes(COMPRESSED[compression][:-1])
    assert read_all(path)[0] == PAYLOADS  # only the checksum of the stream is cut


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_damage_inside_the_compressed_data(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "a"
    data = bytearray(PLAIN)
    data[STARTS[2] + 20] ^= 1
    path.write_bytes(gzip.compress(data) if compression == "GZIP" else zlib.compress(data))
    assert [(p.record, p.offset, p.kind) for p in records.verify(path).problems] == [(2, STARTS[2], "payload")]
    records.salvage(path, tmp_path / "b")
    assert read_all(tmp_path / "b") == (PAYLOADS[:2] + PAYLOADS[3:], None)


def test_several_gzip_members(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(PLAIN) + gzip.compress(PLAIN))
    assert read_all(path) == (PAYLOADS * 2, None)
    path.write_bytes(gzip.compress(PLAIN) + b"junk")
    found, error = read_all(path)
    assert found == PAYLOADS
    assert "bytes that belong to no GZIP stream follow" in str(error)


def test_large_compressed_files_lose_nothing_before_the_damage(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    payloads = [rng.integers(0, 4, 3000, dtype=np.uint8).tobytes() for _ in range(1000)]
    packed = bytearray(gzip.compress(frames(payloads), 1))
    middle = len(packed) // 2
    packed[middle] ^= 0xFF
    path = tmp_path / "a"
    path.write_bytes(packed)
    found, error = read_all(path)
    assert error is not None
    assert found == payloads[: len(found)]
    # Not only up to the last block read: up to the record in which the damaged byte lies.
    assert abs(len(found) - 500) < 15


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
@pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
def test_damage_in_a_compressed_stream_does_not_spread(tmp_path: Path, compression: str, place: float) -> None:
    rng = np.random.default_rng(1)
    payloads = [rng.integers(0, 4, 3000, dtype=np.uint8).tobytes() + str(number).encode() for number in range(2000)]
    path = tmp_path / "a"
    with records.RecordWriter(path, compression=compression) as writer:
        for payload in payloads:
            writer.write_serialized(payload)
    assert read_all(path) == (payloads, None)
    assert [record.numpy() for record in tf.data.TFRecordDataset(str(path), compression_type=compression)] == payloads
    data = bytearray(path.read_bytes())
    middle = int(len(data) * place)
    data[middle : middle + 8] = b"\xff" * 8
    path.write_bytes(data)
    report = records.salvage(path, tmp_path / "b")
    kept, error = read_all(tmp_path / "b")
    assert error is None
    rest = iter(payloads)
    assert all(any(payload == other for other in rest) for payload in kept)
    # At most what stands between two flushes, a megabyte, is lost; and the last checksum can no longer be checked.
    assert 2000 - len(kept) < 360
    assert kept[-1] == payloads[-1] or place == 0.9  # where no flush follows
    assert abs(report.problems[0].record - place * 2000) < 360
    assert "compression" in [problem.kind for problem in report.problems]


@pytest.mark.parametrize("place", [0.2, 0.5, 0.8])
def test_damage_in_a_stream_that_was_made_very_small(tmp_path: Path, place: float) -> None:
    """Where a few bytes of the stream are megabytes of data, which come out in several steps."""
    payloads = [b"a" * 20_000 + str(number).encode() for number in range(1000)]
    data = bytearray(gzip.compress(frames(payloads)))
    middle = int(len(data) * place)
    data[middle : middle + 8] = b"\xff" * 8
    path = tmp_path / "a"
    path.write_bytes(data)
    found, error = read_all(path)
    assert error is not None
    assert found == payloads[: len(found)]
    assert error.record == len(found)
    assert 1000 * place - 15 < len(found) < 1000 * place + 15
    assert [found.payload for found in walk(path) if isinstance(found, Frame)][: len(found)] == found


def test_two_wrong_bytes_in_a_header(tmp_path: Path) -> None:
    path = tmp_path / "a"
    data = bytearray(PLAIN)
    data[STARTS[2]] ^= 0x55
    data[STARTS[2] + 9] ^= 0x55
    path.write_bytes(data)
    (damage,) = damage_of(path)
    assert (damage.record, damage.offset, damage.end, damage.kind) == (2, STARTS[2], STARTS[3], "header")
    assert damage.payload == PAYLOADS[2]  # between two frames, and its own checksum fits


def test_a_damaged_header_and_payload(tmp_path: Path) -> None:
    path = tmp_path / "a"
    data = bytearray(PLAIN)
    for position in (0, 9, 15):
        data[STARTS[2] + position] ^= 0x55
    path.write_bytes(data)
    (damage,) = damage_of(path)
    assert (damage.offset, damage.end, damage.kind, damage.payload) == (STARTS[2], STARTS[3], "header", None)
    assert records.salvage(path, tmp_path / "b").bytes_lost == STARTS[3] - STARTS[2]


@settings(deadline=None, max_examples=150)
@given(
    # Not of eight bytes: a header without its payload takes the next header for one, and is a whole frame then.
    st.lists(st.binary(max_size=60).filter(lambda payload: len(payload) != 8), min_size=3, max_size=12),
    st.data(),
)
def test_lost_inserted_and_overwritten_bytes(
    tmp_path_factory: pytest.TempPathFactory, payloads: list[bytes], data: st.DataObject
) -> None:
    """Whatever happens inside some records, all others are found, and nothing that was not there."""
    folder = tmp_path_factory.mktemp("damage")
    hit = data.draw(st.sets(st.integers(0, len(payloads) - 1), min_size=1, max_size=3))
    pieces = []
    for record, payload in enumerate(payloads):
        frame = frames([payload])
        if record in hit:
            place = data.draw(st.integers(0, len(frame) - 1))
            length = data.draw(st.integers(1, 20))
            action = data.draw(st.sampled_from(["lose", "insert", "overwrite"]))
            new = data.draw(st.binary(min_size=length, max_size=length))
            if action == "lose":
                frame = frame[:place] + frame[place + length :]
            elif action == "insert":
                frame = frame[:place] + new + frame[place:]
            else:
                frame = (frame[:place] + new + frame[place + length :])[: len(frame)]
        pieces.append(frame)
    path = folder / "a"
    path.write_bytes(b"".join(pieces))
    events = list(walk(path, search=True))
    found = [event.payload for event in events if event.payload is not None]
    untouched = [payload for record, payload in enumerate(payloads) if record not in hit]
    # Only what is whole frames from end to end (one may have been lost as a whole) is called undamaged.
    undamaged = path.read_bytes() == frames(found)
    assert undamaged != any(isinstance(event, Damage) for event in events)
    rest = iter(payloads)
    assert all(any(payload == other for other in rest) for payload in found), "a record that was never written"
    # Every untouched record is there, unless the hole before it swallowed the beginning of its frame.
    assert len(found) >= len(untouched)


def test_a_first_record_that_begins_like_something_else(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(frames([b"GIF89a" + bytes(30), b"one", b"two"])[HEADER_SIZE:])
    (problem,) = records.verify(path).problems
    assert (problem.kind, "it is a gif file" in problem.words) == ("not-tfrecord", True)
    report = records.salvage(path, tmp_path / "b")
    assert read_all(tmp_path / "b") == ([b"one", b"two"], None)
    assert (report.whole, report.bytes_lost) == (2, 40)


def test_a_header_is_not_taken_for_a_payload(tmp_path: Path) -> None:
    """Eight bytes and their checksum: so look a short record without its header, and any header."""
    path = tmp_path / "a"
    one, two, three = (frames([payload]) for payload in (b"", b"12345678", b""))
    path.write_bytes(one + two[:8] + two[20:] + three)
    assert [found.payload for found in walk(path)] == [b"", None, b""]
    path.write_bytes(one + two[:8] + b"junk" + two[12:] + three)
    assert [found.payload for found in walk(path)] == [b"", b"12345678", b""]


def test_junk_behind_the_last_record(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for junk in (b"\n", b"more than eight", np.random.default_rng(3).bytes(1000), b"text " * 100):
        path.write_bytes(PLAIN + junk)
        (damage,) = damage_of(path)
        assert (damage.record, damage.offset, damage.end) == (len(PAYLOADS), len(PLAIN), len(PLAIN) + len(junk))
        assert damage.kind == ("cut-header" if len(junk) < 5 else "junk")
        assert read_all(path)[0] == PAYLOADS


def test_a_length_never_decides_an_allocation(tmp_path: Path) -> None:
    import tracemalloc

    from tfqueue.records.framing import header

    path = tmp_path / "a"
    for length in (2**40, 2**63):
        for compression in ("", "GZIP"):
            plain = frames(PAYLOADS[:1]) + header(length) + b"abc"
            path.write_bytes(gzip.compress(plain) if compression else plain)
            tracemalloc.start()
            (damage,) = damage_of(path)
            found, error = read_all(path)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert (damage.kind, damage.offset, found) == ("cut-payload", STARTS[1], PAYLOADS[:1])
            assert error is not None
            assert peak < 20e6


def test_what_a_file_is_instead(tmp_path: Path) -> None:
    cases: dict[str, bytes] = {
        "png": b"\x89PNG\r\n\x1a\n" + bytes(30),
        "jpeg": b"\xff\xd8\xff\xe0" + bytes(30),
        "text": "a,b\n1,ü\n".encode() * 2000,
        "html": b"<!DOCTYPE html><html>",
        "git-lfs-pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 3\n",
        "gzip": gzip.compress(b"this is no TFRecord file"),
        "zlib": zlib.compress(b"this is no TFRecord file"),
        "zip": b"PK\x03\x04" + bytes(30),
        "npy": b"\x93NUMPY" + bytes(30),
        "pickle": b"\x80\x04\x95\x10\x01\x01\x01\x01" + bytes(20),
        "wav": b"RIFF\x10\x10\x10\x10WAVEfmt ",
        "tar": bytes(range(1, 256)) + b"\1\1ustar" + bytes(20),
    }
    path = tmp_path / "a"
    for kind, content in cases.items():
        path.write_bytes(content)
        assert sniff(path).kind == kind
        (problem,) = records.verify(path).problems
        assert problem.kind == "not-tfrecord"
        assert sniff(path).words in problem.words
        with pytest.raises(DamagedRecord, match="there is nothing to salvage"):
            records.salvage(path, tmp_path / "b")
        assert not (tmp_path / "b").exists()
    path.write_bytes(np.random.default_rng(0).bytes(5000))
    assert sniff(path).kind == "unknown"
    (problem,) = records.verify(path).problems
    assert problem.kind == "not-tfrecord"


@pytest.mark.parametrize("length", [0x8B1F, 0x9C78, 0x0178, 0x4D42, 0x0280, 0x0480, 0x088B1F])
def test_lengths_that_look_like_the_magic_of_something_else(tmp_path: Path, length: int) -> None:
    path = tmp_path / "a"
    payload = np.random.default_rng(0).bytes(length)
    path.write_bytes(frames([payload, b"next"]))
    assert (sniff(path).kind, sniff(path).compression) == ("tfrecord", "")
    assert read_all(path) == ([payload, b"next"], None)
    for position in range(12):
        data = bytearray(path.read_bytes())
        data[position] ^= 0x10
        (tmp_path / "b").write_bytes(data)
        assert [found.payload for found in walk(tmp_path / "b")] == [payload, b"next"]


def test_the_wrong_compression_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for actual, content in COMPRESSED.items():
        path.write_bytes(content)
        assert (sniff(path).kind, sniff(path).compression) == ("tfrecord", actual)
        for said in COMPRESSED:
            (*_, last) = list(walk(path, compression=said)) or [None]
            if said == actual:
                assert isinstance(last, Frame)
                continue
            assert isinstance(last, Damage)
            assert last.kind == "compression"
            assert f"but the file is {actual or 'not compressed'}" in last.words
            with pytest.raises(DamagedRecord, match="compression is"):
                next(records.read(path, compression=said))


def test_empty_files(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for content in (b"", gzip.compress(b""), zlib.compress(b"")):
        path.write_bytes(content)
        assert read_all(path) == ([], None)
        assert records.verify(path).ok


def test_tensorflow_agrees_about_what_is_whole(tmp_path: Path) -> None:
    """TensorFlow's reader, where it notices damage at all, stops at the same record."""
    path = tmp_path / "a"
    unnoticed = 0
    for size in [*range(0, len(PLAIN), 7), len(PLAIN)]:
        path.write_bytes(PLAIN[:size])
        by_tensorflow: list[Any] = []
        try:
            for payload in tf.data.TFRecordDataset(str(path)):
                by_tensorflow.append(payload.numpy())
            noticed = False
        except tf.errors.DataLossError:
            noticed = True
        found, error = read_all(path)
        assert found == by_tensorflow
        assert error is not None or not noticed
        unnoticed += error is not None and not noticed
    assert unnoticed > 0  # a cut inside a header, which is why tfqueue has its own scanner


def test_salvage_does_not_touch_its_source(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(PLAIN[:-3])
    with pytest.raises(InvalidArgument, match="are the same file"):
        records.salvage(path, path, overwrite=True)
    report = records.salvage(path, tmp_path / "b.gz")
    assert path.read_bytes() == PLAIN[:-3]
    assert sniff(tmp_path / "b.gz").compression == "GZIP"
    assert "4 whole and 0 repaired records" in str(report)
    assert report.to_dict()["problems"][0]["kind"] == "cut-checksum"
