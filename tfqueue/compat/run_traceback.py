"""The traceback of a program that is run unmodified: as plain Python shows it, without the frames of tfqueue."""

from __future__ import annotations

import os
import re
import traceback
from types import TracebackType

from tfqueue.errors import TFQueueError

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# Frames in a text: TensorFlow repeats in its messages where an op was made.
_FRAME = re.compile(r'^( *)File "(?P<file>[^"]+)", line \d+, in [^\n]*\n(?:\1  [^\n]*\n)?', re.MULTILINE)


def program_traceback(error: BaseException) -> str:
    """The text that plain Python would print for an exception that left the program."""
    told = traceback.TracebackException(type(error), error, error.__traceback__, compact=True)
    seen: set[int] = set()
    _strip(told, error, seen)
    # A source that could not be parsed has no frames, and plain Python prints none of a traceback then.
    lines = told.format() if told.stack else told.format_exception_only()
    return _FRAME.sub(_without_ours, "".join(lines))


def line_of(error: BaseException) -> str | None:
    """The innermost line of the program that an exception came through, ``"train.py:12 in main"``."""
    found = None
    frame: TracebackType | None = error.__traceback__
    while frame is not None:
        name = frame.tb_frame.f_code.co_filename
        if not (name.startswith((_PACKAGE, "<frozen")) or f"{os.sep}site-packages{os.sep}" in name):
            found = f"{os.path.basename(name)}:{frame.tb_lineno} in {frame.tb_frame.f_code.co_name}"
        frame = frame.tb_next
    return found


def _strip(told: traceback.TracebackException, error: BaseException | None, seen: set[int]) -> None:
    if id(told) in seen:
        return
    seen.add(id(told))
    kept = [frame for frame in told.stack if not _is_ours(frame.filename)]
    told.stack = traceback.StackSummary.from_list(kept)
    # What says itself what the cause was.
    if isinstance(error, TFQueueError) or isinstance(error and error.__cause__, TFQueueError):
        told.__cause__ = told.__context__ = None
        return
    for inner, of in ((told.__cause__, error and error.__cause__), (told.__context__, error and error.__context__)):
        if inner is not None:
            _strip(inner, of, seen)


def _is_ours(filename: str) -> bool:
    inside = filename.startswith(_PACKAGE) and not filename.startswith(os.path.join(_PACKAGE, "demo"))
    return inside or filename.startswith("<frozen runpy") or os.path.basename(filename) == "tfqueue"


def _without_ours(match: re.Match[str]) -> str:
    return "" if _is_ours(match["file"]) else match.group()
