"""Causes that show in how features are put together to records."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tfqueue.equivalence.digest import Words
from tfqueue.equivalence.evidence import Evidence
from tfqueue.equivalence.observe import Observation
from tfqueue.equivalence.second_look import unstable_features

Named = tuple[str, str, str | None]
Places = npt.NDArray[np.int64]


def mispairing_causes(evidence: Evidence, source: Observation | None) -> Iterator[Named]:
    """Likely causes where single features agree but the records do not.

    Args:
        evidence: What was seen.
        source: A run of the reference without shuffling, or None.
    """
    if evidence.aligned is None or evidence.same_records or len(evidence.reference.names) < 1:
        return
    exchanged_features = _exchanged_features(evidence)
    if exchanged_features:
        words = ", ".join(f"{a} is {b} of the candidate" for a, b in exchanged_features)
        yield "features-reordered", words, None
        return
    look = evidence.look
    again = look.reference_again if look is not None else None
    left, right = evidence.reference, evidence.candidate
    if again is not None and again.count == left.count and again.fingerprint != left.fingerprint:
        unstable = unstable_features(evidence)
        if unstable:
            yield "random-values", (f"two runs of the reference deliver other values of {unstable[0]}"), unstable[0]
        elif len(left.names) > 1 and all(
            a.fingerprint == b.fingerprint for a, b in zip(left.views, again.views, strict=True)
        ):
            yield "mispaired-reference", ("two runs of the reference deliver the same features in other pairs"), None
            return
    unstable = unstable_features(evidence, "candidate")
    if unstable and not unstable_features(evidence):
        yield "random-values", f"two runs of the candidate deliver other values of {unstable[0]}", unstable[0]
        return
    if len(left.names) < 2:
        return
    shifted = list(_shifted(left, source or left, right))
    yield from shifted
    if not shifted and left.count == right.count:
        same = [a.fingerprint == b.fingerprint for a, b in zip(left.views, right.views, strict=True)]
        if all(same):
            yield "mispaired", "every feature alone is the same on both sides, the records are not", None


def _exchanged_features(evidence: Evidence) -> list[tuple[str, str]]:
    """The features of the reference that the candidate has all the same, but under the names of each other."""
    left, right = evidence.reference, evidence.candidate
    if left.count != right.count:
        return []
    ones = {view.fingerprint: view for view in left.views}
    found = [
        (ones[there.fingerprint].name, here.name)
        for here, there in zip(left.views, right.views, strict=True)
        if here.fingerprint != there.fingerprint and there.fingerprint in ones
    ]
    apart = [a.name for a, b in zip(left.views, right.views, strict=True) if a.fingerprint != b.fingerprint]
    return found if len(found) > 1 and sorted(a for a, _ in found) == sorted(apart) else []


def exchanged(evidence: Evidence, feature: str) -> bool:
    """Whether the candidate's values of a feature are all values of the reference, only in other records."""
    index = evidence.reference.names.index(feature)
    ones, twos = (np.unique(_sequences(side)[index]) for side in (evidence.reference, evidence.candidate))
    return len(ones) > 1 and len(twos) > 1 and float(np.mean(np.isin(twos, ones))) > 0.95


def _sequences(side: Observation) -> list[Words]:
    """The digests of each feature, over the first records, whose values were kept."""
    chunks = side.kept
    return [
        np.concatenate([c.features[i] for c in chunks]) if chunks else np.zeros(0, np.uint64)
        for i in range(len(side.names))
    ]


def _shifted(left: Observation, source: Observation, right: Observation) -> Iterator[Named]:
    """One feature that belongs to the records before or after, in the order of the source."""
    ones, twos = _sequences(source), _sequences(right)
    if len(ones[0]) < 4 or len(twos[0]) < 4:
        return
    # In several passes each record comes several times; one pass is enough to know where it stands.
    length = max(len(np.unique(digests)) for digests in ones)
    first = [digests[:length] for digests in ones]
    for index, name in enumerate(left.names):
        for anchor in range(len(ones)):
            if anchor == index or not _names_records(first[anchor]):
                continue
            step = _step(_place(first[anchor], twos[anchor]), first[index], twos[index])
            if step:
                words = f"{name} is that of the record {abs(step)} {'after' if step > 0 else 'before'}"
                yield "label-shifted", words, name
                return


def _step(place: Places, ones: Words, twos: Words) -> int:
    """How many records farther, in the order of the source, a feature's values come from; 0 if that is not it.

    Args:
        place: The place in the source of each record of the candidate, -1 where that is not known.
        ones: The feature's digests in the order of the source.
        twos: The candidate's digests of the feature.
    """
    found = place >= 0
    if np.mean(found) < 0.5:
        return 0
    place, twos = place[found], twos[found]
    apart = ones[place] != twos
    if not apart.any():
        return 0
    for step in (1, -1, 2, -2, 3, -3):
        moved = place + step
        inside = (moved >= 0) & (moved < len(ones))
        fits = ones[np.where(inside, moved, 0)] == twos
        # Labels that stay the same over many records fit nearly everywhere: those that changed have to fit, too.
        if (apart & inside).sum() >= 3 and np.mean(fits[inside]) > 0.95 and np.mean(fits[apart & inside]) > 0.95:
            return step
    return 0


def _names_records(digests: Words) -> bool:
    """Whether nearly every record has a value of its own, so that the feature tells which record it is."""
    return len(np.unique(digests)) > 0.9 * len(digests)


def _place(ordered: Words, wanted: Words) -> Places:
    """The places of some digests in a sequence; -1 where they are not there."""
    order = np.argsort(ordered, kind="stable")
    at = np.searchsorted(ordered[order], wanted)
    at = np.minimum(at, len(order) - 1)
    return np.where(ordered[order][at] == wanted, order[at], -1)
