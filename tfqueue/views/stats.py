"""The accounts of a run as a picture: how full each queue was over time, and which stage was the slow one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from tfqueue.errors import InvalidArgument
from tfqueue.views import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tfqueue.stats import PipelineStats, QueueStats

_WIDTH, _HEIGHT, _LEFT = 8.0, 0.95, 0.62
_PITCH = _HEIGHT + 0.5
_FULL = 0.5


def plot_stats(stats: Any, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw how full each queue of a pipeline was over time, from source to sink.

    A stage that is slower than its neighbours has a full queue before it and an empty one behind it; the picture says
    which stage that is.

    Args:
        stats: ``pipeline.stats``, a `tfqueue.stats.PipelineStats`; or the pipeline itself.
        path: PNG file to write as well; its folder must exist.

    Returns:
        A matplotlib Figure with one Axes a queue.

    Raises:
        InvalidArgument: No queue was looked at yet, or ``path`` cannot be written.
    """
    target = style.check_path(path)
    found: Any = stats if hasattr(stats, "history") else getattr(stats, "stats", None)
    if not hasattr(found, "history"):
        raise InvalidArgument(f"stats is a {type(stats).__name__}; expected pipeline.stats")
    if not found.queues or not found.history:
        raise InvalidArgument("no queue has been looked at yet: let the pipeline run for a step, or to its end")
    figure = _draw(found)
    return style.save(figure, target, str(found))


def _draw(stats: PipelineStats) -> Figure:
    small = style.SMALL * style.POINT * style.LINE
    stages = _stage_lines(stats)
    below = len(stats.queues) * _PITCH + 0.25 + len(stages) * small
    figure, top = style.header(slow_stage(stats), _facts(stats), _alarms(stats), _LEFT + _WIDTH, below)
    at = np.array([seconds for seconds, _ in stats.history])
    sizes = np.array([row for _, row in stats.history])
    for number, queue in enumerate(stats.queues):
        left = style.MARGIN + _LEFT
        style.write(figure, left, top, queue.name, weight="bold", width=_WIDTH * 0.6)
        style.write(
            figure, left + _WIDTH, top + 0.02, _fill(queue), size=style.SMALL, colour=style.MUTED, align="right"
        )
        axes = style.plot_axes(figure, left, top + 0.2, _WIDTH, _HEIGHT - 0.2)
        axes.set_label(queue.name)
        _draw_queue(axes, queue, at, sizes[:, number], last=number == len(stats.queues) - 1)
        top += _PITCH
    for number, words in enumerate(stages):
        style.write(figure, style.MARGIN, top + 0.15 + number * small, words, size=style.SMALL, colour=style.MUTED)
    return figure


def _draw_queue(axes: Axes, queue: QueueStats, at: Any, sizes: Any, *, last: bool) -> None:
    axes.fill_between(at, 0, sizes, step="post", color=style.REFERENCE, alpha=0.25, linewidth=0)
    axes.plot(at, sizes, drawstyle="steps-post", color=style.REFERENCE, linewidth=1.1, marker="", linestyle="-")
    highest = queue.capacity or max(queue.fullest, 1)
    if queue.capacity is not None:
        axes.axhline(queue.capacity, color=style.MUTED, linewidth=0.8, linestyle=(0, (4, 3)), marker="")
    axes.set_ylim(0, highest * 1.06)
    axes.set_xlim(float(at.min()), max(float(at.max()), float(at.min()) + 1e-6))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    if last:
        axes.set_xlabel("seconds", fontproperties=style.font(style.SMALL), color=style.MUTED, labelpad=3)


def _fill(queue: QueueStats) -> str:
    if queue.capacity is None:
        return f"{queue.mean:.1f} elements on average, no capacity"
    return f"{queue.mean:.1f} of {queue.capacity:,} on average: {queue.mean / queue.capacity:.0%} full"


def slow_stage(stats: PipelineStats) -> str:
    """Which part of the pipeline the others wait for, from how full the queues were on average."""
    fill = [queue.mean / queue.capacity if queue.capacity else 0.0 for queue in stats.queues]
    full = [number for number, part in enumerate(fill) if part >= _FULL]
    if not full:
        return f"The slow part is the source: {stats.queues[0].name} is nearly empty"
    if full[-1] == len(fill) - 1:
        return "The pipeline keeps up: its last queue is full, the reader of the batches is slower"
    return f"The slow stage is the one that fills {stats.queues[full[-1] + 1].name}"


def _facts(stats: PipelineStats) -> str:
    records = "" if stats.delivered is None else f", {style.plural(stats.delivered, 'record')}"
    words = f"{style.plural(stats.steps, 'step')}{records}"
    if stats.steps:
        mean = 1000 * stats.step_seconds / stats.steps
        words += f"; waited {mean:.3g} ms a step, {1000 * stats.longest_step_seconds:.3g} ms at most"
    return f"{words}. The dashed line is the capacity of a queue."


def _alarms(stats: PipelineStats) -> list[str]:
    alarms = []
    if stats.dropped:
        alarms.append(f"{style.plural(stats.dropped, 'record')} dropped: {stats.dropped_why}.")
    if stats.fetched_elsewhere:
        alarms.append(f"{style.plural(stats.fetched_elsewhere, 'record')} fetched by another run of the fetches.")
    return alarms


def _stage_lines(stats: PipelineStats) -> list[str]:
    lines = []
    for stage in stats.stages:
        runs = style.plural(stage.runs, "epoch" if stage.epochs else "run")
        records = "" if stage.records is None else f", {style.plural(stage.records, 'element')}"
        source = f", {stage.source}" if stage.source else ""
        lines.append(f"{stage.name}: {style.plural(stage.threads, 'thread')}, {runs}{records}{source}")
    return lines
