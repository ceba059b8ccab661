"""plot_stats: the sizes that were seen, and the stage that the others wait for."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import tfqueue
from tests.views import pictures
from tfqueue import errors, views
from tfqueue.stats import PipelineStats, QueueStats, StageStats
from tfqueue.views.stats import slow_stage

tf1 = tf.compat.v1


def stats(*means, capacity=100, **changes):
    queues = tuple(QueueStats(f"queue_{n}", capacity, 0, int(mean), mean) for n, mean in enumerate(means))
    rng = np.random.default_rng(0)
    history = tuple((0.5 * n, tuple(int(m + rng.integers(-3, 4)) for m in means)) for n in range(40))
    stage = StageStats("batch/enqueue", "queue_0", 2, 2, 640, 640, False, "train.py:12 in build")
    values = {
        "steps": 20,
        "delivered": 640,
        "ended": True,
        "dropped": 0,
        "dropped_why": None,
        "fetched_elsewhere": 0,
        "step_seconds": 2.0,
        "longest_step_seconds": 0.5,
        "stages": (stage,),
        "queues": queues,
        "history": history,
    }
    return PipelineStats(**{**values, **changes})


def test_every_queue_has_its_line():
    found = stats(90, 40, 5)
    figure = views.plot_stats(found)
    assert [axes.get_label() for axes in figure.axes] == ["queue_0", "queue_1", "queue_2"]
    for number, axes in enumerate(figure.axes):
        np.testing.assert_array_equal(axes.lines[0].get_xdata(), [at for at, _ in found.history])
        np.testing.assert_array_equal(axes.lines[0].get_ydata(), [sizes[number] for _, sizes in found.history])
        assert set(axes.lines[1].get_ydata()) == {100}


@pytest.mark.parametrize(
    ("means", "words"),
    [
        ((90, 5, 3), "The slow stage is the one that fills queue_1"),
        ((90, 80, 3), "The slow stage is the one that fills queue_2"),
        ((90, 80, 99), "The pipeline keeps up"),
        ((2, 1, 0), "The slow part is the source: queue_0 is nearly empty"),
    ],
)
def test_the_slow_stage_has_a_full_queue_before_and_an_empty_one_behind_it(means, words):
    assert slow_stage(stats(*means)).startswith(words)


def test_what_is_written():
    words = pictures.words(views.plot_stats(stats(90, 10, dropped=7, dropped_why="the last batch would not be full")))
    assert words[1].startswith("20 steps, 640 records; waited 100 ms a step, 500 ms at most.")
    assert "7 records dropped: the last batch would not be full." in words
    assert "90.0 of 100 on average: 90% full" in words
    assert "batch/enqueue: 2 threads, 640 runs, 640 elements, train.py:12 in build" in words


def test_a_queue_without_capacity():
    words = pictures.words(views.plot_stats(stats(5, capacity=None)))
    assert "5.0 elements on average, no capacity" in words


def test_a_real_run(tmp_path):
    def build():
        number = tf1.train.range_input_producer(40, num_epochs=1, shuffle=False).dequeue()
        return tf1.train.batch([number], batch_size=8)

    with tfqueue.QueuePipeline(build) as pipeline:
        for _ in pipeline:
            pass
    path = tmp_path / "stats.png"
    figure = views.plot_stats(pipeline.stats, path)
    assert len(figure.axes) == 2
    assert pictures.words(figure)[1].startswith("5 steps, 40 records")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_bad_input():
    with pytest.raises(errors.InvalidArgument, match=r"stats is a int; expected pipeline\.stats"):
        views.plot_stats(5)
    with pytest.raises(errors.InvalidArgument, match="no queue has been looked at yet"):
        views.plot_stats(stats())
