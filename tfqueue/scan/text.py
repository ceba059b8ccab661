"""An inventory as a table for a terminal."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfqueue.scan.inventory import Inventory

_NARROWEST = 60


def table(inventory: Inventory, width: int | None = None) -> str:
    """The inventory in lines of at most ``width`` characters; None: as wide as the terminal."""
    width = max(_NARROWEST, width or shutil.get_terminal_size((100, 24)).columns)
    lines = list(_lines(inventory, width))
    return "\n".join(line.rstrip() for line in lines)


def _lines(inventory: Inventory, width: int) -> Iterator[str]:
    paths = [u.path for u in inventory.uses] + [p.path for p in inventory.problems] + [p for p, _ in inventory.python2]
    for path in sorted(set(paths)):
        yield path
        # A name that is used a hundred times is one line; the JSON form has them all.
        rows: dict[tuple[str, str, str], list[str]] = {}
        for use in inventory.uses:
            if use.path == path:
                status = f"{use.kind}{f', {use.missing}' if use.missing and use.kind != use.missing else ''}"
                rows.setdefault((use.name, status, use.next_step), []).append(_where(use.line, use.cell))
        for (name, status, step), places in rows.items():
            yield from _row(_places(places), f"{name}  [{status}]", step, width)
        risks: dict[tuple[str, str], list[str]] = {}
        for risk in inventory.risks:
            if risk.path == path:
                risks.setdefault((risk.code, risk.message), []).append(_where(risk.line, risk.cell))
        for (code, message), places in risks.items():
            yield from _wrapped(f"  {_places(places)}: risk {code}: {message}", width)
        pipelines: dict[tuple[str, str], list[str]] = {}
        for pipeline in inventory.pipelines:
            if pipeline.path == path:
                threads = f", {pipeline.threads} threads" if pipeline.threads else ""
                pipelines.setdefault((threads, str(pipeline)), []).append(_where(pipeline.line, pipeline.cell))
        for (threads, stages), places in pipelines.items():
            yield from _wrapped(f"  pipeline at {_places(places)}{threads}: {stages}", width)
        for where, places_to_mend in inventory.python2:
            if where == path:
                runs = "" if path.endswith(".ipynb") else "; `tfqueue run` does that in memory"
                yield from _wrapped(f"  Python 2: {_count(places_to_mend, 'place')} to mend{runs}", width)
        for problem in (problem for problem in inventory.problems if problem.path == path):
            where = f"{_where(problem.line, problem.cell)}: " if problem.line else ""
            yield from _wrapped(f"  {where}{problem.message}", width)
        yield ""
    yield from _wrapped(_summary(inventory), width)


def _summary(inventory: Inventory) -> str:
    files = _count(inventory.files, "file")
    queue_code = len(inventory.queue_code)
    if not inventory.files:
        return "no Python source or notebook found"
    if inventory.exit_code == 0:
        verdict = f"no queue code left in {files}"
    elif queue_code:
        places = len({use.path for use in inventory.queue_code})
        pipelines = _count(len(inventory.pipelines), "pipeline")
        verdict = f"{_count(queue_code, 'use')} of queue code in {places} of {files}; {pipelines}"
    else:
        verdict = f"no queue code found in {files}, but not all could be read"
    missing = sum(use.missing is not None for use in inventory.uses)
    parts = [verdict]
    if missing:
        parts.append(f"{_count(missing, 'use')} of names that TensorFlow or NumPy no longer has")
    if inventory.risks:
        parts.append(_count(len(inventory.risks), "risk"))
    if inventory.problems:
        parts.append(f"{_count(len(inventory.problems), 'file')} not read")
    return "; ".join(parts)


def _row(places: str, name: str, step: str, width: int) -> Iterator[str]:
    yield from _wrapped(f"  {places}: {name}", width)
    if step:
        yield from _wrapped(f"-> {step}", width, indent="      ")


def _wrapped(text: str, width: int, indent: str = "") -> Iterable[str]:
    start = indent + text[: len(text) - len(text.lstrip())]
    return textwrap.wrap(
        text.strip(),
        width,
        initial_indent=start,
        subsequent_indent=f"{start}    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _where(line: int, cell: int | None) -> str:
    return str(line) if cell is None else f"cell {cell}, line {line}"


def _places(places: list[str]) -> str:
    unique = list(dict.fromkeys(places))
    return ", ".join(unique) if len(unique) <= 6 else f"{', '.join(unique[:5])} and {len(unique) - 5} more"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
