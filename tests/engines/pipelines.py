"""Queue pipelines drawn at random, and the real queue runners to run them."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

tf1 = tf.compat.v1
_SPEC = {"n": tf1.FixedLenFeature([], tf.int64), "x": tf1.VarLenFeature(tf.float32)}
_FOLDER = Path(tempfile.mkdtemp(prefix="tfqueue-test-"))


def threads(build_fn, steps=None):
    """The batches that TensorFlow's own queue runners give."""
    batches = []
    with tf.Graph().as_default():
        fetches = build_fn()
        with tf1.Session() as session:
            session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
            coord = tf1.train.Coordinator()
            runners = tf1.train.start_queue_runners(session, coord)
            try:
                while steps is None or len(batches) < steps:
                    batches.append(session.run(fetches))
            except tf.errors.OutOfRangeError:
                pass
            coord.request_stop()
            session.run([op for op in session.graph.get_operations() if _cancels(op)])
            coord.join(runners)
    return batches


def _cancels(op):
    return op.type == "QueueCloseV2" and op.get_attr("cancel_pending_enqueues")


def files(counts):
    """TFRecord files with so many records each: one int64 ``n``, one list ``x`` of n % 4 + 1 floats."""
    names = []
    for index, count in enumerate(counts):
        path = _FOLDER / f"{index}-of-{'-'.join(map(str, counts))}.tfrecord"
        if not path.exists():
            with tf.io.TFRecordWriter(str(path)) as writer:
                for record in range(count):
                    writer.write(_example(100 * index + record))
        names.append(str(path))
    return names


def other_files(kind, counts):
    """The same records as `files`, as lines of a CSV file with a header ("lines"), or as 12 bytes each ("bytes")."""
    names = []
    for index, count in enumerate(counts):
        path = _FOLDER / f"{index}-of-{'-'.join(map(str, counts))}.{kind}"
        numbers = [100 * index + record for record in range(count)]
        if kind == "lines":
            path.write_text("n,x\n" + "".join(f"{n},{n * (n % 4 + 1) / 2}\n" for n in numbers))
        else:
            path.write_bytes(b"".join(struct.pack("<qf", n, n * (n % 4 + 1) / 2) for n in numbers))
        names.append(str(path))
    return names


