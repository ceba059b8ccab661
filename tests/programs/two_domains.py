"""Two readers in one graph, each with a queue of its own: pictures of X and of Y, as a CycleGAN reads them."""
import tensorflow as tf

FLAGS = tf.flags.FLAGS
tf.flags.DEFINE_string("X", "", "Records of X.")
tf.flags.DEFINE_string("Y", "", "Records of Y.")


class Reader():
    def __init__(self, tfrecords_file, batch_size=1, name=""):
        self.file, self.batch_size, self.name = tfrecords_file, batch_size, name
        self.reader = tf.TFRecordReader()

    def feed(self):
        with tf.name_scope(self.name):
            filename_queue = tf.train.string_input_producer([self.file])
            _, serialized = self.reader.read(filename_queue)
            features = tf.parse_single_example(serialized, features={
                "image/encoded": tf.FixedLenFeature([], tf.string),
                "image/class/label": tf.FixedLenFeature([], tf.int64)})
            image = tf.image.decode_png(features["image/encoded"], channels=3)
            image = tf.image.resize_images(image, size=(4, 4))
            image = image / 127.5 - 1.0
            image.set_shape([4, 4, 3])
            return tf.train.batch([image, features["image/class/label"]], batch_size=self.batch_size, num_threads=1,
                                  capacity=20)


def main(_):
    graph = tf.Graph()
    with graph.as_default():
        tf.set_random_seed(9)
        x, x_ids = Reader(FLAGS.X, 2, "X").feed()
        y, y_ids = Reader(FLAGS.Y, 2, "Y").feed()
        w = tf.get_variable("w", [3], initializer=tf.random_normal_initializer())
        loss = tf.reduce_mean(tf.abs(x * w - y))
        optimize = tf.train.AdamOptimizer(0.05).minimize(loss)
    with tf.Session(graph=graph) as sess:
        sess.run(graph.get_collection("nothing") or [])
        with graph.as_default():
            sess.run(tf.global_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=sess, coord=coord)
        try:
            step = 0
            while not coord.should_stop():
                value, one, two, _ = sess.run([loss, x_ids, y_ids, optimize])
                if step % 5 == 0:
                    print("step %d: %.6f %s %s" % (step, value, one.tolist(), two.tolist()))
                step += 1
                if step > 15:
                    coord.request_stop()
        finally:
            coord.request_stop()
            coord.join(threads)


if __name__ == "__main__":
    tf.app.run()
