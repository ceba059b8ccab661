"""CIFAR-like binary records, shuffled by sixteen threads, trained in a MonitoredTrainingSession with hooks of its own."""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import os

import tensorflow as tf

FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_string("data_dir", "/tmp/cifar", "Where the binary files are.")
tf.app.flags.DEFINE_integer("batch_size", 8, "Records in a batch.")
tf.app.flags.DEFINE_integer("epochs", 2, "Passes over the files.")
HEIGHT, WIDTH, DEPTH = 6, 6, 3


def read_record(filename_queue):
    class Record(object):
        pass

    record = Record()
    label_bytes, image_bytes = 1, HEIGHT * WIDTH * DEPTH
    reader = tf.FixedLengthRecordReader(record_bytes=label_bytes + image_bytes)
    record.key, value = reader.read(filename_queue)
    raw = tf.decode_raw(value, tf.uint8)
    record.label = tf.cast(tf.strided_slice(raw, [0], [label_bytes]), tf.int32)
    depth_major = tf.reshape(
        tf.strided_slice(raw, [label_bytes], [label_bytes + image_bytes]), [DEPTH, HEIGHT, WIDTH])
    record.image = tf.transpose(depth_major, [1, 2, 0])
    return record


def distorted_inputs():
    filenames = [os.path.join(FLAGS.data_dir, "data_batch_%d.bin" % i) for i in range(1, 3)]
    for f in filenames:
        if not tf.gfile.Exists(f):
            raise ValueError("Failed to find file: " + f)
    queue = tf.train.string_input_producer(filenames, num_epochs=FLAGS.epochs)
    record = read_record(queue)
    image = tf.random_crop(tf.cast(record.image, tf.float32), [4, 4, 3])
    image = tf.image.per_image_standardization(tf.image.random_flip_left_right(image))
    image.set_shape([4, 4, 3])
    record.label.set_shape([1])
    images, labels = tf.train.shuffle_batch(
        [image, record.label], batch_size=FLAGS.batch_size, num_threads=16,
        capacity=20 + 3 * FLAGS.batch_size, min_after_dequeue=20)
    tf.summary.image("images", images)
    return images, tf.reshape(labels, [FLAGS.batch_size])


class LossHook(tf.train.SessionRunHook):
    def __init__(self, loss, labels):
        self.fetch, self.seen = [loss, labels], []

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self.fetch)

    def after_run(self, run_context, run_values):
        self.seen.extend(int(label) for label in run_values.results[1])

    def end(self, session):
        print("ids", sorted(self.seen))


def main(argv=None):
    with tf.Graph().as_default():
        step = tf.contrib.framework.get_or_create_global_step()
        images, labels = distorted_inputs()
        logits = tf.contrib.layers.fully_connected(tf.contrib.layers.flatten(images), 48, activation_fn=None)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=labels))
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=step)
        with tf.train.MonitoredTrainingSession(
                hooks=[tf.train.StopAtStepHook(last_step=1000), tf.train.NanTensorHook(loss), LossHook(loss, labels)],
                config=tf.ConfigProto(log_device_placement=False)) as mon_sess:
            while not mon_sess.should_stop():
                mon_sess.run(train)


if __name__ == "__main__":
    tf.app.run()
