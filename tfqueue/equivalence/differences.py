"""Samples of the records that differ, each with what differs first and with its values."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfqueue.equivalence.align import differing
from tfqueue.equivalence.evidence import Evidence, Indices
from tfqueue.equivalence.leaves import as_array
from tfqueue.equivalence.report import Difference
from tfqueue.equivalence.second_look import SecondLook

Values = dict[str, Any]


def samples_of(evidence: Evidence) -> tuple[Difference, ...]:
    """At most `Options.samples` differences of each kind: changed records first, then missing, then extra."""
    limit = evidence.options.samples
    look = evidence.look
    if evidence.aligned is None or evidence.same_records or look is None or look.remainder or not limit:
        return ()
    return tuple(_listed(evidence, look, limit))


def _listed(evidence: Evidence, look: SecondLook, limit: int) -> list[Difference]:
    left, right = evidence.reference, evidence.candidate
    found = [
        changed(
            evidence,
            match.reference.first,
            left.values(match.reference, 0),
            match.candidate.first,
            right.values(match.candidate, 0),
            frozenset(left.names[index] for index in match.equal),
        )
        for match in look.matches[:limit]
    ]
    missing, extra = evidence.surplus
    paired = {m.reference.first for m in look.matches}, {m.candidate.first for m in look.matches}
    values = {chunk.first: left.values(chunk, 0) for chunk in look.missing}
    for number in _unpaired(missing, extra, paired[0], limit):
        found.append(Difference("missing", reference=left.locate(number), reference_record=values.get(number)))
    values = {chunk.first: right.values(chunk, 0) for chunk in look.extra}
    for number in _unpaired(extra, missing, paired[1], limit):
        record = _renamed(evidence, values.get(number))
        found.append(Difference("extra", candidate=right.locate(number), candidate_record=record))
    return found


def _unpaired(numbers: Indices, others: Indices, paired: set[int], limit: int) -> list[int]:
    """Records to show as missing or extra: not if those with values are all paired, as the rest will be,
    too.
    """
    if len(paired) and len(numbers) == len(others) and len(numbers) > len(paired):
        return []
    return [number for number in numbers.tolist() if number not in paired][:limit]


def _renamed(evidence: Evidence, values: Values | None) -> Values | None:
    if values is None:
        return None
    return dict(zip(evidence.reference.names, values.values(), strict=True))


def changed(evidence: Evidence, one: int, left: Values, two: int, right: Values, equal: frozenset[str]) -> Difference:
    """The difference between two records, with the first element that differs."""
    counts: dict[str, int] = {}
    first: tuple[str, tuple[int, ...] | None, Any, Any] | None = None
    for name, a, b in zip(left, left.values(), right.values(), strict=True):
        if a is None or b is None:
            if name not in equal:
                counts[name] = 1
                first = first or (name, None, a, b)
            continue
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
