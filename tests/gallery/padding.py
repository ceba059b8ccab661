"""T12, T13, T24, T32: sequences of several lengths: padded, bucketed, and with carried state."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from .data import broken, paths, sequence_example, write_tfrecords
from .registry import MISSING_CONTEXT, NO_FAULT, WRONG_TYPE, Fault, Program, entry
from .tfrecords import READING

COUNT = 22
PARSING = (MISSING_CONTEXT, WRONG_TYPE)
CONTEXT_SPEC = {"length": tf.FixedLenFeature([], tf.int64)}
SEQUENCE_SPEC = {
    "inputs": tf.FixedLenSequenceFeature([2], tf.float32),
    "labels": tf.FixedLenSequenceFeature([], tf.int64),
}


def length_of(i: int) -> int:
    return 1 + (i * 5) % 7


def melodies(fault: Fault, count: int = COUNT) -> tuple[list[bytes], tuple]:
    """SequenceExamples of 1 to 7 frames, and the (inputs, labels, length) in them."""
    serialized, records = [], []
    for i in range(count):
        n = length_of(i)
        inputs = np.stack([np.full(n, i, np.float32), np.arange(n, dtype=np.float32) + 0.5], axis=1)
        labels = np.arange(n, dtype=np.int64) + 10 * i + 1
        lists = {"inputs": list(inputs), "labels": [int(v) for v in labels]}
        serialized.append(sequence_example(broken(fault, i, {"length": n}, key="length"), lists))
        records.append((inputs, labels, np.int32(n)))
    return serialized, tuple(records)


def parse_melody(serialized: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    context, sequence = tf.parse_single_sequence_example(
        serialized, context_features=CONTEXT_SPEC, sequence_features=SEQUENCE_SPEC
    )
    return sequence["inputs"], sequence["labels"], tf.cast(context["length"], tf.int32)


def unpad(batch) -> list[tuple]:
    """Cuts each record of a padded batch (inputs, labels, length) to its length; the padding must be zeros.

    Raises:
        ValueError: Something else stands in the padding, or the batch is wider than its longest record.
    """
    records = []
    if batch[0].shape[1] != max(batch[2]):
        raise ValueError(f"padded to {batch[0].shape[1]} frames, the longest record has {max(batch[2])}")
    for inputs, labels, n in zip(*batch, strict=True):
        if inputs[n:].any() or labels[n:].any():
            raise ValueError("the padding is not zero")
        records.append((inputs[:n], labels[:n], n))
    return records


def melody_twin(files: list[str], epochs: int | None) -> tf2.data.Dataset:
    return tf2.data.TFRecordDataset(files).repeat(epochs).map(parse_melody)


@entry("T13-sequence-dynamic-pad", topology="T13", ordered=True, stages=(*READING, *PARSING))
def sequence_dynamic_pad(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, records = melodies(fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        file_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        _, value = tf.TFRecordReader().read(file_queue)
        return tf.train.batch(list(parse_melody(value)), batch_size=4, dynamic_pad=True, allow_smaller_final_batch=True)

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=4,
        keep_remainder=True,
        files=files,
        unbatch=unpad,
        hand_written_twin=lambda: melody_twin(paths(files), epochs).padded_batch(4),
    )


@entry(
    "T13-magenta-shuffled",
    topology="T13",
    order_note="a RandomShuffleQueue before the padding batch",
    stages=(*READING, *PARSING),
    style="magenta: SequenceExample -> RandomShuffleQueue of unknown lengths -> batch(dynamic_pad)",
)
def magenta_shuffled(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, records = melodies(fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def shuffle(tensors):
        pool = tf.RandomShuffleQueue(12, 6, [t.dtype for t in tensors], seed=4)
        tf.train.add_queue_runner(tf.train.QueueRunner(pool, [pool.enqueue(tensors)] * 2))
        outputs = pool.dequeue()
        # A queue without shapes forgets them.
        for output, tensor in zip(outputs, tensors, strict=True):
            output.set_shape(tensor.get_shape())
        return outputs

    def build_fn():
        file_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        _, value = tf.TFRecordReader().read(file_queue)
        inputs, labels, length = shuffle(list(parse_melody(value)))
        return tf.train.batch(
            [inputs, labels, length],
            batch_size=4,
            capacity=12,
            num_threads=2,
            dynamic_pad=True,
            allow_smaller_final_batch=False,
        )

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=4,
        in_flight=COUNT + 40,
        files=files,
        threads=2,
        unbatch=unpad,
        hand_written_twin=lambda: (
            melody_twin(paths(files), epochs).shuffle(6, seed=4).padded_batch(4, drop_remainder=True)
        ),
    )


@entry(
    "T13-batch-join-dynamic-pad",
    topology=("T13", "T9"),
    variants=("one dequeue per join branch", "shuffling serialized strings before parsing"),
    order_note="shuffled serialized strings; two branches",
    stages=(*READING, *PARSING),
    style="im2txt: serialized example queue -> one dequeue a branch -> captions -> batch_join(dynamic_pad)",
)
def batch_join_dynamic_pad(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, records = melodies(fault)
    files = write_tfrecords(folder, serialized, files=3, fault=fault)

    def build_fn():
        filename_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        values_queue = tf.RandomShuffleQueue(capacity=13, min_after_dequeue=5, dtypes=[tf.string], seed=8)
        enqueue_ops = [values_queue.enqueue([tf.TFRecordReader().read(filename_queue)[1]]) for _ in range(2)]
        tf.train.add_queue_runner(tf.train.QueueRunner(values_queue, enqueue_ops))
        branches = [list(parse_melody(values_queue.dequeue())) for _ in range(2)]
        return tf.train.batch_join(branches, batch_size=4, capacity=8, dynamic_pad=True)

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=4,
        in_flight=3 * COUNT + 40,
        files=files,
        threads=2,
        unbatch=unpad,
        hand_written_twin=lambda: (
            melody_twin(paths(files), epochs).shuffle(5, seed=8).padded_batch(4, drop_remainder=True)
        ),
    )


@entry("T32-padding-queue", topology=("T32", "T17"), ordered=True, stages=(*READING, *PARSING))
def padding_queue(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    serialized, records = melodies(fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        file_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        inputs, labels, length = parse_melody(tf.TFRecordReader().read(file_queue)[1])
        queue = tf.PaddingFIFOQueue(
            capacity=10, dtypes=[tf.float32, tf.int64, tf.int32], shapes=[[None, 2], [None], []]
        )
        enqueue_op = queue.enqueue([inputs, labels, length])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [enqueue_op]))
        return queue.dequeue_many(3)

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=3,
        files=files,
        unbatch=unpad,
        hand_written_twin=lambda: melody_twin(paths(files), epochs).padded_batch(3, drop_remainder=True),
    )


@entry("T32-prefetch-padded", topology=("T32", "T13"), ordered=True, stages=(*READING, *PARSING))
def prefetch_padded(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """Padded batches wait in a PaddingFIFOQueue of their own."""
    serialized, records = melodies(fault)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        file_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        tensors = tf.train.batch(
            list(parse_melody(tf.TFRecordReader().read(file_queue)[1])), batch_size=4, dynamic_pad=True
        )
        prefetch = tf.PaddingFIFOQueue(5, [t.dtype for t in tensors], [t.get_shape() for t in tensors], name="prefetch")
        tf.train.add_queue_runner(tf.train.QueueRunner(prefetch, [prefetch.enqueue(tensors)]))
        return prefetch.dequeue()

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=4,
        files=files,
        unbatch=unpad,
        hand_written_twin=lambda: melody_twin(paths(files), epochs).padded_batch(4, drop_remainder=True),
    )


def bucket_by_sequence_length(length, tensors, boundaries, batch_size, *, smaller_final_batch=False):
    """What contrib's function of that name built: a queue a bucket, and one for the finished batches."""
    dtypes = [t.dtype for t in tensors]
    shapes = [t.get_shape() for t in tensors]
    buckets = [tf.PaddingFIFOQueue(16, dtypes, shapes, name=f"bucket_{i}") for i in range(len(boundaries) + 1)]
    finished = tf.FIFOQueue(8, [tf.int32, *dtypes], name="finished_batches")

    def put(bucket):
        with tf.control_dependencies([bucket.enqueue(tensors)]):
            return tf.constant(0)

    which = tf.reduce_sum(tf.cast(length > tf.constant(boundaries), tf.int32))
    enqueue = tf.switch_case(which, [lambda b=b: put(b) for b in buckets])
    ends = (tf.errors.OutOfRangeError, tf.errors.CancelledError)
    tf.train.add_queue_runner(
        tf.train.QueueRunner(
            buckets[0],
            [enqueue.op],
            close_op=tf.group(*[b.close() for b in buckets]),
            cancel_op=tf.group(*[b.close(cancel_pending_enqueues=True) for b in buckets]),
            queue_closed_exception_types=ends,
        )
    )
    take = [b.dequeue_up_to(batch_size) if smaller_final_batch else b.dequeue_many(batch_size) for b in buckets]
    enqueues = [finished.enqueue([tf.constant(i), *outputs]) for i, outputs in enumerate(take)]
    tf.train.add_queue_runner(tf.train.QueueRunner(finished, enqueues, queue_closed_exception_types=ends))
    index, *outputs = finished.dequeue()
    for output, shape in zip(outputs, shapes, strict=True):
        output.set_shape(tf.TensorShape([None if smaller_final_batch else batch_size]).concatenate(shape))
    return index, outputs


