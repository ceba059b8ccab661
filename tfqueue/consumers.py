"""Which Python threads are inside a step of a session, or run a queue runner, seen from outside.

A step cannot be asked how long it has been waiting, and must not be timed out: a dequeue of many that is cancelled
loses the records that it has collected. So the threads' stacks are looked at.
"""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import tensorflow as tf

_SESSION_FILE: str = tf.compat.v1.Session.run.__code__.co_filename
_PY_FUNC_FILE = "/tensorflow/python/ops/script_ops.py"


@dataclass(frozen=True, slots=True)
class Step:
    """A step that a thread is in.

    Attributes:
        call: An opaque number that stays the same while the call lasts.
        fetches: What the step fetches; None where that cannot be seen.
    """

    call: int
    fetches: Any = field(compare=False)


@dataclass(frozen=True, slots=True)
class Stacks:
    """What the threads of the process are doing, as far as one session is concerned.

    Attributes:
        in_session: The step of the session that each thread is in, by the thread's identifier.
        in_python_function: True when some thread runs a function given to py_func.
    """

    in_session: dict[int, Step]
    in_python_function: bool


def look(session: Any) -> Stacks:
    """Look at the stacks of all threads, once."""
    here = threading.get_ident()
    in_session: dict[int, Step] = {}
    in_python_function = False
    # The public name has an underscore because it is not for every day; this is the day it is for.
    for thread, top in sys._current_frames().items():
        if thread == here:
            continue
        frame: FrameType | None = top
        while frame is not None:
            filename = frame.f_code.co_filename
            if filename == _SESSION_FILE and frame.f_locals.get("self") is session:
                # The outermost call is the one that the user made, and `run` has the fetches as an argument.
                in_session[thread] = Step(id(frame), frame.f_locals.get("fetches"))
            elif filename.endswith(_PY_FUNC_FILE):
                in_python_function = True
            frame = frame.f_back
    return Stacks(in_session, in_python_function)


def coordinators_of(runner: Any) -> list[Any]:
    """The coordinators that the living threads of a queue runner ask, which the runner itself does not tell."""
    found: dict[int, Any] = {}
    for top in sys._current_frames().values():
        frame: FrameType | None = top
        while frame is not None:
            if frame.f_locals.get("self") is runner and frame.f_locals.get("coord") is not None:
                coord = frame.f_locals["coord"]
                found[id(coord)] = coord
            frame = frame.f_back
    return list(found.values())
