"""The pipelines of a source, put together from what its functions use and call."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tfqueue.scan.inventory import Pipeline
from tfqueue.scan.kinds import kind_of
from tfqueue.scan.resolve import Reference, Resolved, with_callees
from tfqueue.scan.sources import Source

_SINKS = ("batch", "provider")
_SOURCES = ("producer", "provider")
_CHAIN = ("producer", "provider", "reader", "python", "parse", "decode", "image", "queue", "batch")


def pipelines_of(source: Source, resolved: Resolved) -> Iterator[Pipeline]:
    """The pipelines that end in this source."""
    for reference in resolved.references:
        kind = kind_of(reference.name)
        if reference.call is None or not (kind in _SINKS or _is_last_dequeue(reference)):
            continue
        if kind == "provider" and not reference.name.endswith(("DatasetDataProvider", "parallel_read")):
            continue
        line, cell = source.place(reference.line)
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
