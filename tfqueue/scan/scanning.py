"""Takes the inventory: finds the sources, reads them, and asks what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from tfqueue.errors import InvalidArgument
from tfqueue.scan.inventory import Inventory, Problem, Use
from tfqueue.scan.kinds import kind_of, missing, next_step
from tfqueue.scan.pipelines import pipelines_of
from tfqueue.scan.resolve import Resolved, resolve
from tfqueue.scan.risks import risks_of
from tfqueue.scan.sources import Source, find, read


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
    if not root.is_dir() and not (root.is_file() and root.suffix in (".py", ".ipynb")):
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
            line, cell = source.place(source.problem[0])
            problems.append(Problem(str(file), line, cell, source.problem[1]))
        if source.tree is not None:
            sources.append((source, resolve(source.tree)))
    uses = [use for source, resolved in sources for use in _uses(source, resolved)]
    return Inventory(
        files=files,
        uses=tuple(uses),
        pipelines=tuple(p for source, resolved in sources for p in pipelines_of(source, resolved)),
        risks=tuple(risks_of(sources)),
        python2=tuple((str(source.path), len(source.python2)) for source, _ in sources if source.python2),
        problems=tuple(problems),
    )


def _uses(source: Source, resolved: Resolved) -> Iterator[Use]:
    for reference in resolved.references:
        kind = kind_of(reference.name)
        row = None if "()." in reference.name else missing(reference.name)  # a method of what is told already
        if kind in ("image", "decode", "python") or (reference.imported and kind is not None):
            kind = None
        if kind is None and row is None:
            continue
        line, cell = source.place(reference.line)
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
