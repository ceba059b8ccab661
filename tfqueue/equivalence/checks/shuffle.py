"""Does the candidate mix the records as far as the reference does?"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfqueue.equivalence.digest import Words
from tfqueue.equivalence.evidence import Evidence, fraction_kept
from tfqueue.equivalence.labels import labels_a_batch
from tfqueue.equivalence.mixing import (
    LEAST_TO_TELL,
    Reach,
    chance_together,
    distance,
    earliest,
    expected_reach,
    least_earliness,
    most_still_near,
    most_together,
    reach,
    repeat_distance,
    still_near,
    whole_pass_reach,
)
from tfqueue.equivalence.passes import passes
from tfqueue.equivalence.report import DIFFERENT, NOT_CHECKED, SAME, CheckResult

_SPREADS = 6.0  # standard errors; of 20,000 equal pairs in simulations, 5.0 were the most
_IN_FLIGHT = 2  # records that a thread may hold beside the queue
_LEAST = 16  # records below which an order may be the source's by chance


def check_shuffle(evidence: Evidence) -> CheckResult:
    """How far the records move from their places in the source, against what the reference allows.

    The source's order is learnt by running the reference's graph without shuffling. A queue holds between
    min_after_dequeue and capacity records, as the threads happen to run, so a candidate may mix as much as any buffer
    between the two: less, or more, is a difference. What no such buffer can do at all is one in streams of any length;
    what it hardly does, from 1,000 records on. Where a producer shuffles whole passes, the measure is a random order
    of a pass; where it shuffles files, only how near in the source records are that follow each other. Without a known
    source, two runs of each side are set against each other.
    """
    left, ordering = evidence.reference, evidence.reference.ordering
    if evidence.aligned is None or evidence.options.order == "any" or not evidence.nothing_lost:
        words = "any order was asked for" if evidence.options.order == "any" else "the records differ"
        return CheckResult("shuffle", NOT_CHECKED, words, counts=False)
    source = evidence.look.source if evidence.look is not None else None
    if not evidence.same_records and (source is None or left.count < LEAST_TO_TELL):
        words = "other records are left out at the end of each side, and too few come to tell apart how they are mixed"
        return CheckResult("shuffle", NOT_CHECKED, words, counts=False)
    if source is None:
        return _by_second_run(evidence)
    count = min(len(source.digests), left.count)
    figures = _figures(evidence, source.digests)
    if _unshuffled(evidence, source.digests, count):
        words = "the candidate delivers the records in the order of the source: it does not shuffle"
        hint = f"shuffle({ordering.min_after_dequeue or len(np.unique(source.digests))})"
        return CheckResult("shuffle", DIFFERENT, words, hint=hint, evidence=figures | {"candidate_reach": 0.0})
    if not ordering.shuffled or ordering.racing:
        words = "several readers race, so that the order before the queue is not known"
        words = words if ordering.racing else "only threads change the order of the reference"
        return CheckResult("shuffle", NOT_CHECKED, words, counts=False, evidence=figures)
    found = _of_source(evidence, source.digests, count, figures)
    if found.status != DIFFERENT:
        found = _together(evidence, source.digests, figures) or found
    return found


def _of_source(evidence: Evidence, source: Words, count: int, figures: dict[str, Any]) -> CheckResult:
    """What the places of the records in the source tell."""
    ordering = evidence.reference.ordering
    if ordering.producer == "files":
        return _by_nearness(evidence, source, figures)
    bounds = _hard_bounds(evidence, source, figures)
    if bounds is not None:
        return bounds
    if count < LEAST_TO_TELL and not ordering.producer:
        words = f"nothing that a queue of this size could not do; fewer than {LEAST_TO_TELL:,} records tell no more"
        return CheckResult("shuffle", NOT_CHECKED, words, counts=False, evidence=figures)
    return _by_reach(evidence, source, count, figures)


def _figures(evidence: Evidence, source: Words) -> dict[str, Any]:
    """What a training run feels, of both sides."""
    left, right = evidence.reference, evidence.candidate
    found: dict[str, Any] = {}
    for side in (left, right):
        role = side.side.role
        found[f"{role}_neighbours_kept"] = fraction_kept(source, side.digests[: len(source)])
        repeats = repeat_distance(side.digests)
        if repeats is not None:
            found[f"{role}_repeat_distance"] = {"least": repeats[0], "median": repeats[1]}
        labels = labels_a_batch(side)
        if labels is not None:
            found[f"{role}_labels_a_batch"] = {"feature": labels[0], "mean": labels[1]}
    return found


def _unshuffled(evidence: Evidence, source: Words, count: int) -> bool:
    ordering = evidence.reference.ordering
    shuffles = bool(ordering.producer) or (ordering.min_after_dequeue or 1) > 1
    same = np.array_equal(source[:count], evidence.candidate.digests[:count])
    return ordering.shuffled and count >= _LEAST and shuffles and same and len(np.unique(source[:count])) >= _LEAST


def _together(evidence: Evidence, source: Words, figures: dict[str, Any]) -> CheckResult | None:
    """Records that stay beside each other where a shuffle would part them: what was batched before it was shuffled."""
    ordering = evidence.reference.ordering
    size = len(np.unique(source)) if ordering.producer == "records" else ordering.min_after_dequeue or 1
    if len(source) < _LEAST or size <= 1:
        return None
    ours, theirs = figures["reference_neighbours_kept"], figures["candidate_neighbours_kept"]
    most = most_together(source, size)
    figures["most_neighbours_kept"] = most
    if theirs <= max(most, 2 * ours):
        return None
    words = (
        f"{theirs:.0%} of the records follow their neighbour in the source in the candidate, {ours:.0%} in the "
        f"reference; a buffer of {size:,} keeps {most:.1%} of them together at most"
    )
    return CheckResult("shuffle", DIFFERENT, words, hint="shuffle single records, before batch()", evidence=figures)


def _otherwise(figures: dict[str, Any]) -> CheckResult:
    """Where the reference itself is not what its queue makes a simulation expect, that is no measure."""
    words = "the reference itself mixes otherwise than the sizes of its last queue tell"
    return CheckResult("shuffle", NOT_CHECKED, words, counts=False, evidence=figures)


def _hard_bounds(evidence: Evidence, source: Words, figures: dict[str, Any]) -> CheckResult | None:
    """What no queue of the reference's sizes does, or does in one stream of a million."""
    ordering, right = evidence.reference.ordering, evidence.candidate
    if evidence.reference.count > len(source) or len(np.unique(source)) < len(source):
        return None  # of records that come several times, it is not known which delivery is which
    early = earliest(source, right.digests)
    least, most = ordering.min_after_dequeue or 1, ordering.capacity or len(source)
    if ordering.producer:
        least, most = len(source), len(source)
    ours = earliest(source, evidence.reference.digests)
    figures |= {"reference_earliest": ours, "candidate_earliest": early}
    slack = _IN_FLIGHT * ordering.threads
    if not evidence.same_records:
        slack += max(size for size, _ in right.sizes)  # what was left out at the end is missing from the source, too
    if not least_earliness(least, len(source)) - slack <= ours <= most + slack:
        return _otherwise(figures)
    if early > most + slack:
        words = f"a record comes {early:,} places early in the candidate; a queue of {most:,} records cannot do that"
        return CheckResult("shuffle", DIFFERENT, words, hint=f"shuffle({least})", evidence=figures)
    if early < least_earliness(least, len(source)) - slack:
        words = (
            f"no record comes more than {early:,} places early in the candidate; with "
            f"{'whole passes in any order' if ordering.producer else f'a buffer of {least:,} records'}, some do"
        )
        return CheckResult("shuffle", DIFFERENT, words, hint=f"shuffle({least}) at least", evidence=figures)
    return None


