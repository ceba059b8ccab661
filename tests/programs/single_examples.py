"""One example a step, no batch: num_epochs=1 and a Supervisor."""
import sys

import tensorflow as tf
from tensorflow import train

queue = train.string_input_producer([sys.argv[1]], num_epochs=1, shuffle=False)
reader = tf.TFRecordReader()
_, serialized = reader.read(queue)
features = tf.parse_single_example(serialized, features={
    "id": tf.FixedLenFeature([], tf.int64), "x": tf.FixedLenFeature([4], tf.float32)})
x = tf.mul(features["x"], 2.0)
sv = train.Supervisor(logdir=None, summary_op=None)
with sv.managed_session() as sess:
    count = 0
    while not sv.should_stop():
        try:
            number, values = sess.run([features["id"], x])
        except tf.errors.OutOfRangeError:
            break
        count += 1
        if count % 5 == 0:
            print("%d: %d %.3f" % (count, number, values.sum()))
print("read %d" % count)
