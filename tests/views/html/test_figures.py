"""The figures of a report."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

import tfqueue
from tests.views import pictures
from tfqueue.equivalence.streams import Returned
from tfqueue.views.html.figures import figures_of

tf1 = tf.compat.v1


def build():
    number = tf1.train.range_input_producer(1200, num_epochs=1, shuffle=False).dequeue()
    return {"index": tf1.train.shuffle_batch([number], 8, 200, 100, seed=1)}


def dataset():
    return tf.data.Dataset.range(1200).map(lambda n: {"index": tf.cast(n, tf.int32)}).shuffle(150, seed=1).batch(8)


def test_topologies_and_mixing():
    report = tfqueue.compare(build, dataset)
    figures = figures_of(report, build, dataset)
    assert list(figures) == [
        "The pipeline of the reference",
        "The pipeline of the candidate",
        "How the records are mixed",
    ]
    assert pictures.words(figures["The pipeline of the candidate"])[0] == "Dataset of 4 steps"
    assert (
        pictures.words(figures["The pipeline of the reference"])[0] == "Pipeline of 2 queues, 0 readers and 2 threads"
    )
    assert "Source: the reference run without shuffling." in pictures.words(figures["How the records are mixed"])[1]


def test_pipelines_on_both_sides():
    report = tfqueue.compare([np.arange(3)], [np.arange(3)])
    figures = figures_of(report, tfqueue.QueuePipeline(build), tfqueue.QueuePipeline(build))
    assert list(figures) == ["The pipeline of the reference", "The pipeline of the candidate"]


def test_plain_streams_have_no_pipeline():
    batches = [{"index": np.arange(8)}]
    assert figures_of(tfqueue.compare(batches, batches), batches, batches) == {}


def test_in_a_page(tmp_path):
    report = tfqueue.compare(build, dataset)
    report.to_html(tmp_path / "r.html", figures=figures_of(report, build, dataset))
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert page.index("The pipeline of the reference</h2>") < page.index("How the records are mixed</h2>")
    assert page.count('<img class="plot"') == 3
    assert page.count('<a href="#figure-1">see the picture</a>') == 1
    assert page.count('<a href="#figure-2">see the picture</a>') == 1
    report.to_html(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text(encoding="utf-8").count('<img class="plot"') == 1


def test_a_page_says_of_which_side_nothing_is_known(tmp_path):
    batches = [{"index": np.arange(8)}]
    report = tfqueue.compare(batches, batches)
    report.to_html(tmp_path / "r.html", figures=figures_of(report, batches, batches))
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert page.count("not known: an iterable does not tell how it was made") == 2


def test_a_candidate_that_is_a_dataset_or_fails():
    batches = [{"index": np.arange(8)}]
    report = tfqueue.compare(batches, batches)

    def failing():
        raise KeyError("no such file")

    assert list(figures_of(report, batches, dataset())) == ["The pipeline of the candidate"]
    assert list(figures_of(report, dataset(), Returned(dataset))) == [
        "The pipeline of the reference",
        "The pipeline of the candidate",
    ]
    for candidate in (failing, lambda: iter(batches), "some.golden", None):
        assert figures_of(report, batches, candidate) == {}
    assert figures_of(report, failing, None) == {}