def _by_reach(evidence: Evidence, source: Words, count: int, figures: dict[str, Any]) -> CheckResult:
    left, right, ordering = evidence.reference, evidence.candidate, evidence.reference.ordering
    upto = count if left.count <= len(source) else len(source) // 2
    ours, theirs = reach(source, left.digests, upto), reach(source, right.digests, upto)
    low, high, what = _expected(evidence, source, upto)
    slack = _IN_FLIGHT * (ordering.threads - 1)
    figures |= {
        "reference_reach": ours,
        "candidate_reach": theirs,
        "expected_of_min_after_dequeue": [low.low, low.expected, low.high],
        "expected_of_capacity": [high.low, high.expected, high.high],
    }
    words = (
        f"a quarter of the records come {theirs:,.0f} places early in the candidate, {ours:,.0f} in the reference; "
        f"{what}"
    )
    least = len(np.unique(source)) if ordering.producer else ordering.min_after_dequeue or 1
    if not low.low - slack <= ours <= high.high + slack:
        return _otherwise(figures)
    if theirs < low.low - slack:
        return CheckResult("shuffle", DIFFERENT, words, hint=f"shuffle({least:,}) at least", evidence=figures)
    if theirs > high.high + slack:
        return CheckResult("shuffle", DIFFERENT, words, hint=f"shuffle({least:,})", evidence=figures)
    return CheckResult("shuffle", SAME, words, evidence=figures)


