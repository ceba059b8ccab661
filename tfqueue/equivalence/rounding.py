"""Rounding put aside: the comparison once more, with values that differ in the last digits taken for equal.

A graph optimiser may turn a division into a multiplication, and then hardly any record is equal bit for bit. That is a
difference; but behind it everything else that differs would be hidden: a remainder, a missing file, other labels. So
where rounding is seen, both sides are read again, with one digest for all values of a feature that are as near to each
other as the rounding that was seen.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tfqueue.equivalence.again import run_again
from tfqueue.equivalence.align import distance, ulps, within
from tfqueue.equivalence.chunk import Chunk
from tfqueue.equivalence.digest import Words, fmix
from tfqueue.equivalence.evidence import Evidence
from tfqueue.equivalence.leaves import Array, Dense, Leaf, values_of

_MOST_RECORDS = 2_000_000  # so many are held with three numbers a feature for a while
_SHARE = 0.3  # of the records that were matched; where records are missing, others are matched in their place
_COARSE = 1e-3  # of a record's norm; beyond, unrelated records would be taken for one
_STEPS = 64  # units in the last place that count as rounding

Floats = npt.NDArray[np.float64]


def fine(one: Array, two: Array) -> bool:
    """Whether two arrays of floats differ by nothing but rounding."""
    steps = ulps(one, two)
    if steps is None or one.shape != two.shape:
        return False
    scale = float(np.abs(np.nan_to_num(one)).max(initial=0.0))
    with np.errstate(all="ignore"):
        return bool(np.all((steps <= _STEPS) | (np.abs(one - two) <= 4 * np.finfo(one.dtype).eps * scale)))


def rounded_features(evidence: Evidence) -> dict[int, float]:
    """The features that differ by rounding, or within their tolerance, in many records recognised on both sides.

    Returns:
        By the feature's number, how far its projections are apart at most, as a share of a record's norm.
    """
    look = evidence.look
    found: dict[int, float] = {}
    for index, name in enumerate(evidence.reference.names if look is not None and look.matches else ()):
        tolerance = evidence.options.tolerance(name)
        widths, far = [], 0
        for match in look.matches if look is not None else ():
            left, right = match.reference.leaves[index], match.candidate.leaves[index]
            if index in match.equal:
                continue
            if not _comparable(left, right):
                far += 1
                continue
            one, two = values_of(left), values_of(right)
            if fine(one, two) or (any(tolerance) and bool(within(one, two, distance(one, two), tolerance).all())):
                a, b = projected(one), projected(two)
                widths.append(float(np.abs(a[0, :2] - b[0, :2]).max() / max(a[0, 2], 1e-300)))
            else:
                far += 1
        if widths and len(widths) >= _SHARE * (len(widths) + far):
            width = 4 * max(widths) + 16 * float(np.finfo(evidence.reference.views[index].dtypes[0]).eps)
            if width <= _COARSE:
                found[index] = width
    return found


def _comparable(left: Leaf, right: Leaf) -> bool:
    return (
        isinstance(left, Dense)
        and isinstance(right, Dense)
        and left.array.dtype == right.array.dtype
        and left.array.dtype in (np.float32, np.float64)
        and left.array.shape == right.array.shape
    )


_WEIGHTS: dict[int, Floats] = {}


def projected(rows: Array) -> Floats:
    """Two sums of each record's values with random weights, and its norm: float64 of shape [records, 3]."""
    width = int(np.prod(rows.shape[1:], dtype=np.int64))
    if width not in _WEIGHTS:
        _WEIGHTS.clear()  # one width at a time is enough; images would fill the memory
        _WEIGHTS[width] = np.stack([np.random.default_rng(k).standard_normal(width) for k in (1, 2)])
    values = np.nan_to_num(rows.reshape(len(rows), width).astype(np.float64), posinf=1.0, neginf=-1.0)
    norm = np.sqrt(np.einsum("ij,ij->i", values, values))
    return np.stack([values @ _WEIGHTS[width][0], values @ _WEIGHTS[width][1], norm], axis=1)


@dataclass
class Rounded:
    """One digest for all values of a feature that differ by rounding only.

    Args:
        width: How far projections of one value are apart at most, as a share of the record's norm.
    """

    width: float
    _seen: array[float] = field(default_factory=lambda: array("d"))
    _edges: Floats = field(default_factory=lambda: np.zeros(0))
    _low: Floats = field(default_factory=lambda: np.zeros(0))
    _high: Floats = field(default_factory=lambda: np.zeros(0))
    _lower: Floats = field(default_factory=lambda: np.zeros(0))
    _upper: Floats = field(default_factory=lambda: np.zeros(0))
    _parts: dict[int, Floats] = field(default_factory=dict)

    def add(self, leaf: Leaf) -> None:
        """Learn the values of a batch."""
        if isinstance(leaf, Dense):
            self._seen.frombytes(projected(leaf.array).tobytes())

    def learnt(self) -> None:
        """All values were added: find which of them are one."""
        rows = np.frombuffer(self._seen, dtype=np.float64).reshape(-1, 3)
        order = np.argsort(rows[:, 0])
        first, second, norm = rows[order].T
        starts = np.concatenate([[0], 1 + self._breaks(first, norm)]).astype(np.int64)
        ends = np.append(starts[1:], len(first))
        self._low, self._high = first[starts], first[ends - 1]
        self._edges = (self._high[:-1] + self._low[1:]) / 2
        self._lower, self._upper = np.minimum.reduceat(second, starts), np.maximum.reduceat(second, starts)
        wide = np.flatnonzero(self._upper > self._lower)
        for group in wide.tolist():
            part = slice(int(starts[group]), int(ends[group]))
            inner = np.argsort(second[part])
            values = second[part][inner]
            cuts = self._breaks(values, norm[part][inner])
            if len(cuts):
                self._parts[group] = (values[cuts] + values[cuts + 1]) / 2
        self._seen = array("d")

    def _breaks(self, values: Floats, norm: Floats) -> npt.NDArray[np.int64]:
        return np.flatnonzero(np.diff(values) > self.width * np.maximum(norm[1:], norm[:-1]))

    def words(self, leaf: Leaf, digests: Words) -> Words:
        """The digests of a batch: those of the values it learnt, and for values it did not learn, their own."""
        if not isinstance(leaf, Dense):
            return digests
        first, second, norm = projected(leaf.array).T
        groups = np.searchsorted(self._edges, first)
        slack = self.width * norm
        known = (first >= self._low[groups] - slack) & (first <= self._high[groups] + slack)
        known &= (second >= self._lower[groups] - slack) & (second <= self._upper[groups] + slack)
        numbers = groups.astype(np.uint64) << np.uint64(20)
        for row in [r for r, group in enumerate(groups.tolist()) if group in self._parts]:
            numbers[row] += np.uint64(np.searchsorted(self._parts[int(groups[row])], second[row]))
        return np.where(known, fmix(numbers + np.uint64(1)), digests)


def learn(evidence: Evidence) -> dict[int, Rounded]:
    """What is needed to read both sides without their rounding; empty if there is none to see, or no second run."""
    left, right = evidence.reference, evidence.candidate
    if max(left.count, right.count) > _MOST_RECORDS or not (left.side.repeatable and right.side.repeatable):
        return {}
    rounded = {index: Rounded(width) for index, width in rounded_features(evidence).items()}

    def harvest(chunk: Chunk) -> None:
        for index, feature in rounded.items():
            feature.add(chunk.leaves[index])

    if rounded and not all(run_again(side, harvest) is not None for side in (left, right)):
        return {}
    for feature in rounded.values():
        feature.learnt()
    return rounded
