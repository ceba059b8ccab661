"""Lines of a list file name two pictures; both are flipped together by a tf.cond; shuffle_batch."""
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("list_file", None, "One pair of pictures a line.")
flags.DEFINE_string("root", "", "Their folder.")
FLAGS = flags.FLAGS


class Dataloader(object):
    def __init__(self, root, list_file, batch_size):
        self.root = root
        input_queue = tf.train.string_input_producer([list_file], shuffle=False, num_epochs=1)
        _, line = tf.TextLineReader().read(input_queue)
        parts = tf.string_split([line]).values
        left = self.read_image(tf.string_join([root, parts[0]], "/"))
        right = self.read_image(tf.string_join([root, parts[1]], "/"))
        do_flip = tf.random_uniform([], 0, 1)
        left, right = (tf.cond(do_flip > 0.5, lambda: tf.image.flip_left_right(right), lambda: left),
                       tf.cond(do_flip > 0.5, lambda: tf.image.flip_left_right(left), lambda: right))
        left.set_shape([None, None, 3])
        right.set_shape([None, None, 3])
        left = tf.image.resize_images(left, [4, 4], tf.image.ResizeMethod.AREA)
        right = tf.image.resize_images(right, [4, 4], tf.image.ResizeMethod.AREA)
        number = tf.string_to_number(parts[2], tf.int32)
        self.left, self.right, self.number = tf.train.shuffle_batch(
            [left, right, number], batch_size, 24, 8, num_threads=2)

    def read_image(self, path):
        return tf.image.convert_image_dtype(tf.image.decode_png(tf.read_file(path), channels=3), tf.float32)


def main(_):
    with tf.Graph().as_default(), tf.device("/cpu:0"):
        loader = Dataloader(FLAGS.root, FLAGS.list_file, 2)
        both = tf.reduce_sum(loader.left + loader.right, [1, 2, 3])
        sess = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))
        sess.run(tf.global_variables_initializer())
        sess.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=sess, coord=coordinator)
        seen = []
        try:
            while True:
                numbers, sums = sess.run([loader.number, both])
                seen += [(int(n), round(float(s), 2)) for n, s in zip(numbers, sums)]
        except tf.errors.OutOfRangeError:
            pass
        finally:
            coordinator.request_stop()
        coordinator.join(threads)
        print("ids", sorted(seen))


if __name__ == "__main__":
    tf.app.run()
