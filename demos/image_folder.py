"""A folder of images -> resized pixels in TFRecords: a tutorial's code, the same with tfqueue, and the proof.

The legacy part is the program of a tutorial of the time, kept as close to it as runs today. Where it had a slip, a
comment starting with "mended:" says so.

    python demos/image_folder.py [FOLDER]
"""

# ruff: noqa: RET504 (names and shape of the code are the tutorial's)

import glob
import os
import sys
from pathlib import Path
from random import Random

import cv2
import matplotlib
import numpy as np
import tensorflow

import tfqueue
import tfqueue.compat.v1 as tf  # mended: the names of TF1 live here today
from tfqueue import records

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "image-folder")


def make_images():
    """The tutorial has a folder of JPEGs: here parts of a photograph that matplotlib ships, one sub-folder a class."""
    photograph = cv2.imread(os.path.join(matplotlib.get_data_path(), "sample_data", "grace_hopper.jpg"))
    for name, half in (("top", photograph[:300]), ("bottom", photograph[300:])):
        (folder / "images" / name).mkdir(parents=True, exist_ok=True)
        parts = [part for row in np.array_split(half, 4) for part in np.array_split(row, 5, axis=1)]
        for number, part in enumerate(parts):
            cv2.imwrite(str(folder / "images" / name / f"{number:02}.jpg"), part)


make_images()

# -- 1. the tutorial ------------------------------------------------------------------------------------------------

shuffle_data = True
image_path = str(folder / "images" / "*" / "*.jpg")
# the paths of all images in that folder, as a list
addrs = sorted(glob.glob(image_path))  # mended: glob gives them in the order of the disk, which differs everywhere
# how labels are found depends on the data
labels = [int("top" in addr) for addr in addrs]
# shuffle the data
if shuffle_data:
    c = list(zip(addrs, labels, strict=True))
    Random(0).shuffle(c)  # mended: without a seed the parts differ each time
    addrs, labels = zip(*c, strict=True)
# divide the data
train_addrs = addrs[0 : int(0.7 * len(addrs))]
train_labels = labels[0 : int(0.7 * len(labels))]
val_addrs = addrs[int(0.7 * len(addrs)) : int(0.9 * len(addrs))]
val_labels = labels[int(0.7 * len(labels)) : int(0.9 * len(labels))]
test_addrs = addrs[int(0.9 * len(addrs)) :]
test_labels = labels[int(0.9 * len(labels)) :]


def load_image(addr):  # A function to Load image
    img = cv2.imread(addr)
    img = cv2.resize(img, (224, 224), interpolation=cv2.INTER_CUBIC)
    img = cv2.cvtColor(img, cv2.COLOR_BGR2RGB)
    # by 255, so that the values are in [0, 1]
    img = img / 255.0
    img = img.astype(np.float32)
    return img


def _int64_feature(value):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def _bytes_feature(value):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


# write the data into a TFRecords file
train_filename = str(folder / "train.tfrecords")
# a writer for it
writer = tf.python_io.TFRecordWriter(train_filename)
for i in range(len(train_addrs)):
    # show how far it is
    if not i % 1000:
        print(f"Train data: {i}/{len(train_addrs)}")
        sys.stdout.flush()
    # load the image
    img = load_image(train_addrs[i])
    label = train_labels[i]
    # create a feature
    feature = {
        "train/label": _int64_feature(label),
        # mended: tostring is gone from numpy, tobytes is the same
        "train/image": _bytes_feature(tf.compat.as_bytes(img.tobytes())),
    }
    # create an example protocol buffer
    example = tf.train.Example(features=tf.train.Features(feature=feature))
    # write it into the file
    writer.write(example.SerializeToString())
writer.close()
sys.stdout.flush()


# -- 2. the same with tfqueue ---------------------------------------------------------------------------------------

# The same files in the same order. Pixels are stored as uint8, a quarter of the size; nothing is lost, because /255 can
# be done when they are read.
train = list(zip(train_addrs, train_labels, strict=True))
(same_file,) = records.write_images(
    folder / "same.tfrecord", train, size=(224, 224), kernel="cubic", colour="RGB", overwrite=True
)

# Or all of it in one call: three parts, each with as much of every class, one class a sub-folder; and the files as they
# lie on disk, which is smaller still.
parts = records.write_images(
    folder / "encoded.tfrecord",
    folder / "images",
    split={"train": 0.7, "val": 0.2, "test": 0.1},
    stratified=True,
    overwrite=True,
)
sizes = {"tutorial": train_filename, "uint8 pixels": same_file, "encoded": parts["train"][0]}
for words, path in sizes.items():
    print(f"{words:>12}: {os.path.getsize(path) / 1e6:6.2f} MB for {records.count(path)} images")
print("parts:", {part: records.count(paths) for part, paths in parts.items()})


# -- 3. the proof that both files hold the same images --------------------------------------------------------------


def of_the_tutorial():
    def parse(record):
        spec = {"train/image": tf.FixedLenFeature([], tf.string), "train/label": tf.FixedLenFeature([], tf.int64)}
        parsed = tf.parse_single_example(record, spec)
        image = tf.decode_raw(parsed["train/image"], tf.float32)
        return tf.reshape(image, [224, 224, 3]), parsed["train/label"]

    return tensorflow.data.TFRecordDataset(train_filename).map(parse).batch(7)


def of_tfqueue():
    def scale(features):
        # numpy divides in float64; so does this, to the same bits
        image = tf.cast(features["image"], tf.float64) / 255.0
        return tf.cast(image, tf.float32), features["label"]

    return records.RecordReader(same_file).dataset().map(scale).batch(7)


report = tfqueue.compare(of_the_tutorial(), of_tfqueue())
print(f"\n{report}")

names = [features["filename"][0] for paths in parts.values() for features in records.read(paths)]
once = len(names) == len(set(names)) == len(addrs)
print("each file is in exactly one part:", once)
sys.exit(0 if report.equivalent and once else 1)
