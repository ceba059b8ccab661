"""T17, T29, T31: queues and QueueRunners made by hand, priority queues, staging areas, RecordInput."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from .data import checked, example, image_bytes, paths, pixels, png, write_tfrecords
from .registry import ASSERTION, NO_FAULT, NOT_AN_IMAGE, QUEUE_SHAPE, Fault, Program, entry
from .tfrecords import PARSING, READING, WRONG_LENGTH, parse_raw, raw_data, raw_twin

COUNT = 20


@entry("T17-constants-fifo", topology="T17", variants=("enqueue_many",), ordered=True)
def constants_fifo(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    """numpy constants are enqueued again and again; no producer, so no end."""
    data = (np.arange(16, dtype=np.float32) * 2.5).reshape(4, 4)
    target = np.array([0, 1, 1, 0], np.int32)

    def build_fn():
        queue = tf.FIFOQueue(capacity=50, dtypes=[tf.float32, tf.int32], shapes=[[4], []])
        enqueue_op = queue.enqueue_many([data, target])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [enqueue_op]))
        data_sample, label_sample = queue.dequeue()
        return data_sample, label_sample

    return Program(
        build_fn=build_fn,
        records=tuple(zip(data, target, strict=True)),
        epochs=None,
        hand_written_twin=lambda: tf2.data.Dataset.from_tensor_slices((data, target)).repeat(),
    )


@entry("T17-counter", topology="T17", ordered=True, stages=(ASSERTION,))
def counter(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    """A local variable counts up to its limit, which ends the data."""

    def build_fn():
        position = tf.Variable(
            0,
            trainable=False,
            collections=[tf.GraphKeys.LOCAL_VARIABLES],
            use_resource=False,
            name="position",
        )
        number = checked(tf.count_up_to(position, COUNT), fault)
        queue = tf.FIFOQueue(7, [tf.int32, tf.float32], shapes=[[], []])
        enqueue_op = queue.enqueue([number, tf.sqrt(tf.cast(number, tf.float32))])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [enqueue_op]))
        return queue.dequeue_many(5)

    return Program(
        build_fn=build_fn,
        records=tuple((np.int32(i), np.sqrt(np.float32(i))) for i in range(COUNT)),
        batch_size=5,
        hand_written_twin=lambda: (
            tf2.data.Dataset.range(COUNT)
            .map(lambda i: (tf2.cast(i, tf2.int32), tf2.sqrt(tf2.cast(i, tf2.float32))))
            .batch(5, drop_remainder=True)
        ),
    )


@entry("T17-random-op", topology="T17", variants=("random op as the source, with an op seed",), ordered=True)
def random_op(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    def sample():
        return tf.random_normal([3], seed=77)

    def build_fn():
        queue = tf.FIFOQueue(10, [tf.float32], shapes=[[3]])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue([sample()])]))
        return queue.dequeue_many(4)

    # The stream of one random op in one session is a function of its seeds.
    with tf.Graph().as_default():
        op = sample()
        with tf.Session() as session:
            records = tuple(session.run(op) for _ in range(24))
    return Program(build_fn=build_fn, records=records, epochs=None, batch_size=4, steps=6)


@entry(
    "T17-random-shuffle",
    topology="T17",
    variants=("dictionary: a queue with names",),
    order_note="a RandomShuffleQueue filled by three threads",
    stages=(ASSERTION,),
)
def random_shuffle(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    def build_fn():
        number = tf.train.range_input_producer(COUNT, num_epochs=epochs, shuffle=False).dequeue()
        number = checked(number, fault)
        queue = tf.RandomShuffleQueue(
            12, 5, dtypes=[tf.int32, tf.string], shapes=[[], []], names=["number", "text"], seed=6
        )
        enqueue_op = queue.enqueue({"number": number, "text": tf.as_string(number)})
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [enqueue_op] * 3))
        return queue.dequeue_many(6)

    def twin():
        dataset = tf2.data.Dataset.range(COUNT, output_type=tf2.int32).repeat(epochs)
        dataset = dataset.map(lambda i: {"number": i, "text": tf2.strings.as_string(i)})
        return dataset.shuffle(5, seed=6).batch(6, drop_remainder=True)

    return Program(
        build_fn=build_fn,
        records=tuple({"number": np.int32(i), "text": str(i).encode()} for i in range(COUNT)),
        epochs=epochs,
        batch_size=6,
        in_flight=64,
        threads=3,
        hand_written_twin=twin,
    )


@entry("T17-dequeue-up-to", topology="T17", ordered=True, stages=(*READING, QUEUE_SHAPE))
def dequeue_up_to(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """The queue fixes a shape that the graph does not know; a record of another size fails at the enqueue."""
    rows = [np.array([i, i * i, -i], np.int64) for i in range(COUNT)]
    serialized = [example(row=row[:2] if fault.at(QUEUE_SHAPE, i) else row) for i, row in enumerate(rows)]
    files = write_tfrecords(folder, serialized, fault=fault)
    spec = {"row": tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True)}

    def build_fn():
        _, value = tf.TFRecordReader().read(
            tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        )
        queue = tf.FIFOQueue(9, [tf.int64], shapes=[[3]])
        tf.train.add_queue_runner(
            tf.train.QueueRunner(queue, [queue.enqueue([tf.parse_single_example(value, spec)["row"]])])
        )
        return queue.dequeue_up_to(6)

    return Program(
        build_fn=build_fn,
        records=tuple(rows),
        epochs=epochs,
        batch_size=6,
        keep_remainder=True,
        files=files,
        hand_written_twin=lambda: (
            tf2.data.TFRecordDataset(paths(files))
            .repeat(epochs)
            .map(lambda value: tf2.io.parse_single_example(value, spec)["row"])
            .batch(6)
        ),
    )


@entry(
    "T17-queue-into-queue",
    topology="T17",
    variants=("a queue feeding the batch queue",),
    ordered=True,
    stages=(ASSERTION,),
)
def queue_into_queue(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    def build_fn():
        number = tf.train.range_input_producer(COUNT, num_epochs=epochs, shuffle=False).dequeue()
        first = tf.FIFOQueue(3, [tf.int32], shapes=[[]], name="first")
        tf.train.add_queue_runner(tf.train.QueueRunner(first, [first.enqueue([number * 3])]))
        second = tf.FIFOQueue(5, [tf.int32], shapes=[[]], name="second")
        tf.train.add_queue_runner(
            tf.train.QueueRunner(second, [second.enqueue([checked(first.dequeue() // 3, fault) * 3 + 1])])
        )
        return tf.train.batch([second.dequeue()], 3)

    return Program(
        build_fn=build_fn,
        records=tuple(np.int32(i * 3 + 1) for i in range(COUNT)),
        epochs=epochs,
        batch_size=3,
        hand_written_twin=lambda: (
            tf2.data.Dataset.range(COUNT, output_type=tf2.int32)
            .repeat(epochs)
            .map(lambda i: i * 3 + 1)
            .batch(3, drop_remainder=True)
        ),
    )


@entry("T17-priority-queue", topology="T17", variants=("PriorityQueue", "enqueue_many"), ordered=True)
def priority_queue(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    """All elements arrive in one enqueue_many, so the lowest priorities leave first in any case."""
    priorities = (np.arange(COUNT, dtype=np.int64) * 7) % COUNT

    def build_fn():
        once = tf.train.range_input_producer(1, num_epochs=1, shuffle=False).dequeue()
        values = tf.constant(priorities * 10) + tf.cast(once, tf.int64)
        queue = tf.PriorityQueue(COUNT + 5, types=[tf.int64], shapes=[[]])
        enqueue_op = queue.enqueue_many([tf.constant(priorities), values])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [enqueue_op]))
        return queue.dequeue_many(4)

    return Program(
        build_fn=build_fn,
        records=tuple((np.int64(p), np.int64(p * 10)) for p in range(COUNT)),
        batch_size=4,
        hand_written_twin=lambda: (
            tf2.data.Dataset.range(COUNT).map(lambda p: (p, p * 10)).batch(4, drop_remainder=True)
        ),
    )


@entry(
    "T17-priority-queue-trickle",
    topology="T17",
    variants=("PriorityQueue",),
    why_not="which elements wait together, and so the order, depends on how full the queue is",
    order_note="which elements are there to choose from depends on how full the queue is",
)
def priority_queue_trickle(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    priorities = (np.arange(COUNT, dtype=np.int64) * 7) % COUNT

    def build_fn():
        priority = tf.train.input_producer(priorities, element_shape=[], num_epochs=epochs, shuffle=False).dequeue()
        queue = tf.PriorityQueue(6, types=[tf.int64], shapes=[[]])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue([priority, priority * 10])]))
        return queue.dequeue_many(4)

    return Program(
        build_fn=build_fn,
        records=tuple((p, p * 10) for p in priorities),
        epochs=epochs,
        batch_size=4,
        in_flight=10_000,  # With an endless source the highest numbers may wait for ever.
    )


@entry(
    "T17-drop-when-full",
    topology="T17",
    variants=("conditional enqueue that drops when the queue is full", "tf.cond"),
    ordered=True,
    order_note="whole rounds of three are dropped, so the order within them shows no gap",
    why_not="what is dropped depends on how full the queue is, that is, on the timing of the threads",
)
def drop_when_full(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    rows = np.array([[1.0, 0.0], [2.0, 0.5], [3.0, 0.25]], np.float32)

    def build_fn():
        queue = tf.FIFOQueue(12, [tf.float32], shapes=[[2]])

        def put():
            with tf.control_dependencies([queue.enqueue_many([tf.constant(rows)])]):
                return tf.constant(True)

        kept = tf.cond(queue.size() <= 9, put, lambda: tf.constant(False))
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [kept.op]))
        return queue.dequeue_many(3)

    return Program(build_fn=build_fn, records=tuple(rows), epochs=None, batch_size=3, steps=20)


@entry(
    "T31-unknown-shapes",
    topology="T31",
    order_note="a RandomShuffleQueue filled by four threads",
    stages=(*READING, *PARSING, NOT_AN_IMAGE),
    style="FastMaskRCNN: ZLIB-like records of images of any size -> RandomShuffleQueue -> a batch of one",
)
def unknown_shapes(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    images = [pixels(i, 3 + i % 3, 2 + i % 4, 3) for i in range(COUNT)]
    serialized = []
    for i, image in enumerate(images):
        values = {"image": image_bytes(fault, i, png(image)), "label": i}
        if fault.stage == "missing-feature" and fault.record == i:
            del values["label"]
        if fault.stage == "wrong-type" and fault.record == i:
            values["label"] = b"seven"
        serialized.append(example(**values))
    files = write_tfrecords(folder, serialized, fault=fault)

    def parse(value):
        features = tf.parse_single_example(
            value, {"image": tf.FixedLenFeature([], tf.string), "label": tf.FixedLenFeature([], tf.int64)}
        )
        return tf.image.decode_png(features["image"], channels=3), features["label"]

    def build_fn():
        names = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        parsed = parse(tf.TFRecordReader().read(names)[1])
        pool = tf.RandomShuffleQueue(8, min_after_dequeue=4, dtypes=[t.dtype for t in parsed], seed=1)
        runner = tf.train.QueueRunner(pool, [pool.enqueue(parsed)] * 4)
        tf.add_to_collection(tf.GraphKeys.QUEUE_RUNNERS, runner)
        image, label = pool.dequeue()
        return image[tf.newaxis], label

    return Program(
        build_fn=build_fn,
        records=tuple((image[np.newaxis], np.int64(i)) for i, image in enumerate(images)),
        epochs=epochs,
        in_flight=COUNT + 20,
        files=files,
        threads=4,
        hand_written_twin=lambda: (
            tf2.data.TFRecordDataset(paths(files))
            .repeat(epochs)
            .map(parse)
            .shuffle(4, seed=1)
            .map(lambda image, label: (image[tf2.newaxis], label))
        ),
    )


def _staged(folder: Path, epochs: int | None, fault: Fault, *, warm_up: bool) -> Program:
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault)
    size = 4

    def build_fn():
        queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        images, labels = tf.train.batch(list(parse_raw(tf.TFRecordReader().read(queue)[1])), size)
        options = {"capacity": 2, "shared_name": "staged"}
        put = tf.raw_ops.Stage(values=[images, labels], **options, name="put")
        with tf.control_dependencies([] if warm_up else [put]):
            staged = tf.raw_ops.Unstage(dtypes=[tf.uint8, tf.int32], **options)
        with tf.control_dependencies([put]):
            images, labels = tf.identity_n(staged)
        images.set_shape([size, *records[0][0].shape])
        labels.set_shape([size])
        return images, labels

    def before_step(session, step):
        if step == 0:
            session.run(session.graph.get_operation_by_name("put"))

    full = COUNT // size * (3 if epochs is None else epochs)
    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=size,
        # The step that takes the last batch also wants to stage one more, and fails.
        batch_sizes=(size,) * (full - 1) if warm_up and epochs is not None else None,
        files=files,
        before_step=before_step if warm_up else None,
        hand_written_twin=None if warm_up else lambda: raw_twin(paths(files), epochs).batch(size, drop_remainder=True),
    )


@entry(
    "T29-staging-area",
    topology="T29",
    variants=("StagingArea",),
    ordered=True,
    stages=(*READING, *PARSING, WRONG_LENGTH),
)
def staging_area(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """Each step stages a batch and then takes it."""
    return _staged(folder, epochs, fault, warm_up=False)


@entry(
    "T29-staging-warm-up",
    topology="T29",
    variants=("StagingArea",),
    ordered=True,
    why_not="the first batch is staged by a step that the program runs by hand",
    stages=(*READING, *PARSING, WRONG_LENGTH),
)
def staging_warm_up(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """A batch is staged one step ahead, as programs for a GPU do: a step takes one and stages the next."""
    return _staged(folder, epochs, fault, warm_up=True)


@entry(
    "T29-staging-runner",
    topology="T29",
    variants=("StagingArea", "rejection sampling"),
    order_note="the staging area is filled by a QueueRunner's thread; rejected rows are left out",
    why_not="a StagingArea that only a QueueRunner fills has no end: nothing closes it",
)
def staging_runner(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    """Two producers, of which only rows that pass go on; a QueueRunner stages them."""
    rows = np.arange(60, dtype=np.float32).reshape(30, 2)

    def build_fn():
        row = tf.train.slice_input_producer([rows], shuffle=False)[0]
        accepted = tf.train.maybe_batch([row], keep_input=row[0] % 4 < 1, batch_size=3)
        queue = tf.FIFOQueue(2, [tf.float32])  # Gives the runner a queue to close.
        stage = tf.raw_ops.Stage(values=[accepted], capacity=2, shared_name="accepted")
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [stage]))
        (batch,) = tf.raw_ops.Unstage(dtypes=[tf.float32], capacity=2, shared_name="accepted")
        return batch

    return Program(
        build_fn=build_fn,
        records=tuple(row for row in rows if row[0] % 4 < 1),
        epochs=None,
        batch_size=3,
        in_flight=60,
        sources=30,
    )


@entry(
    "T29-record-input",
    topology="T29",
    variants=("RecordInput", "parse after the batch op"),
    order_note="RecordInput reads and shuffles in threads of its own",
    why_not="RecordInput is one op with files, shuffling and batching inside, driven by its own threads",
)
def record_input(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    """tf_cnn_benchmarks: RecordInput -> split -> parse one by one -> parallel_stack. It has no end."""
    serialized, records = raw_data(COUNT, fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        values = tf.raw_ops.RecordInput(
            file_pattern=str(folder / "data-*.tfrecord"),
            file_random_seed=301,
            file_parallelism=1,
            file_buffer_size=10,
            batch_size=4,
        )
        parsed = [parse_raw(tf.reshape(v, [])) for v in tf.split(values, 4, 0)]
        return tf.parallel_stack([image for image, _ in parsed]), tf.stack([label for _, label in parsed])

    return Program(build_fn=build_fn, records=records, epochs=None, batch_size=4, in_flight=2 * COUNT, files=files)
