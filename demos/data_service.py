"""A TF1 queue pipeline on TensorFlow's distributed engine, the tf.data service: two workers share its files.

A dispatcher and two workers are started on this machine. On a cluster each runs in a process of its own, and the rest
of the program stays as it is.

    python demos/data_service.py [FOLDER]
"""

import socket
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import tensorflow as tf

import tfqueue

tf1 = tf.compat.v1
service = tf.data.experimental.service

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "data-service")
folder.mkdir(exist_ok=True)
arrays = {
    "image": np.random.default_rng(0).integers(0, 256, (600, 16, 16), np.uint8).reshape(600, -1).astype(np.float32),
    "label": np.arange(600),
}
paths = tfqueue.records.write_arrays(folder / "train.tfrecord", arrays, layout="list", shards=6, overwrite=True)


def legacy():  # the TF1 code, as found
    names = tf1.train.string_input_producer(paths, num_epochs=2, shuffle=False)
    record = tf1.TFRecordReader().read(names)[1]
    spec = {"image": tf1.FixedLenFeature([256], tf.float32), "label": tf1.FixedLenFeature([], tf.int64)}
    parsed = tf1.parse_single_example(record, spec)
    image = parsed["image"] / 127.5 - 1.0
    return tf1.train.shuffle_batch(
        {"image": image, "label": parsed["label"]},
        20,
        300,
        min_after_dequeue=200,
        seed=1,
        allow_smaller_final_batch=True,
    )


# -- 1. the servers -------------------------------------------------------------------------------------------------


def free_port():
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return found.getsockname()[1]


ports = [free_port(), free_port()]
# Files can be shared out in a fixed way only among workers whose addresses the dispatcher knows beforehand.
addresses = [f"localhost:{port}" for port in ports]
dispatcher = service.DispatchServer(service.DispatcherConfig(worker_addresses=addresses))
place = dispatcher.target.partition("://")[2]
workers = [
    service.WorkerServer(service.WorkerConfig(dispatcher_address=place, port=port, worker_address=address))
    for port, address in zip(ports, addresses, strict=True)
]

# -- 2. the pipeline, here and there --------------------------------------------------------------------------------

dataset = tfqueue.to_dataset(legacy)
distributed = dataset.apply(service.distribute(service.ShardingPolicy.FILE, dispatcher.target))
everywhere = dataset.apply(service.distribute(service.ShardingPolicy.OFF, dispatcher.target))


def labels(batches):
    return Counter(label for batch in batches for label in batch["label"].tolist())


print(f"workers: {dispatcher._num_workers()}, files: {len(paths)}")
here, shared = labels(dataset.as_numpy_iterator()), labels(distributed.as_numpy_iterator())
print(f"on this machine: {sum(here.values())} records, each {max(here.values())} times")
print(f"by two workers, a share of the files each: {sum(shared.values())} records; the same: {shared == here}")
twice = labels(everywhere.as_numpy_iterator())
print(f"by two workers, all files each: {sum(twice.values())} records, each {max(twice.values())} times")

# -- 3. the proof ---------------------------------------------------------------------------------------------------

# The order is not that of one machine: it is shuffled anyway, and the workers deliver as they can.
print(tfqueue.compare(dataset, distributed, order="any"))
del workers, dispatcher
