"""The inventory of a codebase: every use, every pipeline, every risk, with its place and the next step."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from tfqueue.errors import InvalidArgument
from tfqueue.scan.kinds import QUEUE_CODE, kind_of, missing, next_step
from tfqueue.scan.resolve import Reference, Resolved, resolve, with_callees
from tfqueue.scan.sources import Source, find, read

SCHEMA_VERSION = 1
_SINKS = ("batch", "provider")
_SOURCES = ("producer", "provider")
_CHAIN = ("producer", "provider", "reader", "python", "parse", "decode", "image", "queue", "batch")


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


def scan(path: str | PathLike[str]) -> Inventory:
    """Take the inventory of a folder, a Python file or a notebook. Nothing is imported or executed.

    Args:
        path: The folder, which is searched with all folders below it, or the one file.

    Raises:
        InvalidArgument: There is no such path, or the file is no Python source or notebook.
    """
    root = Path(path)
    if not root.exists():
        raise InvalidArgument(f"there is no file or folder {root} (current folder: {Path.cwd()})")
    if root.is_file() and root.suffix not in (".py", ".ipynb"):
        raise InvalidArgument(f"{root} is neither a Python source (.py) nor a notebook (.ipynb)")
    files = 0
    sources: list[tuple[Source, Resolved]] = []
    problems: list[Problem] = []
    for file in find(root):
        files += 1
        source = read(file)
        if source is None:
            continue
        if source.problem is not None:
            line, cell = _place(source, source.problem[0])
            problems.append(Problem(str(file), line, cell, source.problem[1]))
        if source.tree is not None:
            sources.append((source, resolve(source.tree)))
    from tfqueue.scan.risks import risks_of

    uses = [use for source, resolved in sources for use in _uses(source, resolved)]
    return Inventory(
        files=files,
        uses=tuple(uses),
        pipelines=tuple(p for source, resolved in sources for p in _pipelines(source, resolved)),
        risks=tuple(risks_of(sources)),
        python2=tuple((str(source.path), len(source.python2)) for source, _ in sources if source.python2),
        problems=tuple(problems),
    )


def _place(source: Source, line: int) -> tuple[int, int | None]:
    """The line to tell, and the cell of a notebook."""
    if source.lines and 0 < line <= len(source.lines):
        cell, inner = source.lines[line - 1]
        return inner, cell
    return line, None


def _uses(source: Source, resolved: Resolved) -> Iterator[Use]:
    for reference in resolved.references:
        kind = kind_of(reference.name)
        row = missing(reference.name)
        if kind in ("image", "decode", "python") or (reference.imported and kind is not None):
            kind = None
        if kind is None and row is None:
            continue
        line, cell = _place(source, reference.line)
        shown = kind or "missing"
        yield Use(
            path=str(source.path),
            line=line,
            cell=cell,
            kind=shown,
            name=reference.name,
            function=reference.function,
            missing=None if row is None else "gone" if row.kind == "gone" else "restored",
            next_step=next_step(reference.name, shown),
        )


def _pipelines(source: Source, resolved: Resolved) -> Iterator[Pipeline]:
    for reference in resolved.references:
        kind = kind_of(reference.name)
        if reference.call is None or not (kind in _SINKS or _is_last_dequeue(reference)):
            continue
        if kind == "provider" and not reference.name.endswith(("DatasetDataProvider", "parallel_read")):
            continue
        line, cell = _place(source, reference.line)
        threads = reference.argument("num_threads")
        yield Pipeline(
            path=str(source.path),
            line=line,
            cell=cell,
            function=reference.function,
            stages=tuple(_stages(resolved, reference)),
            threads=threads.value if isinstance(threads, ast.Constant) and isinstance(threads.value, int) else None,
        )


def _is_last_dequeue(reference: Reference) -> bool:
    return (
        "()." in reference.name
        and reference.name.rpartition(".")[2].startswith("dequeue")
        and (kind_of(reference.name) == "queue")
    )


def _stages(resolved: Resolved, end: Reference) -> Iterator[str]:
    """The stages of the pipeline that ends here: what its function, and those that it calls, use before."""
    functions = scope_of(resolved, end.function)
    told: set[str] = set()
    members = [r for r in resolved.references if r.function in functions and not r.imported]
    for kind in _CHAIN:
        for reference in members:
            name = reference.name
            if reference is end or kind_of(name) != kind or "()." in name or name in told:
                continue
            if kind in ("batch", "provider", "queue") and (reference.line > end.line or kind == kind_of(end.name)):
                continue
            told.add(name)
            yield name
    yield end.name.replace("().", ".")


def scope_of(resolved: Resolved, function: str) -> set[str]:
    """The functions that belong to this one: those it calls; where no source is among them, those of a caller."""
    seen: set[str] = set()
    pending = [function]
    while pending:
        current = pending.pop(0)
        if current in seen:
            continue
        seen.add(current)
        group = set(with_callees(resolved, current))
        if any(r.function in group and kind_of(r.name) in _SOURCES for r in resolved.references):
            return group
        last = current.rpartition(".")[2]
        pending += [caller for caller, called in resolved.calls.items() if last in called]
    return set(with_callees(resolved, function))
