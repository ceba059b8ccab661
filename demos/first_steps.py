import numpy as np
import tensorflow as tf

import tfqueue

paths = tfqueue.records.write_arrays("numbers.tfrecord", {"x": np.arange(50)}, layout="list", overwrite=True)
spec = {"x": tf.io.FixedLenFeature([], tf.int64)}


def legacy():  # the TF1 code, as found
    names = tf.compat.v1.train.string_input_producer(paths, num_epochs=2, shuffle=False)
    return tf.compat.v1.train.batch(tf.io.parse_single_example(tf.compat.v1.TFRecordReader().read(names)[1], spec), 16)


def modern():  # the tf.data code that somebody wrote in its place
    return tf.data.TFRecordDataset(paths).batch(16).map(lambda batch: tf.io.parse_example(batch, spec)).repeat(2)


print(tfqueue.compare(legacy, modern))
