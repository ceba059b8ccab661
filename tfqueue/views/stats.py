"""The accounts of a run as a picture: how long steps waited, how full each queue was, and which stage was slow."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from tfqueue.errors import InvalidArgument
from tfqueue.views import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tfqueue.stats import PipelineStats, QueueStats, StepsStats

_WIDTH, _HEIGHT, _LEFT = 8.0, 0.95, 0.62
_PITCH = _HEIGHT + 0.5
_FULL = 0.5
# Fewer looks at the queues, one about every half second, tell nothing.
_LOOKS = 3


def plot_stats(stats: Any, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw how long the steps of a pipeline waited, and how full each queue was over time, from source to sink.

    A stage that is slower than its neighbours has a full queue before it and an empty one behind it; the picture says
    which stage that is.

    Args:
        stats: ``pipeline.stats``, a `tfqueue.stats.PipelineStats`; or the pipeline itself.
        path: PNG file to write as well; its folder must exist.

    Returns:
        A matplotlib Figure with one Axes for the steps (where any were iterated), and one for each queue (once they
        were looked at, which is done about every half second and at the end).

    Raises:
        InvalidArgument: No step was iterated and no queue was looked at yet, or ``path`` cannot be written.
    """
    target = style.check_path(path)
    found: Any = stats if hasattr(stats, "history") else getattr(stats, "stats", None)
    if not hasattr(found, "history"):
        raise InvalidArgument(f"stats is a {type(stats).__name__}; expected pipeline.stats")
    if not (found.queues and found.history) and not found.step_history:
        raise InvalidArgument(
            "there is nothing to draw yet: no step was iterated, and the queues are looked at about every half second; "
            "let the pipeline run longer, or to its end"
        )
    figure = _draw(found)
    return style.save(figure, target, str(found))


def _draw(stats: PipelineStats) -> Figure:
    small = style.SMALL * style.POINT * style.LINE
    stages = _stage_lines(stats)
    plots: list[tuple[str, str, Callable[[Axes], None]]] = []
    if stats.step_history:
        plots.append(
            ("waited for a step, milliseconds", _waiting(stats), partial(_draw_steps, steps=stats.step_history))
        )
    at = np.array([seconds for seconds, _ in stats.history])
    sizes = np.array([row for _, row in stats.history])
    for number, queue in enumerate(stats.queues if stats.history else ()):
        plots.append((queue.name, _fill(queue), partial(_draw_queue, queue=queue, at=at, sizes=sizes[:, number])))
    below = len(plots) * _PITCH + 0.25 + len(stages) * small
    figure, top = style.header(slow_stage(stats), _facts(stats), _alarms(stats), _LEFT + _WIDTH, below)
    left = style.MARGIN + _LEFT
    end = max([float(at.max(initial=0)), *(group.at for group in stats.step_history)]) or 1e-6
    for number, (name, words, draw) in enumerate(plots):
        style.write(figure, left, top, name, weight="bold", width=_WIDTH * 0.6)
        style.write(figure, left + _WIDTH, top + 0.02, words, size=style.SMALL, colour=style.MUTED, align="right")
        axes = style.plot_axes(figure, left, top + 0.2, _WIDTH, _HEIGHT - 0.2)
        axes.set_label(name)
        draw(axes)
        axes.set_xlim(0, end)
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        if number == len(plots) - 1:
            axes.set_xlabel("seconds", fontproperties=style.font(style.SMALL), color=style.MUTED, labelpad=3)
        top += _PITCH
    for number, words in enumerate(stages):
        style.write(figure, style.MARGIN, top + 0.15 + number * small, words, size=style.SMALL, colour=style.MUTED)
    return figure


