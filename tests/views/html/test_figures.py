"""The figures of a report."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import tfqueue
from tests.views import pictures
from tfqueue import errors
from tfqueue.views.html.figures import figures_of

tf1 = tf.compat.v1


def build():
    number = tf1.train.range_input_producer(40, num_epochs=1, shuffle=False).dequeue()
    return {"index": tf1.train.batch([number], batch_size=8)}


def dataset():
    return tf.data.Dataset.range(40).map(lambda n: {"index": tf.cast(n, tf.int32)}).shuffle(40, seed=1).batch(8)


def test_topologies_and_mixing():
    figures = figures_of(build, dataset, key="index")
    assert list(figures) == ["The pipeline of the reference", "How the records are mixed"]
    assert (
        pictures.words(figures["The pipeline of the reference"])[0] == "Pipeline of 2 queues, 0 readers and 2 threads"
    )
    assert pictures.words(figures["How the records are mixed"])[0].startswith("Reference not shuffled, candidate mixed")


def test_pipelines_on_both_sides():
    figures = figures_of(tfqueue.QueuePipeline(build), tfqueue.QueuePipeline(build))
    assert list(figures) == ["The pipeline of the reference", "The pipeline of the candidate"]


def test_plain_streams_have_no_pipeline():
    batches = [{"index": np.arange(8)}]
    assert figures_of(batches, batches) == {}
    with pytest.raises(errors.InvalidArgument, match="key='number'"):
        figures_of(batches, batches, key="number")


def test_in_a_page(tmp_path):
    report = tfqueue.compare(build, dataset)
    report.to_html(tmp_path / "r.html", figures=figures_of(build, dataset, key="index"))
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert page.index("The pipeline of the reference</h2>") < page.index("How the records are mixed</h2>")
    assert page.count('<img class="plot"') == 2
