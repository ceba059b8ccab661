"""What is looked at again when the records of both sides are not the same.

The first pass keeps digests, and values only of the first records and of records at equal places. This part
fetches the values of records that only one side has, pairs them, and runs sides again to see what a side can
deliver at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tfqueue.equivalence.again import run_again
from tfqueue.equivalence.chunk import Chunk
from tfqueue.equivalence.digest import Words
from tfqueue.equivalence.evidence import Evidence, Indices
from tfqueue.equivalence.feature_view import FeatureView
from tfqueue.equivalence.keys import pair_by_key
from tfqueue.equivalence.match import Match, match_records, split_rows
from tfqueue.equivalence.mixing import LEAST_TO_TELL
from tfqueue.equivalence.observe import Observation
from tfqueue.equivalence.tail import explain_tail, unknown
from tfqueue.equivalence.tolerant import pair_within
from tfqueue.equivalence.variant import Blueprint, blueprint_of, reseeding, run_edited, unshuffled

_LEFT = 64
_RIGHT = 512
_BYTES = 16 << 20
_SOURCE = 40_000  # records of the source whose order is learnt for the shuffle check
_BYTES_OF_ALL = 256 << 20  # only for records in any order within a tolerance: they must be held to be paired


@dataclass(slots=True)
class SecondLook:
    """What was found.

    Attributes:
        matches: Records of both sides that are taken for the same record with other values.
        missing: Records that only the reference has, with values, beyond those in ``matches``.
        extra: Records that only the candidate has, with values, beyond those in ``matches``.
        reference_again: A second run of the reference, or None.
        candidate_again: A second run of the candidate, or None.
        source: A run of the reference without shuffling and with one thread a queue, or None.
        blueprint: The graph of the reference, to be run with changes, or None.
        within: How many records are not equal but were all paired within the tolerances, wherever they stand.
        remainder: Why the differing records are only those that are left at the end, or None.
        doubt: The same where it could not be verified, or None.
    """

    matches: list[Match] = field(default_factory=list)
    missing: list[Chunk] = field(default_factory=list)
    extra: list[Chunk] = field(default_factory=list)
    reference_again: Observation | None = None
    candidate_again: Observation | None = None
    source: Observation | None = None
    blueprint: Blueprint | None = None
    within: int = 0
    remainder: str | None = None
    doubt: str | None = None


def look_again(evidence: Evidence) -> SecondLook:
    """Fetch values, pair records, and run sides again as far as that can tell more."""
    look = SecondLook()
    if evidence.aligned is None:
        return look
    if evidence.same_records:
        if evidence.options.order != "any" and not evidence.same_sequence:
            if evidence.reference.ordering.shuffled:
                _experiment(evidence, look, limit=_SOURCE)
            countable = LEAST_TO_TELL <= evidence.reference.count <= _SOURCE
            if look.source is None and not evidence.reference.ordering.defined and countable:
                look.reference_again = run_again(evidence.reference)
                look.candidate_again = run_again(evidence.candidate)
        return look
    missing, extra = evidence.surplus
    loose = not evidence.options.exact and not evidence.close_in_place and len(missing) == len(extra)
    if loose and _pair_within(evidence, missing, extra) == len(missing):
        look.within = len(missing)
        return look
    ours, theirs = unknown(evidence)
    seeker = _Seeker(evidence.reference, _first_of(ours, missing), _LEFT)
    look.reference_again = seeker.run(always=True)
    finder = _Seeker(evidence.candidate, _first_of(theirs, extra), _RIGHT)
    if evidence.options.key is not None:
        look.matches = pair_by_key(evidence, seeker.rows(), theirs)
    elif evidence.aligned.active and not _moved(evidence):
        _pair_in_place(evidence, look, set(missing.tolist()), set(extra.tolist()))
    look.candidate_again = finder.run(always=True)
    if not look.matches and len(ours) and len(theirs):
        with np.errstate(all="ignore"):  # values may be anything
            look.matches = match_records(seeker.rows(), finder.rows(), _background(evidence.reference))
    paired_left = {m.reference.first for m in look.matches}
    paired_right = {m.candidate.first for m in look.matches}
    look.missing = [c for c in seeker.rows() if c.first not in paired_left]
    look.extra = [c for c in finder.rows() if c.first not in paired_right]
    tail = explain_tail(evidence, look.reference_again, bool(look.matches), _Reseeded(evidence, look))
    if tail is not None:
        look.remainder, look.doubt = (tail.words, None) if tail.sure else (None, tail.words)
    if look.remainder is None:
        _experiment(evidence, look)
    elif (
        evidence.options.order != "any"
        and evidence.reference.ordering.shuffled
        and evidence.reference.count >= LEAST_TO_TELL
    ):
        _experiment(evidence, look, limit=_SOURCE)
    return look


class _Reseeded:
    """Runs the reference with other seeds of its shuffling, where its graph can be changed."""

    def __init__(self, evidence: Evidence, look: SecondLook) -> None:
        self.first = evidence.reference
        self.look = look

    def __call__(self, seed: int) -> Observation | None:
        self.look.blueprint = self.look.blueprint or blueprint_of(self.first)
        if self.look.blueprint is None:
            return None
        return run_edited(self.first, self.look.blueprint, reseeding(seed))


def _first_of(unknown_ones: Indices, all_of_them: Indices) -> Indices:
    """A record with changed values is unknown to the other side; others differ only in how often they
    come.
    """
    return unknown_ones if len(unknown_ones) else all_of_them


def _experiment(evidence: Evidence, look: SecondLook, limit: int | None = None) -> None:
    """Run the reference with changes, where its graph can be changed: what is gained is for the causes."""
    first = evidence.reference
    look.blueprint = look.blueprint or blueprint_of(first)
    if look.blueprint is not None and first.ordering.defined is False:
        look.source = run_edited(first, look.blueprint, unshuffled, limit)


def _pair_within(evidence: Evidence, missing: Indices, extra: Indices) -> int:
    seekers = [
        _Seeker(side, numbers, None) for side, numbers in ((evidence.reference, missing), (evidence.candidate, extra))
    ]
    for seeker in seekers:
        seeker.run()
    rows = [seeker.rows() for seeker in seekers]
    with np.errstate(all="ignore"):
        return len(pair_within(rows[0], rows[1], evidence.reference.names, evidence.options))


def _moved(evidence: Evidence) -> bool:
    """Whether the features that both sides have all the same stand at other places: then all records do."""
    assert evidence.aligned is not None
    pairs = evidence.aligned.pairs
    views = zip(evidence.reference.views, evidence.candidate.views, strict=True)
    whole = [index for index, (one, two) in enumerate(views) if one.fingerprint == two.fingerprint]
    kept = [np.mean([p.reference.features[k][0] == p.candidate.features[k][0] for p in pairs]) for k in whole if pairs]
    return bool(kept) and max(kept) < 0.5


def _pair_in_place(evidence: Evidence, look: SecondLook, missing: set[int], extra: set[int]) -> None:
    assert evidence.aligned is not None
    known = evidence.reference.digests
    if 2 * len(np.unique(known)) > len(known):
        # Where nearly every record is another, one that the reference delivers elsewhere is not a changed one.
        extra -= set(np.flatnonzero(np.isin(evidence.candidate.digests, known)).tolist())
    for pair in evidence.aligned.pairs:
        if pair.reference.first in missing and pair.candidate.first in extra:
            equal = tuple(
                k
                for k, (a, b) in enumerate(zip(pair.reference.features, pair.candidate.features, strict=True))
                if a[0] == b[0]
            )
            look.matches.append(Match(pair.reference, pair.candidate, equal))


def _background(first: Observation) -> list[Chunk]:
    """Some records of a side, whichever: how far apart they are tells how near a match must be."""
    rows: list[Chunk] = []
    for chunk in first.kept:
        rows += split_rows(chunk.part(0, min(chunk.size, _LEFT - len(rows))))
        if len(rows) >= _LEFT:
            break
    return rows


class _Seeker:
    """Picks the values of some records of a side: from what was kept, else from a second run.

    Args:
        first: The first run.
        numbers: The numbers of the records in the first run.
        limit: How many to pick at most, spread over the whole stream; None for all, within a bound of memory.
    """

    def __init__(self, first: Observation, numbers: Indices, limit: int | None) -> None:
        self.most = _BYTES if limit is not None else _BYTES_OF_ALL
        if limit is not None and len(numbers) > limit:
            # Half from the start, where kept values are, half from everywhere.
            spread = numbers[np.linspace(0, len(numbers) - 1, limit - limit // 2).astype(int)]
            numbers = np.unique(np.concatenate([numbers[: limit // 2], spread]))
        self.first = first
        self.wanted: dict[int, list[int]] = {}
        for number in numbers.tolist():
            self.wanted.setdefault(int(first.digests[number]), []).append(number)
        self.digests: Words = np.array(sorted(self.wanted), dtype=np.uint64)
        self.found: dict[int, Chunk] = {}
        self.bytes = 0

    def from_kept(self) -> None:
        for chunk in self.first.kept:
            self.harvest(chunk)

    def run(self, always: bool = False) -> Observation | None:
        """Pick from the kept values, and from a second run if they do not suffice or one is wanted anyhow."""
        self.from_kept()
        if always or len(self.found) < sum(map(len, self.wanted.values())):
            return run_again(self.first, self.harvest)
        return None

    def harvest(self, chunk: Chunk) -> None:
        if not len(self.digests) or self.bytes > self.most:
            return
        for row in np.flatnonzero(np.isin(chunk.records, self.digests)):
            for number in self.wanted[int(chunk.records[row])]:
                if number not in self.found:
                    one = chunk.part(int(row), int(row) + 1).copied()
                    one.first = number
                    self.found[number] = one
                    self.bytes += sum(leaf.nbytes for leaf in one.leaves)
                    break

    def rows(self) -> list[Chunk]:
        return [self.found[number] for number in sorted(self.found)]


def unstable_features(evidence: Evidence, role: str = "reference") -> tuple[str, ...]:
    """The features of which a side delivers other values in each run (random ops without a seed).

    Empty where that is not known, and where records that fill no batch are dropped, which changes every
    feature.
    """
    look, first = evidence.look, evidence.reference if role == "reference" else evidence.candidate
    again = None if look is None else look.reference_again if role == "reference" else look.candidate_again
    if look is None or look.remainder or again is None or again.count != first.count or not first.sizes:
        return ()
    unstable = tuple(
        name
        for name, view, other in zip(evidence.reference.names, first.views, again.views, strict=True)
        if view.fingerprint != other.fingerprint
        and not _filled_otherwise(view, other)
        and not (role == "candidate" and _same_values(first, again, evidence.reference.names.index(name)))
    )
    gone = len(np.setdiff1d(first.digests, again.digests))
    if first.ordering.defined is False and gone <= max(size for size, _ in first.sizes):
        return ()
    return unstable


def _filled_otherwise(view: FeatureView, other: FeatureView) -> bool:
    """Whether records are filled up to the longest of their batch, so that other batches hold other values."""
    return view.kind == "dense" and (view.low != view.high or other.low != other.high or view.high != other.high)


def _same_values(first: Observation, again: Observation, index: int) -> bool:
    """Whether the first values of a feature are nearly all values of another run, only that some were left out."""
    ones, twos = (
        np.concatenate([c.features[index] for c in side.kept] or [first.digests[:0]]) for side in (first, again)
    )
    return len(np.unique(ones)) > 1 and float(np.mean(np.isin(ones, twos))) > 0.8


def mispairs(evidence: Evidence) -> bool:
    """Whether the reference pairs features otherwise in each run, and each alone is what the candidate
    delivers.
    """
    look, first = evidence.look, evidence.reference
    again = look.reference_again if look is not None else None
    if again is None or len(first.views) < 2 or again.fingerprint == first.fingerprint or again.count != first.count:
        return False
    runs = zip(first.views, again.views, evidence.candidate.views, strict=True)
    return all(one.fingerprint == two.fingerprint == three.fingerprint for one, two, three in runs)


def shared_by_consumers(evidence: Evidence) -> bool:
    """Whether the features fall into equal parts that agree only when pooled: consumers of one queue that race.

    With one dequeue for each tower, which tower gets which batch is left to chance.
    """
    parts: dict[str, list[int]] = {}
    for index, name in enumerate(evidence.reference.names):
        _, dot, rest = name.partition(".")
        if not dot:
            return False
        parts.setdefault(rest, []).append(index)
    if not parts or min(map(len, parts.values())) < 2:
        return False
    left, right = evidence.reference.views, evidence.candidate.views
    return all(
        sum(left[i].fingerprint for i in indices) % 2**64 == sum(right[i].fingerprint for i in indices) % 2**64
        for indices in parts.values()
    )
