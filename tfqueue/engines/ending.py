"""Joins the threads of a run that has stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from tfqueue.consumers import look

_PATIENCE = 30.0


def join_all(threads: Sequence[threading.Thread], grace: float) -> list[threading.Thread]:
    """Join threads that nothing holds up any more but the op, or the Python function, that they are in.

    Args:
        threads: The threads.
        grace: Seconds that they have together while a function given to py_func runs, which may never end. Every
            other op ends by itself, and a thread that is in none only waits for its turn on a busy machine: they have
            half a minute.

    Returns:
        The threads that are still alive.
    """
    begun = time.monotonic()
    alive = list(threads)
    while alive:
        seconds = time.monotonic() - begun
        if seconds > _PATIENCE or (seconds >= grace and look(None).in_python_function):
            break
        alive[0].join(0.05 if seconds >= grace else min(0.05, grace - seconds))
        alive = [thread for thread in alive if thread.is_alive()]
    return alive
