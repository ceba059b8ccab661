"""How many records there are for a batch, and how many bytes the full queues need."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.pipelines import LABEL, example, labels, numbers, parse, read, tf1, write_records
from tests.startcheck.running import check, kinds, the_finding
from tfqueue.errors import DamagedRecord
from tfqueue.startcheck import counting
from tfqueue.startcheck.headers import count_records

FOR_EVER = float("inf")


@pytest.fixture
def path(tmp_path):
    return numbers(tmp_path / "numbers.tfrecord", 5)


# -- records -----------------------------------------------------------------------------------------------------------


def test_fewer_records_than_a_batch(path) -> None:
    ((kind, words),) = [(f.kind, f.message) for f in check(labels([path, path], 11))]
    assert kind == "too-few-records"
    assert "there are 10 records in all, which is less than one batch of 11" in words


@pytest.mark.parametrize(
    ("batch_size", "options"),
    [
        (10, {}),
        (11, {"num_epochs": 2}),
        (11, {"num_epochs": None}),
        (11, {"allow_smaller_final_batch": True}),
    ],
    ids=["enough", "two-epochs", "no-end", "smaller-final-batch"],
)
def test_records_enough_for_a_batch(path, batch_size, options) -> None:
    assert kinds(labels([path, path], batch_size, **options)) == []


def test_fewer_slices_than_a_batch() -> None:
    def build_fn():
        return tf1.train.batch(tf1.train.slice_input_producer([[1, 2, 3]], num_epochs=2), 7)

    kind, words = the_finding(build_fn)
    assert kind == "too-few-records"
    assert "there are 6 records" in words


def test_fewer_lines_than_a_batch(tmp_path) -> None:
    (tmp_path / "lines").write_text("head\na\nb\nc")

    def build_fn():
        queue = tf1.train.string_input_producer([str(tmp_path / "lines")], num_epochs=1)
        return tf1.train.batch([tf1.TextLineReader(skip_header_lines=1).read(queue)[1]], 4)

    assert "there are 3 records" in the_finding(build_fn)[1]


def test_fewer_records_through_a_queue_between_and_several_readers(path) -> None:
    def build_fn():
        files = tf1.train.string_input_producer([path, path], num_epochs=1)
        between = tf1.FIFOQueue(50, tf.string, [[]])
        enqueues = [between.enqueue(tf1.TFRecordReader().read(files)[1]) for _ in range(2)]
        tf1.train.add_queue_runner(tf1.train.QueueRunner(between, enqueues))
        return tf1.train.batch([between.dequeue()], 11)

    assert "there are 10 records" in the_finding(build_fn)[1]


def test_a_record_may_give_several_elements(path) -> None:
    def build_fn():
        many = tf.tile(tf.expand_dims(parse([path], LABEL)["label"], 0), [3])
        return tf1.train.batch([many], 8, enqueue_many=True)

    assert kinds(build_fn) == []


# -- headers -----------------------------------------------------------------------------------------------------------


def files_of_all_sizes(tmp_path):
    yield write_records(tmp_path / "equal", [bytes(7)] * 700), 700
    yield write_records(tmp_path / "random", [bytes(n * 37 % 911) for n in range(600)]), 600
    yield write_records(tmp_path / "large", [bytes(1_500_000)] * 3), 3  # read header by header
    (tmp_path / "empty").touch()
    yield str(tmp_path / "empty"), 0


def test_headers_are_counted_as_tensorflow_counts_records(tmp_path) -> None:
    for file, count in files_of_all_sizes(tmp_path):
        assert count_records(file, "", FOR_EVER) == count == sum(1 for _ in tf.data.TFRecordDataset(file))


def test_compressed_records_are_counted(tmp_path, path) -> None:
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(Path(path).read_bytes()))
    assert count_records(str(packed), "GZIP", FOR_EVER) == 5


def test_counting_stops_when_the_time_is_up(tmp_path) -> None:
    file = write_records(tmp_path / "many", [b""] * 3000)
    assert count_records(file, "", 0.0) is None


def test_every_cut_of_a_file_is_found_but_those_between_records(tmp_path) -> None:
    data = Path(write_records(tmp_path / "whole", [bytes(n) for n in (0, 5, 90)])).read_bytes()
    edges = {0, 16, 37, len(data)}
    for length in range(len(data) + 1):
        (tmp_path / "cut").write_bytes(data[:length])
        if length in edges:
            count_records(str(tmp_path / "cut"), "", FOR_EVER)
        else:
            with pytest.raises(DamagedRecord) as caught:
                count_records(str(tmp_path / "cut"), "", FOR_EVER)
            assert caught.value.record == sum(edge <= length for edge in edges) - 1


# -- memory ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def free(monkeypatch):
    monkeypatch.setattr(counting, "free_memory", lambda: 16_000_000_000)


@pytest.mark.usefixtures("free")
def test_a_buffer_that_needs_much_memory() -> None:
    def build_fn():
        return tf1.train.batch([tf1.random_uniform([200, 200, 3])], 4, capacity=10_000)

    kind, words = the_finding(build_fn)
    assert kind == "memory"
    assert "will need 4.8 GB (4,800,000,000 bytes) when it is full: 10,000 elements of 480,000 bytes" in words
    assert "of 16.0 GB that are free" in words


def test_a_buffer_of_more_than_half_of_the_free_memory(monkeypatch) -> None:
    def build_fn():
        return tf1.train.batch([tf1.random_uniform([1000])], 4, capacity=1000)  # 4 MB

    monkeypatch.setattr(counting, "free_memory", lambda: 9_000_000)
    assert kinds(build_fn) == []
    monkeypatch.setattr(counting, "free_memory", lambda: 7_000_000)
    assert the_finding(build_fn)[0] == "memory"
    monkeypatch.setattr(counting, "free_memory", lambda: None)
    assert kinds(build_fn) == []


@pytest.mark.usefixtures("free")
def test_strings_are_judged_by_the_first_record(tmp_path) -> None:
    file = write_records(tmp_path / "large", [example(img=bytes(100_000))] * 3)

    def build_fn(**options):
        return lambda: tf1.train.batch([read([file], **options)], 1, capacity=50_000)

    ((kind, words),) = [(f.kind, f.message) for f in check(build_fn(num_epochs=None))]
    assert kind == "memory"
    assert "about 5.0 GB" in words
    # Three records cannot fill it.
    assert kinds(build_fn()) == ["memory"]


def test_the_system_says_how_much_memory_is_free() -> None:
    found = counting.free_memory()
    assert found is not None
    assert found > 1 << 20


def test_bytes_of_values() -> None:
    assert counting.nbytes(b"abc") == 3
    assert counting.nbytes(np.zeros([2, 3], np.float32)) == 24
    assert counting.nbytes(np.array([b"a\0", b"bcd"], object)) == 5
