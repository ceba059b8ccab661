"""The values of one feature in records that were recognised as the same on both sides."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tfqueue.equivalence.evidence import Evidence
from tfqueue.equivalence.leaves import STRING, Array, Dense, Leaf, values_of

_ALL = 0.9
_SAMPLE = 1 << 14
_LARGE = 1 << 18  # elements of a record
_MOST_ELEMENTS = 8 << 20  # of a feature, on each side: large images tell as much in few records


@dataclass
class Changed:
    """One feature that differs between matched records.

    Attributes:
        name: Its name in the reference.
        left: Its values in the reference, one array a record.
        right: Its values in the candidate.
        records: In how many matched records it differs; of large features, only some of them are held.
    """

    name: str
    left: list[Array]
    right: list[Array]
    records: int = 0

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
        wrong, most = 0, (1 - _ALL) * len(self.right) + 1e-9
        for one, two in zip(made, self.right, strict=True):
            wrong += not close(one, two)
            if wrong > most:
                return False
        return True

    @property
    def thinned(self) -> Changed:
        """The same for the first rows of large arrays, which tell as much of what is done to each element."""
        size = self.left[0].size
        if not self.alike or self.left[0].ndim < 2 or size <= _LARGE:
            return self
        rows = max(1, _LARGE * len(self.left[0]) // size)
        return Changed(self.name, [a[:rows] for a in self.left], [b[:rows] for b in self.right], self.records)

    def first(self, count: int) -> Changed:
        """The same for the first few records."""
        return Changed(self.name, self.left[:count], self.right[:count], self.records)


def close(one: Array, two: Array) -> bool:
    """Whether two arrays agree up to rounding: within 1e-5 of their range."""
    if one.shape != two.shape or one.dtype == object or two.dtype == object:
        return False
    if one.size > _SAMPLE and not _sample_close(one, two):
        return False
    a, b = np.nan_to_num(np.asarray(one, np.float64)), np.nan_to_num(np.asarray(two, np.float64))
    largest = float(np.abs(b).max(initial=0.0))
    return bool(np.abs(a - b).max(initial=0.0) <= 1e-5 * largest)


def _sample_close(one: Array, two: Array) -> bool:
    """`close` for some elements, which most often settles that two large arrays do not agree."""
    places = tuple(np.random.default_rng(0).integers(0, size, _SAMPLE // 16) for size in one.shape)
    a, b = (np.nan_to_num(values[places].astype(np.float64)) for values in (one, two))
    apart = float(np.abs(a - b).max())
    return apart == 0 or apart <= 1e-5 * float(np.abs(np.nan_to_num(two)).max())


def changed_features(evidence: Evidence) -> list[Changed]:
    """The features that differ in matched records, those that differ in most records first."""
    matches = evidence.look.matches if evidence.look is not None else []
    found = []
    for index, name in enumerate(evidence.reference.names):
        both: list[tuple[Array, Array]] = []
        held = count = 0
        for match in matches:
            left, right = match.reference.leaves[index], match.candidate.leaves[index]
            if index in match.equal or STRING in (left.dtype, right.dtype):
                continue
            if left.kind == right.kind:
                count += 1
                one, two = _values(left), _values(right)
                held += one.size
                if held <= _MOST_ELEMENTS or len(both) < 3:
                    both.append((one, two))
        if both:
            both = _filled_up(both)
            found.append(Changed(name, [a for a, _ in both], [b for _, b in both], count))
    return sorted(found, key=lambda c: -c.records)


def _values(leaf: Leaf) -> Array:
    """The values of a leaf of one record; of a ragged or sparse one, those that it holds."""
    return np.asarray(leaf.array[0] if isinstance(leaf, Dense) else values_of(leaf))


def _filled_up(both: list[tuple[Array, Array]]) -> list[tuple[Array, Array]]:
    """Sequences that have one length on both sides, but not in all records, filled up with zeros as in one batch."""
    lengths = {len(a) for a, b in both if a.ndim == 1 and a.shape == b.shape}
    if len(lengths) < 2 or any(a.ndim != 1 or a.shape != b.shape for a, b in both):
        return both
    longest = max(lengths)
    return [(np.pad(a, (0, longest - len(a))), np.pad(b, (0, longest - len(b)))) for a, b in both]


def systematic(evidence: Evidence) -> bool:
    """Whether so many records differ that something was done to all of them."""
    missing, _ = evidence.surplus
    return len(missing) >= max(2, 0.2 * evidence.reference.count)
