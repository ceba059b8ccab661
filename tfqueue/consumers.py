"""Which Python threads are inside a step of a session, or run a queue runner, seen from outside.

A step cannot be asked how long it has been waiting, and must not be timed out: a dequeue of many that is cancelled
loses the records that it has collected. So the threads' stacks are looked at.
"""

from __future__ import annotations

import gc
import inspect
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Any

import tensorflow as tf

# Not that of `Session.run`, which some other library may have replaced before.
_SESSION_FILE: str = inspect.getfile(tf.compat.v1.Session)
_PY_FUNC_FILE = "/tensorflow/python/ops/script_ops.py"

_SUMMARIES = "tensorflow.python.summary."
# What starts threads of its own in a process without being part of the program.
_BESIDE = frozenset({"IPython", "debugpy", "execnet", "ipykernel", "jupyter_client", "psutil", "pydevd", "rich"})
_BESIDE |= {"_pydevd_bundle", "pytest_timeout", "tornado", "tqdm", "xdist", "zmq"}


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
        of_runners: The name of the op (``""`` where it cannot be seen) that each thread of the queue runners asked for
            runs, by the thread's identifier.
        in_python_function: True when some thread runs a function given to py_func.
    """

    in_session: dict[int, Step]
    of_runners: dict[int, str]
    in_python_function: bool


def look(session: Any, runners: Sequence[Any] = ()) -> Stacks:
    """Look at the stacks of all threads, once.

    Args:
        session: The session whose steps are looked for.
        runners: Queue runners whose threads are looked for.
    """
    here = threading.get_ident()
    in_session: dict[int, Step] = {}
    of_runners: dict[int, str] = {}
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
            if runners and any(frame.f_locals.get("self") is runner for runner in runners):
                of_runners[thread] = str(getattr(frame.f_locals.get("enqueue_op"), "name", ""))
            frame = frame.f_back
    return Stacks(in_session, of_runners, in_python_function)


def may_feed(thread: int) -> bool:
    """Whether a Python thread, seen by its stack, runs code that could put something into a queue.

    A thread of the user's has a function of the user's on its stack. One that shows the standard library only (a
    timer, an idle worker of a pool), or what runs beside a program (a notebook's kernel, a debugger, a progress bar, a
    distributor of tests, a writer of summaries), is not what a starved queue waits for.
    """
    frame: FrameType | None = sys._current_frames().get(thread)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        top = module.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in _BESIDE and not module.startswith(_SUMMARIES):
            return True
        frame = frame.f_back
    return False


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


def raised_in(runner: Any, session: Any) -> tuple[Any, Exception] | None:
    """The coordinator that has the error of a thread of a queue runner in a session, and the error; None without one.

    The thread has ended, and its coordinator is known to nobody but who made it. So all coordinators of the process are
    looked at, which takes some milliseconds; the traceback of an error tells which runner raised it, in which session.
    """
    for found in gc.get_objects():
        if not issubclass(type(found), tf.compat.v1.train.Coordinator):
            continue
        try:
            found.raise_requested_exception()
        except Exception as error:  # noqa: BLE001 - whatever a thread of the runner has raised
            if _passed_through(error.__traceback__, runner, session):
                return found, error
    return None


def _passed_through(traceback: TracebackType | None, runner: Any, session: Any) -> bool:
    while traceback is not None:
        values = traceback.tb_frame.f_locals
        if values.get("self") is runner and any(value is session for value in values.values()):
            return True
        traceback = traceback.tb_next
    return False
