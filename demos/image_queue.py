"""A TF1 image pipeline, its tf.data twin, the proof that both deliver the same, and a look at a batch.

The legacy part is the program of a tutorial of the time (JPEG paths and labels -> TFRecords -> string_input_producer ->
TFRecordReader -> parse_single_example -> decode_jpeg -> resize -> shuffle_batch -> plt.imshow), kept as close to it as
runs today. Where it had a slip, a comment starting with "mended:" says so.

    python demos/image_queue.py [FOLDER]
"""

import os
import sys
from pathlib import Path

import cv2
import matplotlib
import numpy as np
import tensorflow

import tfqueue
import tfqueue.compat.v1 as tf  # mended: the names of TF1 live here today
from tfqueue import records, views

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "image-queue")
folder.mkdir(exist_ok=True)


def some_images():
    """The tutorial starts from "a list of JPEG addresses and labels": parts of a photograph that matplotlib ships."""
    photograph = cv2.imread(os.path.join(matplotlib.get_data_path(), "sample_data", "grace_hopper.jpg"))
    images, labels = [], []
    for label, row in enumerate(np.array_split(photograph[:600, :500], 6)):
        for number, part in enumerate(np.array_split(row, 5, axis=1)):
            images.append(str(folder / f"row{label}_{number}.jpg"))
            labels.append(label)
            cv2.imwrite(images[-1], part)
    return images, labels


# -- 1. generate the TFRecords, as in the tutorial -----------------------------------------------------------------


def _int64_feature(value):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def _bytes_feature(value):
    # mended: a list of bytes is wanted; the tutorial passed the bytes themselves (value=value)
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


images, labels = some_images()
train_filename = str(folder / "train.tfrecords")
with tf.python_io.TFRecordWriter(train_filename) as tfrecord_writer:
    for i in range(len(images)):
        # read in image data by tf
        img_data = tf.gfile.FastGFile(images[i], "rb").read()
        label = labels[i]
        # get width and height of image
        image_shape = cv2.imread(images[i]).shape
        width = image_shape[1]
        height = image_shape[0]
        # create features
        feature = {
            "train/image": _bytes_feature(img_data),
            "train/label": _int64_feature(label),  # label: integer from 0-N
            "train/height": _int64_feature(height),
            "train/width": _int64_feature(width),
        }
        # create example protocol buffer
        example = tf.train.Example(features=tf.train.Features(feature=feature))
        # serialize protocol buffer to string
        tfrecord_writer.write(example.SerializeToString())
    # mended: no tfrecord_writer.close() here, the with block closes it


# -- 2. read them through queues, as in the tutorial ---------------------------------------------------------------


def legacy(shuffle=True):
    """The reading half of the tutorial, as a build function."""
    feature = {
        "train/image": tf.FixedLenFeature([], tf.string),
        "train/label": tf.FixedLenFeature([], tf.int64),
        "train/height": tf.FixedLenFeature([], tf.int64),
        "train/width": tf.FixedLenFeature([], tf.int64),
    }
    # define a queue base on input filenames
    filename_queue = tf.train.string_input_producer([train_filename], num_epochs=1)  # mended: num_epoches
    # define a tfrecords file reader
    reader = tf.TFRecordReader()
    # read in serialized example data
    _, serialized_example = reader.read(filename_queue)
    # decode example by feature
    features = tf.parse_single_example(serialized_example, features=feature)
    image = tf.image.decode_jpeg(features["train/image"])
    image = tf.image.convert_image_dtype(image, dtype=tf.float32)  # convert dtype from uint8 to float32 for resize
    label = tf.cast(features["train/label"], tf.int64)
    height = tf.cast(features["train/height"], tf.int32)
    width = tf.cast(features["train/width"], tf.int32)
    # restore image to [height, width, 3]
    image = tf.reshape(image, [height, width, 3])
    # resize
    image = tf.image.resize_images(image, [224, 224])
    # create batch
    if not shuffle:
        return tf.train.batch([image, label], batch_size=10)
    return tf.train.shuffle_batch(
        [image, label], batch_size=10, capacity=30, num_threads=1, min_after_dequeue=10, seed=1
    )


# The session of the tutorial.
with tf.Graph().as_default(), tf.Session() as sess:  # mended: a graph of its own, eager execution is the default today
    images, labels = legacy()
    # initialize global & local variables
    init_op = tf.group(tf.global_variables_initializer(), tf.local_variables_initializer())
    sess.run(init_op)
    # create a coordinator and run queue runner objects
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(coord=coord)
    for batch_index in range(3):
        batch_images, batch_labels = sess.run([images, labels])
        # mended: plt.imshow and plt.show for each image, which wait for somebody to close the window
        print("batch", batch_index, batch_images.shape, "labels", sorted(batch_labels.tolist()))  # mended: batch_lables
    # close threads
    coord.request_stop()
    coord.join(threads)
    # mended: no sess.close() here, the with block closes it

# The same with tfqueue: the with block starts and stops everything, the loop ends with the data, and the error of a
# runner, a hang, and the threads that the tutorial leaves running after an error are taken care of.
with tfqueue.QueuePipeline(legacy) as pipeline:
    for batch_index, batch in enumerate(pipeline):
        if batch_index == 0:
            views.show_batch(batch, folder / "batch.png")
print("batches of tfqueue:", batch_index + 1)


# -- 3. the twin, written by hand -----------------------------------------------------------------------------------


def modern(shuffle=True):
    """The same in tf.data."""

    def parse(serialized):
        features = tf.io.parse_single_example(
            serialized,
            {"train/image": tf.FixedLenFeature([], tf.string), "train/label": tf.FixedLenFeature([], tf.int64)},
        )
        image = tf.image.convert_image_dtype(tf.image.decode_jpeg(features["train/image"], channels=3), tf.float32)
        # tf.image.resize of TF2 places pixel centres elsewhere; the resize of TF1 gives the same pixels as before
        return tf.image.resize_images(image, [224, 224]), features["train/label"]

    dataset = tensorflow.data.TFRecordDataset(train_filename).map(parse)
    if shuffle:
        dataset = dataset.shuffle(30, seed=1)
    return dataset.batch(10, drop_remainder=True)  # a batch queue delivers full batches only


# -- 4. the proof and the picture -----------------------------------------------------------------------------------

report = tfqueue.compare(legacy, modern)
print(report)
with tfqueue.QueuePipeline(lambda: legacy(shuffle=False)) as pipeline:
    views.show_pair(next(pipeline), next(iter(modern(shuffle=False))), folder / "pair.png")
print("records:", sum(1 for _ in records.read(train_filename)), "pictures:", folder / "batch.png", folder / "pair.png")
sys.exit(0 if report.equivalent else 1)
