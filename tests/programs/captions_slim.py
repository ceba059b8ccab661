"""Captions of variable length: SequenceExample -> batch_join(dynamic_pad) -> slim.learning.train."""
import sys

import tensorflow as tf
import tensorflow.contrib.slim as slim

tf.flags.DEFINE_string("records", "", "The TFRecord file.")
tf.flags.DEFINE_string("train_dir", "", "Where to write checkpoints.")
FLAGS = tf.flags.FLAGS


def main(unused_argv):
    tf.logging.set_verbosity(tf.logging.ERROR)
    g = tf.Graph()
    with g.as_default():
        tf.set_random_seed(3)
        queue = tf.train.string_input_producer([FLAGS.records], shuffle=False, capacity=4)
        _, serialized = tf.TFRecordReader().read(queue)
        enqueue_list = []
        for _ in range(1):
            context, sequence = tf.parse_single_sequence_example(
                serialized,
                context_features={"id": tf.FixedLenFeature([], dtype=tf.int64)},
                sequence_features={"caption": tf.FixedLenSequenceFeature([], dtype=tf.int64)})
            caption = sequence["caption"]
            length = tf.shape(caption)[0]
            input_length = tf.expand_dims(tf.subtract(length, 1), 0)
            mask = tf.ones(input_length, dtype=tf.int32)
            enqueue_list.append([context["id"], tf.slice(caption, [0], input_length),
                                 tf.slice(caption, [1], input_length), mask])
        ids, inputs, targets, mask = tf.train.batch_join(
            enqueue_list, batch_size=4, capacity=20, dynamic_pad=True, name="batch_and_pad")
        table = slim.model_variable("embedding", [50, 8], initializer=tf.random_uniform_initializer(-0.1, 0.1))
        embedded = tf.nn.embedding_lookup(table, inputs)
        logits = slim.fully_connected(embedded, 50, activation_fn=None, scope="logits")
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
        loss = tf.div(tf.reduce_sum(losses * tf.to_float(mask)), tf.reduce_sum(tf.to_float(mask)), name="batch_loss")
        tf.losses.add_loss(loss)
        global_step = tf.Variable(0, name="global_step", trainable=False,
                                  collections=[tf.GraphKeys.GLOBAL_STEP, tf.GraphKeys.GLOBAL_VARIABLES])
        train_op = tf.contrib.layers.optimize_loss(
            loss=loss, global_step=global_step, learning_rate=0.5, optimizer="SGD", clip_gradients=5.0)
    final = tf.contrib.slim.learning.train(
        train_op, FLAGS.train_dir, log_every_n_steps=100, graph=g, global_step=global_step, number_of_steps=12,
        save_summaries_secs=0, save_interval_secs=600)
    print("final loss %.6f" % final)


if __name__ == "__main__":
    tf.app.run()
