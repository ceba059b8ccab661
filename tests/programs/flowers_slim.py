"""tf_slim from end to end: DatasetDataProvider -> batch -> prefetch_queue -> slim.learning.train with a step function."""
import os

import tensorflow as tf

slim = tf.contrib.slim
FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_string("dataset_dir", None, "Where the records are.")
tf.app.flags.DEFINE_string("train_dir", None, "Where to write.")


def get_split(dataset_dir):
    keys_to_features = {
        "image/encoded": tf.FixedLenFeature((), tf.string, default_value=""),
        "image/format": tf.FixedLenFeature((), tf.string, default_value="png"),
        "image/class/label": tf.FixedLenFeature([], tf.int64, default_value=tf.zeros([], dtype=tf.int64)),
    }
    items_to_handlers = {
        "image": slim.tfexample_decoder.Image(),
        "label": slim.tfexample_decoder.Tensor("image/class/label"),
    }
    decoder = slim.tfexample_decoder.TFExampleDecoder(keys_to_features, items_to_handlers)
    return slim.dataset.Dataset(
        data_sources=os.path.join(dataset_dir, "flowers_train_*"), reader=tf.TFRecordReader, decoder=decoder,
        num_samples=24, items_to_descriptions={"image": "A picture.", "label": "Its class."}, num_classes=24)


def main(_):
    seen = []
    with tf.Graph().as_default():
        tf.set_random_seed(5)
        global_step = slim.create_global_step()
        dataset = get_split(FLAGS.dataset_dir)
        provider = slim.dataset_data_provider.DatasetDataProvider(
            dataset, num_readers=1, shuffle=False, common_queue_capacity=20, common_queue_min=0)
        [image, label] = provider.get(["image", "label"])
        image = tf.image.resize_bilinear(tf.expand_dims(tf.to_float(image), 0), [4, 4])[0]
        image.set_shape([4, 4, 3])
        images, labels = tf.train.batch([image, label], batch_size=4, num_threads=1, capacity=20)
        batch_queue = slim.prefetch_queue.prefetch_queue([images, slim.one_hot_encoding(labels, 24), labels], capacity=4)
        images, one_hot, labels = batch_queue.dequeue()
        net = slim.conv2d(images / 255.0, 4, [3, 3], scope="conv1")
        logits = slim.fully_connected(slim.flatten(net), 24, activation_fn=None)
        tf.losses.softmax_cross_entropy(one_hot, logits)
        total_loss = tf.losses.get_total_loss()
        train_op = slim.learning.create_train_op(total_loss, tf.train.GradientDescentOptimizer(0.1))

        def step_fn(session, op, step, kwargs):
            loss, got, current = session.run([op, labels, step])
            seen.extend(got.tolist())
            return loss, current >= 12

        final = slim.learning.train(train_op, logdir=FLAGS.train_dir, train_step_fn=step_fn, global_step=global_step,
                                    save_summaries_secs=0, save_interval_secs=600, summary_op=None)
    print("final %.6f ids %s" % (final, seen))


if __name__ == "__main__":
    tf.app.run()
