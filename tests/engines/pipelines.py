"""Queue pipelines drawn at random, and the real queue runners to run them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import tensorflow as tf
from hypothesis import strategies as st

tf1 = tf.compat.v1
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


def _example(number):
    features = {
        "n": tf.train.Feature(int64_list=tf.train.Int64List(value=[number])),
        "x": tf.train.Feature(float_list=tf.train.FloatList(value=[number / 2.0] * (number % 4 + 1))),
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


@st.composite
def drawn(draw, *, shuffled):
    """A build function with one thread: a source, perhaps a middle queue, and a batch rule, all drawn.

    Args:
        shuffled: Whether shuffles (seeded) are drawn, too; several threads then as well.
    """
    plan = {
        "source": draw(st.sampled_from(["range", "slices", "examples", "read_up_to"])),
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
        vector, value, number = self._source()
        if vector:
            return self._batch(value, number, many=True)
        if plan["middle"] is not None:
            value, number = self._middle(value, number)
        if plan["many"]:
            # One record gives 0, 1 or 2 examples.
            copies = tf.cast(number % 3, tf.int32)
            value, number = tf.fill([copies], value), tf.fill([copies], number)
            return self._batch(value, number, many=True)
        return self._batch(value, number, many=False)

    def _source(self):
        """(whether it is a vector of records, a float for each record, a number for each record)."""
        plan = self.plan
        epochs, shuffled, seed = plan["epochs"], plan["names_shuffled"], plan["seed"]
        options = {"num_epochs": epochs, "shuffle": shuffled, "seed": seed, "capacity": plan["names_capacity"]}
        total = sum(plan["counts"])
        if plan["source"] == "range":
            number = tf.cast(tf1.train.range_input_producer(total + 1, **options).dequeue(), tf.int64)
            return False, tf.cast(number, tf.float32) / 2, number
        if plan["source"] == "slices":
            rows = [float(n) for n in range(total + 1)], list(range(total + 1))
            value, number = tf1.train.slice_input_producer(rows, **options)
            return False, value, tf.cast(number, tf.int64)
        names = tf1.train.string_input_producer(files(plan["counts"]), **options)
        reader = tf1.TFRecordReader()
        spec = {"n": tf1.FixedLenFeature([], tf.int64), "x": tf1.VarLenFeature(tf.float32)}
        if plan["source"] == "read_up_to":
            _, records = reader.read_up_to(names, plan["up_to"])
            parsed = tf1.parse_example(records, spec)
            return True, tf1.sparse_reduce_sum(parsed["x"], axis=1), parsed["n"]
        _, record = reader.read(names)
        parsed = tf1.parse_single_example(record, spec)
        return False, tf.reduce_sum(parsed["x"].values), parsed["n"]

    def _middle(self, value, number):
        plan = self.plan
        kinds, shapes = [tf.float32, tf.int64], [[], []]
        if plan["middle"] == "fifo":
            queue = tf1.FIFOQueue(plan["middle_capacity"], kinds, shapes)
        else:
            queue = tf1.RandomShuffleQueue(
                plan["middle_capacity"], plan["middle_capacity"] // 2, kinds, shapes, seed=plan["seed"] + 1
            )
        enqueue = queue.enqueue([value, number])
        tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, [enqueue] * plan["threads"]))
        return queue.dequeue()

    def _batch(self, value, number, *, many):
        plan = self.plan
        noise = tf1.random_uniform(tf.shape(number), seed=3) if not many else tf.zeros(tf.shape(number))
        tensors = [value, number, noise]
        for tensor in tensors:
            tensor.set_shape([None] if many else [])
        options = {
            "enqueue_many": many,
            "num_threads": plan["threads"],
            "allow_smaller_final_batch": plan["smaller"],
        }
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
