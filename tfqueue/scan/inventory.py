"""The inventory of a codebase: every use, every pipeline, every risk, with its place and the next step."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from tfqueue.scan.kinds import QUEUE_CODE

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a name that has to do with queue pipelines, or that is missing today.

    Attributes:
        path: The file.
        line: The line, from 1; in a notebook the line of the cell.
        cell: The number of the code cell, from 1; None for a file.
        kind: ``"producer"``, ``"reader"``, ``"batch"``, ``"provider"`` (tf_slim), ``"queue"``, ``"runner"``,
            ``"coordinator"``, ``"session"``, ``"parse"``, ``"library"`` (of custom ops), or ``"missing"``.
        name: The name in full, ``"tf.train.batch"``.
        function: The function that it stands in; empty for the module itself.
        missing: None where TensorFlow still has the name as tf.compat.v1; ``"restored"`` where tfqueue.compat.v1 gives
            it back; ``"gone"``.
        next_step: What to write today; may be empty.
    """

    path: str
    line: int
    cell: int | None
    kind: str
    name: str
    function: str
    missing: str | None
    next_step: str


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One pipeline, as far as the source tells: the batch op (or dequeue) at its end and what stands before it.

    Attributes:
        path, line, cell: Where its end is written.
        function: The function that this stands in.
        stages: The names of its stages, from the source: a guess, made from what the function uses and calls.
        threads: The number of threads, where it is written as a number.
    """

    path: str
    line: int
    cell: int | None
    function: str
    stages: tuple[str, ...]
    threads: int | None

    def __str__(self) -> str:
        return " -> ".join(stage.removeprefix("tf.").removeprefix("train.") for stage in self.stages)


@dataclass(frozen=True, slots=True)
class Risk:
    """Something that often goes wrong, now or on the way to tf.data.

    Attributes:
        path, line, cell: Where.
        code: A stable name for programs, such as ``"paired-producers"``.
        message: What it is, and what to do.
    """

    path: str
    line: int
    cell: int | None
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A source that could not be read.

    Attributes:
        path, line, cell: Where.
        message: Why not.
    """

    path: str
    line: int
    cell: int | None
    message: str


@dataclass(frozen=True, slots=True)
class Inventory:
    """What was found.

    Attributes:
        files: How many sources were looked at.
        uses: Every use, by file and line.
        pipelines: The pipelines.
        risks: What often goes wrong.
        python2: The files that are Python 2, with how many places are to be mended.
        problems: The sources that could not be read.
    """

    files: int
    uses: tuple[Use, ...]
    pipelines: tuple[Pipeline, ...]
    risks: tuple[Risk, ...]
    python2: tuple[tuple[str, int], ...]
    problems: tuple[Problem, ...]

    @property
    def queue_code(self) -> tuple[Use, ...]:
        """The uses that are queue-runner code."""
        return tuple(use for use in self.uses if use.kind in QUEUE_CODE)

    @property
    def exit_code(self) -> int:
        """0: no queue code is left; 1: there is some; 2: that cannot be said, since a source could not be read."""
        if self.queue_code:
            return 1
        return 2 if self.problems else 0

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data for JSON; ``schema`` is the version of this form.

        The keys are the attributes of this class and of the classes in it; ``queue_code`` is the number of uses that
        are queue-runner code, ``exit_code`` that of ``tfqueue scan``.
        """
        found = asdict(self)
        found["python2"] = [{"path": path, "places": places} for path, places in self.python2]
        return {"schema": SCHEMA_VERSION, "queue_code": len(self.queue_code), "exit_code": self.exit_code, **found}

    def __str__(self) -> str:
        from tfqueue.scan.text import table

        return table(self)
