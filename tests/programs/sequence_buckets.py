"""TFRecord -> RandomShuffleQueue by hand -> tf.contrib.training.bucket_by_sequence_length."""
import sys

import tensorflow as tf


def read_and_decode(filename_queue):
    _, serialized = tf.TFRecordReader().read(filename_queue)
    context, sequence = tf.parse_single_sequence_example(
        serialized, context_features={"id": tf.FixedLenFeature([], tf.int64)},
        sequence_features={"caption": tf.FixedLenSequenceFeature([], tf.int64)})
    return context["id"], sequence["caption"]


filename_queue = tf.train.string_input_producer([sys.argv[1]], num_epochs=1)
number, tokens = read_and_decode(filename_queue)
shuffle_queue = tf.RandomShuffleQueue(30, 5, [tf.int64, tf.int64], shapes=None)
enqueue = shuffle_queue.enqueue([number, tokens])
tf.train.add_queue_runner(tf.train.QueueRunner(shuffle_queue, [enqueue]))
number, tokens = shuffle_queue.dequeue()
number.set_shape([])
tokens.set_shape([None])
lengths, [numbers, padded] = tf.contrib.training.bucket_by_sequence_length(
    input_length=tf.size(tokens), tensors=[number, tokens], batch_size=3, bucket_boundaries=[4, 7],
    allow_smaller_final_batch=True, dynamic_pad=True, capacity=12)
seen = []
with tf.Session() as sess:
    tf.local_variables_initializer().run()
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess=sess, coord=coord)
    try:
        while not coord.should_stop():
            ids, batch, sizes = sess.run([numbers, padded, lengths])
            assert batch.shape[1] == max(sizes), (batch.shape, sizes)
            buckets = set(0 if size < 4 else 1 if size < 7 else 2 for size in sizes)
            assert len(buckets) == 1, sizes
            seen += [(int(i), int(row[:size].sum())) for i, row, size in zip(ids, batch, sizes)]
    except tf.errors.OutOfRangeError:
        pass
    finally:
        coord.request_stop()
        coord.join(threads)
print("ids", sorted(seen))
