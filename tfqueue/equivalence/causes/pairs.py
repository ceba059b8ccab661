"""The values of one feature in records that were recognised as the same on both sides."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tfqueue.equivalence.evidence import Evidence
from tfqueue.equivalence.leaves import STRING, Array, Dense

_ALL = 0.9


@dataclass
class Changed:
    """One feature that differs between matched records.

    Attributes:
        name: Its name in the reference.
        left: Its values in the reference, one array a record.
        right: Its values in the candidate.
    """

    name: str
    left: list[Array]
    right: list[Array]

    @cached_property
    def numeric(self) -> bool:
        """True if both sides hold numbers."""
        return all(a.dtype.kind in "biuf" and b.dtype.kind in "biuf" for a, b in self._both)

    @cached_property
    def alike(self) -> bool:
        """True if the shapes of both sides agree in every record, and among records."""
        return len({a.shape for a in self.left} | {b.shape for b in self.right}) == 1

    @property
    def _both(self) -> list[tuple[Array, Array]]:
        return list(zip(self.left, self.right, strict=True))

    @cached_property
    def stacked(self) -> tuple[Array, Array]:
        """Both sides as float64 of shape [records, ...], for features that are numeric and alike."""
        one, two = (np.stack(side).astype(np.float64) for side in (self.left, self.right))
        return np.nan_to_num(one), np.nan_to_num(two)

    def explained(self, made: list[Array]) -> bool:
        """Whether ``made`` (from the reference's values) is what the candidate has, in nearly every
        record.
        """
        return share_close(made, self.right) >= _ALL


def share_close(made: list[Array], wanted: list[Array]) -> float:
    """The share of arrays that agree up to rounding."""
    return float(np.mean([close(a, b) for a, b in zip(made, wanted, strict=True)]))


def close(one: Array, two: Array) -> bool:
    """Whether two arrays agree up to rounding: within 1e-5 of their range."""
    if one.shape != two.shape or one.dtype == object or two.dtype == object:
        return False
    a, b = np.nan_to_num(np.asarray(one, np.float64)), np.nan_to_num(np.asarray(two, np.float64))
    largest = float(np.abs(b).max(initial=0.0))
    return bool(np.abs(a - b).max(initial=0.0) <= 1e-5 * largest)


def changed_features(evidence: Evidence) -> list[Changed]:
    """The dense features that differ in matched records, those that differ in most records first."""
    matches = evidence.look.matches if evidence.look is not None else []
    found = []
    for index, name in enumerate(evidence.reference.names):
        both = []
        for match in matches:
            left, right = match.reference.leaves[index], match.candidate.leaves[index]
            if index in match.equal or STRING in (left.dtype, right.dtype):
                continue
            if isinstance(left, Dense) and isinstance(right, Dense):
                both.append((np.asarray(left.array[0]), np.asarray(right.array[0])))
        if both:
            found.append(Changed(name, [a for a, _ in both], [b for _, b in both]))
    return sorted(found, key=lambda c: -len(c.left))


def systematic(evidence: Evidence) -> bool:
    """Whether so many records differ that something was done to all of them."""
    missing, _ = evidence.surplus
    return len(missing) >= max(2, 0.2 * evidence.reference.count)
