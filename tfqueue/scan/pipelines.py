"""The pipelines of a source, put together from what its functions use and call."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tfqueue.scan.inventory import Pipeline
from tfqueue.scan.kinds import kind_of
from tfqueue.scan.resolve import Reference, Resolved, with_callees
from tfqueue.scan.sources import Source

_SINKS = ("batch", "provider")
_SOURCES = ("producer", "provider")
_CHAIN = ("producer", "provider", "reader", "python", "parse", "decode", "image", "queue", "batch")


def pipelines_of(source: Source, resolved: Resolved) -> Iterator[Pipeline]:
    """The pipelines that end in this source."""
    parts: dict[str, tuple[Part, ...]] = {}
    for reference in resolved.references:
        kind = kind_of(reference.name)
        if reference.call is None or not (kind in _SINKS or _is_last_dequeue(reference)):
            continue
        if kind == "provider" and not reference.name.endswith(("DatasetDataProvider", "parallel_read")):
            continue
        line, cell = source.place(reference.line)
        threads = reference.argument("num_threads")
        if reference.function not in parts:
            parts[reference.function] = tuple(_parts(resolved, scope_of(resolved, reference.function)))
        yield Pipeline(
            path=str(source.path),
            line=line,
            cell=cell,
            function=reference.function,
            stages=tuple(_stages(parts[reference.function], reference)),
            threads=threads.value if isinstance(threads, ast.Constant) and isinstance(threads.value, int) else None,
        )


def _is_last_dequeue(reference: Reference) -> bool:
    return (
        "()." in reference.name
        and reference.name.rpartition(".")[2].startswith("dequeue")
        and (kind_of(reference.name) == "queue")
    )


@dataclass(frozen=True, slots=True)
class Part:
    """A name that belongs to the pipelines of a function, with the first line of it in one function."""

    kind: str
    name: str
    function: str
    line: int


def _parts(resolved: Resolved, functions: Collection[str]) -> Iterator[Part]:
    """What the pipelines of some functions are made of, in the order of their stages."""
    found: dict[tuple[str, str], Part] = {}
    for function in functions:
        for reference in resolved.by_function.get(function, ()):
            kind = kind_of(reference.name)
            if kind in _CHAIN and not reference.imported and "()." not in reference.name:
                part = Part(kind, reference.name, function, reference.line)
                found.setdefault((part.name, function), part)
    for kind in _CHAIN:
        yield from sorted((part for part in found.values() if part.kind == kind), key=lambda part: part.line)


def _stages(parts: Collection[Part], end: Reference) -> Iterator[str]:
    """The stages of the pipeline that ends here: what its function, and those that it calls, use before."""
    end_kind = kind_of(end.name)
    last = end.line if end.call is None else end.call.end_lineno or end.line
    told: set[str] = set()
    for part in parts:
        joins = part.kind in ("batch", "provider", "queue")
        if part.name in told or (joins and part.kind == end_kind):
            continue
        if part.line > last and (joins or part.function == end.function):
            continue  # what is done with the batch
        told.add(part.name)
        yield part.name
    yield end.name.replace("().", ".")


def scope_of(resolved: Resolved, function: str) -> set[str]:
    """The functions that belong to this one: those it calls; where no source is among them, those of a caller."""
    if function not in resolved.scopes:
        resolved.scopes[function] = _scope_of(resolved, function)
    return resolved.scopes[function]


def _scope_of(resolved: Resolved, function: str) -> set[str]:
    seen: set[str] = set()
    pending = [function]
    while pending:
        current = pending.pop(0)
        if current in seen:
            continue
        seen.add(current)
        group = set(with_callees(resolved, current))
        names = {r.name for member in group for r in resolved.by_function.get(member, ())}
        if any(kind_of(name) in _SOURCES for name in names):
            return group
        last = current.rpartition(".")[2]
        pending += [caller for caller, called in resolved.calls.items() if last in called]
    return set(with_callees(resolved, function))
