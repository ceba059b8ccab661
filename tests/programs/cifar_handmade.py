"""Binary records into a RandomShuffleQueue made by hand: QueueRunner(queue, [enqueue] * 4), dequeue_many."""
import sys

import tensorflow as tf


def build_input(data_path, batch_size):
    image_size, depth = 6, 3
    label_bytes, image_bytes = 1, image_size * image_size * depth
    data_files = tf.gfile.Glob(data_path)
    file_queue = tf.train.string_input_producer(data_files, shuffle=True, num_epochs=1)
    reader = tf.FixedLengthRecordReader(record_bytes=label_bytes + image_bytes)
    _, value = reader.read(file_queue)
    record = tf.reshape(tf.decode_raw(value, tf.uint8), [label_bytes + image_bytes])
    label = tf.cast(tf.slice(record, [0], [label_bytes]), tf.int32)
    image = tf.cast(tf.transpose(tf.reshape(tf.slice(record, [label_bytes], [image_bytes]),
                                            [depth, image_size, image_size]), [1, 2, 0]), tf.float32)
    image = tf.image.resize_image_with_crop_or_pad(image, image_size + 4, image_size + 4)
    image = tf.random_crop(image, [image_size, image_size, 3])
    example_queue = tf.RandomShuffleQueue(capacity=16 * batch_size, min_after_dequeue=8 * batch_size,
                                          dtypes=[tf.float32, tf.int32],
                                          shapes=[[image_size, image_size, depth], [1]])
    example_enqueue_op = example_queue.enqueue([image, label])
    tf.train.add_queue_runner(tf.train.queue_runner.QueueRunner(example_queue, [example_enqueue_op] * 4))
    images, labels = example_queue.dequeue_many(batch_size)
    labels = tf.reshape(labels, [batch_size, 1])
    indices = tf.reshape(tf.range(0, batch_size, 1), [batch_size, 1])
    one_hot = tf.sparse_to_dense(tf.concat(values=[indices, labels], axis=1), [batch_size, 48], 1.0, 0.0)
    return images, one_hot, labels


images, one_hot, labels = build_input(sys.argv[1] + "/data_batch*", 6)
global_step = tf.train.get_or_create_global_step()
logits = tf.contrib.layers.fully_connected(tf.reshape(images, [6, -1]), 48, activation_fn=None)
cost = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=one_hot))
train_op = tf.train.MomentumOptimizer(1e-5, 0.9).minimize(cost, global_step=global_step)
seen = []
with tf.train.MonitoredTrainingSession(save_summaries_steps=0, chief_only_hooks=[]) as mon_sess:
    while not mon_sess.should_stop():
        _, got = mon_sess.run([train_op, labels])
        seen += got.ravel().tolist()
print("ids", sorted(seen))
