"""A lowered pipeline on the tf.data service: a dispatcher and two workers on loopback."""

from __future__ import annotations

import socket
from collections import Counter

import pytest
import tensorflow as tf

from tests.engines import pipelines
from tfqueue.engines.tfdata import to_dataset

tf1 = tf.compat.v1
service = tf.data.experimental.service


def records():
    names = tf1.train.string_input_producer(pipelines.files([9, 14, 11, 6]), num_epochs=2, shuffle=False)
    record = tf1.TFRecordReader().read(names)[1]
    number = tf1.parse_single_example(record, {"n": tf1.FixedLenFeature([], tf.int64)})["n"]
    return tf1.train.shuffle_batch([number], 5, 40, min_after_dequeue=20, seed=6, allow_smaller_final_batch=True)


def free_port():
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return found.getsockname()[1]


@pytest.fixture(scope="module")
def dispatcher():
    ports = [free_port(), free_port()]
    # Sharding by files needs the workers' addresses before they come.
    addresses = [f"localhost:{port}" for port in ports]
    server = service.DispatchServer(service.DispatcherConfig(worker_addresses=addresses))
    place = server.target.partition("://")[2]
    workers = [
        service.WorkerServer(service.WorkerConfig(dispatcher_address=place, port=port, worker_address=address))
        for port, address in zip(ports, addresses, strict=True)
    ]
    yield server.target
    del workers
    del server


def delivered(dataset):
    return Counter(number for batch in dataset.as_numpy_iterator() for number in batch.tolist())


def test_two_workers_share_the_files(dispatcher):
    dataset = to_dataset(records)
    shared = dataset.apply(service.distribute(service.ShardingPolicy.FILE, dispatcher))
    found = delivered(shared)
    assert found == delivered(dataset)
    assert sum(found.values()) == 80


@pytest.mark.parametrize("shuffle", ["native", "replay"])
def test_every_worker_can_run_the_whole(dispatcher, shuffle):
    dataset = to_dataset(records, shuffle=shuffle)
    found = delivered(dataset.apply(service.distribute(service.ShardingPolicy.OFF, dispatcher)))
    assert found == Counter({number: 2 * times for number, times in delivered(dataset).items()})
