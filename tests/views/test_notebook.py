"""What a notebook shows of the objects that people hold."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import tensorflow as tf

import tfqueue
from tests.views.html import reports
from tfqueue import views
from tfqueue.topology.model import Topology

tf1 = tf.compat.v1


def build():
    number = tf1.train.range_input_producer(40, num_epochs=1, shuffle=False).dequeue()
    return tf1.train.batch([number], batch_size=8)


def shown(png):
    picture = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)
    assert picture is not None
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 8
    return picture.shape


def test_a_pipeline_its_topology_and_its_accounts():
    pipeline = tfqueue.QueuePipeline(build)
    before = shown(pipeline._repr_png_())
    with pipeline:
        assert shown(pipeline._repr_png_()) == before
        assert replace(pipeline.stats, history=())._repr_png_() is None  # where no queue was looked at yet
        assert sum(1 for _ in pipeline) == 5
        assert shown(pipeline.topology._repr_png_()) == before
    shown(pipeline.stats._repr_png_())
    assert shown(tfqueue.explain(build)._repr_png_()) == before


def test_nothing_to_draw_is_no_picture():
    assert Topology((), (), (), (), (), (), ())._repr_png_() is None


def test_figures_and_reports():
    shown(views.show_batch(np.zeros((2, 8, 8, 3), np.uint8) + np.arange(8, dtype=np.uint8)[:, None] * 20)._repr_png_())
    html = reports.different()._repr_html_()
    assert html.startswith('<iframe sandbox="allow-scripts"')
