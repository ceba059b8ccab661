"""Files: those that are missing, are something else, are cut, or end without a word in TensorFlow."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

import pytest
import tensorflow as tf

from tests.pipelines import LABEL, example, labels, numbers, parse, read, tf1, write_records
from tests.startcheck.running import check, kinds, refused, the_finding
from tfqueue.errors import DamagedRecord
from tfqueue.startcheck import files as files_module


@pytest.fixture
def path(tmp_path):
    return numbers(tmp_path / "numbers.tfrecord")


def batch_of_lines(paths, **options):
    queue = tf1.train.string_input_producer(paths, num_epochs=1, shuffle=False)
    return lambda: tf1.train.batch([tf1.TextLineReader(**options).read(queue)[1]], 2)


# -- missing files -----------------------------------------------------------------------------------------------------


def test_a_missing_file_is_named_with_what_is_near(path, tmp_path) -> None:
    failed = refused(labels([path, str(tmp_path / "number.tfrecord")]))
    assert (failed.cause_name, failed.file, failed.record) == ("missing-file", str(tmp_path / "number.tfrecord"), None)
    assert isinstance(failed.__cause__, tf.errors.NotFoundError)
    assert f"nearest existing folder: {tmp_path} (1 entries: numbers.tfrecord)" in failed.advice
    assert "did you mean 'numbers.tfrecord'?" in failed.advice
    assert failed.source.startswith("pipelines.py")
    assert "on the way to queue 'batch/fifo_queue'" in failed.stage


def test_several_missing_files_are_named_up_to_a_few(path) -> None:
    failed = refused(labels([path, *(f"gone/{n}.tfrecord" for n in range(20))]))
    assert "20 of 21 files do not exist: gone/0.tfrecord, gone/1.tfrecord" in failed.advice
    assert "gone/4.tfrecord, ..." in failed.advice
    assert "gone/5.tfrecord" not in failed.advice
    assert f"relative to {os.getcwd()}" in failed.advice


def test_a_missing_file_far_back_in_a_long_list_is_found_first(path, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(files_module, "LOOK_SECONDS", 0.0)  # only the first few are looked for
    monkeypatch.setattr(files_module, "_FEW", 4)
    for n in range(99):
        os.link(path, tmp_path / f"{n:02}")
    names = [str(tmp_path / f"{n:02}") for n in range(99)]
    names[72] += "x"
    assert refused(labels(names)).file == names[72]


def test_paths_given_to_read_file_are_looked_for(tmp_path) -> None:
    (tmp_path / "0.png").write_bytes(b"\x89PNG")

    def build_fn():
        names = [f"{n}.png" for n in range(3)]
        name, _ = tf1.train.slice_input_producer([names, [0, 1, 2]], num_epochs=1, shuffle=False)
        return tf1.train.batch([tf1.read_file(tf1.string_join([str(tmp_path), name], "/"))], 3)

    failed = refused(build_fn)
    assert failed.cause_name == "missing-file"
    assert failed.file == str(tmp_path / "1.png")
    assert f"2 of 3 files do not exist: {tmp_path}/1.png, {tmp_path}/2.png" in failed.advice


def test_rows_that_the_producer_never_reaches_are_not_looked_for(tmp_path) -> None:
    (tmp_path / "0").write_bytes(b"x")

    def build_fn():
        names = tf.constant([str(tmp_path / "0"), str(tmp_path / "never")])
        row = tf1.train.range_input_producer(1, num_epochs=1, shuffle=False).dequeue()
        return tf1.train.batch([tf1.read_file(tf.gather(names, row))], 1)

    assert kinds(build_fn) == []


def test_paths_in_a_queue_of_paths(tmp_path) -> None:
    def build_fn():
        queue = tf1.train.string_input_producer([str(tmp_path / "gone.png")], num_epochs=1)
        return tf1.train.batch([tf1.read_file(queue.dequeue())], 1)

    assert refused(build_fn).file == str(tmp_path / "gone.png")


def test_paths_in_a_variable(tmp_path) -> None:
    def build_fn():
        names = tf1.get_variable("names", initializer=[str(tmp_path / "gone.tfrecord")])
        return tf1.train.batch([read(names.read_value())], 1)

    assert refused(build_fn).file == str(tmp_path / "gone.tfrecord")


def test_a_branch_that_is_not_taken_may_name_what_is_not_there(tmp_path) -> None:
    (tmp_path / "here").write_bytes(b"x")

    def build_fn():
        row = tf1.train.range_input_producer(2, num_epochs=1, shuffle=False).dequeue()
        return tf.cond(row < 2, lambda: tf1.read_file(str(tmp_path / "here")), lambda: tf1.read_file("gone"))

    assert kinds(build_fn) == []


def test_remote_paths_are_left_alone() -> None:
    assert kinds(labels(["gs://bucket/a.tfrecord", "hdfs://host/b.tfrecord"])) == []


def test_a_file_url_is_looked_for(path) -> None:
    assert kinds(labels(["file://" + path])) == []
    assert refused(labels(["file://" + path + "x"])).cause_name == "missing-file"


def test_strings_that_are_no_files_are_left_alone() -> None:
    def build_fn():
        words = tf1.train.string_input_producer(["one", "two"], num_epochs=1)
        return tf1.train.batch([tf1.IdentityReader().read(words)[1]], 2)

    assert kinds(build_fn) == []


@pytest.mark.parametrize("name", ["файл.tfrecord", "数据 [1].tfrecord", "a,b*.tfrecord"])
def test_unusual_names(tmp_path, name) -> None:
    assert kinds(labels([numbers(tmp_path / name)])) == []


def test_a_folder(tmp_path) -> None:
    failed = refused(labels([str(tmp_path)]))
    assert (failed.cause_name, failed.file) == ("is-a-folder", str(tmp_path))


@pytest.mark.parametrize("through", [tf.identity, lambda names: names])
def test_a_pattern_without_a_match(tmp_path, through) -> None:
    pattern = str(tmp_path / "train" / "*.tfrecord")

    def build_fn():
        return tf1.train.batch([read(through(tf1.train.match_filenames_once(pattern)))], 1)

    failed = refused(build_fn)
    assert failed.cause_name == "no-match"
    assert failed.advice.startswith(f"no file matches {pattern!r}; nearest existing folder: {tmp_path}")


def test_a_pattern_that_matches(path, tmp_path) -> None:
    def build_fn():
        return tf1.train.batch([read(tf1.train.match_filenames_once(str(tmp_path / "*.tfrecord")))], 4)

    assert kinds(build_fn) == []


def test_a_reader_that_nothing_runs_is_not_looked_at(path) -> None:
    def build_fn():
        parse(["gone.tfrecord"], LABEL)
        return labels([path])()

    assert kinds(build_fn) == []


# -- what the files are ------------------------------------------------------------------------------------------------

OTHERS = {
    "png": (b"\x89PNG\r\n\x1a\n" + bytes(100), "a png file"),
    "text": (b"hello world, this is text\n" * 9, "a text file"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "git lfs pull"),
    "html": (b"<!DOCTYPE html><html>404</html>" * 3, "an HTML page"),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_a_file_that_is_no_tfrecord_file(path, tmp_path, kind) -> None:
    data, words = OTHERS[kind]
    (tmp_path / "other").write_bytes(data)
    failed = refused(labels([path, str(tmp_path / "other")]))
    assert (failed.cause_name, failed.file, failed.record) == ("damaged-file", str(tmp_path / "other"), 0)
    assert isinstance(failed.__cause__, tf.errors.DataLossError)
    assert words in failed.advice


@pytest.mark.parametrize(
    ("compress", "asked", "words"),
    [
        (gzip.compress, "", "the file is GZIP, the reader was told no compression"),
        (zlib.compress, "", "the file is ZLIB, the reader was told no compression"),
        (bytes, "GZIP", "the file is not compressed, the reader was told GZIP"),
    ],
)
def test_another_compression_than_the_reader_was_told(path, tmp_path, compress, asked, words) -> None:
    (tmp_path / "packed").write_bytes(compress(Path(path).read_bytes()))

    def build_fn():
        kinds = tf1.python_io.TFRecordCompressionType
        options = tf1.python_io.TFRecordOptions(kinds.GZIP if asked else kinds.NONE)
        queue = tf1.train.string_input_producer([str(tmp_path / "packed")], num_epochs=1)
        return tf1.train.batch([tf1.TFRecordReader(options=options).read(queue)[1]], 2)

    failed = refused(build_fn)
    assert failed.cause_name == "damaged-file"
    assert words in failed.advice


# -- what TensorFlow passes over without a word ------------------------------------------------------------------------


def cut_file(tmp_path, cut):
    """A file of three records, changed by ``cut``, and the offset of its last record."""
    whole = tmp_path / "whole"
    write_records(whole, [example(label=[n]) for n in range(3)])
    data = whole.read_bytes()
    target = tmp_path / "cut.tfrecord"
    target.write_bytes(cut(data, len(data) // 3))
    return str(target)


@pytest.mark.parametrize(
    ("cut", "record", "words"),
    [
        (lambda data, size: data[: 2 * size + 7], 2, "7 bytes into a header"),
        (lambda data, size: data + b"junk", 3, "4 bytes into a header"),
        (lambda data, size: data[: 2 * size + 14], 2, "ends inside the payload"),
        (lambda data, size: data[:size] + b"\xff" + data[size + 1 :], 1, "length does not match"),
    ],
    ids=["inside-a-header", "trailing-junk", "inside-a-payload", "a-damaged-length"],
)
def test_a_cut_file_is_found_before_the_start(tmp_path, cut, record, words) -> None:
    file = cut_file(tmp_path, cut)
    failed = refused(labels([file], 1))
    assert (failed.cause_name, failed.file, failed.record) == ("damaged-file", file, record)
    assert words in str(failed)
    assert isinstance(failed.__cause__, tf.errors.DataLossError)  # as the reader would say it
    assert isinstance(failed.__cause__.__cause__, DamagedRecord)
    assert failed.__cause__.__cause__.offset is not None


def test_a_damaged_first_record_is_found_before_the_start(tmp_path) -> None:
    file = cut_file(tmp_path, lambda data, size: data[:13] + b"\xff" + data[14:])
    failed = refused(labels([file], 1))
    assert (failed.cause_name, failed.file, failed.record) == ("damaged-file", file, 0)


def test_an_empty_file_is_a_warning(path, tmp_path) -> None:
    (tmp_path / "empty.tfrecord").touch()
    ((kind, words),) = [(f.kind, str(f)) for f in check(labels([str(tmp_path / "empty.tfrecord"), path]))]
    assert kind == "empty-file"
    assert "1 of 2 files is empty (empty.tfrecord)" in words


def test_an_empty_text_file_is_a_warning(tmp_path) -> None:
    (tmp_path / "full").write_bytes(b"a\nb\n")
    (tmp_path / "empty").touch()

    def build_fn():
        queue = tf1.train.string_input_producer([str(tmp_path / "full"), str(tmp_path / "empty")], num_epochs=1)
        return tf1.train.batch([tf1.TextLineReader().read(queue)[1]], 2)

    assert the_finding(build_fn)[0] == "empty-file"


@pytest.mark.parametrize(
    ("size", "options", "rest"),
    [
        (30, {"record_bytes": 10}, 0),
        (37, {"record_bytes": 10}, 7),
        (37, {"record_bytes": 10, "header_bytes": 4, "footer_bytes": 3}, 0),
        (5, {"record_bytes": 10}, 5),
        (36, {"record_bytes": 4, "hop_bytes": 8}, 0),
        (40, {"record_bytes": 4, "hop_bytes": 8}, 0),
    ],
)
def test_bytes_that_are_no_whole_record_of_fixed_length(tmp_path, size, options, rest) -> None:
    (tmp_path / "fixed").write_bytes(bytes(size))

    def build_fn():
        queue = tf1.train.string_input_producer([str(tmp_path / "fixed")], num_epochs=1)
        return tf1.train.batch([tf1.FixedLengthRecordReader(**options).read(queue)[1]], 1)

    found = {finding.kind: str(finding) for finding in check(build_fn)}
    assert ("partial-record" in found) == bool(rest)
    if rest:
        assert f"the last {rest} bytes are never read" in found["partial-record"]


def test_a_pipe_is_never_opened(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert kinds(labels([str(tmp_path / "pipe")])) == []
