"""CSV read several lines at a time: read_up_to -> decode_csv of the vector -> shuffle_batch(enqueue_many=True) of a dict."""
import argparse

import tensorflow as tf

COLUMNS = ["age", "workclass", "hours", "number"]
DEFAULTS = [[0], [""], [0.0], [0]]


def input_fn(filenames, num_epochs, batch_size):
    filename_queue = tf.train.string_input_producer(filenames, num_epochs=num_epochs, shuffle=False)
    reader = tf.TextLineReader(skip_header_lines=1)
    _, rows = reader.read_up_to(filename_queue, num_records=batch_size)
    row_columns = tf.expand_dims(rows, -1)
    columns = tf.decode_csv(row_columns, record_defaults=DEFAULTS)
    features = dict(zip(COLUMNS, columns))
    features = tf.train.shuffle_batch(
        features, batch_size, capacity=batch_size * 10, min_after_dequeue=batch_size * 2 + 1, num_threads=2,
        enqueue_many=True, allow_smaller_final_batch=True)
    label = features.pop("hours")
    return features, label


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--train-files", nargs="+", required=True)
    parser.add_argument("--num-epochs", type=int, default=2)
    args, _ = parser.parse_known_args()
    with tf.Graph().as_default() as graph:
        features, label = input_fn(args.train_files, args.num_epochs, 7)
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(label - w * tf.to_float(features["age"])))
        global_step = tf.contrib.framework.get_or_create_global_step()
        train_op = tf.train.AdagradOptimizer(0.1).minimize(loss, global_step=global_step)
        seen = []
        with tf.train.MonitoredTrainingSession(is_chief=True, checkpoint_dir=None) as session:
            while not session.should_stop():
                _, numbers, classes = session.run([train_op, features["number"], features["workclass"]])
                seen += [(n, c.decode()) for n, c in zip(numbers.ravel().tolist(), classes.ravel().tolist())]
    print("ids", sorted(seen))