def _expected(evidence: Evidence, source: Words, upto: int) -> tuple[Reach, Reach, str]:
    """What the smallest and the largest buffer give, and the same in words."""
    ordering = evidence.reference.ordering
    if ordering.producer:
        # A queue behind it only blurs the passes, by its capacity at most.
        expected = whole_pass_reach(source, passes(evidence).reference, upto)
        most = Reach(expected.low, expected.expected, expected.high + (ordering.capacity or 0))
        return expected, most, f"whole passes in any order give {expected.expected:,.0f}"
    least, most_records = ordering.min_after_dequeue or 1, ordering.capacity or 1
    low, high = expected_reach(source, least, upto), expected_reach(source, most_records, upto)
    return (
        low,
        high,
        f"a queue of {least:,} to {most_records:,} records gives {low.expected:,.0f} to {high.expected:,.0f}",
    )


def _by_nearness(evidence: Evidence, source: Words, figures: dict[str, Any]) -> CheckResult:
    """Where files come in another order in each run: that leaves hardly more records beside each other."""
    ordering = evidence.reference.ordering
    count = min(len(source), evidence.reference.count)
    if count < LEAST_TO_TELL or (ordering.min_after_dequeue or 1) < _LEAST:
        words = "the files are shuffled, too, and that cannot be told apart in so few records"
        if count >= LEAST_TO_TELL:
            words = "only files are shuffled, and how far tells no order of records"
        return CheckResult("shuffle", NOT_CHECKED, words, counts=False, evidence=figures)
    size = ordering.min_after_dequeue or 1
    near = max(1, size // 10)
    most = most_still_near(source, size, near)
    ours, theirs = (still_near(source, side.digests, near) for side in (evidence.reference, evidence.candidate))
    figures |= {"within": near, "reference_near": ours, "candidate_near": theirs, "most_near": most}
    words = (
        f"{theirs:.1%} of the records follow one at most {near:,} places away in the source in the candidate, "
        f"{ours:.1%} in the reference; files in any order and a buffer of {size:,} give {most:.1%} or less"
    )
    if theirs > most:
        return CheckResult("shuffle", DIFFERENT, words, hint=f"shuffle({size}) at least", evidence=figures)
    return CheckResult("shuffle", SAME, words, evidence=figures)


def _by_second_run(evidence: Evidence) -> CheckResult:
    """Where the source is not known: are the sides as far apart as two runs of the reference are, and are two runs of
    the candidate?
    """
    left, right, look = evidence.reference, evidence.candidate, evidence.look
    again = look.reference_again if look is not None else None
    if again is None or again.fingerprint != left.fingerprint or np.array_equal(again.digests, left.digests):
        words = "the order of the source is not known, and the reference does not shuffle otherwise in a second run"
        return CheckResult("shuffle", NOT_CHECKED, words, counts=False)
    usual, error = distance(left.digests, again.digests)
    found, other = distance(left.digests, right.digests)
    figures = {"between_runs_of_the_reference": usual, "between_the_sides": found}
    words = (
        f"records stand {found:,.1f} places apart on both sides on average, in two runs of the reference {usual:,.1f}"
    )
    measured = [(found, other)]
    twin = look.candidate_again if look is not None else None
    if twin is not None and twin.fingerprint == right.fingerprint and not np.array_equal(twin.digests, right.digests):
        # From an order that is any with equal chance, every other order is as far: only the candidate's own runs tell.
        measured.append(distance(right.digests, twin.digests))
        figures["between_runs_of_the_candidate"] = measured[1][0]
        words += f", in two of the candidate {measured[1][0]:,.1f}"
    if twin is not None and len(measured) > 1:
        ours, theirs = fraction_kept(left.digests, again.digests), fraction_kept(right.digests, twin.digests)
        figures |= {"reference_neighbours_kept": ours, "candidate_neighbours_kept": theirs}
        if theirs > chance_together(2 * ours, left.count):
            words = (
                f"{theirs:.0%} of the records have the same neighbour in two runs of the candidate, {ours:.0%} in two "
                f"of the reference"
            )
            figures["together"] = True
            hint = "shuffle single records, before batch()"
            return CheckResult("shuffle", DIFFERENT, words, hint=hint, evidence=figures)
    for value, spread in measured:
        if abs(value - usual) > _SPREADS * float(np.hypot(error, spread)) + 0.5:
            hint = "the candidate mixes " + ("less: a smaller buffer" if value < usual else "more: a larger buffer")
            figures["less"] = value < usual
            return CheckResult("shuffle", DIFFERENT, words, hint=hint, evidence=figures)
    return CheckResult("shuffle", SAME, words, evidence=figures)
