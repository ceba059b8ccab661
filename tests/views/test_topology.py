"""plot_topology: every node and every arrow of the pipeline, none twice."""

from __future__ import annotations

import pytest
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from tests.views import pictures
from tests.views.pipelines import joined, shuffled
from tfqueue import errors, views
from tfqueue.topology.explain import explain
from tfqueue.topology.model import Topology
from tfqueue.topology.trace import trace
from tfqueue.views.flow import STAGE, Step, draw_flow


def shapes(figure, kind):
    return [str(patch.get_label()) for patch in figure.axes[0].patches if isinstance(patch, kind)]


@pytest.mark.parametrize("build", [shuffled, joined])
def test_every_node_once_and_every_arrow(build):
    topology = trace(build)
    figure = views.plot_topology(topology)
    produced = {producer.name for producer in topology.producers}
    nodes = [node for node in topology.nodes if node in topology.producers or node.name not in produced]
    assert sorted(shapes(figure, FancyBboxPatch)) == sorted(node.name for node in nodes)
    expected = [f"{source.name} -> {node.name}" for node in nodes for source in topology.upstream(node)]
    assert sorted(shapes(figure, FancyArrowPatch)) == sorted(expected)


@pytest.mark.parametrize("build", [shuffled, joined])
def test_data_flows_downwards_and_nothing_overlaps(build):
    topology = trace(build)
    figure = views.plot_topology(topology)
    pictures.rendered(figure)
    boxes = {
        str(patch.get_label()): patch.get_extents()
        for patch in figure.axes[0].patches
        if isinstance(patch, FancyBboxPatch)
    }
    for name in shapes(figure, FancyArrowPatch):
        source, target = name.split(" -> ")
        assert boxes[source].y0 > boxes[target].y1
    placed = list(boxes.values())
    for number, one in enumerate(placed):
        assert not any(one.overlaps(other) for other in placed[number + 1 :])
    width, height = figure.canvas.get_width_height()
    assert all(box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= height for box in placed)


def test_what_a_person_needs_to_know_is_written():
    words = pictures.words(views.plot_topology(trace(shuffled)))
    assert words[0] == "Pipeline of 2 queues, 1 reader and 5 threads"
    for expected in (
        "RandomShuffle queue",
        "capacity 30, min_after_dequeue 10",
        "enqueue, 4 threads",
        "3 epochs, shuffled each epoch",
        "parse train/image, train/label",
        "dequeue_many 10",
        "a last partial batch is dropped",
    ):
        assert expected in words
    assert any(text.startswith("pipelines.py:") for text in words)


def test_an_explanation_is_taken_for_its_topology():
    explanation = explain(joined)
    assert pictures.words(views.plot_topology(explanation))[0] == "Pipeline of 2 queues, 3 readers and 4 threads"


def test_bad_input(tmp_path):
    with pytest.raises(errors.InvalidArgument, match="topology is a int; expected a Topology"):
        views.plot_topology(3)
    with pytest.raises(errors.InvalidArgument, match="empty"):
        views.plot_topology(Topology((), (), (), (), (), (), ()))
    with pytest.raises(errors.InvalidArgument, match="does not exist"):
        views.plot_topology(trace(joined), tmp_path / "no" / "t.png")


def test_a_notebook_shows_an_explanation():
    assert explain(joined)._repr_png_().startswith(b"\x89PNG")


def test_a_short_branch_stands_beside_the_end_of_a_long_one():
    def step(key, *sources):
        return Step(key, key, key, [], STAGE, [(source, "") for source in sources])

    steps = [step("a"), step("b", "a"), step("c", "b"), step("d", "c", "x"), step("x"), step("e", "d", "e")]
    figure = draw_flow(steps, "Flow", "", [])
    places = {patch.get_label(): patch.get_y() for patch in figure.axes[0].patches if hasattr(patch, "get_y")}
    assert places["x"] == places["c"]
    assert places["a"] < places["b"] < places["c"] < places["d"] < places["e"]
