"""Integers, floats and a matrix in one record: a tutorial's code, the same with tfqueue, and the proof that both agree.

The legacy part is the program of a tutorial of the time, kept as close to it as runs today. Where it had a slip, a
comment starting with "mended:" says so.

    python demos/mixed_features.py [FOLDER]
"""

# ruff: noqa: RET504 (names and shape of the code are the tutorial's)

import collections
import sys
from pathlib import Path

import numpy as np
import tensorflow

import tfqueue
import tfqueue.compat.v1 as tf  # mended: the names of TF1 live here today
from tfqueue import records

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "mixed-features")
folder.mkdir(exist_ok=True)

# mended: np.array gives int64 here, but the tutorial reads the bytes back as tf.int32 and gets twice as many numbers
inputs_1 = np.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], np.int32)
inputs_2 = [[1.1, 2.2, 3.3], [4.4, 5.5, 6.6]]
lables = [0, 1]


# -- 1. write, as in the tutorial -----------------------------------------------------------------------------------


def create_int_feature(values):
    # a list is wanted here, and it can have one dimension only
    f = tf.train.Feature(int64_list=tf.train.Int64List(value=list(values)))
    return f


def create_float_feature(values):
    f = tf.train.Feature(float_list=tf.train.FloatList(value=list(values)))
    return f


def create_bytes_feature(values):
    f = tf.train.Feature(bytes_list=tf.train.BytesList(value=[values]))
    return f


legacy_file = str(folder / "test.tfrecord")
writer = tf.python_io.TFRecordWriter(legacy_file)  # the path of the file to write

for i1, i2, l in zip(inputs_1, inputs_2, lables, strict=True):  # noqa: E741 (the name is the tutorial's)
    features = collections.OrderedDict()  # a new ordered dict
    # an array of several dimensions has to become bytes before it can be a Feature
    features["inputs_1"] = create_bytes_feature(
        i1.tobytes()
    )  # mended: tostring is gone from numpy, tobytes is the same
    features["inputs_2"] = create_float_feature(i2)
    features["labels"] = create_int_feature([l])

    example = tf.train.Example(features=tf.train.Features(feature=features))

    writer.write(example.SerializeToString())
writer.close()


# -- 2. read and parse, as in the tutorial --------------------------------------------------------------------------

name_to_features = {
    "inputs_1": tf.FixedLenFeature([], tf.string),
    "inputs_2": tf.FixedLenFeature([3], tf.float32),  # must agree with what was written, else parsing may fail
    "labels": tf.FixedLenFeature([], tf.int64),
}

with tf.Graph().as_default():  # mended: a one-shot iterator belongs to a graph, which is no longer the default
    d = tf.data.TFRecordDataset(legacy_file)
    d = d.repeat()  # without an argument it repeats without end
    d = d.shuffle(buffer_size=2)
    # map_and_batch is map and batch in one
    d = d.apply(
        tf.contrib.data.map_and_batch(lambda record: tf.parse_single_example(record, name_to_features), batch_size=1)
    )

    iters = d.make_one_shot_iterator()
    batch = iters.get_next()

    # A BytesList loses the shape, so it has to be restored by hand; the dtype must be the one that was written.
    inputs_1_batch = tf.decode_raw(batch["inputs_1"], tf.int32)
    inputs_1_batch = tf.reshape(inputs_1_batch, [-1, 2, 2])  # a batch of inputs_1, of shape [2, 2] each
    inputs_2_batch = batch["inputs_2"]
    labels_batch = batch["labels"]

    with tf.Session() as sess:  # mended: the session was never closed
        print("a batch of the tutorial:", *sess.run([inputs_1_batch, inputs_2_batch, labels_batch]))


# -- 3. the same with tfqueue ---------------------------------------------------------------------------------------

file = folder / "mixed.tfrecord"
with records.RecordWriter(file, overwrite=True) as tfqueue_writer:
    for matrix, floats, label in zip(inputs_1, inputs_2, lables, strict=True):
        # dtype and shape of the matrix are stored beside it
        tfqueue_writer.write({"inputs_1": matrix, "inputs_2": floats, "labels": label})

print("\nwhat is in the file of the tutorial, and the spec to read it:")
print(records.describe(legacy_file))
print(records.describe(legacy_file).spec_source())
print("\nand in that of tfqueue:")
print(records.describe(file))
print("\nread back, with dtype and shape:", next(records.read(file)))


# -- 4. the proof that the files hold the same records --------------------------------------------------------------


def of_the_tutorial():
    def parse(record):
        parsed = tf.parse_single_example(record, name_to_features)
        return {**parsed, "inputs_1": tf.reshape(tf.decode_raw(parsed["inputs_1"], tf.int32), [2, 2])}

    return tensorflow.data.TFRecordDataset(legacy_file).map(parse).batch(1)


def of_tfqueue():
    return records.RecordReader(file).dataset().batch(1)


report = tfqueue.compare(of_the_tutorial(), of_tfqueue())
print(f"\n{report}")
sys.exit(0 if report.equivalent else 1)
