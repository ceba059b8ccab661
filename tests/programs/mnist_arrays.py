"""Whole arrays sliced in the graph, with the names of before TensorFlow 1.0."""
import numpy as np
import tensorflow as tf

images = np.random.RandomState(0).randint(0, 256, (40, 28, 28, 1)).astype(np.float32) / 255.
labels = np.arange(40).astype(np.int32)
digits = np.fromstring(np.arange(40, dtype=np.int32).tostring(), dtype=np.int32)
assert (digits == labels).all() and np.int(40.0) == np.asscalar(labels.size + np.zeros(1, int))

data_queues = tf.train.slice_input_producer([images, labels], num_epochs=3, shuffle=True)
X, Y = tf.train.shuffle_batch(data_queues, num_threads=1, batch_size=8, capacity=64, min_after_dequeue=32,
                              allow_smaller_final_batch=False)
pooled = tf.nn.max_pool(X, [1, 4, 4, 1], [1, 4, 4, 1], "SAME")
rows = tf.pack([tf.to_float(Y), tf.reduce_sum(pooled, [1, 2, 3])], axis=1)
tf.scalar_summary("mean", tf.reduce_mean(tf.sub(rows, 1.0)))
sess = tf.InteractiveSession()
tf.initialize_all_variables().run()
tf.initialize_local_variables().run()
coord = tf.train.Coordinator()
threads = tf.train.start_queue_runners(coord=coord)
seen = []
try:
    while not coord.should_stop():
        seen += [(int(r[0]), round(float(r[1]), 3)) for r in rows.eval()]
except tf.errors.OutOfRangeError:
    print("epoch limit reached")
coord.request_stop()
coord.join(threads)
sess.close()
print("ids", sorted(seen))
