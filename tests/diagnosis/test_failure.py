"""A failure is always explained: nothing that explains it may itself fail, hang, or take from a queue."""

from __future__ import annotations

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.diagnosis.running import two_files
from tests.pipelines import LABEL, example, labels, numbers, parse, tf1
from tfqueue.diagnosis.failure import failure
from tfqueue.errors import PipelineFailed
from tfqueue.initialize import initialize_all

ERRORS = [
    tf.errors.InvalidArgumentError(None, None, "Feature: label (data type: int64) is required but could not be found."),
    tf.errors.InvalidArgumentError(None, None, "x [[{{node nowhere}}]]"),
    tf.errors.InvalidArgumentError(None, None, "x [[{{function_node f_12}}{{node batch/fifo_queue_enqueue}}]]"),
    tf.errors.InvalidArgumentError(None, None, "Shape mismatch in tuple component 7. Expected [?,3], got []"),
    tf.errors.NotFoundError(None, None, "; No such file or directory"),
    tf.errors.NotFoundError(None, None, "\0; No such file or directory"),
    tf.errors.DataLossError(None, None, "corrupted record at 0 [[{{node ReaderReadV2}}]]"),
    tf.errors.UnknownError(None, None, "KeyError: 3\nTraceback (most recent call last):\n  File nonsense"),
    tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor with shape[] and type odd"),
    ValueError("of a thread of the user's"),
    KeyError(),
]


def graph_of(build_fn):
    graph = tf.Graph()
    with graph.as_default():
        fetches = build_fn()
    return graph, fetches


def explained(error, graph, **options) -> PipelineFailed:
    failed = failure(error, graph, **options)
    assert isinstance(failed, PipelineFailed)
    assert failed.__cause__ is error
    assert str(failed)
    return failed


@pytest.mark.parametrize("error", ERRORS, ids=range(len(ERRORS)))
def test_any_error_in_any_state(tmp_path, error) -> None:
    path = numbers(tmp_path / "numbers.tfrecord", 3)
    graph, fetches = graph_of(labels([path]))
    explained(error, tf.Graph())
    explained(error, graph, fetches=fetches, enqueue_op="no such op")
    session = tf1.Session(graph=graph)
    initialize_all(graph, session)
    graph.finalize()
    explained(error, graph, session=session, fetches=fetches, enqueued=0)
    explained(error, graph, session=session, enqueued=10**9)
    session.close()
    explained(error, graph, session=session, fetches=fetches)


@settings(max_examples=60, deadline=None)
@given(
    text=st.text(max_size=80), node=st.sampled_from(["", "ReaderReadV2", "batch/fifo_queue_enqueue", "batch", "a/b"])
)
def test_any_words_of_a_kernel(text, node) -> None:
    graph, fetches = graph_of(labels(["gone.tfrecord"]))
    for kind in (tf.errors.InvalidArgumentError, tf.errors.NotFoundError, tf.errors.DataLossError):
        explained(kind(None, None, f"{text} [[{{{{node {node}}}}}]]"), graph, fetches=fetches)


def test_a_graph_that_was_imported(tmp_path) -> None:
    paths = two_files(tmp_path, lambda n: example(label=[n]), example(x=[1]))
    graph, _ = graph_of(lambda: tf1.train.batch([parse(paths, LABEL)["label"]], 2))
    with graph.as_default():
        meta = tf1.train.export_meta_graph(graph=graph)
    imported = tf.Graph()
    with imported.as_default():
        tf1.train.import_meta_graph(meta)
    with tf1.Session(graph=imported) as session:
        parse_op = next(op for op in imported.get_operations() if op.type == "ParseExampleV2")
        error = tf.errors.InvalidArgumentError(
            None,
            None,
            "Feature: label (data type: int64) is required but could not be found. [[{{node " + parse_op.name + "}}]]",
        )
        failed = explained(error, imported, session=session)
    assert (failed.cause_name, failed.file, failed.record) == ("missing-feature", paths[1], 7)


def test_the_search_neither_takes_nor_adds_records(tmp_path) -> None:
    """An enqueue that failed is not run again, however many good records come before the bad one."""
    path = numbers(tmp_path / "numbers.tfrecord", 50)

    def build_fn():
        value = tf1.decode_raw(parse([path], {"img": tf1.FixedLenFeature([], tf.string)})["img"], tf.uint8)
        value = tf.identity(value)
        value.set_shape([50])
        return tf1.train.batch([value], 2, capacity=4)

    graph, fetches = graph_of(build_fn)
    with tf1.Session(graph=graph) as session:
        initialize_all(graph, session)
        sizes = [op.outputs[0] for op in graph.get_operations() if op.type == "QueueSizeV2"]
        before = session.run(sizes)
        error = tf.errors.InvalidArgumentError(
            None,
            None,
            "Shape mismatch in tuple component 0. Expected [50], got [48] [[{{node batch/fifo_queue_enqueue}}]]",
        )
        failed = explained(error, graph, session=session, fetches=fetches)
        assert session.run(sizes) == before
    assert (failed.cause_name, failed.file, failed.record) == ("element-shape", path, 0)


def test_a_record_far_in_is_found_from_the_number_that_went_before(tmp_path) -> None:
    paths = two_files(tmp_path, lambda n: example(label=[n]), example(x=[1]))
    graph, fetches = graph_of(lambda: tf1.train.batch([parse(paths, LABEL, num_epochs=9)["label"]], 2))
    with tf1.Session(graph=graph) as session:
        error = tf.errors.InvalidArgumentError(
            None,
            None,
            "Feature: label (data type: int64) is required but could not be found. "
            "[[{{node ParseSingleExample/ParseExample/ParseExampleV2}}]]",
        )
        for enqueued in (17, 37, 177, 0, 10**6):
            failed = explained(error, graph, session=session, fetches=fetches, enqueued=enqueued)
            assert (failed.file, failed.record) == (paths[1], 7)


def test_long_words_of_a_kernel_are_shortened() -> None:
    failed = explained(tf.errors.InvalidArgumentError(None, None, "line\n" * 5000), tf.Graph())
    assert len(str(failed)) < 2000
    assert " ..." in str(failed)


def test_variables_that_have_no_value(tmp_path) -> None:
    path = numbers(tmp_path / "numbers.tfrecord", 3)
    graph, fetches = graph_of(labels([path]))
    with tf1.Session(graph=graph) as session:
        runner = graph.get_collection(tf1.GraphKeys.QUEUE_RUNNERS)[0]
        with pytest.raises(tf.errors.OpError) as caught:
            session.run(runner.enqueue_ops[0])
        failed = explained(caught.value, graph, session=session, enqueue_op=runner.enqueue_ops[0].name, fetches=fetches)
    assert failed.cause_name == "epochs-not-initialised"
    assert "tf.local_variables_initializer()" in failed.advice
