"""T8, T9, T10, T23: several readers, several branches, vectors of examples, and filters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from .data import broken, example, paths, write_lines, write_tfrecords
from .registry import BAD_FIELD, FEW_FIELDS, MISSING_FILE, NO_FAULT, Fault, Program, entry
from .tfrecords import PARSING, READING, WRONG_LENGTH, parse_raw, raw_data

COUNT = 23
READERS = "several readers fill one queue"
JOIN = "the branches of a join run in threads of their own"
VECTOR_SPEC = {"id": tf.FixedLenFeature([], tf.int64), "rgb": tf.FixedLenFeature([3], tf.float32)}


def vector_data(count: int, fault: Fault) -> tuple[list[bytes], tuple]:
    rgb = [np.arange(3, dtype=np.float32) + i / 4 for i in range(count)]
    serialized = [example(**broken(fault, i, {"id": i, "rgb": v}, key="rgb")) for i, v in enumerate(rgb)]
    return serialized, tuple((np.int64(i), v) for i, v in enumerate(rgb))


def parse_vectors(serialized: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """parse_example takes the whole vector of examples at once."""
    features = tf.parse_example(serialized, VECTOR_SPEC)
    return features["id"], features["rgb"]


def vector_twin(files: list[str], epochs: int | None) -> tf2.data.Dataset:
    dataset = tf2.data.TFRecordDataset(files).repeat(epochs)
    return dataset.map(lambda s: tuple(v[0] for v in parse_vectors(s[tf2.newaxis])))


@entry(
    "T8-read-up-to-batch",
    topology="T8",
    variants=("enqueue_many",),
    ordered=True,
    stages=(*READING, *PARSING),
)
def read_up_to_batch(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, records = vector_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        _, values = tf.TFRecordReader().read_up_to(queue, 5)
        ids, rgb = parse_vectors(values)
        return tf.train.batch([ids, rgb], batch_size=4, enqueue_many=True, capacity=16)

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=4,
        files=files,
        hand_written_twin=lambda: vector_twin(paths(files), epochs).batch(4, drop_remainder=True),
    )


@entry(
    "T8-read-up-to-short-vectors",
    topology=("T8", "T22"),
    variants=("a batch size left variable: short vectors at file ends",),
    ordered=True,
    stages=(*READING, *PARSING),
)
def read_up_to_short_vectors(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, records = vector_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        _, values = tf.TFRecordReader().read_up_to(queue, 5)
        ids, rgb = parse_vectors(values)
        return {"ids": ids, "rgb": rgb}

    def sizes(n):
        return (5,) * (n // 5) + ((n % 5,) if n % 5 else ())

    one_epoch = tuple(size for file in files for size in sizes(file.records))

    def twin():
        names = tf2.data.Dataset.from_tensor_slices(paths(files)).repeat(epochs)
        dataset = names.flat_map(lambda name: tf2.data.TFRecordDataset(name).batch(5)).map(parse_vectors)
        return dataset.map(lambda ids, rgb: {"ids": ids, "rgb": rgb})

    rounds = 3 if epochs is None else epochs
    return Program(
        build_fn=build_fn,
        records=tuple({"ids": i, "rgb": v} for i, v in records),
        epochs=epochs,
        batch_size=5,
        batch_sizes=one_epoch * rounds,
        steps=len(one_epoch) * rounds if epochs is None else 0,
        files=files,
        hand_written_twin=twin,
    )


CENSUS_COLUMNS = ["age", "workclass", "hours", "income"]


@entry(
    "T8-census-dict",
    topology=("T8", "T6"),
    variants=("enqueue_many", "dictionary"),
    order_note="shuffled by shuffle_batch",
    stages=(MISSING_FILE, BAD_FIELD, FEW_FIELDS),
    style="census trainer: read_up_to lines -> decode_csv on the vector -> dict shuffle_batch(enqueue_many)",
)
def census_dict(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    rows = [(20 + i, f"class{i % 4}", 30.5 + i, "<=50K" if i % 3 else ">50K") for i in range(COUNT)]
    lines = [",".join(str(v) for v in row) for row in rows]
    for i in range(COUNT):
        if fault.at(BAD_FIELD, i):
            lines[i] = "old," + lines[i].split(",", 1)[1]
        elif fault.at(FEW_FIELDS, i):
            lines[i] = lines[i].rsplit(",", 1)[0]
    files = write_lines(folder, lines, files=2, fault=fault, header=",".join(CENSUS_COLUMNS))

    def parse(values):
        columns = tf.decode_csv(values, record_defaults=[[0], [""], [0.0], [""]])
        features = dict(zip(CENSUS_COLUMNS, [tf.expand_dims(c, -1) for c in columns], strict=True))
        features["income"] = tf.cast(tf.equal(features["income"], ">50K"), tf.int32)
        return features

    def build_fn():
        queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False, capacity=4)
        _, values = tf.TextLineReader(skip_header_lines=1).read_up_to(queue, num_records=6)
        features = tf.train.shuffle_batch(
            parse(values),
            6,
            min_after_dequeue=7,
            capacity=6 * 3,
            num_threads=1,
            enqueue_many=True,
            allow_smaller_final_batch=True,
            seed=12,
        )
        label = features.pop("income")
        return features, label

    def twin():
        names = tf2.data.Dataset.from_tensor_slices(paths(files)).repeat(epochs)
        dataset = names.flat_map(lambda name: tf2.data.TextLineDataset(name).skip(1))
        dataset = dataset.shuffle(7, seed=12).batch(6).map(parse)
        return dataset.map(lambda f: ({k: v for k, v in f.items() if k != "income"}, f["income"]))

    def record(age, workclass, hours, income):
        features = {
            "age": np.array([age], np.int32),
            "workclass": np.array([workclass.encode()], object),
            "hours": np.array([hours], np.float32),
        }
        return features, np.array([income == ">50K"], np.int32)

    return Program(
        build_fn=build_fn,
        records=tuple(record(*row) for row in rows),
        epochs=epochs,
        batch_size=6,
        keep_remainder=True,
        in_flight=30,
        files=files,
        hand_written_twin=twin,
    )


@entry(
    "T8-youtube8m-join",
    topology=("T8", "T10"),
    variants=("enqueue_many", "one file-name queue, several readers"),
    order_note=f"{READERS}; shuffle_batch_join",
    stages=(*READING, *PARSING),
    style="youtube-8m: N x (reader.read_up_to -> parse_example) -> shuffle_batch_join(enqueue_many)",
)
def youtube8m_join(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, records = vector_data(41, fault)
    files = write_tfrecords(folder, serialized, files=5, fault=fault)

    def build_fn():
        names = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=True, seed=1)
        vectors = [tf.TFRecordReader().read_up_to(names, 4)[1] for _ in range(3)]
        return tf.train.shuffle_batch_join(
            [list(parse_vectors(values)) for values in vectors],
            batch_size=8,
            capacity=24,
            min_after_dequeue=8,
            allow_smaller_final_batch=True,
            enqueue_many=True,
            seed=1,
        )

    def twin():
        names = tf2.data.Dataset.from_tensor_slices(paths(files)).shuffle(5, seed=1).repeat(epochs)
        dataset = names.interleave(tf2.data.TFRecordDataset, cycle_length=3)
        return dataset.shuffle(8, seed=1).batch(8).map(parse_vectors)

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=8,
        keep_remainder=True,
        in_flight=5 * 41,
        files=files,
        threads=3,
        hand_written_twin=twin,
    )


def _inception(folder: Path, epochs: int | None, fault: Fault, make_branches) -> Program:
    """File names -> readers -> example queue of serialized strings -> branches -> batch_join."""
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, files=4, fault=fault)

    def build_fn():
        names = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=True, capacity=16, seed=3)
        waiting = tf.RandomShuffleQueue(capacity=16, min_after_dequeue=6, dtypes=[tf.string], seed=3)
        reads = [tf.TFRecordReader().read(names) for _ in range(2)]
        runner = tf.train.QueueRunner(waiting, [waiting.enqueue([value]) for _, value in reads])
        tf.train.add_queue_runner(runner)
        return tf.train.batch_join(make_branches(waiting), batch_size=4, capacity=32, allow_smaller_final_batch=True)

    def twin():
        names = tf2.data.Dataset.from_tensor_slices(paths(files)).shuffle(4, seed=3).repeat(epochs)
        dataset = names.interleave(tf2.data.TFRecordDataset, cycle_length=2).shuffle(6, seed=3)
        return dataset.map(parse_raw).batch(4)

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=4,
        keep_remainder=True,
        in_flight=4 * COUNT,
        files=files,
        threads=4,
        hand_written_twin=twin,
    )


@entry(
    "T9-inception-shared-dequeue",
    topology="T9",
    variants=("one dequeued tensor shared by M join branches", "shuffling serialized strings before parsing"),
    order_note=f"{READERS}; shuffled; {JOIN}",
    stages=(*READING, *PARSING, WRONG_LENGTH),
    style="Inception: readers -> example queue -> branches that share one dequeue -> batch_join",
)
def inception_shared_dequeue(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    def branches(queue):
        value = queue.dequeue()
        return [list(parse_raw(value)) for _ in range(4)]

    return _inception(folder, epochs, fault, branches)


@entry(
    "T9-dequeue-per-branch",
    topology="T9",
    variants=("one dequeue per join branch",),
    order_note=f"{READERS}; shuffled; {JOIN}",
    stages=(*READING, *PARSING, WRONG_LENGTH),
)
def dequeue_per_branch(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    return _inception(folder, epochs, fault, lambda queue: [list(parse_raw(queue.dequeue())) for _ in range(4)])


@entry(
    "T9-branch-dependent-op",
    topology="T9",
    variants=("the branch number picks a different op",),
    order_note=f"{JOIN}, so which example meets which branch is left to the threads",
    stages=(*READING, *PARSING, WRONG_LENGTH),
)
def branch_dependent_op(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """Odd branches swap the colours: the record is promised up to the order of its channels."""
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        _, value = tf.TFRecordReader().read(queue)
        branches = []
        for thread_id in range(2):
            image, label = parse_raw(value)
            branches.append([image if thread_id % 2 == 0 else tf.reverse(image, [2]), label])
        return tf.train.batch_join(branches, batch_size=4, allow_smaller_final_batch=True)

    def normal(record):
        image, label = record
        return min(image, image[:, :, ::-1], key=lambda array: array.tobytes()), label

    return Program(
        build_fn=build_fn,
        records=tuple(normal(record) for record in records),
        epochs=epochs,
        batch_size=4,
        keep_remainder=True,
        in_flight=COUNT + 40,
        files=files,
        threads=2,
        invariant=normal,
    )


@entry(
    "T10-batch-join-readers",
    topology="T10",
    variants=("one file-name queue, several readers",),
    order_note=f"{READERS}; {JOIN}",
    stages=(*READING, *PARSING, WRONG_LENGTH),
)
def batch_join_readers(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, files=5, fault=fault)

    def build_fn():
        filename_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        example_list = [list(parse_raw(tf.TFRecordReader().read(filename_queue)[1])) for _ in range(3)]
        return tf.train.batch_join(example_list, batch_size=5)

    def twin():
        names = tf2.data.Dataset.from_tensor_slices(paths(files)).repeat(epochs)
        dataset = names.interleave(tf2.data.TFRecordDataset, cycle_length=3).map(parse_raw)
        return dataset.batch(5, drop_remainder=True)

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=5,
        in_flight=5 * COUNT,
        files=files,
        threads=3,
        hand_written_twin=twin,
    )


@entry(
    "T10-shuffle-batch-join",
    topology="T10",
    variants=("one file-name queue, several readers",),
    order_note=f"{READERS}; shuffle_batch_join",
    stages=(*READING, *PARSING, WRONG_LENGTH),
)
def shuffle_batch_join(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, files=3, fault=fault)

    def build_fn():
        filename_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, seed=2)
        example_list = []
        for _ in range(2):
            image, label = parse_raw(tf.TFRecordReader().read(filename_queue)[1])
            example_list.append({"image": image, "label": label})
        return tf.train.shuffle_batch_join(example_list, batch_size=4, capacity=20, min_after_dequeue=8, seed=2)

    def twin():
        names = tf2.data.Dataset.from_tensor_slices(paths(files)).shuffle(3, seed=2).repeat(epochs)
        dataset = names.interleave(tf2.data.TFRecordDataset, cycle_length=2).map(parse_raw)
        dataset = dataset.map(lambda image, label: {"image": image, "label": label})
        return dataset.shuffle(8, seed=2).batch(4, drop_remainder=True)

    return Program(
        build_fn=build_fn,
        records=tuple({"image": image, "label": label} for image, label in records),
        epochs=epochs,
        batch_size=4,
        in_flight=5 * COUNT,
        files=files,
        threads=2,
        hand_written_twin=twin,
    )
