"""The speed passes of a lowering, by name; none changes a record, a batch, or an order that is defined."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tfqueue.errors import InvalidArgument

PASSES = {
    "decode-late": "runs after the queue, which then holds the undecoded records",
    "decode-batches": "runs once for each batch instead of once for each record",
    "merge": "is one step with the stage before it",
    "parallel": "runs on several records at once, in their order",
    "interleave": "are read side by side, as by the readers",
    "prefetch": "are made ahead of the step that takes them",
}
"""What each pass does to the part of a pipeline that it is applied to."""


@dataclass(frozen=True, slots=True)
class AppliedPass:
    """A speed pass at one place of a pipeline.

    Attributes:
        name: The name of the pass, a key of `PASSES`.
        where: The part of the pipeline, in words.
    """

    name: str
    where: str

    def __str__(self) -> str:
        return f"{self.name}: {self.where} {PASSES[self.name]}"


def chosen(optimize: bool | Collection[str]) -> frozenset[str]:
    """The names of the passes that an ``optimize`` argument asks for.

    Raises:
        InvalidArgument: It is neither a bool nor a collection of names of passes.
    """
    if isinstance(optimize, bool):
        return frozenset(PASSES) if optimize else frozenset()
    known = ", ".join(map(repr, PASSES))
    if isinstance(optimize, str) or not isinstance(optimize, Collection):
        raise InvalidArgument(f"optimize is True, False or a set of names ({known}); got {optimize!r}")
    unknown = sorted(repr(name) for name in optimize if name not in PASSES)
    if unknown:
        raise InvalidArgument(f"optimize names {', '.join(unknown)}, which is no speed pass; known are {known}")
    return frozenset(optimize)
