"""Samples of the records that differ, each with what differs first and with its values."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfqueue.equivalence.align import differing
from tfqueue.equivalence.evidence import Evidence
from tfqueue.equivalence.leaves import as_array
from tfqueue.equivalence.report import Difference

Values = dict[str, Any]


def samples_of(evidence: Evidence) -> tuple[Difference, ...]:
    """At most `Options.samples` differences of each kind: changed records first, then missing, then extra."""
    limit = evidence.options.samples
    if evidence.aligned is None or evidence.same_records or not limit:
        return ()
    return tuple(_listed(evidence, limit))


def _listed(evidence: Evidence, limit: int) -> list[Difference]:
    assert evidence.aligned is not None
    missing, extra = (set(map(int, numbers)) for numbers in evidence.surplus)
    found: list[Difference] = []
    left = dict(_values(evidence, 0, missing, 4 * limit))
    right = dict(_values(evidence, 1, extra, 4 * limit))
    for pair in evidence.aligned.pairs:
        number = pair.reference.first
        if evidence.aligned.active and number in missing and pair.candidate.first in extra:
            left[number] = evidence.reference.values(pair.reference, 0)
            right[number] = evidence.candidate.values(pair.candidate, 0)
    matched = _matches(evidence, left, right)
    for one, two in matched[:limit]:
        found.append(changed(evidence, one, left[one], two, right[two]))
    paired = {one for one, _ in matched}, {two for _, two in matched}
    for number in sorted(missing - paired[0])[:limit]:
        found.append(
            Difference(
                "missing", reference=evidence.reference.locate(number), reference_record=left.get(number)
            )
        )
    for number in sorted(extra - paired[1])[:limit]:
        values = right.get(number)
        found.append(
            Difference(
                "extra",
                candidate=evidence.candidate.locate(number),
                candidate_record=_renamed(evidence, values),
            )
        )
    return found


def _renamed(evidence: Evidence, values: Values | None) -> Values | None:
    if values is None:
        return None
    return dict(zip(evidence.reference.names, values.values(), strict=True))


def _values(evidence: Evidence, side: int, numbers: set[int], limit: int) -> list[tuple[int, Values]]:
    observation = (evidence.reference, evidence.candidate)[side]
    found: list[tuple[int, Values]] = []
    for number in sorted(numbers):
        values = observation.kept_record(number)
        if values is None or len(found) >= limit:
            break
        found.append((number, values))
    return found


def _matches(evidence: Evidence, left: dict[int, Values], right: dict[int, Values]) -> list[tuple[int, int]]:
    """Pairs of a missing and an extra record that are the same record with other values, in the reference's
    order.
    """
    free = dict(right)
    pairs = []
    for one, values in left.items():
        candidates = (
            [one] if one in free and evidence.aligned is not None and evidence.aligned.active else list(free)
        )
        best, score = None, 0.0
        for two in candidates:
            near = likeness(list(values.values()), list(free[two].values()))
            if near > score or (two == one and candidates == [one]):
                best, score = two, near
        if best is not None:
            pairs.append((one, best))
            del free[best]
    return pairs


def likeness(left: list[Any], right: list[Any]) -> float:
    """How much two records look like one record: the mean over the features of the share of equal
    elements.
    """
    return float(np.mean([_share(as_array(a), as_array(b)) for a, b in zip(left, right, strict=True)]))


def _share(one: Any, two: Any) -> float:
    if one.shape != two.shape or (one.dtype == object) != (two.dtype == object):
        return 0.0
    return float(np.mean(one == two)) if one.size else 1.0


def changed(evidence: Evidence, one: int, left: Values, two: int, right: Values) -> Difference:
    """The difference between two records, with the first element that differs."""
    counts: dict[str, int] = {}
    first: tuple[str, tuple[int, ...] | None, Any, Any] | None = None
    for name, a, b in zip(left, left.values(), right.values(), strict=True):
        x, y = as_array(a), as_array(b)
        if x.shape != y.shape or (x.dtype == object) != (y.dtype == object):
            counts[name] = max(x.size, y.size)
            first = first or (name, None, f"shape {list(x.shape)}", f"shape {list(y.shape)}")
            continue
        unequal = differing(x, y, evidence.options.equal_nan)
        count = int(np.count_nonzero(unequal))
        if count:
            counts[name] = count
            index = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(unequal)))[: x.ndim]
            first = first or (name, index, _plain(x[index]), _plain(y[index]))
    return Difference(
        "changed",
        reference=evidence.reference.locate(one),
        candidate=evidence.candidate.locate(two),
        feature=first[0] if first else None,
        index=first[1] if first else None,
        reference_value=first[2] if first else None,
        candidate_value=first[3] if first else None,
        differing=counts,
        reference_record=left,
        candidate_record=_renamed(evidence, right),
    )


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, (np.generic, np.ndarray)) and np.ndim(value) == 0 else value