def _bucketed(folder: Path, epochs: int | None, fault: Fault, smaller: bool) -> Program:
    boundaries, size = [2, 5], 3
    serialized, records = melodies(fault, 29)
    files = write_tfrecords(folder, serialized, fault=fault)

    def bucket_of(n):
        return sum(n > b for b in boundaries)

    def build_fn():
        file_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        tensors = list(parse_melody(tf.TFRecordReader().read(file_queue)[1]))
        index, outputs = bucket_by_sequence_length(tensors[2], tensors, boundaries, size, smaller_final_batch=smaller)
        return [index, *outputs]

    def unbatch(batch):
        found = unpad(batch[1:])
        wrong = [n for _, _, n in found if bucket_of(n) != batch[0]]
        if wrong:
            raise ValueError(f"lengths {wrong} in bucket {batch[0]}")
        return found

    sizes = []
    for bucket in range(3) if epochs is not None else ():
        full, rest = divmod(epochs * sum(bucket_of(n) == bucket for _, _, n in records), size)
        sizes += [size] * full + ([rest] if rest and smaller else [])

    def twin():
        dataset = melody_twin(paths(files), epochs)

        def batch(key, window):
            return window.padded_batch(size, drop_remainder=not smaller).map(lambda *v: (tf2.cast(key, tf2.int32), *v))

        return dataset.group_by_window(
            lambda _, __, n: tf2.reduce_sum(tf2.cast(n > tf2.constant(boundaries), tf2.int64)),
            batch,
            window_size=size,
        )

    return Program(
        build_fn=build_fn,
        records=records,
        epochs=epochs,
        batch_size=size,
        keep_remainder=smaller,
        batch_sizes=tuple(sizes) or None,
        in_flight=29 + 100,
        files=files,
        unbatch=unbatch,
        hand_written_twin=twin,
    )