def _example(number):
    features = {
        "n": tf.train.Feature(int64_list=tf.train.Int64List(value=[number])),
        "x": tf.train.Feature(float_list=tf.train.FloatList(value=[number / 2.0] * (number % 4 + 1))),
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


@st.composite
def drawn(draw, *, shuffled):
    """A build function with one thread: a source, work on each record, queues, and a batch rule, all drawn.

    Args:
        shuffled: Whether shuffles (seeded) are drawn, too; several threads, readers and branches then as well.
    """
    plan = {
        "source": draw(st.sampled_from(["range", "slices", "pairs", "examples", "lines", "bytes", "read_up_to"])),
        "work": draw(st.sampled_from([None, "cond", "loop", "python", "draws"])),
        "readers": draw(st.integers(1, 3)) if shuffled else 1,
        "branches": draw(st.integers(1, 3)) if shuffled else 1,
        "behind": draw(st.sampled_from([None, "fifo", "batches"])),
        "counts": draw(st.lists(st.integers(0, 6), min_size=1, max_size=4)),
        "epochs": draw(st.integers(1, 3)),
        "names_capacity": draw(st.integers(1, 5)),
        "names_shuffled": shuffled and draw(st.booleans()),
        "up_to": draw(st.integers(1, 5)),
        "middle": draw(st.sampled_from([None, "fifo", "shuffle" if shuffled else "fifo"])),
        "middle_capacity": draw(st.integers(2, 6)),
        "filtered": draw(st.booleans()),
        "many": draw(st.booleans()),
        "padded": draw(st.booleans()),
        "batch": draw(st.integers(1, 6)),
        "capacity": draw(st.integers(2, 10)),
        "shuffle": shuffled and draw(st.booleans()),
        "minimum": draw(st.integers(0, 8)),
        "smaller": draw(st.booleans()),
        "threads": draw(st.integers(1, 3)) if shuffled else 1,
        "seed": draw(st.integers(1, 1000)),
    }
    return Drawn(plan)


class Drawn:
    """A build function that shows its plan when a test fails."""

    def __init__(self, plan):
        self.plan = plan

    def __repr__(self):
        return f"Drawn({self.plan})"

    def __call__(self):
        plan = self.plan
        tf1.set_random_seed(17)
        if plan["source"] == "read_up_to":
            return self._batch([self._vectors()], many=True)
        rows = self._sources()
        if plan["middle"] is not None:
            rows = [self._middle(rows)]
        if len(rows) == 1:
            # One dequeue or read that several branches share: each of them runs it again.
            rows *= plan["branches"]
        rows = [(self._worked(value, number), number) for value, number in rows]
        if plan["many"]:
            # One record gives 0, 1 or 2 examples.
            copies = [tf.cast(number % 3, tf.int32) for _, number in rows]
            rows = [
                (tf.fill([n], value), tf.fill([n], number)) for n, (value, number) in zip(copies, rows, strict=True)
            ]
        return self._behind(self._batch(rows, many=plan["many"]))

    def _worked(self, value, number):
        work = self.plan["work"]
        if work == "cond":
            return tf.cond(number % 2 > 0, lambda: value * 2, lambda: value + tf1.random_uniform([], seed=5))
        if work == "loop":
            return tf.while_loop(
                lambda i, _: i < number % 3, lambda i, v: (i + 1, v * 2), [tf.zeros_like(number), value]
            )[1]
        if work == "python":
            tripled = tf1.py_func(lambda v: v * np.float32(3), [value], tf.float32)
            tripled.set_shape([])
            return tripled
        if work == "draws":
            return value + tf1.random_normal(tf.shape(tf.fill([1 + number % 2], value)), seed=6)[0]
        return value

    def _vectors(self):
        """A float and a number for each record of a vector of records."""
        names, _ = self._names()
        _, records = tf1.TFRecordReader().read_up_to(names, self.plan["up_to"])
        parsed = tf1.parse_example(records, _SPEC)
        return tf1.sparse_reduce_sum(parsed["x"], axis=1), parsed["n"]

    def _names(self):
        plan = self.plan
        options = {
            "num_epochs": plan["epochs"],
            "shuffle": plan["names_shuffled"],
            "seed": plan["seed"],
            "capacity": plan["names_capacity"],
        }
        kind = plan["source"]
        names = other_files(kind, plan["counts"]) if kind in ("lines", "bytes") else files(plan["counts"])
        return tf1.train.string_input_producer(names, **options), options

    def _sources(self):
        """For each reader a float and a number for each record."""
        plan = self.plan
        epochs, shuffled, seed = plan["epochs"], plan["names_shuffled"], plan["seed"]
        options = {"num_epochs": epochs, "shuffle": shuffled, "seed": seed, "capacity": plan["names_capacity"]}
        total = sum(plan["counts"])
        if plan["source"] == "range":
            number = tf.cast(tf1.train.range_input_producer(total + 1, **options).dequeue(), tf.int64)
            return [(tf.cast(number, tf.float32) / 2, number)]
        if plan["source"] in ("slices", "pairs"):
            rows = [float(n) for n in range(total + 1)], list(range(total + 1))
            if plan["source"] == "slices":
                value, number = tf1.train.slice_input_producer(rows, **options)
            else:
                (value,), (number,) = (tf1.train.slice_input_producer([column], **options) for column in rows)
            return [(value, tf.cast(number, tf.int64))]
        names, _ = self._names()
        return [self._record(names) for _ in range(plan["readers"])]

    def _record(self, names):
        kind = self.plan["source"]
        if kind == "lines":
            _, line = tf1.TextLineReader(skip_header_lines=1).read(names)
            number, value = tf1.decode_csv(line, [tf.constant([], tf.int64), [0.0]])
            return value, number
        if kind == "bytes":
            _, record = tf1.FixedLengthRecordReader(record_bytes=12).read(names)
            number = tf1.decode_raw(tf.strings.substr(record, 0, 8), tf.int64)[0]
            return tf1.decode_raw(tf.strings.substr(record, 8, 4), tf.float32)[0], number
        parsed = tf1.parse_single_example(tf1.TFRecordReader().read(names)[1], _SPEC)
        return tf.reduce_sum(parsed["x"].values), parsed["n"]

    def _middle(self, rows):
        """A queue that all readers fill."""
        plan = self.plan
        kinds, shapes = [tf.float32, tf.int64], [[], []]
        if plan["middle"] == "fifo":
            queue = tf1.FIFOQueue(plan["middle_capacity"], kinds, shapes)
        else:
            queue = tf1.RandomShuffleQueue(
                plan["middle_capacity"], plan["middle_capacity"] // 2, kinds, shapes, seed=plan["seed"] + 1
            )
        enqueues = [queue.enqueue(list(row)) for row in rows]
        tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, enqueues * plan["threads"]))
        return queue.dequeue()

    def _behind(self, batch):
        """A queue of whole batches, or batches of batches."""
        plan = self.plan
        if plan["behind"] == "batches" and not plan["smaller"] and not plan["padded"]:
            return tf1.train.batch(batch, 2)
        if plan["behind"] is None:
            return batch
        queue = tf1.FIFOQueue(2, [tensor.dtype for tensor in batch])
        tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, [queue.enqueue(batch)]))
        taken = queue.dequeue()
        for new, old in zip(taken, batch, strict=True):
            new.set_shape(old.shape)
        return taken

    def _row(self, value, number, *, many):
        noise = tf1.random_uniform(tf.shape(number), seed=3) if not many else tf.zeros(tf.shape(number))
        tensors = [value, number, noise]
        for tensor in tensors:
            tensor.set_shape([None] if many else [])
        return tensors

    def _batch(self, rows, *, many):
        plan = self.plan
        tables = [self._row(value, number, many=many) for value, number in rows]
        options = {"enqueue_many": many, "allow_smaller_final_batch": plan["smaller"]}
        if len(tables) > 1:
            if plan["shuffle"]:
                capacity = plan["minimum"] + plan["capacity"]
                return tf1.train.shuffle_batch_join(
                    tables, plan["batch"], capacity, plan["minimum"], seed=plan["seed"], **options
                )
            return tf1.train.batch_join(tables, plan["batch"], capacity=plan["capacity"], **options)
        (tensors,), number = tables, rows[0][1]
        options["num_threads"] = plan["threads"]
        keep = (number % 4 > 0) if plan["filtered"] and not many else True
        if plan["shuffle"]:
            return tf1.train.maybe_shuffle_batch(
                tensors,
                plan["batch"],
                plan["minimum"] + plan["capacity"],
                plan["minimum"],
                keep,
                seed=plan["seed"],
                **options,
            )
        if plan["padded"] and not many:
            tensors.append(tf.fill([tf.cast(number % 3, tf.int32)], number))
            options["dynamic_pad"] = True
        return tf1.train.maybe_batch(tensors, keep, plan["batch"], capacity=plan["capacity"], **options)
