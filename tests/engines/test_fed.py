"""Sessions that somebody else runs, fed from tf.data: the same losses as in lockstep; errors where it is too late."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import tensorflow as tf

import tfqueue
from tests.engines import pipelines
from tests.engines.test_rewire import SPEC, examples, loss_of, train_op
from tfqueue.errors import CannotLower, InvalidArgument, PipelineFailed, PipelineStalled, TFQueueWarning

tf1 = tf.compat.v1


def trained(engine, **options):
    """A training script of the usual kind; only the engine is not its own."""
    with tf.Graph().as_default():
        loss = loss_of(*examples())
        train = train_op(loss)
        step = tf1.train.get_global_step()
        losses = []
        with tf1.Session() as session:
            session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
            with tfqueue.queue_runners(session, engine=engine, **options) as coord:
                while not coord.should_stop():
                    assert session.run(step) == len(losses)  # takes no batch
                    losses.append(session.run([loss, train])[0])
    return losses


def test_a_script_has_the_same_losses_as_in_lockstep():
    expected = trained("lockstep")
    assert len(expected) == 20
    assert trained("tfdata", shuffle="replay") == expected
    native = trained("tfdata")
    assert len(native) == 20
    assert native != expected


def numbers(*, threads=1):
    names = tf1.train.string_input_producer(pipelines.files([9, 14]), num_epochs=1, shuffle=False)
    number = tf1.parse_single_example(tf1.TFRecordReader().read(names)[1], SPEC)["n"]
    return tf1.train.batch([number], 4, num_threads=threads)


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf1.Session() as opened:
        yield opened


def initialise(session):
    session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])


EXPECTED = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 100, 101, 102], [103, 104, 105, 106], [107, 108, 109, 110]]


def test_a_batch_itself_can_be_fetched_and_a_callable_is_fed(session):
    batch = numbers()
    doubled = batch * 2
    initialise(session)
    found = []
    with tfqueue.queue_runners(session, engine="tfdata"):
        assert session.run(batch).tolist() == EXPECTED[0]
        call = session.make_callable(doubled)
        found = [call().tolist(), session.run([doubled, batch])[1].tolist()]
        assert session.make_callable(tf.constant(3))() == 3
        given = session.run(doubled, {batch: np.zeros(4, np.int64)})  # fed by the script itself: takes none
        found += [given.tolist(), session.run(batch).tolist()]
    assert found == [[2 * n for n in EXPECTED[1]], EXPECTED[2], [0] * 4, EXPECTED[3]]
    assert "run" not in vars(session)


def test_sparse_batches_and_towers(session):
    number, values = examples(shuffled=False)
    dense = tf.sparse.to_dense(values)
    queue = tf1.train.range_input_producer(12, num_epochs=1, shuffle=False)
    towers = [queue.dequeue_many(2) * 10 for _ in range(2)]
    initialise(session)
    with tfqueue.queue_runners(session, engine="tfdata"):
        first = session.run([number, dense, *towers])
        second = session.run([number, *towers])
    assert first[0].tolist() == [0, 1, 2, 3, 4]
    assert first[1].shape == (5, 4)
    assert second[0].tolist() == [5, 6, 7, 8, 100]
    taken = [tower.tolist() for tower in (*first[2:], *second[1:])]
    assert sorted(taken) == [[0, 10], [20, 30], [40, 50], [60, 70]]


def test_too_late(session):
    batch = numbers()
    initialise(session)
    coord = tf1.train.Coordinator()
    threads = tf1.train.start_queue_runners(session, coord)
    first = session.run(batch).tolist()
    with pytest.raises(InvalidArgument, match=r"too late.*call tfqueue.rewire"):
        tfqueue.queue_runners(session, engine="tfdata", check=False).__enter__()
    assert first == EXPECTED[0]
    assert session.run(batch).tolist() == EXPECTED[1]  # what was running still runs
    coord.request_stop()
    with pytest.raises(tf.errors.OutOfRangeError):
        while True:
            session.run(batch)
    coord.join(threads)


def test_what_cannot_be_fed(session):
    batch = numbers()
    with tf.control_dependencies([batch]):
        waiting = tf.constant(1, name="waiting")
    initialise(session)
    with tfqueue.queue_runners(session, engine="tfdata"):
        for fetch in (waiting, batch.op):
            with pytest.raises(CannotLower, match=r"waits for batch .* itself") as caught:
                session.run(fetch)
            assert "rewire" in caught.value.advice
        assert session.run(batch).tolist() == EXPECTED[0]


def test_a_step_that_is_fed_a_part_by_its_script(session):
    number = tf1.train.range_input_producer(12, num_epochs=1, shuffle=False).dequeue()
    left, right = tf1.train.batch([number, -number], 2)
    total = left + right
    initialise(session)
    with tfqueue.queue_runners(session, engine="tfdata"):
        assert session.run(total, {left: [10, 10]}).tolist() == [10, 9]
        assert session.run(total, {left: [10, 10], right: [5, 5]}).tolist() == [15, 15]
        assert session.run([left, total], {right.name: [5, 5]})[0].tolist() == [2, 3]


def test_nothing_to_feed_and_a_step_without_a_queue(session):
    with pytest.raises(InvalidArgument, match="nothing to feed"):
        tfqueue.queue_runners(session, engine="tfdata").__enter__()
    names = tf1.train.string_input_producer(pipelines.files([9]), num_epochs=1, shuffle=False)
    record = tf1.TFRecordReader().read(names)[1]
    tf.strings.length(record)
    initialise(session)
    with pytest.raises(CannotLower, match="without a queue behind it"):
        tfqueue.queue_runners(session, engine="tfdata").__enter__()


def test_a_pipeline_that_reads_what_training_changes(session):
    step = tf1.train.get_or_create_global_step()
    tf1.assign_add(step, 1)
    number = tf1.train.range_input_producer(12, shuffle=False).dequeue()
    tf1.train.batch([tf.cast(number, tf.int64) + step], 2)
    initialise(session)
    with pytest.raises(CannotLower, match="the variable global_step, which"):
        tfqueue.queue_runners(session, engine="tfdata").__enter__()


def test_shuffle_belongs_to_tfdata(session):
    for wrong in ({"engine": "threads", "shuffle": "replay"}, {"engine": "tfdata", "shuffle": "fast"}):
        with pytest.raises(InvalidArgument, match="shuffle"):
            tfqueue.queue_runners(session, **wrong)
        with pytest.raises(InvalidArgument, match="shuffle"):
            tfqueue.QueuePipeline(numbers, **wrong)


def test_a_pipeline_replayed_is_that_of_lockstep():
    with tfqueue.QueuePipeline(examples, engine="lockstep") as lockstep:
        expected = [(n.tolist(), x.values.tolist()) for n, x in lockstep]
    with tfqueue.QueuePipeline(examples, engine="tfdata", shuffle="replay") as replayed:
        found = [(n.tolist(), x.values.tolist()) for n, x in replayed]
    assert found == expected
    assert len(found) == 20


# -- failures ---------------------------------------------------------------------------------------


def failing(path, feature, length):
    def build_fn():
        names = tf1.train.string_input_producer([*pipelines.files([9]), path], num_epochs=1, shuffle=False)
        spec = {feature: tf1.FixedLenFeature([length] if length else [], tf.int64)}
        return tf1.train.batch([tf1.parse_single_example(tf1.TFRecordReader().read(names)[1], spec)[feature]], 4)

    return build_fn


def write(path, values):
    with tf.io.TFRecordWriter(path) as writer:
        for value in values:
            feature = tf.train.Feature(int64_list=tf.train.Int64List(value=value))
            writer.write(tf.train.Example(features=tf.train.Features(feature={"n": feature})).SerializeToString())


def cause(build_fn, **options):
    with pytest.raises(PipelineFailed) as caught, tfqueue.QueuePipeline(build_fn, check=False, **options) as pipeline:
        for _ in pipeline:
            pass
    failed = caught.value
    assert failed.__cause__ is not None
    return str(failed), failed.cause_name, failed.stage, failed.source, failed.file, failed.record, failed.advice


@pytest.mark.parametrize("fault", ["length", "feature", "damage", "missing"])
def test_a_failure_names_what_the_threads_name(fault, tmp_path):
    path = str(tmp_path / "second.tfrecord")
    feature = "m" if fault == "feature" else "n"
    if fault != "missing":
        write(path, [[1], [2], [3, 4] if fault == "length" else [3], [5]])
    if fault == "damage":
        with open(path, "r+b") as stream:
            stream.seek(-6, 2)
            stream.write(b"?")
    build_fn = failing(path, feature, 0)
    expected, found = cause(build_fn), cause(build_fn, engine="tfdata")
    assert found[1:] == expected[1:]
    assert found[0].splitlines()[1:] == expected[0].splitlines()[1:]
    assert fault == "missing" or None not in found
    assert (found[4], found[5]) in {
        "length": [(path, 2)],
        "feature": [(pipelines.files([9])[0], 0)],
        "damage": [(path, 3)],
        "missing": [(path, None)],
    }[fault]


def test_a_failure_in_a_step_of_ones_own_session(session, tmp_path):
    path = str(tmp_path / "second.tfrecord")
    write(path, [[1], [2, 3], [4]])
    batch = failing(path, "n", 0)()
    initialise(session)
    steps = 0
    with (
        pytest.raises(PipelineFailed, match="record 1") as caught,
        tfqueue.queue_runners(session, engine="tfdata", check=False) as coord,
    ):
        while not coord.should_stop():
            session.run(batch)
            steps += 1
    assert caught.value.file == path
    assert steps == 2


def test_a_record_that_is_never_delivered_is_never_decoded(tmp_path):
    path = str(tmp_path / "second.tfrecord")
    write(path, [[1], [2, 3]])  # in the remainder that batch drops
    build_fn = failing(path, "n", 0)
    with tfqueue.QueuePipeline(build_fn, engine="tfdata", check=False) as pipeline:
        assert [batch.tolist() for batch in pipeline] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    dataset = tfqueue.to_dataset(build_fn, optimize=False)
    with pytest.raises(tf.errors.InvalidArgumentError):
        list(dataset)


def test_a_dataset_that_waits_is_told_and_at_last_given_up():
    release = threading.Event()

    def build_fn():
        number = tf1.train.range_input_producer(12, shuffle=False).dequeue()
        held = tf1.py_func(lambda value: (release.wait(60), value)[1], [number], tf.int32)
        held.set_shape([])
        return tf1.train.batch([held], 2)

    def release_when_stalled(run):
        pause = threading.Event()
        while run._stalled is None:
            pause.wait(0.01)
        release.set()

    with (
        pytest.warns(TFQueueWarning, match="a step has waited"),
        pytest.raises(PipelineStalled, match="for the dataset") as caught,
        tfqueue.QueuePipeline(build_fn, engine="tfdata", check=False, stall_timeout=0.2) as pipeline,
    ):
        threading.Thread(target=release_when_stalled, args=(pipeline._run,)).start()
        next(pipeline)
    assert caught.value.cause_name == "dataset-stalled"
    assert not any(thread.name == "tfqueue-watchdog" for thread in threading.enumerate())
