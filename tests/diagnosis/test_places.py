"""Where a failure is found: readers of all kinds, queues between, vectors of records, Python functions, threads."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.diagnosis.running import BAD_RECORD, run_to_failure, two_files
from tests.pipelines import LABEL, example, parse, read, tf1

F = tf1.FixedLenFeature
UNCHECKED = {"check": False}
"""Failures as the run meets them, though the checks before the start would find them too."""


def label(number: int) -> bytes:
    return example(label=[number])


@pytest.fixture
def paths(tmp_path):
    """Two files of records with a label, one of which has another feature instead."""
    return two_files(tmp_path, label, example(x=[1]))


def is_at_the_bad_record(failed, paths) -> None:
    assert (failed.cause_name, failed.file, failed.record) == ("missing-feature", paths[1], BAD_RECORD)
    assert "the record has x (int64, 1 value)" in failed.advice


# -- ways from the reader to the op ------------------------------------------------------------------------------------


def test_vectors_of_records(paths) -> None:
    def build_fn():
        queue = tf1.train.string_input_producer(paths, num_epochs=1, shuffle=False)
        parsed = tf1.parse_example(tf1.TFRecordReader().read_up_to(queue, 4)[1], LABEL)
        return tf1.train.batch([parsed["label"]], 2, enqueue_many=True)

    is_at_the_bad_record(run_to_failure(build_fn), paths)


def test_a_queue_of_serialized_records_before_the_parse(paths) -> None:
    def build_fn():
        examples = tf1.RandomShuffleQueue(12, 3, tf.string, [[]])
        enqueues = [examples.enqueue(read(paths))] * 2
        tf1.train.add_queue_runner(tf1.train.QueueRunner(examples, enqueues))
        branches = [[tf1.parse_single_example(examples.dequeue(), LABEL)["label"]] for _ in range(2)]
        return tf1.train.batch_join(branches, 2)

    is_at_the_bad_record(run_to_failure(build_fn), paths)


def test_a_parse_after_the_batch(paths) -> None:
    is_at_the_bad_record(run_to_failure(lambda: tf1.parse_example(tf1.train.batch([read(paths)], 4), LABEL)), paths)


def test_a_reader_without_a_batch(paths) -> None:
    is_at_the_bad_record(run_to_failure(lambda: parse(paths, LABEL)), paths)


def test_a_reader_of_compressed_records(tmp_path, paths) -> None:
    for path in paths:
        Path(path).write_bytes(gzip.compress(Path(path).read_bytes()))

    def build_fn():
        options = tf1.python_io.TFRecordOptions(tf1.python_io.TFRecordCompressionType.GZIP)
        queue = tf1.train.string_input_producer(paths, num_epochs=1, shuffle=False)
        serialized = tf1.TFRecordReader(options=options).read(queue)[1]
        return tf1.train.batch([tf1.parse_single_example(serialized, LABEL)["label"]], 2)

    is_at_the_bad_record(run_to_failure(build_fn), paths)


def test_a_second_epoch_and_an_op_that_counts_are_no_hindrance(paths) -> None:
    def build_fn():
        features = parse(paths, LABEL, num_epochs=3)
        noise = tf1.random_uniform([], seed=1)
        return tf1.train.batch([tf.cast(features["label"], tf.float32) + noise], 2)

    is_at_the_bad_record(run_to_failure(build_fn), paths)


def test_lines_of_text(tmp_path) -> None:
    (tmp_path / "lines.csv").write_text("a,b\n" + "1,2\n" * 6 + "1\n")

    def build_fn():
        queue = tf1.train.string_input_producer([str(tmp_path / "lines.csv")], num_epochs=1)
        line = tf1.TextLineReader(skip_header_lines=1).read(queue)[1]
        return tf1.train.batch(tf1.decode_csv(line, [[0], [0]]), 2)

    failed = run_to_failure(build_fn)
    assert (failed.cause_name, failed.file, failed.record) == ("csv-fields", str(tmp_path / "lines.csv"), 6)


def test_a_forgotten_header_line(tmp_path) -> None:
    (tmp_path / "head.csv").write_text("height,width\n1,2\n")

    def build_fn():
        queue = tf1.train.string_input_producer([str(tmp_path / "head.csv")], num_epochs=1)
        return tf1.train.batch(tf1.decode_csv(tf1.TextLineReader().read(queue)[1], [[0], [0]]), 1)

    failed = run_to_failure(build_fn)
    assert (failed.cause_name, failed.record) == ("csv-value", 0)
    assert "skip the header with TextLineReader(skip_header_lines=1)" in failed.advice


def test_records_of_fixed_length(tmp_path) -> None:
    (tmp_path / "fixed").write_bytes(b"hd" + b"".join(b"%03d" % n for n in range(5)) + b"x07" + b"008")

    def build_fn():
        queue = tf1.train.string_input_producer([str(tmp_path / "fixed")], num_epochs=1)
        record = tf1.FixedLengthRecordReader(3, header_bytes=2).read(queue)[1]
        return tf1.train.batch([tf1.string_to_number(record)], 2)

    failed = run_to_failure(build_fn)
    assert (failed.cause_name, failed.file, failed.record) == ("not-a-number", str(tmp_path / "fixed"), 5)


def images(tmp_path, names):
    for name in names:
        data = b"a text, no image at all" if name == "bad.png" else tf.io.encode_png(np.zeros((2, 2, 1), "u1")).numpy()
        (tmp_path / name).write_bytes(data)
    return [str(tmp_path / name) for name in names]


def decode(contents):
    return tf.reshape(tf1.image.decode_png(contents, channels=1), [2, 2, 1])


def test_whole_files(tmp_path) -> None:
    names = images(tmp_path, ["0.png", "1.png", "bad.png", "3.png"])

    def build_fn():
        queue = tf1.train.string_input_producer(names, num_epochs=1, shuffle=False)
        return tf1.train.batch([decode(tf1.WholeFileReader().read(queue)[1])], 2)

    failed = run_to_failure(build_fn)
    assert (failed.cause_name, failed.file) == ("not-an-image", names[2])
    assert f"{names[2]} is no encoded image: it is a text file" in failed.advice


def test_slices_of_paths(tmp_path) -> None:
    names = images(tmp_path, ["0.png", "1.png", "bad.png", "3.png"])

    def build_fn():
        name, number = tf1.train.slice_input_producer([names, [0, 1, 2, 3]], num_epochs=1, shuffle=True, seed=1)
        return tf1.train.batch([decode(tf1.read_file(name)), number], 2)

    failed = run_to_failure(build_fn)
    assert (failed.cause_name, failed.file) == ("not-an-image", names[2])
    assert "element: number 2 of the producer's" in str(failed)


def test_a_list_file_that_names_a_file_that_is_not_there(tmp_path) -> None:
    names = images(tmp_path, ["0.png", "1.png"])
    (tmp_path / "list.txt").write_text("\n".join([*names, str(tmp_path / "2.png")]))

    def build_fn():
        queue = tf1.train.string_input_producer([str(tmp_path / "list.txt")], num_epochs=1)
        return tf1.train.batch([decode(tf1.read_file(tf1.TextLineReader().read(queue)[1]))], 1)

    failed = run_to_failure(build_fn)
    assert (failed.cause_name, failed.file, failed.record) == ("missing-file", str(tmp_path / "2.png"), None)
    assert "(record 2 of list.txt names it)" in failed.advice


# -- Python functions --------------------------------------------------------------------------------------------------

CALLS: list[int] = []


def picky(value):
    CALLS.append(int(value))
    if value == 13:
        raise KeyError(f"no such case: {value}")
    return np.float32(value)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda v: tf1.py_func(picky, [v], tf.float32),
        lambda v: tf.numpy_function(picky, [v], tf.float32),
        lambda v: tf.py_function(lambda t: picky(t.numpy()), [v], tf.float32),
    ],
    ids=["py_func", "numpy_function", "py_function"],
)
def test_an_error_in_a_python_function_names_the_users_own_line(tmp_path, wrap) -> None:
    CALLS.clear()
    files = two_files(tmp_path, label, label(99))
    failed = run_to_failure(lambda: tf1.train.batch([tf.reshape(wrap(parse(files, LABEL)["label"]), [])], 2))
    assert failed.cause_name == "py-func"
    assert str(failed).startswith("KeyError: 'no such case: 13'\n")
    assert "raised at: test_places.py:" in str(failed)
    assert "in picky" in str(failed)
    assert "script_ops" not in str(failed)
    assert list(range(14)) == CALLS, "the user's function was called again"


def test_a_python_function_that_opens_a_file_that_is_not_there(tmp_path) -> None:
    files = two_files(tmp_path, label, label(99))

    def load(value):
        if value == 3:
            Path(tmp_path / "second").read_bytes()
        return value

    def build_fn():
        return tf1.train.batch([tf.reshape(tf1.py_func(load, [parse(files, LABEL)["label"]], tf.int64), [])], 2)

    failed = run_to_failure(build_fn)
    assert failed.cause_name == "py-func"
    assert "opens a file that is not there" in failed.advice
    assert "did you mean 'second.tfrecord'?" in failed.advice
    assert "in load" in str(failed), "the innermost frame is pathlib's, not the user's"


@pytest.mark.parametrize(
    ("function", "types", "cause_name", "words"),
    [
        (lambda v: np.float64(v), tf.float32, "py-func-type", "py_func returned double, but its Tout says float"),
        (lambda v: (v, v), [tf.int64], "py-func-count", "returned 2 values, its Tout lists 1"),
    ],
)
def test_what_a_python_function_returns(paths, function, types, cause_name, words) -> None:
    def build_fn():
        value = tf.nest.flatten(tf1.py_func(function, [parse(paths, LABEL)["label"]], types))[0]
        return tf1.train.batch([tf.reshape(value, [])], 2)

    failed = run_to_failure(build_fn)
    assert failed.cause_name == cause_name
    assert words in failed.advice


# -- files, met by the run itself --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "cause_name", "error", "words"),
    [
        (lambda p: p.unlink(), "missing-file", tf.errors.NotFoundError, "there is no such file"),
        (lambda p: (p.unlink(), p.mkdir()), "is-a-folder", tf.errors.FailedPreconditionError, "this is a folder"),
        (
            lambda p: p.write_bytes(p.read_bytes()[:-5]),
            "damaged-file",
            tf.errors.DataLossError,
            "record 9, byte",
        ),
        (
            lambda p: p.write_bytes(gzip.compress(p.read_bytes())),
            "damaged-file",
            tf.errors.DataLossError,
            "the file is GZIP, the reader was told no compression",
        ),
        (
            lambda p: p.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"),
            "damaged-file",
            tf.errors.DataLossError,
            "a Git LFS pointer: the data itself was never downloaded",
        ),
    ],
    ids=["missing", "folder", "cut", "gzip", "lfs"],
)
def test_a_file_that_cannot_be_read(tmp_path, change, cause_name, error, words) -> None:
    files = two_files(tmp_path, label, label(1))
    change(Path(files[1]))
    failed = run_to_failure(lambda: tf1.train.batch([parse(files, LABEL)["label"]], 2), **UNCHECKED)
    assert (failed.cause_name, failed.file) == (cause_name, files[1])
    assert isinstance(failed.__cause__, error)
    assert words in failed.advice


def test_a_flipped_bit_in_a_payload(tmp_path) -> None:
    files = two_files(tmp_path, label, label(1))
    data = bytearray(Path(files[1]).read_bytes())
    size = len(data) // 10
    data[4 * size + 14] ^= 1
    Path(files[1]).write_bytes(data)
    failed = run_to_failure(lambda: tf1.train.batch([parse(files, LABEL)["label"]], 2), **UNCHECKED)
    assert (failed.cause_name, failed.file, failed.record) == ("damaged-file", files[1], 4)
    assert "the payload does not match its checksum" in failed.advice


def test_a_pattern_without_a_match(tmp_path) -> None:
    def build_fn():
        names = tf1.train.match_filenames_once(str(tmp_path / "*.zzz"))
        return tf1.train.batch([read(tf.identity(names))], 2)

    failed = run_to_failure(build_fn, **UNCHECKED)
    assert failed.cause_name == "no-match"
    assert f"no file matches '{tmp_path}/*.zzz'; nearest existing folder: {tmp_path} (empty)" in failed.advice


# -- queues ------------------------------------------------------------------------------------------------------------


def test_rows_of_slices_that_are_not_there(tmp_path) -> None:
    def build_fn():
        return tf1.train.batch(tf1.train.slice_input_producer([[1, 2, 3], [1, 2]], shuffle=False), 2)

    failed = run_to_failure(build_fn, **UNCHECKED)
    assert failed.cause_name == "index-out-of-range"
    assert "have 2 and 3 rows: they must have the same number" in failed.advice


def test_no_room_beside_min_after_dequeue() -> None:
    def build_fn():
        queue = tf1.RandomShuffleQueue(5, 5, tf.float32, [[]])
        tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, [queue.enqueue(1.0)]))
        return queue.dequeue()

    assert run_to_failure(build_fn, **UNCHECKED).cause_name == "capacity"


def test_a_placeholder_before_a_queue() -> None:
    failed = run_to_failure(lambda: tf1.train.batch([tf1.placeholder(tf.float32, [3], "x") * 2], 2), **UNCHECKED)
    assert failed.cause_name == "placeholder"
    assert "the placeholder 'x' lies before a queue" in failed.advice


def test_a_table_without_content(tmp_path) -> None:
    files = two_files(tmp_path, label, label(1))

    def build_fn():
        table = tf.raw_ops.HashTableV2(key_dtype=tf.int64, value_dtype=tf.int64, shared_name="t")
        found = tf.raw_ops.LookupTableFindV2(
            table_handle=table, keys=parse(files, LABEL)["label"], default_value=tf.constant(0, tf.int64)
        )
        return tf1.train.batch([tf.ensure_shape(found, [])], 2)

    failed = run_to_failure(build_fn)
    assert failed.cause_name == "table-not-initialised"
    assert "tf.tables_initializer()" in failed.advice
