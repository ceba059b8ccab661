import numpy as np
import tensorflow as tf

import tfqueue

table = {"x": np.linspace(0, 1, 100, dtype=np.float32).reshape(50, 2), "y": np.arange(50)}
paths = tfqueue.records.write_arrays("numbers.tfrecord", table, layout="list", overwrite=True)
spec = {"x": tf.io.FixedLenFeature([2], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}


def legacy():  # the TF1 code, as found
    names = tf.compat.v1.train.string_input_producer(paths, num_epochs=2, shuffle=False)
    _, serialized = tf.compat.v1.TFRecordReader().read(names)
    return tf.compat.v1.train.batch(tf.io.parse_single_example(serialized, spec), batch_size=16)


def modern():  # the tf.data code that somebody wrote in its place
    return tf.data.TFRecordDataset(paths).batch(16).map(lambda batch: tf.io.parse_example(batch, spec)).repeat(2)


with tfqueue.QueuePipeline(legacy) as pipeline:
    print([batch["y"].shape for batch in pipeline])
print(tfqueue.compare(legacy, modern))