BUCKETS = "one thread a bucket hands finished batches to the last queue"


@entry("T12-buckets", topology="T12", variants=("tf.cond",), order_note=BUCKETS, stages=(*READING, *PARSING))
def buckets(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    return _bucketed(folder, epochs, fault, smaller=False)


@entry("T12-buckets-smaller-final", topology="T12", order_note=BUCKETS, stages=(*READING, *PARSING))
def buckets_smaller_final(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    return _bucketed(folder, epochs, fault, smaller=True)


@entry(
    "T24-state-queue",
    topology="T24",
    variants=("state carried between steps",),
    ordered=True,
    why_not="the state that a step computes goes back into a queue that the next step reads",
    stages=(*READING, *PARSING),
)
def state_queue(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """What batch_sequences_with_states did: each segment comes with the state that the last one left."""
    serialized, records = melodies(fault, 12)
    files = write_tfrecords(folder, serialized, fault=fault)

    def build_fn():
        file_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        _, labels, _ = parse_melody(tf.TFRecordReader().read(file_queue)[1])
        segments = tf.FIFOQueue(4, [tf.int64], name="segments")
        tf.train.add_queue_runner(tf.train.QueueRunner(segments, [segments.enqueue([labels])]))
        states = tf.FIFOQueue(1, [tf.int64], [[]], name="states")
        states.enqueue([tf.constant(0, tf.int64)], name="initial_state")
        segment = segments.dequeue()
        state = states.dequeue()
        with tf.control_dependencies([states.enqueue([state + tf.reduce_sum(segment)])]):
            return {"segment": tf.identity(segment), "state": tf.identity(state)}

    def before_step(session, step):
        if step == 0:
            session.run(session.graph.get_operation_by_name("initial_state"))

    expected, state = [], 0
    for _, labels, _ in records * (1 if epochs is None else epochs):
        expected.append({"segment": labels, "state": np.int64(state)})
        state += int(labels.sum())
    # The state goes on over the epochs, so all of them count as one.
    return Program(
        build_fn=build_fn,
        records=tuple(expected),
        epochs=None if epochs is None else 1,
        steps=len(expected) if epochs is None else 0,
        files=files,
        sources=len(records),
        before_step=before_step,
    )
