"""Records that differ only because a free order decides which ones are left at the end.

A queue, or a Dataset with drop_remainder, leaves out what does not fill its last batch; a stream that is cut
at max_records leaves out what waits in its buffers. Where the order of the records is free, those are other
records on each side, and in each run. That is no difference, but it has to be told from one: every record
that only one side delivered must be one that the other side delivers in a further, or longer, run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tfqueue.equivalence.again import run_again
from tfqueue.equivalence.digest import Words
from tfqueue.equivalence.evidence import Evidence, Indices, number
from tfqueue.equivalence.observe import Observation

_RUNS = 5
_RECORDS = 200_000  # how many records further runs may read


@dataclass(frozen=True, slots=True)
class Tail:
    """An explanation of differing records by what is left at the end.

    Attributes:
        words: The explanation.
        sure: True if further runs show it; False if they show nothing, as both sides repeat themselves.
    """

    words: str
    sure: bool


def unknown(evidence: Evidence) -> tuple[Indices, Indices]:
    """The surplus records that the other side does not deliver at all."""
    left, right = evidence.reference.digests, evidence.candidate.digests
    missing, extra = evidence.surplus
    return missing[~np.isin(left[missing], right)], extra[~np.isin(right[extra], left)]


def explain_tail(
    evidence: Evidence, again: Observation | None, changed: bool, reseeded: Callable[[int], Observation | None]
) -> Tail | None:
    """Why the differing records are only those that are left at the end; None if they are not.

    Args:
        evidence: What was seen.
        again: A second run of the reference, or None.
        changed: True if some of the records look like others of the other side with changed values.
        reseeded: Runs the reference with other seeds, where that can be done.
    """
    left, right = evidence.reference, evidence.candidate
    missing, extra = evidence.surplus
    if left.ordering.defined or len(missing) != len(extra) or left.sizes != right.sizes:
        return None
    views = list(zip(left.views, right.views, strict=True))
    if len(views) > 1 and all(a.fingerprint == b.fingerprint for a, b in views):
        return None  # other records were left out, then other values would be, too: the features are mispaired
    kept = evidence.aligned is not None and 2 * evidence.aligned.equal > evidence.aligned.compared
    if kept and left.ordering.defined is None:
        return None  # the order is kept, so the same records would be left
    size = max(size for size, _ in left.sizes)
    if left.ended == right.ended == "clean" and len(left.sizes) == 1:
        bound, why = size - 1, "each side drops what does not fill its last batch"
    elif left.ended == right.ended == "cut":
        bound, why = _waiting(evidence, size), "each side was cut while records waited in its buffers"
    else:
        return None
    if len(missing) > bound or not _times_fit(evidence):
        return None
    ours, theirs = unknown(evidence)
    found = _delivered(left, set(right.digests[theirs].tolist()), again, reseeded)
    if found is None or (found and left.ended == "cut"):
        # A changed record stands where the candidate never delivers the reference's own.
        # With nothing of that kind, only a graph that is known to shuffle is known to leave others out in each run.
        answerable = len(ours) or left.ordering.defined is False
        other = _delivered(right, set(left.digests[ours].tolist()), None, lambda seed: None) if answerable else None
        found = other if found is None else (False if other is False else found)
    if found is False or (found is None and changed):
        return None
    words = (
        f"{number(len(missing), 'record')} of {left.count:,} differ: {why}, and the order decides which records "
        f"those are"
    )
    if found:
        return Tail(words + (" (further runs deliver them all)" if len(ours) or len(theirs) else ""), True)
    return Tail(words + "; or so it seems, for in further runs they stay the same", False)


def _waiting(evidence: Evidence, size: int) -> int:
    """The most records that may wait in the buffers of a side when it is cut."""
    left, right = evidence.reference.ordering, evidence.candidate.ordering
    known = [n for n in (left.capacity, left.min_after_dequeue, right.min_after_dequeue) if n]
    distinct = len(np.unique(evidence.reference.digests))
    # Several threads, or a producer that shuffles a whole pass, may put off any record by a pass.
    return 2 * size + (max(known) if left.capacity and not left.passes_shuffled else distinct)


def _times_fit(evidence: Evidence) -> bool:
    """Whether no record comes much more often on one side than on the other."""
    values, index = np.unique(
        np.concatenate([evidence.reference.digests, evidence.candidate.digests]), return_inverse=True
    )
    split = evidence.reference.count
    ours = np.bincount(index[:split], minlength=len(values))
    theirs = np.bincount(index[split:], minlength=len(values))
    if evidence.reference.ended == "clean":
        return bool(np.all(theirs <= max(1, int(ours.max()))))
    return bool(np.all(np.abs(ours - theirs) <= 1 + np.ceil(0.5 * np.maximum(ours, theirs).clip(0, 4))))


def _delivered(
    side: Observation, wanted: set[int], again: Observation | None, reseeded: Callable[[int], Observation | None]
) -> bool | None:
    """Whether further (or longer) runs of a side deliver some records; None if that cannot be found out."""
    longer = side.ended == "cut"
    limit = 3 * side.count + 1000 if longer else None
    varies = False
    run = None if longer else again
    for count in range(1, _RUNS + 1):
        if not wanted:
            return True
        run = run or run_again(side, limit=limit)
        if run is None:
            return None
        varies = varies or not _same_start(run.digests, side.digests)
        wanted = wanted - set(run.digests.tolist())
        if run.count * count > _RECORDS or (count >= 2 and not varies):
            break
        run = None
    for seed in range(1, 6):
        other = reseeded(seed) if wanted else None
        if other is None:
            break
        varies = varies or seed > 1
        wanted = wanted - set(other.digests.tolist())
    if not wanted:
        return True
    return False if varies or longer else None


def _same_start(one: Words, two: Words) -> bool:
    count = min(len(one), len(two))
    return np.array_equal(one[:count], two[:count])
