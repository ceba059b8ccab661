"""plot_stats: the sizes that were seen, and the stage that the others wait for."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

import tfqueue
from tests.views import pictures
from tfqueue import errors, views
from tfqueue.stats import PipelineStats, QueueStats, StageStats, StepsStats
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


def waited(*seconds, at=0.5, steps=1):
    return tuple(StepsStats(at * (n + 1), steps, part, part) for n, part in enumerate(seconds))


def test_the_waiting_of_the_steps_is_drawn_over_the_queues():
    found = stats(
        90, 5, step_history=waited(2.0, 0.1, 0.3, 0.1, 0.2), steps=5, step_seconds=2.7, longest_step_seconds=2.0
    )
    figure = views.plot_stats(found)
    axes = figure.axes[0]
    assert axes.get_label() == "waited for a step, milliseconds"
    np.testing.assert_allclose(axes.lines[0].get_xdata(), [0, 0.5, 1, 1.5, 2, 2.5])
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [2000, 2000, 100, 300, 100, 200])
    # The first step, in which the queues fill, does not set the scale.
    assert 300 < axes.get_ylim()[1] < 400
    assert len({part.get_xlim() for part in figure.axes}) == 1
    assert "540 ms on average, 2,000 ms at most: 100% of the time" in pictures.words(figure)


def test_a_shuffling_queue_at_its_minimum_is_an_empty_one():
    found = stats(90, 79)
    starved = dataclasses.replace(found.queues[1], min_after_dequeue=78)
    words = slow_stage(dataclasses.replace(found, queues=(found.queues[0], starved)))
    assert words == "The slow stage is the one that fills queue_1"
    figure = views.plot_stats(dataclasses.replace(found, queues=(found.queues[0], starved)))
    assert [set(line.get_ydata()) for line in figure.axes[1].lines[1:]] == [{100}, {78}]


def test_a_producer_that_has_made_all_its_names_is_not_slow():
    found = stats(0, 0)
    producer = dataclasses.replace(found.stages[0], name="names", queue="queue_0", epochs=True)
    stage = dataclasses.replace(found.stages[0], queue="queue_1")
    words = slow_stage(dataclasses.replace(found, stages=(producer, stage)))
    assert words == "The slow stage is the one that fills queue_1"


def test_a_run_of_one_look_is_too_short_to_say():
    found = stats(0, 0)
    short = dataclasses.replace(found, history=found.history[-1:])
    assert slow_stage(short) == "The run was too short to say which part is slow"
    assert views.plot_stats(short).axes[0].lines[0].get_marker() == "o"


def test_what_is_written():
    words = pictures.words(views.plot_stats(stats(90, 10, dropped=7, dropped_why="the last batch would not be full")))
    assert words[1].startswith("20 steps, 640 records. The dashed line")
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
    assert len(figure.axes) == 3
    assert pictures.words(figure)[1].startswith("5 steps, 40 records")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_steps_before_the_first_look_at_the_queues():
    found = stats(90, 40, history=(), step_history=(StepsStats(0.1, 1, 0.05, 0.05), StepsStats(0.2, 1, 0.01, 0.01)))
    figure = views.plot_stats(found)
    assert [axes.get_label() for axes in figure.axes] == ["waited for a step, milliseconds"]
    words = pictures.words(figure)
    assert words[0] == "The run was too short to say which part is slow"
    assert words[2] == "The queues were not looked at yet: that is done about every half second."


def test_bad_input():
    with pytest.raises(errors.InvalidArgument, match=r"stats is a int; expected pipeline\.stats"):
        views.plot_stats(5)
    with pytest.raises(errors.InvalidArgument, match="nothing to draw yet: no step was iterated"):
        views.plot_stats(stats())
