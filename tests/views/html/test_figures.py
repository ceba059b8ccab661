"""The figures of a report."""

from __future__ import annotations

import pickle

import numpy as np
import tensorflow as tf

import tfqueue
from tests.views import pictures
from tfqueue.equivalence.streams import Returned
from tfqueue.topology.dataset import Unread
from tfqueue.views.html.figures import figures_of

tf1 = tf.compat.v1


def build():
    number = tf1.train.range_input_producer(1200, num_epochs=1, shuffle=False).dequeue()
    return {"index": tf1.train.shuffle_batch([number], 8, 200, 100, seed=1)}


def dataset():
    return tf.data.Dataset.range(1200).map(lambda n: {"index": tf.cast(n, tf.int32)}).shuffle(150, seed=1).batch(8)


def test_topologies_and_mixing():
    figures = figures_of(tfqueue.compare(build, dataset))
    assert list(figures) == [
        "How the records are mixed",
        "The pipeline of the reference",
        "The pipeline of the candidate",
    ]
    assert pictures.words(figures["The pipeline of the candidate"])[0] == "Dataset of 4 steps"
    assert (
        pictures.words(figures["The pipeline of the reference"])[0] == "Pipeline of 2 queues, 0 readers and 2 threads"
    )
    assert "Source: the reference run without shuffling." in pictures.words(figures["How the records are mixed"])[1]


def test_pipelines_on_both_sides():
    report = tfqueue.compare(tfqueue.QueuePipeline(build), tfqueue.QueuePipeline(build), max_records=40)
    assert list(figures_of(report))[-2:] == ["The pipeline of the reference", "The pipeline of the candidate"]


def test_plain_streams_have_no_pipeline():
    batches = [{"index": np.arange(8)}]
    assert figures_of(tfqueue.compare(batches, batches)) == {}


def test_a_page_has_them_without_being_asked(tmp_path):
    report = tfqueue.compare(build, dataset)
    report.to_html(tmp_path / "r.html", figures={"Mine": tfqueue.views.plot_mixing(np.arange(9))})
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert page.count('<section class="broad"') == 1
    headings = ["How the records are mixed", "The pipeline of the reference", "The pipeline of the candidate", "Mine"]
    places = [page.index(f"{heading}</h2>") for heading in headings]
    assert places == sorted(places)
    assert page.count('<img class="plot"') == 4
    assert page.count('<a href="#figure-2">see the picture</a>') == 1
    assert page.count('<a href="#figure-3">see the picture</a>') == 1


def test_a_page_says_of_which_side_nothing_is_known(tmp_path):
    batches = [{"index": np.arange(8)}]
    report = tfqueue.compare(batches, batches)
    report.to_html(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert page.count("not known: an iterable does not tell how it was made") == 2


def test_datasets_and_functions_that_return_them():
    batches = [{"index": np.arange(8)}]
    calls = []

    def counted():
        calls.append(1)
        return dataset()

    assert list(figures_of(tfqueue.compare(batches, dataset()))) == ["The pipeline of the candidate"]
    report = tfqueue.compare(dataset(), Returned(counted), max_records=8)
    made = len(calls)
    assert list(figures_of(report))[-2:] == ["The pipeline of the reference", "The pipeline of the candidate"]
    assert len(calls) == made  # drawing runs no code of the user's
    assert figures_of(tfqueue.compare(batches, lambda: iter(batches))) == {}


def test_a_side_that_fails_has_no_pipeline():
    def failing():
        raise KeyError("no such file")

    report = tfqueue.compare([{"index": np.arange(8)}], failing)
    assert report.candidate.ended == "error"
    assert figures_of(report) == {}


def test_a_report_is_pickled_with_its_pipelines(tmp_path):
    report = tfqueue.compare(build, dataset)
    assert "pipelines" not in report.to_dict()
    again = pickle.loads(pickle.dumps(report))
    assert again == report
    assert list(figures_of(again)) == list(figures_of(report))
    assert again.pipelines[0] == report.pipelines[0]
    assert again.pipelines[1].chain() == report.pipelines[1].chain() is not None


def test_a_dataset_is_read_once_and_not_kept(monkeypatch):
    unread = Unread(dataset())
    chain = unread.chain()
    assert chain is not None
    monkeypatch.setattr("tfqueue.topology.dataset.chain_of", None)
    assert unread.chain() is chain
    assert unread._dataset is None
