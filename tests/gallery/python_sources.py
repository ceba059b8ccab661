"""T16, T19, T20: Python code as the source: py_func, generators, QueueRunners that call Python."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from .data import pixels
from .registry import NO_FAULT, PY_FUNC, PYTHON_RAISES, DataFile, Fault, Program, entry

COUNT = 17


def _row(i: int) -> np.ndarray:
    return np.array([i, i + 0.5, -i], np.float32)


def _check(fault: Fault, stage, i: int) -> None:
    if fault.at(stage, i):
        raise ValueError(f"cannot load record {i}")


@entry(
    "T19-generator",
    topology="T19",
    variants=("a Python StopIteration inside py_func",),
    ordered=True,
    stages=(PY_FUNC,),
)
def generator(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    """A generator is the only source; its StopIteration ends the data."""

    def rows():
        for i in range(COUNT):
            _check(fault, PY_FUNC, i)
            yield _row(i), np.int64(i)

    def build_fn():
        source = rows()
        row, number = tf.py_func(lambda: next(source), [], [tf.float32, tf.int64])
        row.set_shape([3])
        number.set_shape([])
        return tf.train.batch([row, number], batch_size=4, allow_smaller_final_batch=True)

    return Program(
        build_fn=build_fn,
        records=tuple((_row(i), np.int64(i)) for i in range(COUNT)),
        batch_size=4,
        keep_remainder=True,
        hand_written_twin=lambda: tf2.data.Dataset.from_generator(
            rows, output_signature=(tf2.TensorSpec([3], tf2.float32), tf2.TensorSpec([], tf2.int64))
        ).batch(4),
    )


@entry(
    "T19-petastorm-shuffle",
    topology="T19",
    variants=("a Python StopIteration inside py_func",),
    order_note="a RandomShuffleQueue after the generator",
    stages=(PY_FUNC,),
    style="petastorm: py_func(next(reader)) -> RandomShuffleQueue -> a single dequeue, namedtuple-like",
)
def petastorm_shuffle(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    def rows():
        for i in range(COUNT):
            _check(fault, PY_FUNC, i)
            yield _row(i), f"row {i}".encode()

    def build_fn():
        reader = rows()
        fields = tf.py_func(lambda: next(reader), [], [tf.float32, tf.string])
        fields[0].set_shape([3])
        fields[1].set_shape([])
        shuffle_queue = tf.RandomShuffleQueue(10, 4, [f.dtype for f in fields], seed=2)
        tf.train.add_queue_runner(tf.train.QueueRunner(shuffle_queue, [shuffle_queue.enqueue(fields)]))
        row, text = shuffle_queue.dequeue()
        row.set_shape([3])
        text.set_shape([])
        return {"row": row, "text": text}

    def twin():
        spec = {"row": tf2.TensorSpec([3], tf2.float32), "text": tf2.TensorSpec([], tf2.string)}
        dataset = tf2.data.Dataset.from_generator(
            lambda: ({"row": row, "text": text} for row, text in rows()), output_signature=spec
        )
        return dataset.shuffle(4, seed=2)

    return Program(
        build_fn=build_fn,
        records=tuple({"row": _row(i), "text": f"row {i}".encode()} for i in range(COUNT)),
        hand_written_twin=twin,
    )


@entry(
    "T19-blocks-join",
    topology=("T19", "T10"),
    variants=("enqueue_many",),
    order_note="two branches, shuffled; which branch gets which block is left to the threads",
    stages=(PY_FUNC,),
)
def blocks_join(folder: Path, *, fault: Fault = NO_FAULT) -> Program:
    """A generator of blocks feeds shuffle_batch_join(enqueue_many); two threads share it behind a lock."""

    def blocks():
        for i in range(6):
            _check(fault, PY_FUNC, i)
            yield np.arange(5 * i, 5 * i + 5, dtype=np.int64)

    def build_fn():
        source, lock = blocks(), threading.Lock()

        def block():
            with lock:
                return next(source)

        branches = []
        for _ in range(2):
            numbers = tf.py_func(block, [], tf.int64)
            numbers.set_shape([5])
            branches.append([numbers])
        return tf.train.shuffle_batch_join(
            branches, batch_size=6, capacity=20, min_after_dequeue=8, enqueue_many=True, seed=1
        )

    return Program(
        build_fn=build_fn,
        records=tuple(np.int64(i) for i in range(30)),
        batch_size=6,
        threads=2,
        sources=6,
        hand_written_twin=lambda: (
            tf2.data.Dataset.from_generator(blocks, output_signature=tf2.TensorSpec([5], tf2.int64))
            .unbatch()
            .shuffle(8, seed=1)
            .batch(6, drop_remainder=True)
        ),
    )


@entry("T20-py-func-load", topology=("T20", "T4"), variants=("py_func",), ordered=True, stages=(PY_FUNC,))
def py_func_load(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """numpy files, loaded by Python."""
    volumes = [pixels(i, 2, 3, 4).astype(np.int16) - 100 for i in range(COUNT)]
    files = []
    for i, volume in enumerate(volumes):
        np.save(folder / f"volume{i:02d}.npy", volume)
        files.append(DataFile(str(folder / f"volume{i:02d}.npy"), 1))

    def load(name, number):
        _check(fault, PY_FUNC, int(number))
        return np.load(name.decode())

    def load_tensor(name, number):
        volume = tf.py_func(load, [name, number], tf.int16)
        volume.set_shape([2, 3, 4])
        return tf.cast(volume, tf.float32) / 2, number

    names, numbers = [f.path for f in files], np.arange(COUNT, dtype=np.int32)

    def build_fn():
        name, number = tf.train.slice_input_producer([names, numbers], num_epochs=epochs, shuffle=False)
        return tf.train.batch(list(load_tensor(name, number)), batch_size=3)

    return Program(
        build_fn=build_fn,
        records=tuple((v.astype(np.float32) / 2, np.int32(i)) for i, v in enumerate(volumes)),
        epochs=epochs,
        batch_size=3,
        files=tuple(files),
        hand_written_twin=lambda: (
            tf2.data.Dataset.from_tensor_slices((names, numbers))
            .repeat(epochs)
            .map(load_tensor)
            .batch(3, drop_remainder=True)
        ),
    )


@entry(
    "T20-py-func-dict-shuffle",
    topology="T20",
    variants=("py_func", "dictionary", "Python dictionary captured by the function"),
    order_note="ids and examples are shuffled, four threads",
    stages=(PY_FUNC,),
    style="SSGAN: ids producer -> py_func(HDF5 by id) -> dict shuffle_batch",
)
def py_func_dict_shuffle(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    store = {
        f"id{i}": (pixels(i, 3, 3, 1).astype(np.float32), np.eye(4, dtype=np.float32)[i % 4]) for i in range(COUNT)
    }

    def load(name):
        _check(fault, PY_FUNC, int(name[2:]))
        return store[name.decode()]

    def load_tensors(name):
        image, label = tf.py_func(load, [name], [tf.float32, tf.float32])
        image.set_shape([3, 3, 1])
        label.set_shape([4])
        return {"image": image, "label": label, "id": name}

    def build_fn():
        queue = tf.train.string_input_producer(list(store), num_epochs=epochs, shuffle=True, seed=3, capacity=8)
        return tf.train.shuffle_batch(
            load_tensors(queue.dequeue()),
            batch_size=4,
            num_threads=4,
            capacity=16,
            min_after_dequeue=6,
            allow_smaller_final_batch=True,
            seed=3,
        )

    return Program(
        build_fn=build_fn,
        records=tuple({"image": image, "label": label, "id": name.encode()} for name, (image, label) in store.items()),
        epochs=epochs,
        batch_size=4,
        keep_remainder=True,
        in_flight=2 * COUNT + 30,
        threads=4,
        hand_written_twin=lambda: (
            tf2.data.Dataset.from_tensor_slices(list(store))
            .shuffle(COUNT, seed=3)
            .repeat(epochs)
            .map(load_tensors)
            .shuffle(6, seed=3)
            .batch(4)
        ),
    )


class FeedingRunner(tf.train.QueueRunner):
    """A QueueRunner whose thread fetches a source, calls Python on it, and feeds the result to the enqueue."""

    def __init__(self, function, source, placeholders, queue):
        super().__init__(queue, [queue.enqueue(placeholders)])
        self._function = function
        self._source = source
        self._placeholders = placeholders
        self._close = queue.close()

    def create_threads(self, sess, coord=None, daemon=False, start=False):
        def work():
            try:
                while coord is None or not coord.should_stop():
                    values = self._function(*sess.run(self._source))
                    sess.run(self.enqueue_ops[0], dict(zip(self._placeholders, values, strict=True)))
            except (tf.errors.OutOfRangeError, tf.errors.CancelledError):
                with contextlib.suppress(tf.errors.CancelledError):  # Someone else has closed it.
                    sess.run(self._close)
            except Exception as error:
                if coord is None:
                    raise
                coord.request_stop(error)

        thread = threading.Thread(target=work, daemon=daemon)
        if coord is not None:
            coord.register_thread(thread)
        if start:
            thread.start()
        return [thread]


@entry(
    "T16-feeding-runner",
    topology="T16",
    variants=("a QueueRunner subclass that feeds placeholders",),
    ordered=True,
    why_not="the examples pass through Python code in a runner's thread, outside the graph",
    stages=(PYTHON_RAISES,),
    style="speech-to-text-wavenet: a runner fetches paths, computes in Python and feeds a queue",
)
def feeding_runner(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    def compute(number, name):
        _check(fault, PYTHON_RAISES, int(number))
        return np.full(3, number, np.float32), np.int32(len(name))

    numbers = np.arange(COUNT, dtype=np.int32)
    names = ["x" * (1 + i % 4) for i in range(COUNT)]

    def build_fn():
        source = tf.train.slice_input_producer([numbers, names], num_epochs=epochs, shuffle=False)
        placeholders = [tf.placeholder(tf.float32, [3]), tf.placeholder(tf.int32, [])]
        queue = tf.FIFOQueue(6, [tf.float32, tf.int32], shapes=[[3], []])
        tf.train.add_queue_runner(FeedingRunner(compute, source, placeholders, queue))
        return tf.train.batch(queue.dequeue(), batch_size=4)

    return Program(
        build_fn=build_fn,
        records=tuple((np.full(3, i, np.float32), np.int32(1 + i % 4)) for i in range(COUNT)),
        epochs=epochs,
        batch_size=4,
    )
