"""A progress bar on standard error for work that takes long; silent where nobody looks at a terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_REFRESH_SECONDS = 0.1


@contextmanager
def bar(description: str, total: int | None, *, progress: bool | None) -> Iterator[Callable[[int], None]]:
    """Shows how far a piece of work is, with its rate and the time left.

    Args:
        description: What is being done.
        total: How many steps there are, or None if that is unknown.
        progress: True or False to show it or not; None shows it if standard error is a terminal.

    Yields:
        A function to call with the number of steps just done; cheap enough to call for each record, from any thread.
    """
    shown = sys.stderr.isatty() if progress is None else progress
    if not shown:
        yield _ignore
        return
    # rich takes 0.1 s to import, which only a shown bar is worth.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:,.0f}/s")

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as display:
        task = display.add_task(description, total=total)
        pending = 0
        shown_at = time.monotonic()

        lock = threading.Lock()

        def advance(steps: int) -> None:
            nonlocal pending, shown_at
            with lock:
                pending += steps
                now = time.monotonic()
                if now - shown_at >= _REFRESH_SECONDS:
                    display.advance(task, pending)
                    pending, shown_at = 0, now

        yield advance
        display.advance(task, pending)


def _ignore(steps: int) -> None:
    """The bar that is not shown."""
