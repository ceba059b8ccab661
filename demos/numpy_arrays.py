"""Numpy arrays -> TFRecords -> batches: a tutorial's code, the same in one line, and the proof that both files agree.

The legacy part is the program of a tutorial of the time, kept as close to it as runs today. Where it had a slip, a
comment starting with "mended:" says so.

    python demos/numpy_arrays.py [FOLDER]
"""

# ruff: noqa: N806, N816 (names and shape of the code are the tutorial's)

import sys
import time
from pathlib import Path

import numpy as np
import tensorflow

import tfqueue
import tfqueue.compat.v1 as tf  # mended: the names of TF1 live here today
from tfqueue import records

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "numpy-arrays")
folder.mkdir(exist_ok=True)

# The tutorial says: "let X be np.array([[...][...]]), let y be np.array([[0/1]])".
rng = np.random.default_rng(0)
all_X = rng.random((200, 64, 64, 3), np.float32)
all_y = rng.integers(0, 2, (200, 1))
shape_of_npy_array = all_X.shape[1:]


# -- 1. create tfrecords from numpy arrays, as in the tutorial ------------------------------------------------------


def npy_to_tfrecords(output_file):
    # write records to a tfrecords file
    writer = tf.python_io.TFRecordWriter(output_file)

    # Loop through all the features you want to write
    for X, y in zip(all_X, all_y, strict=True):  # mended: the tutorial leaves the loop open
        # Feature contains a map of string to feature proto objects
        feature = {}
        feature["X"] = tf.train.Feature(float_list=tf.train.FloatList(value=X.flatten()))
        feature["y"] = tf.train.Feature(int64_list=tf.train.Int64List(value=y))

        # Construct the Example proto object
        example = tf.train.Example(features=tf.train.Features(feature=feature))

        # Serialize the example to a string
        serialized = example.SerializeToString()

        # write the serialized object to the disk
        writer.write(serialized)
    writer.close()


legacy_file = str(folder / "legacy.tfrecord")
started = time.perf_counter()
npy_to_tfrecords(legacy_file)
legacy_seconds = time.perf_counter() - started


# -- 2. read them with the Dataset API, as in the tutorial ----------------------------------------------------------


# example proto decode
def _parse_function(example_proto):
    keys_to_features = {
        "X": tf.FixedLenFeature(shape_of_npy_array, tf.float32),
        "y": tf.FixedLenFeature((), tf.int64, default_value=0),
    }
    parsed_features = tf.parse_single_example(example_proto, keys_to_features)
    return parsed_features["X"], parsed_features["y"]


with tf.Graph().as_default():  # mended: a one-shot iterator belongs to a graph, which is no longer the default
    # Creates a dataset that reads all of the examples from filenames.
    filenames = [legacy_file]
    dataset = tf.contrib.data.TFRecordDataset(filenames)

    # Parse the record into tensors.
    dataset = dataset.map(_parse_function)

    # Shuffle the dataset
    dataset = dataset.shuffle(buffer_size=10000)

    # Repeat the input indefinitely
    dataset = dataset.repeat()

    # Generate batches
    dataset = dataset.batch(32)

    # Create a one-shot iterator
    iterator = dataset.make_one_shot_iterator()

    # Get batch X and y
    X, y = iterator.get_next()
    with tf.Session() as session:
        batch_X, batch_y = session.run([X, y])
        print("a batch of the tutorial:", batch_X.shape, batch_X.dtype, batch_y.shape, batch_y.dtype)


# -- 3. the same with tfqueue ---------------------------------------------------------------------------------------

started = time.perf_counter()
(file,) = records.write_arrays(folder / "list.tfrecord", {"X": all_X, "y": all_y}, layout="list", overwrite=True)
seconds = time.perf_counter() - started
print(f"written in {seconds:.3f} s; the tutorial took {legacy_seconds:.3f} s")

# Or typed: dtype and shape are stored too, and the arrays come back as they were, float64 and all.
(typed_file,) = records.write_arrays(folder / "typed.tfrecord", {"X": all_X, "y": all_y}, overwrite=True)
print("\nwhat is in the typed file:")
print(records.describe(typed_file))


# -- 4. the proof that the files hold the same records --------------------------------------------------------------


def parsed(path):
    return tensorflow.data.TFRecordDataset(path).map(_parse_function).batch(32)


def typed():
    return records.RecordReader(typed_file).dataset().map(lambda f: (f["X"], tensorflow.squeeze(f["y"], 0))).batch(32)


reports = [tfqueue.compare(parsed(legacy_file), parsed(file)), tfqueue.compare(parsed(legacy_file), typed())]
for report in reports:
    print(f"\n{report}")
restored = records.RecordReader(typed_file).table()["X"]
same = np.array_equal(restored, all_X) and restored.dtype == all_X.dtype
print("\nthe arrays come back:", restored.shape, restored.dtype, "equal" if same else "DIFFERENT")
sys.exit(0 if same and all(report.equivalent for report in reports) else 1)
