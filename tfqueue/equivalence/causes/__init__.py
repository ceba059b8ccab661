"""From what differs to the likely mistake: each cause has a stable name and says what to change."""

from __future__ import annotations

from collections.abc import Iterator

from tfqueue.equivalence.causes.catalogue import CATALOGUE, NAMES
from tfqueue.equivalence.causes.experiments import experiment
from tfqueue.equivalence.causes.images import image_causes
from tfqueue.equivalence.causes.mispairing import exchanged, mispairing_causes
from tfqueue.equivalence.causes.numbers import number_causes
from tfqueue.equivalence.causes.pairs import changed_features, systematic
from tfqueue.equivalence.causes.stream import stream_causes
from tfqueue.equivalence.causes.structure import (
    padding_causes,
    shape_causes,
    string_padding,
    structure_causes,
)
from tfqueue.equivalence.evidence import Evidence
from tfqueue.equivalence.report import Cause
from tfqueue.equivalence.second_look import shared_by_consumers

__all__ = ["CATALOGUE", "NAMES", "find_causes"]

_BLAMED = ("mispaired-reference", "random-values", "consumers-race")


def find_causes(evidence: Evidence) -> tuple[Cause, ...]:
    """The likely mistakes behind the differences, the most likely first; each name once a feature."""
    found: dict[tuple[str, str | None], Cause] = {}
    for name, words, feature in _found(evidence):
        entry = CATALOGUE[name]
        side = "reference" if name in _BLAMED else "candidate"
        found.setdefault((name, feature), Cause(name, side, entry.summary, words, entry.advice, feature))
    return tuple(found.values())


def _found(evidence: Evidence) -> Iterator[tuple[str, str, str | None]]:
    yield from structure_causes(evidence)
    if evidence.aligned is None:
        return
    source = evidence.look.source if evidence.look is not None else None
    yield from padding_causes(evidence)
    if not evidence.same_records and shared_by_consumers(evidence):
        yield "consumers-race", "the values of each feature agree over all parts of the batch, not in each", None
        return
    blamed = list(mispairing_causes(evidence, source))
    yield from blamed
    if any(name == "mispaired-reference" for name, _, _ in blamed):
        return  # everything else follows from it
    if (
        not blamed
        and evidence.look is not None
        and (systematic(evidence) or len(evidence.surplus[0]) == evidence.reference.count)
    ):
        yield from string_padding(evidence)
        for changed in changed_features(evidence):
            if len(changed.left) < 0.3 * len(evidence.look.matches):
                continue  # in a few records only: nothing was done to the feature as such
            causes = list(shape_causes(changed)) or list(image_causes(changed))
            causes = [c for c in causes if _possible(evidence, c[0])]
            exact = [c for c in causes if c[0] not in _BY_SIZE]
            causes = exact or list(number_causes(changed)) or causes
            by_size = not causes or causes[0][0] in _BY_SIZE
            if by_size and changed.numeric and changed.left[0].ndim >= 2:
                told = experiment(evidence, changed.name)
                causes = [told] if told is not None else causes
            for name, words in causes[:1]:
                yield name, words, changed.name
            if not causes and len(evidence.reference.names) > 1 and exchanged(evidence, changed.name):
                yield "mispaired", (f"the values of {changed.name} are the reference's, in other records"), changed.name
            elif not causes and evidence.reference.ordering.random_ops:
                words = f"the graph of the reference makes random numbers, and {changed.name} differs without a pattern"
                yield "random-values", words, changed.name
    yield from (
        (name, words, None) for name, words in stream_causes(evidence, None if source is None else source.digests)
    )


def _possible(evidence: Evidence, name: str) -> bool:
    """Whether the reference's graph, if it is known, does what a cause told by size speaks of."""
    blueprint = evidence.look.blueprint if evidence.look is not None else None
    if blueprint is None or name not in _BY_SIZE:
        return True
    kinds = " ".join({node.op for node in blueprint.nodes()})
    if name.startswith("resize"):
        return any(word in kinds for word in ("Resize", "ScaleAndTranslate", "CropAndResize"))
    return any(word in kinds for word in ("Jpeg", "DecodeImage", "PyFunc"))


# Told from the size of the differences only; what the numbers explain exactly comes first.
_BY_SIZE = (
    "jpeg-dct",
    "re-encoded",
    "resize-kernel",
    "resize-antialias",
    "resize-half-pixel",
    "resize-align-corners",
)
