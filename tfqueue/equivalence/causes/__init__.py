"""From what differs to the likely mistake: each cause has a stable name and says what to change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tfqueue.equivalence.causes.catalogue import CATALOGUE, NAMES
from tfqueue.equivalence.causes.experiments import experiment
from tfqueue.equivalence.causes.images import grey, image_causes, is_picture, turned
from tfqueue.equivalence.causes.mispairing import exchanged, mispairing_causes
from tfqueue.equivalence.causes.numbers import number_causes, rounding
from tfqueue.equivalence.causes.pairs import Changed, changed_features, systematic
from tfqueue.equivalence.causes.stream import stream_causes
from tfqueue.equivalence.causes.structure import (
    padding_causes,
    shape_causes,
    structure_causes,
)
from tfqueue.equivalence.causes.texts import text_causes
from tfqueue.equivalence.evidence import Evidence
from tfqueue.equivalence.ordering import makes_random_numbers
from tfqueue.equivalence.report import Cause
from tfqueue.equivalence.rounding import fine
from tfqueue.equivalence.second_look import shared_by_consumers

__all__ = ["CATALOGUE", "NAMES", "find_causes"]

_BLAMED = ("mispaired-reference", "random-values", "consumers-race")


def find_causes(evidence: Evidence) -> tuple[Cause, ...]:
    """The likely mistakes behind the differences, the most likely first; each name once a feature."""
    found: dict[tuple[str, str | None], Cause] = {}
    for name, words, feature in _found(evidence) if evidence.aside is None else _beside_rounding(evidence):
        entry = CATALOGUE[name]
        side = "reference" if name in _BLAMED and "of the candidate" not in words else "candidate"
        found.setdefault((name, feature), Cause(name, side, entry.summary, words, entry.advice, feature))
    causes = [cause for cause in found.values() if not _follows(cause, found)]
    return tuple(sorted(causes, key=lambda cause: cause.name in _SMALL))


def _beside_rounding(evidence: Evidence) -> Iterator[tuple[str, str, str | None]]:
    """What is found once rounding is put aside, and the rounding."""
    if evidence.aside is not None:
        yield from _found(evidence.aside)
    for changed in changed_features(evidence):
        both = [(a, b) for a, b in zip(changed.left, changed.right, strict=True) if fine(a, b)]
        if both and not any(evidence.options.tolerance(changed.name)):
            near = Changed(changed.name, [a for a, _ in both], [b for _, b in both], len(both))
            yield from ((name, words, changed.name) for name, words in rounding(near))


def _follows(cause: Cause, found: Mapping[tuple[str, str | None], Cause]) -> bool:
    """Whether a dtype is only what a more exact cause of the same feature leaves."""
    exact = _MAKES_DTYPE.get(cause.name, ())
    return any((name, cause.feature) in found for name in exact)


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
        all(name == "random-values" for name, _, _ in blamed)
        and evidence.look is not None
        and (systematic(evidence) or len(evidence.surplus[0]) == evidence.reference.count)
    ):
        yield from text_causes(evidence)
        for changed in changed_features(evidence):
            if changed.records >= 0.3 * len(evidence.look.matches):
                # In fewer records nothing was done to the feature as such.
                yield from ((name, words, changed.name) for name, words in _of_feature(evidence, changed))
    yield from (
        (name, words, None) for name, words in stream_causes(evidence, None if source is None else source.digests)
    )


def _of_feature(evidence: Evidence, changed: Changed) -> Iterator[tuple[str, str]]:
    """Likely causes for a feature of records that were recognised on both sides."""
    causes = list(shape_causes(changed)) or list(image_causes(changed))
    causes = [c for c in causes if _possible(evidence, c[0])]
    causes = [c for c in causes if c[0] not in _BY_SIZE] or list(number_causes(changed)) or causes
    if causes and causes[0][0] not in _BY_SIZE:
        yield causes[0]
        return
    if is_picture(changed):
        without_colour = list(grey(changed))
        if without_colour:
            yield from without_colour
            return
        other = turned(changed)
        if other is not None:
            yield other[:2]
            yield from list(number_causes(other[2]))[:1]
            return
        told = experiment(evidence, changed.name)
        causes = [told] if told is not None else causes
    yield from causes[:1]
    if not causes and _random_candidate(evidence):
        yield "random-values", f"the functions of the candidate make random numbers, and {changed.name} is made of them"
    elif not causes and len(evidence.reference.names) > 1 and exchanged(evidence, changed.name):
        yield "mispaired", f"the values of {changed.name} are the reference's, in other records"
    elif not causes and evidence.reference.ordering.random_ops:
        yield (
            "random-values",
            f"the graph of the reference makes random numbers, and {changed.name} differs without a pattern",
        )


def _random_candidate(evidence: Evidence) -> bool:
    """Whether only the candidate makes random numbers; seeded ones are the same in each run."""
    side = evidence.candidate.side
    if not side.repeatable or evidence.reference.ordering.random_ops:
        return False
    with side.open() as run:
        return run.dataset is not None and makes_random_numbers(run.dataset)


def _possible(evidence: Evidence, name: str) -> bool:
    """Whether the reference's graph, if it is known, does what a cause told by size speaks of."""
    blueprint = evidence.look.blueprint if evidence.look is not None else None
    if blueprint is None or name not in _BY_SIZE:
        return True
    kinds = " ".join({node.op for node in blueprint.nodes()})
    if name.startswith("resize"):
        return any(word in kinds for word in ("Resize", "ScaleAndTranslate", "CropAndResize"))
    return any(word in kinds for word in ("Jpeg", "DecodeImage", "PyFunc"))


# Said last: they explain little beside another cause.
_SMALL = ("rounding", "dtype-changed")

# What a dtype that differs may follow from.
_MAKES_DTYPE = {
    "dtype-changed": ("decode-dtype", "byte-order", "one-hot", "one-hot-depth"),
    "int-narrowing": ("decode-dtype", "byte-order", "one-hot"),
    "float-narrowing": ("decode-dtype", "byte-order", "one-hot"),
    "truncated-to-int": ("decode-dtype", "byte-order", "one-hot"),
}

# Told from the size of the differences only; what the numbers explain exactly comes first.
_BY_SIZE = (
    "jpeg-dct",
    "re-encoded",
    "resize-kernel",
    "resize-antialias",
    "resize-half-pixel",
    "resize-align-corners",
)
