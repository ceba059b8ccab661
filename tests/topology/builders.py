"""Small TF1 pipelines for the tests of the topology; nothing is read, so the files need not exist."""

from __future__ import annotations

import tensorflow as tf

tf1 = tf.compat.v1


def cifar():
    """File names -> fixed-length records -> decode -> augment -> shuffle_batch with threads."""
    names = tf1.train.string_input_producer(["a.bin", "b.bin"], num_epochs=2, seed=5)
    reader = tf1.FixedLengthRecordReader(record_bytes=13, header_bytes=4, footer_bytes=2)
    key, value = reader.read(names)
    record = tf1.decode_raw(value, tf.uint8)
    image = tf.reshape(record[1:], [2, 2, 3])
    image = tf.cast(tf1.image.random_flip_left_right(image, seed=3), tf.float32)
    label = tf.cast(record[0], tf.int32)
    return tf1.train.shuffle_batch([image, label, key], 4, capacity=50, min_after_dequeue=20, num_threads=16, seed=7)


def examples():
    """TFRecords, gzip, with every kind of feature."""
    names = tf1.train.string_input_producer(["x.gz"], shuffle=False)
    options = tf1.io.TFRecordOptions(tf1.io.TFRecordCompressionType.GZIP)
    reader = tf1.TFRecordReader(options=options)
    _, value = reader.read(names)
    parsed = tf1.parse_single_example(
        value,
        {
            "fixed": tf1.FixedLenFeature([2, 3], tf.float32),
            "default": tf1.FixedLenFeature([], tf.int64, default_value=4),
            "text": tf1.FixedLenFeature([], tf.string, default_value="none"),
            "list": tf1.FixedLenSequenceFeature([2], tf.int64, allow_missing=True),
            "sparse": tf1.VarLenFeature(tf.string),
        },
    )
    return tf1.train.batch({"fixed": parsed["fixed"], "default": parsed["default"], "sparse": parsed["sparse"]}, 5)


def csv_lines():
    """Text lines, header skipped, read_up_to, decode_csv, enqueue_many."""
    names = tf1.train.string_input_producer(tf.identity(tf1.train.match_filenames_once("data/*.csv")))
    _, lines = tf1.TextLineReader(skip_header_lines=1).read_up_to(names, 10)
    columns = tf1.decode_csv(lines, record_defaults=[[1.5], ["?"], tf.constant([], tf.int32)], field_delim=";")
    return tf1.train.batch(columns, 8, enqueue_many=True, allow_smaller_final_batch=True)


def filtered():
    """Numbers through a filter (maybe_batch), whose enqueue stands in a tf.cond."""
    number = tf1.train.range_input_producer(10, num_epochs=1, shuffle=False).dequeue()
    return tf1.train.maybe_batch([number], number > 3, 4)


def sliced():
    """Two constant arrays side by side."""
    image, label = tf1.train.slice_input_producer([["p.png", "q.png"], [1, 2]], shuffle=False)
    pixels = tf1.image.decode_png(tf1.read_file(image), channels=3)
    return tf1.train.batch([tf.reshape(pixels, [2, 2, 3]), label], 2)


def branches():
    """Two readers on one queue of file names, joined; then a prefetch queue; and a queue nobody reads."""
    names = tf1.train.string_input_producer(["a", "b", "c"], shuffle=False, capacity=7)
    pairs = []
    for branch in range(2):
        key, value = tf1.WholeFileReader(name=f"reader_{branch}").read(names)
        pairs.append([key, value])
    keys, values = tf1.train.batch_join(pairs, 3)
    prefetch = tf1.FIFOQueue(2, [tf.string, tf.string], shapes=[[3], [3]], name="prefetch")
    tf1.train.add_queue_runner(tf1.train.QueueRunner(prefetch, [prefetch.enqueue([keys, values])]))
    tf1.train.shuffle_batch([tf1.random_uniform([4])], 2, capacity=9, min_after_dequeue=3, name="dead")
    return prefetch.dequeue()


def fed():
    """A queue that Python threads fill through placeholders, and a choice between queues."""
    value = tf1.placeholder(tf.float32, [3], name="value")
    first = tf1.PaddingFIFOQueue(4, [tf.float32], shapes=[[None]], name="first")
    second = tf1.FIFOQueue(4, [tf.float32], name="second")
    first.enqueue([value], name="feed_first")
    second.enqueue([value], name="feed_second")
    which = tf1.placeholder(tf.int32, [], name="which")
    return tf1.QueueBase.from_list(which, [first, second]).dequeue()
