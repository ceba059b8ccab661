"""T14, T15, T26: Python threads, or the main thread, feed queues through placeholders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow.compat.v1 as tf

from .data import image_bytes, paths, pixels, png, write_each
from .registry import MISSING_FILE, NO_FAULT, NOT_AN_IMAGE, PYTHON_RAISES, Fault, Program, entry

COUNT = 18
FED = "Python code feeds the queue through placeholders: the source is not in the graph"


def _check(fault: Fault, i: int) -> None:
    if fault.at(PYTHON_RAISES, i):
        raise ValueError(f"cannot load record {i}")


@entry("T14-whole-batches", topology="T14", ordered=True, why_not=FED, stages=(PYTHON_RAISES,))
def whole_batches(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    """A thread makes ready batches, the last one smaller, and closes the queue when it has no more."""
    rows = np.arange(COUNT * 2, dtype=np.float32).reshape(COUNT, 2)
    labels = np.arange(COUNT, dtype=np.int32)
    size = 4

    def build_fn():
        with tf.name_scope("feed"):
            batch = [
                tf.placeholder(tf.float32, [None, 2], name="rows"),
                tf.placeholder(tf.int32, [None], name="labels"),
            ]
            queue = tf.FIFOQueue(3, [tf.float32, tf.int32], name="batches")
            queue.enqueue(batch, name="enqueue")
            queue.close(name="close")
        rows_batch, labels_batch = queue.dequeue()
        rows_batch.set_shape([None, 2])
        labels_batch.set_shape([None])
        return {"rows": rows_batch, "labels": labels_batch}

    def feeder(session, coord):
        for start in range(0, COUNT, size):
            if coord.should_stop():
                return
            part = slice(start, start + size)
            for i in range(COUNT)[part]:
                _check(fault, i)
            session.run("feed/enqueue", {"feed/rows:0": rows[part], "feed/labels:0": labels[part]})
        session.run("feed/close")

    return Program(
        build_fn=build_fn,
        records=tuple({"rows": r, "labels": n} for r, n in zip(rows, labels, strict=True)),
        batch_size=size,
        keep_remainder=True,
        feeders=(feeder,),
    )


@entry(
    "T14-tacotron-groups",
    topology="T14",
    ordered=True,
    order_note="the thread sorts by length inside each group, with a seed",
    why_not=FED,
    stages=(PYTHON_RAISES,),
    style="tacotron: a thread sorts a group by length, pads batch by batch and enqueues whole batches",
)
def tacotron_groups(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    texts = [np.arange(1, 2 + (i * 5) % 6, dtype=np.int32) + 10 * i for i in range(COUNT)]
    order = [i for start in (0, 9) for i in sorted(range(start, start + 9), key=lambda i: len(texts[i]))]

    def build_fn():
        inputs = tf.placeholder(tf.int32, [None, None], "inputs")
        lengths = tf.placeholder(tf.int32, [None], "input_lengths")
        queue = tf.FIFOQueue(8, [tf.int32, tf.int32], name="input_queue")
        queue.enqueue([inputs, lengths], name="enqueue_batch")
        queue.close(name="close_queue")
        inputs, lengths = queue.dequeue()
        inputs.set_shape([None, None])
        lengths.set_shape([None])
        return inputs, lengths

    def feeder(session, coord):
        for start in range(0, COUNT, 3):
            group = order[start : start + 3]
            for i in group:
                _check(fault, i)
            widest = max(len(texts[i]) for i in group)
            padded = np.stack([np.pad(texts[i], (0, widest - len(texts[i]))) for i in group])
            session.run("enqueue_batch", {"inputs:0": padded, "input_lengths:0": [len(texts[i]) for i in group]})
        session.run("close_queue")

    return Program(
        build_fn=build_fn,
        records=tuple((texts[i], np.int32(len(texts[i]))) for i in order),
        batch_size=3,
        unbatch=lambda batch: [(row[:n], n) for row, n in zip(*batch, strict=True)],
        feeders=(feeder,),
    )


def _clip(i: int) -> np.ndarray:
    return np.full((2 + i % 5, 1), i, np.float32)


def _unpad_clips(batch) -> list:
    clips, ids = batch
    return [(clip[: 2 + int(i) % 5], i) for clip, i in zip(clips, ids, strict=True)]


@entry(
    "T15-wavenet-padding",
    topology="T15",
    order_note="two Python threads feed one queue",
    why_not=FED,
    stages=(PYTHON_RAISES,),
    style="wavenet: Python threads read audio -> PaddingFIFOQueue -> dequeue_many; no end",
)
def wavenet_padding(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    def build_fn():
        clip = tf.placeholder(tf.float32, [None, 1], name="clip")
        number = tf.placeholder(tf.int32, [], name="number")
        queue = tf.PaddingFIFOQueue(8, [tf.float32, tf.int32], shapes=[[None, 1], []])
        queue.enqueue([clip, number], name="enqueue_clip")
        return queue.dequeue_many(3)

    def feeder(part):
        def feed(session, coord):
            while True:
                for i in part:
                    if coord.should_stop():
                        return
                    _check(fault, i)
                    session.run("enqueue_clip", {"clip:0": _clip(i), "number:0": i})

        return feed

    return Program(
        build_fn=build_fn,
        records=tuple((_clip(i), np.int32(i)) for i in range(COUNT)),
        epochs=None,
        batch_size=3,
        # Nothing keeps the two threads in step: the faster one may go round more often.
        in_flight=10_000,
        threads=2,
        unbatch=_unpad_clips,
        feeders=(feeder(range(COUNT // 2)), feeder(range(COUNT // 2, COUNT))),
    )


@entry("T15-thread-then-batch", topology="T15", ordered=True, why_not=FED, stages=(PYTHON_RAISES,))
def thread_then_batch(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    """A thread enqueues chunks of examples into a queue that tf.train.batch reads."""
    data = np.arange(COUNT * 3, dtype=np.int64).reshape(COUNT, 3)

    def build_fn():
        chunk = tf.placeholder(tf.int64, [None, 3], name="chunk")
        queue = tf.FIFOQueue(10, [tf.int64], shapes=[[3]], name="examples")
        queue.enqueue_many([chunk], name="enqueue_chunk")
        queue.close(name="no_more")
        return tf.train.batch([queue.dequeue()], batch_size=4, allow_smaller_final_batch=True)

    def feeder(session, coord):
        for start in range(0, COUNT, 5):
            for i in range(start, min(start + 5, COUNT)):
                _check(fault, i)
            session.run("enqueue_chunk", {"chunk:0": data[start : start + 5]})
        session.run("no_more")

    return Program(
        build_fn=build_fn,
        records=tuple(data),
        batch_size=4,
        keep_remainder=True,
        feeders=(feeder,),
    )


@entry(
    "T15-shuffle-queue",
    topology="T15",
    order_note="a RandomShuffleQueue",
    why_not=FED,
    stages=(PYTHON_RAISES,),
)
def fed_shuffle_queue(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    def build_fn():
        number = tf.placeholder(tf.int32, [], name="number")
        queue = tf.RandomShuffleQueue(12, 5, [tf.int32], shapes=[[]], seed=1)
        queue.enqueue([number], name="enqueue_number")
        queue.close(name="end_of_numbers")
        return queue.dequeue_many(4)

    def feeder(session, coord):
        for i in range(COUNT):
            if coord.should_stop():
                return
            _check(fault, i)
            session.run("enqueue_number", {"number:0": i})
        session.run("end_of_numbers")

    return Program(
        build_fn=build_fn,
        records=tuple(np.int32(i) for i in range(COUNT)),
        batch_size=4,
        feeders=(feeder,),
    )


def _read_png(name: tf.Tensor) -> tf.Tensor:
    image = tf.image.decode_png(tf.read_file(name), channels=3)
    image.set_shape([3, 4, 3])
    return image


@entry(
    "T26-filled-by-hand",
    topology="T26",
    ordered=True,
    why_not="the main thread fills the queue through a placeholder and closes it",
    stages=(MISSING_FILE, NOT_AN_IMAGE),
)
def filled_by_hand(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    images = [pixels(i, 3, 4, 3) for i in range(COUNT)]
    files = write_each(
        folder, [image_bytes(fault, i, png(v)) for i, v in enumerate(images)], suffix=".png", fault=fault
    )

    def build_fn():
        names = tf.placeholder(tf.string, [None], name="names")
        queue = tf.FIFOQueue(100, [tf.string], shapes=[[]], name="names_queue")
        queue.enqueue_many([names], name="fill")
        queue.close(name="fill_done")
        name = queue.dequeue()
        return tf.train.batch([name, _read_png(name)], 5, allow_smaller_final_batch=True)

    def before_step(session, step):
        if step == 0:
            session.run("fill", {"names:0": paths(files)})
            session.run("fill_done")

    return Program(
        build_fn=build_fn,
        records=tuple((f.path.encode(), image) for f, image in zip(files, images, strict=True)),
        batch_size=5,
        keep_remainder=True,
        files=files,
        before_step=before_step,
    )


@entry(
    "T26-facenet-refilled",
    topology=("T26", "T9"),
    variants=(
        "batch size chosen per step by feeding",
        "enqueue_many of a [1, ...] example",
        "one dequeue per join branch",
    ),
    order_note="two branches of a batch_join",
    why_not="paths and batch size are fed by the main thread, epoch by epoch",
    stages=(MISSING_FILE, NOT_AN_IMAGE),
    style="facenet: the main thread refills a queue of paths each epoch; batch_join with a fed batch size",
)
def facenet_refilled(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    images = [pixels(i, 3, 4, 3) for i in range(COUNT)]
    files = write_each(
        folder, [image_bytes(fault, i, png(v)) for i, v in enumerate(images)], suffix=".png", fault=fault
    )
    size, per_epoch = 6, COUNT // 6

    def build_fn():
        wanted = tf.placeholder(tf.int32, name="batch_size")
        names = tf.placeholder(tf.string, [None, 1], name="refill_names")
        numbers = tf.placeholder(tf.int32, [None, 1], name="refill_labels")
        waiting = tf.FIFOQueue(200, [tf.string, tf.int32], shapes=[[1], [1]])
        waiting.enqueue_many([names, numbers], name="refill")
        branches = []
        for _ in range(2):
            name, number = waiting.dequeue()
            branches.append([tf.stack([_read_png(n) for n in tf.unstack(name)]), number])
        return tf.train.batch_join(
            branches,
            batch_size=wanted,
            shapes=[(3, 4, 3), ()],
            enqueue_many=True,
            capacity=64,
            allow_smaller_final_batch=True,
        )

    def before_step(session, step):
        if step % per_epoch == 0:
            order = np.random.RandomState(step).permutation(COUNT)
            names = [[files[i].path] for i in order]
            session.run("refill", {"refill_names:0": names, "refill_labels:0": [[i] for i in order]})

    return Program(
        build_fn=build_fn,
        records=tuple((image, np.int32(i)) for i, image in enumerate(images)),
        epochs=None,
        batch_size=size,
        steps=3 * per_epoch,
        # Each refill holds every record once, and the steps of an epoch take just as many.
        in_flight=0,
        files=files,
        threads=2,
        feed=lambda step: {"batch_size:0": size},
        before_step=before_step,
    )
