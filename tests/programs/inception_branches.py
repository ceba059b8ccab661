"""Readers fill a queue of serialized examples, four branches take from it, batch_join makes the batches."""
import argparse
import glob

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
parser.add_argument("--readers", type=int, default=2)
args = parser.parse_args()


def parse(serialized, thread_id):
    features = tf.parse_single_example(serialized, {
        "id": tf.FixedLenFeature([], tf.int64), "x": tf.FixedLenFeature([4], tf.float32)})
    x = features["x"]
    return features["id"], x * 2.0 if thread_id % 2 else x + x


with tf.name_scope("batch_processing"):
    files = sorted(glob.glob(args.data + "/numbers-*"))
    filename_queue = tf.train.string_input_producer(files, num_epochs=1, shuffle=True, capacity=16)
    examples_queue = tf.RandomShuffleQueue(capacity=40, min_after_dequeue=10, dtypes=[tf.string])
    enqueue_ops = []
    for _ in range(args.readers):
        reader = tf.TFRecordReader()
        _, value = reader.read(filename_queue)
        enqueue_ops.append(examples_queue.enqueue([value]))
    tf.train.queue_runner.add_queue_runner(tf.train.queue_runner.QueueRunner(examples_queue, enqueue_ops))
    example = examples_queue.dequeue()
    branches = [parse(example, thread_id) for thread_id in range(4)]
    ids, xs = tf.train.batch_join(branches, batch_size=5, capacity=30)
    total = tf.reduce_sum(xs, 1)

init = tf.group(tf.global_variables_initializer(), tf.local_variables_initializer())
sess = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))
sess.run(init)
coord = tf.train.Coordinator()
threads = []
for qr in tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS):
    threads.extend(qr.create_threads(sess, coord=coord, daemon=True, start=True))
seen = []
try:
    while not coord.should_stop():
        batch_ids, sums = sess.run([ids, total])
        seen += [(int(i), round(float(s), 3)) for i, s in zip(batch_ids, sums)]
except tf.errors.OutOfRangeError:
    print("Done.")
except Exception as e:
    coord.request_stop(e)
coord.request_stop()
coord.join(threads, stop_grace_period_secs=10)
sess.close()
print("ids %s" % sorted(seen))
