"""tf.contrib.training and tf.contrib.learn: queue code, compared with what numpy and tf.data make of the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf2
from hypothesis import given, settings
from hypothesis import strategies as st

import tfqueue
import tfqueue.compat.v1 as tf
from tfqueue.errors import InvalidArgument

LENGTHS = [3, 1, 7, 4, 4, 9, 2, 2, 5, 6, 1, 8, 3, 3, 4, 7, 9, 1, 5, 2]


def sequence(length: int) -> np.ndarray:
    return np.arange(1, length + 1, dtype=np.int64) * 10 + length


def source(lengths=LENGTHS):
    """One element at a time: its length, and a sequence of that length."""
    length = tf.train.slice_input_producer([tf.constant(lengths, tf.int32)], num_epochs=1, shuffle=False)[0]
    values = tf.range(1, length + 1) * 10 + length
    values.set_shape([None])
    return length, values


def batches(build, engine="threads") -> list:
    with tfqueue.QueuePipeline(build, engine=engine, stall_timeout=60) as pipeline:
        return list(pipeline)


def by_bucket(lengths, boundaries, size, smaller) -> Counter:
    """The batches that bucketing gives, each as the tuple of its lengths, in no order."""
    buckets: dict[int, list[int]] = {}
    for length in lengths:
        buckets.setdefault(int(np.searchsorted(boundaries, length, side="right")), []).append(length)
    found = Counter()
    for members in buckets.values():
        for start in range(0, len(members), size):
            batch = tuple(members[start : start + size])
            if smaller or len(batch) == size:
                found[batch] += 1
    return found


@pytest.mark.parametrize("engine", ["threads", "lockstep", "tfdata"])
@pytest.mark.parametrize("smaller", [False, True])
def test_bucket_by_sequence_length(engine: str, smaller: bool) -> None:
    def build():
        length, values = source()
        lengths, outputs = tf.contrib.training.bucket_by_sequence_length(
            length, {"values": values}, 3, np.array([3, 6]), dynamic_pad=True, allow_smaller_final_batch=smaller
        )
        return {"lengths": lengths, **outputs}

    found = batches(build, engine)
    assert Counter(tuple(batch["lengths"].tolist()) for batch in found) == by_bucket(LENGTHS, [3, 6], 3, smaller)
    for batch in found:
        assert batch["values"].shape == (len(batch["lengths"]), max(batch["lengths"]))
        for row, length in zip(batch["values"], batch["lengths"], strict=True):
            np.testing.assert_array_equal(row[:length], sequence(length))
            assert not row[length:].any()


@settings(deadline=None, max_examples=8)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=25),
    boundaries=st.lists(st.integers(2, 8), min_size=1, max_size=3, unique=True).map(sorted),
    size=st.integers(1, 4),
)
def test_bucketing_is_that_of_tf_data(lengths: list[int], boundaries: list[int], size: int) -> None:
    def build():
        length, values = source(lengths)
        return tf.contrib.training.bucket_by_sequence_length(
            length, [values], size, boundaries, dynamic_pad=True, allow_smaller_final_batch=True
        )

    dataset = tf2.data.Dataset.from_tensor_slices(np.array(lengths, np.int32))
    dataset = dataset.map(lambda n: (n, tf2.range(1, n + 1) * 10 + n)).bucket_by_sequence_length(
        lambda n, _: n, boundaries, [size] * (len(boundaries) + 1)
    )
    expected = Counter((n.tobytes(), v.tobytes()) for n, v in dataset.as_numpy_iterator())
    assert Counter((n.tobytes(), v.tobytes()) for n, (v,) in batches(build, "lockstep")) == expected


def test_bucket_with_own_numbers_and_dropped_elements() -> None:
    def build():
        number = tf.train.range_input_producer(20, num_epochs=1, shuffle=False).dequeue()
        bucket, outputs = tf.contrib.training.bucket(
            [number, tf.SparseTensor([[0]], tf.reshape(number, [1]), [3])],
            number % 3,  # 2 is a number without a bucket
            [2, 3],
            num_buckets=2,
            keep_input=number < 15,
        )
        return bucket, outputs[0], tf.sparse_tensor_to_dense(outputs[1])

    found = batches(build)
    numbers = {0: [], 1: []}
    for bucket, values, dense in found:
        assert len(values) == (2, 3)[bucket]
        np.testing.assert_array_equal(dense[:, 0], values)
        numbers[int(bucket)] += values.tolist()
    assert numbers == {0: [0, 3, 6, 9], 1: [1, 4, 7]}


def test_arguments_of_buckets_that_cannot_work() -> None:
    def build(**options):
        length, values = source()
        options = {"batch_size": 2, "bucket_boundaries": [3], "dynamic_pad": True, **options}
        return tf.contrib.training.bucket_by_sequence_length(length, [values], **options)

    with tf2.Graph().as_default():
        with pytest.raises(InvalidArgument, match="must increase"):
            build(bucket_boundaries=[3, 3])
        with pytest.raises(InvalidArgument, match="list of integers"):
            build(bucket_boundaries=[])
        with pytest.raises(InvalidArgument, match="1 boundaries make 2 buckets"):
            build(batch_size=[1, 2, 3])
        with pytest.raises(InvalidArgument, match="all shapes must be known"):
            build(dynamic_pad=False)
        with pytest.raises(InvalidArgument, match="nested"):
            tf.contrib.training.bucket([[tf.constant(1)]], 0, 2, 2)


def test_rejection_sample_keeps_by_chance() -> None:
    def build():
        tf.set_random_seed(5)
        number = tf.train.range_input_producer(4000, num_epochs=1, shuffle=False).dequeue()

        def chance(tensors):
            return tf.cast(tensors[0] % 4, tf.float32) / 4

        return tf.contrib.training.rejection_sample([number, number * 2], chance, 10, runtime_checks=True)

    found = batches(build)
    numbers = np.concatenate([first for first, _ in found])
    np.testing.assert_array_equal(np.concatenate([second for _, second in found]), numbers * 2)
    counts = np.bincount(numbers % 4, minlength=4)
    assert counts[0] == 0
    # Of 1,000 with chance p, the count is within 5 standard deviations (sqrt(1000 p (1 - p))).
    for rest, p in ((1, 0.25), (2, 0.5), (3, 0.75)):
        assert abs(counts[rest] - 1000 * p) < 5 * np.sqrt(1000 * p * (1 - p)) + 10


def test_rejection_sample_of_many_and_a_chance_outside() -> None:
    def build(scale=1.0):
        numbers = tf.train.batch([tf.train.range_input_producer(40, num_epochs=1, shuffle=False).dequeue()], 5)
        return tf.contrib.training.rejection_sample(
            [numbers],
            lambda tensors: scale + 0.0 * tf.cast(tensors[0], tf.float32),
            4,
            enqueue_many=True,
            runtime_checks=True,
        )

    np.testing.assert_array_equal(np.concatenate([batch for (batch,) in batches(build)]), np.arange(40))
    with pytest.raises(tfqueue.errors.PipelineFailed):
        batches(lambda: build(1.5))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("many", [False, True])
def test_stratified_sample_reaches_the_shares(known: bool, many: bool) -> None:
    target = [0.5, 0.3, 0.2]

    def build():
        tf.set_random_seed(3)
        number = tf.train.range_input_producer(6000, num_epochs=1, shuffle=False).dequeue()
        data = tf.train.batch([number], 10) if many else number
        labels = tf.minimum(data % 10, 2)  # shares 0.1, 0.1, 0.8
        (values,), classes = tf.contrib.training.stratified_sample(
            [data], labels, target, 20, init_probs=[0.1, 0.1, 0.8] if known else None, enqueue_many=many
        )
        return values, classes

    found = batches(build)
    values, classes = (np.concatenate(parts) for parts in zip(*found, strict=True))
    np.testing.assert_array_equal(np.minimum(values % 10, 2), classes)
    assert len(set(values.tolist())) == len(values)
    shares = np.bincount(classes, minlength=3) / len(classes)
    assert len(classes) > 600
    np.testing.assert_allclose(shares, target, atol=0.09)


def test_arguments_of_sampling_that_cannot_work() -> None:
    sample = tf.contrib.training.stratified_sample
    with tf2.Graph().as_default():
        with pytest.raises(InvalidArgument, match="sum to 1"):
            sample([tf.constant(1)], tf.constant(0), [0.5, 0.6], 2)
        with pytest.raises(InvalidArgument, match=r"classes \[1\] have a target share"):
            sample([tf.constant(1)], tf.constant(0), [0.5, 0.5], 2, init_probs=[1.0, 0.0])
        with pytest.raises(InvalidArgument, match="must be a scalar"):
            sample([tf.constant(1)], tf.constant([0]), [0.5, 0.5], 2)
        with pytest.raises(InvalidArgument, match="must be integers"):
            sample([tf.constant(1)], tf.constant(0.0), [0.5, 0.5], 2)
        with pytest.raises(InvalidArgument, match="must be a list"):
            sample(tf.constant(1), tf.constant(0), [0.5, 0.5], 2)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    written = []
    for shard in range(2):
        path = str(tmp_path / f"part-{shard}.tfrecord")
        with tf2.io.TFRecordWriter(path) as writer:
            for i in range(11):
                number = shard * 11 + i
                feature = {
                    "number": tf2.train.Feature(int64_list=tf2.train.Int64List(value=[number])),
                    "words": tf2.train.Feature(int64_list=tf2.train.Int64List(value=range(number % 3))),
                }
                writer.write(tf2.train.Example(features=tf2.train.Features(feature=feature)).SerializeToString())
        written.append(path)
    return written


FEATURES = {"number": tf2.io.FixedLenFeature([], tf2.int64), "words": tf2.io.VarLenFeature(tf2.int64)}


@pytest.mark.parametrize("engine", ["threads", "lockstep", "tfdata"])
def test_read_batch_features_in_order(files: list[str], engine: str) -> None:
    def build():
        features = tf.contrib.learn.read_batch_features(
            files[0][:-10] + "*.tfrecord", 8, FEATURES, tf.TFRecordReader, randomize_input=False, num_epochs=1,
            num_enqueue_threads=1,
        )  # fmt: skip
        return {"number": features["number"], "words": tf.sparse_tensor_to_dense(features["words"], -1)}

    found = batches(build, engine)
    assert [len(batch["number"]) for batch in found] == [8, 8, 6]
    np.testing.assert_array_equal(np.concatenate([batch["number"] for batch in found]), np.arange(22))
    np.testing.assert_array_equal(found[0]["words"][:3], [[-1, -1], [0, -1], [0, 1]])


def test_readers_shuffle_and_give_keys(files: list[str]) -> None:
    def build():
        return tf.contrib.learn.read_keyed_batch_examples(
            files, 4, tf.TFRecordReader, num_epochs=2, queue_capacity=20, num_threads=2, read_batch_size=3, seed=1
        )

    found = batches(build)
    keys = [key.decode() for keys, _ in found for key in keys]
    numbers = [
        tf2.train.Example.FromString(e).features.feature["number"].int64_list.value[0] for _, es in found for e in es
    ]
    assert Counter(numbers) == Counter(list(range(22)) * 2)
    assert numbers != sorted(numbers)
    assert all(key.startswith(files[number // 11]) for key, number in zip(keys, numbers, strict=True))


def test_readers_that_parse_one_by_one(files: list[str]) -> None:
    def build():
        return tf.contrib.learn.read_batch_examples(
            files, 4, tf.TFRecordReader, False, num_epochs=1,
            parse_fn=lambda e: {"number": tf.parse_single_example(e, {"number": FEATURES["number"]})["number"]},
        )  # fmt: skip

    np.testing.assert_array_equal(np.concatenate([batch["number"] for batch in batches(build)]), np.arange(22))


def test_files_of_a_list_are_read_as_tf1_did(files: list[str], tmp_path: Path) -> None:
    odd = tmp_path / "odd[0]*.tfrecord"
    odd.write_bytes(Path(files[0]).read_bytes())

    def numbers(paths):
        def build():
            examples = tf.contrib.learn.read_batch_examples(paths, 11, tf.TFRecordReader, False, 1)
            return tf.parse_example(examples, {"number": FEATURES["number"]})["number"]

        return np.concatenate(batches(build)).tolist()

    assert numbers(files[::-1]) == list(range(22))  # in the order of the names
    assert numbers(str(odd)) == list(range(11))


def test_arguments_of_readers_that_cannot_work(tmp_path: Path) -> None:
    read = tf.contrib.learn.read_batch_examples
    with pytest.raises(InvalidArgument, match="no file matches"):
        read(str(tmp_path / "*.nothing"), 4, tf.TFRecordReader)
    with pytest.raises(InvalidArgument, match="file_pattern is empty"):
        read([], 4, tf.TFRecordReader)
    (tmp_path / "a").touch()
    with pytest.raises(InvalidArgument, match="from 1 to queue_capacity"):
        read(str(tmp_path / "a"), 40, tf.TFRecordReader, queue_capacity=20)
    with pytest.raises(InvalidArgument, match=r"from 1 to queue_capacity .*; got None"):
        read(str(tmp_path / "a"), None, tf.TFRecordReader)
    with tf2.Graph().as_default(), pytest.raises(InvalidArgument, match="reader must be a class or function"):
        read(str(tmp_path / "a"), 4, tf.TFRecordReader())


def test_run_n_and_run_feeds() -> None:
    with tf2.Graph().as_default():
        x = tf.placeholder_with_default(0, [])
        outputs = {"n": tf.train.range_input_producer(3, num_epochs=1, shuffle=False).dequeue() + x}
        assert tf.contrib.learn.run_n(outputs, n=2) == [{"n": 0}, {"n": 1}]
        assert tf.contrib.learn.run_feeds(outputs, [{x: 10}] * 5) == [{"n": 10}, {"n": 11}, {"n": 12}]


@pytest.mark.parametrize("engine", ["threads", "lockstep"])
def test_rows_are_resampled_at_their_rates(engine: str) -> None:
    def build():
        tf.set_random_seed(7)
        numbers = tf.train.batch([tf.train.range_input_producer(3000, num_epochs=1, shuffle=False).dequeue()], 30)
        rates = tf.gather([0.0, 1.0, 2.5], numbers % 3)
        rows = tf.contrib.training.resample_at_rate([numbers, tf.as_string(numbers)], rates, "resample", 3)
        return tf.train.batch(rows, 20, enqueue_many=True, allow_smaller_final_batch=True)

    found = batches(build, engine)
    numbers, names = (np.concatenate(parts) for parts in zip(*found, strict=True))
    assert [str(number).encode() for number in numbers] == names.tolist()
    np.testing.assert_array_equal(numbers, np.sort(numbers))  # copies stand side by side, rows keep their order
    drawn = np.bincount(numbers, minlength=3000).reshape(1000, 3)
    assert drawn[:, 0].sum() == 0
    for column, rate in ((1, 1.0), (2, 2.5)):  # mean and variance of Poisson draws, within 5 standard errors
        assert abs(drawn[:, column].mean() - rate) < 5 * np.sqrt(rate / 1000)
        spread = np.sqrt((rate + 2 * rate**2) / 1000)
        assert abs(drawn[:, column].var() - rate) < 5 * spread


def test_weights_become_rates_by_their_mean() -> None:
    batches_of_weights = [[2.0, 6.0], [1.0, 1.0], [4.0, 4.0], [3.0, 5.0], [9.0, 1.0]]
    warmup, decay, overall = 3, 0.5, 50.0
    with tf2.Graph().as_default(), tf.Session() as session:
        weights = tf.placeholder(tf.float32, [None])
        (rows,), rates = tf.contrib.training.weighted_resample(
            [tf.constant([0, 1])], weights, overall, "again", decay, warmup, 5
        )
        assert rows.shape.as_list() == [None]
        assert {v.op.name for v in tf.local_variables()} == {
            "again/estimate_mean/resample_count", "again/estimate_mean/estimated_mean",
        }  # fmt: skip
        session.run(tf.local_variables_initializer())
        mean, seen = 0.0, []
        for number, values in enumerate(batches_of_weights, 1):
            found_rows, found_rates = session.run([rows, rates], {weights: values})
            kept = min((number - 1) / min(number, warmup), decay)
            mean = kept * mean + (1 - kept) * np.mean(values)
            seen.append(np.mean(values))
            if number == 2:
                np.testing.assert_allclose(mean, np.mean(seen))  # warming up: the mean of all
            expected = np.asarray(values) * overall / mean
            assert len(found_rows) > 0
            np.testing.assert_allclose(found_rates, expected[found_rows], rtol=1e-5)


def test_arguments_of_resampling_that_cannot_work() -> None:
    with tf2.Graph().as_default():
        with pytest.raises(InvalidArgument, match="vector of floats; got int32"):
            tf.contrib.training.resample_at_rate([tf.constant([1])], tf.constant([1]))
        with pytest.raises(InvalidArgument, match="must be a list"):
            tf.contrib.training.weighted_resample(tf.constant([1]), [1.0], 1.0)
