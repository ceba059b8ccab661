"""Token ids in memory, cut by range_input_producer; a Supervisor runs the session."""
import numpy as np
import tensorflow as tf


def ptb_producer(raw_data, batch_size, num_steps, name=None):
    with tf.name_scope(name, "PTBProducer", [raw_data, batch_size, num_steps]):
        raw_data = tf.convert_to_tensor(raw_data, name="raw_data", dtype=tf.int32)
        data_len = tf.size(raw_data)
        batch_len = data_len // batch_size
        data = tf.reshape(raw_data[0: batch_size * batch_len], [batch_size, batch_len])
        epoch_size = (batch_len - 1) // num_steps
        assertion = tf.assert_positive(epoch_size, message="epoch_size == 0, decrease batch_size or num_steps")
        with tf.control_dependencies([assertion]):
            epoch_size = tf.identity(epoch_size, name="epoch_size")
        i = tf.train.range_input_producer(epoch_size, shuffle=False).dequeue()
        x = tf.strided_slice(data, [0, i * num_steps], [batch_size, (i + 1) * num_steps])
        x.set_shape([batch_size, num_steps])
        y = tf.strided_slice(data, [0, i * num_steps + 1], [batch_size, (i + 1) * num_steps + 1])
        y.set_shape([batch_size, num_steps])
        return x, y


def main(_):
    tokens = (np.arange(211) * 7919) % 31
    with tf.Graph().as_default():
        tf.set_random_seed(11)
        x, y = ptb_producer(tokens.tolist(), 4, 5)
        table = tf.get_variable("embedding", [31, 6], dtype=tf.float32)
        logits = tf.layers.dense(tf.nn.embedding_lookup(table, x), 31)
        cost = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        train = tf.train.GradientDescentOptimizer(1.0).minimize(cost)
        sv = tf.train.Supervisor(logdir=None, summary_op=None)
        with sv.managed_session() as session:
            for step in range(30):
                cost_value, first, _ = session.run([cost, x, train])
                if step % 10 == 9:
                    print("step %d loss %.6f first %s" % (step, cost_value, first[0].tolist()))


if __name__ == "__main__":
    tf.app.run()
