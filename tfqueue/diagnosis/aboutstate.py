"""Advice on state: what was not initialised, Python functions, memory, assertions."""

from __future__ import annotations

import re
from math import prod
from typing import NamedTuple

from tfqueue.diagnosis.evidence import Evidence
from tfqueue.diagnosis.paths import about_missing_path
from tfqueue.topology.subgraph import user_line

Match = re.Match[str]

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_INSTALLED = re.compile(r"[/\\\\](?:site-packages|dist-packages)[/\\\\]|[/\\\\]lib[/\\\\]python\d")
_BYTES = {"float": 4, "double": 8, "int32": 4, "int64": 8, "half": 2, "bfloat16": 2, "int16": 2, "uint16": 2}


def epochs(match: Match, evidence: Evidence) -> str:
    return (
        "the epoch counter is a local variable and was not initialised: run tf.local_variables_initializer() before "
        "the runners start (QueuePipeline and queue_runners do)"
    )


def variable(match: Match, evidence: Evidence) -> str:
    return (
        f"the variable {match.group(1)!r} has no value: initialise or restore it before the runners start "
        f"(QueuePipeline: init_fn=, called with the session)"
    )


def table(match: Match, evidence: Evidence) -> str:
    return (
        "a lookup table has no content: run tf.tables_initializer() before the runners start "
        "(QueuePipeline does, for tables in the TABLE_INITIALIZERS collection)"
    )


def placeholder(match: Match, evidence: Evidence) -> str:
    return (
        f"the placeholder {match.group(1)!r} lies before a queue, and a queue runner feeds nothing: feed the enqueue "
        f"op from a thread of your own (session.run(enqueue, feed_dict=...)), or use a constant or a variable"
    )


def python(match: Match, evidence: Evidence) -> str:
    name, text = match.group(1), (match.group(2) or "").strip()
    evidence.headline = f"{name}: {text}" if text else name
    where = user_frame(match.string)
    if where is not None:
        evidence.details.append(f"raised at: {where}")
    missing = re.search(r"No such file or directory: '(.+?)'", text)
    if missing is not None:
        return f"the Python function opens a file that is not there; {about_missing_path(missing.group(1))}"
    if evidence.place.payload is not None or evidence.place.element is not None:
        return f"the Python function raised {name} on this record: mend the record, or catch the error in the function"
    return f"the Python function raised {name}: catch it there, or leave out the record that it was given"


def user_frame(text: str) -> str | None:
    """The user's own innermost line in a printed traceback, ``"file.py:87 in load"``; None when there is none."""
    frames = [Frame(name, int(line), function) for name, line, function in _FRAME.findall(text)]
    # First without installed packages: the line of the user that called numpy says more than numpy's.
    own = [frame for frame in frames if not _INSTALLED.search(frame.filename)]
    return user_line(own) or user_line(frames)


class Frame(NamedTuple):
    """One frame of a printed traceback."""

    filename: str
    lineno: int
    name: str


def python_count(match: Match, evidence: Evidence) -> str:
    return (
        f"the function returned {match.group(1)} values, its Tout lists {match.group(2)}: return one value, or a tuple "
        f"of values, for each type in Tout"
    )


def python_type(match: Match, evidence: Evidence) -> str:
    return f"py_func returned {match.group(2)}, but its Tout says {match.group(3)}: convert with numpy before returning"


def memory(match: Match, evidence: Evidence) -> str:
    shape = re.search(r"tensor with shape\[([\d,]*)\] and type (\w+)", match.string)
    if shape is None:
        return (
            "memory is at its end: lower the capacity and min_after_dequeue of the queues, or shuffle the serialized "
            "records before they are decoded"
        )
    dimensions = [int(number) for number in shape.group(1).split(",") if number]
    size = prod(dimensions) * _BYTES.get(shape.group(2), 1)
    return (
        f"a tensor of shape {dimensions} needs {size / 1e9:,.1f} GB: is a size read from the record wrong? If the size "
        f"is right, lower the capacity and min_after_dequeue of the queues, or make the batch smaller"
    )


def assertion(match: Match, evidence: Evidence) -> str:
    return "an assertion of the graph failed; its message and data stand above"


def index(match: Match, evidence: Evidence) -> str:
    producers = evidence.topology.producers if evidence.topology else ()
    lengths = {t.shape[0] for p in producers for t in p.sliced if t.shape and t.shape[0] is not None}
    if len(lengths) > 1:
        return (
            f"the tensors given to slice_input_producer have {' and '.join(map(str, sorted(lengths)))} rows: "
            f"they must have the same number"
        )
    return "an index lies outside of the tensor: is a label as large as the number of classes, or does it count from 1?"


def capacity(match: Match, evidence: Evidence) -> str:
    return "set capacity to min_after_dequeue + (number of threads + a few) * batch_size"