def _draw_steps(axes: Axes, steps: Sequence[StepsStats]) -> None:
    """The mean of each group of steps as a line, the longest of it as a shade above."""
    at = [0.0, *(group.at for group in steps)]
    mean = [1000 * group.seconds / group.steps for group in steps]
    longest = [1000 * group.longest for group in steps]
    # What a group waited holds for the time up to its end.
    axes.fill_between(at, 0, [longest[0], *longest], step="pre", color=style.CANDIDATE, alpha=0.25, linewidth=0)
    axes.plot(
        at, [mean[0], *mean], drawstyle="steps-pre", color=style.CANDIDATE, linewidth=1.1, marker="", linestyle="-"
    )
    # The first steps wait for the queues to fill; they would make all others look flat.
    settled = longest[1:] if len(longest) > _LOOKS else longest
    axes.set_ylim(0, max(*settled, *mean[1:], 1e-3) * 1.06)
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))


def _draw_queue(axes: Axes, queue: QueueStats, at: Any, sizes: Any) -> None:
    marker = "o" if len(at) < _LOOKS else ""
    axes.fill_between(at, 0, sizes, step="post", color=style.REFERENCE, alpha=0.25, linewidth=0)
    axes.plot(
        at, sizes, drawstyle="steps-post", color=style.REFERENCE, linewidth=1.1, marker=marker, markersize=4,
        linestyle="-", clip_on=not marker,
    )  # fmt: skip
    highest = queue.capacity or max(queue.fullest, 1)
    if queue.capacity is not None:
        axes.axhline(queue.capacity, color=style.MUTED, linewidth=0.8, linestyle=(0, (4, 3)), marker="")
    if queue.min_after_dequeue:
        axes.axhline(queue.min_after_dequeue, color=style.MUTED, linewidth=0.8, linestyle=(0, (1, 2)), marker="")
    axes.set_ylim(0, highest * 1.06)
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def _waiting(stats: PipelineStats) -> str:
    mean = stats.step_seconds / max(stats.steps, 1)
    words = f"{_milliseconds(mean)} on average, {_milliseconds(stats.longest_step_seconds)} at most"
    last = stats.step_history[-1].at
    return f"{words}: {min(1.0, stats.step_seconds / last):.0%} of the time" if last else words


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.0f} ms" if seconds >= 0.1 else f"{1000 * seconds:.3g} ms"


def _fill(queue: QueueStats) -> str:
    if queue.capacity is None:
        return f"{queue.mean:.1f} elements on average, no capacity"
    words = f"{queue.mean:.1f} of {queue.capacity:,} on average: {queue.mean / queue.capacity:.0%} full"
    return f"{words}, dotted: min_after_dequeue {queue.min_after_dequeue:,}" if queue.min_after_dequeue else words


def slow_stage(stats: PipelineStats) -> str:
    """Which part of the pipeline the others wait for, from how full the queues mostly were."""
    looks = [sizes for _, sizes in stats.history]
    if stats.ended:
        looks = looks[:-1]  # in the last one all data had been delivered
    if len(looks) < _LOOKS:
        return "The run was too short to say which part is slow"
    typical = np.median(np.array(looks), axis=0)
    made = {stage.queue for stage in stats.stages if stage.epochs} - {s.queue for s in stats.stages if not s.epochs}
    full = [
        number
        for number, queue in enumerate(stats.queues)
        # A producer makes names and numbers in no time; its queue is empty only after the last of them.
        if queue.name in made or _part(queue, float(typical[number])) >= _FULL
    ]
    if not full:
        return f"The slow part is the source: {stats.queues[0].name} is nearly empty"
    if full[-1] == len(stats.queues) - 1:
        return "The pipeline keeps up: its last queue is full, the reader of the batches is slower"
    return f"The slow stage is the one that fills {stats.queues[full[-1] + 1].name}"


def _part(queue: QueueStats, size: float) -> float:
    """How full a queue is, of the room above what a shuffling queue keeps back in any case."""
    room = (queue.capacity or 0) - queue.min_after_dequeue
    return (size - queue.min_after_dequeue) / room if room > 0 else 0.0


def _facts(stats: PipelineStats) -> str:
    records = "" if stats.delivered is None else f", {style.plural(stats.delivered, 'record')}"
    return f"{style.plural(stats.steps, 'step')}{records}. The dashed line is the capacity of a queue."


def _alarms(stats: PipelineStats) -> list[str]:
    alarms = []
    if not stats.history:
        alarms.append("The queues were not looked at yet: that is done about every half second.")
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
