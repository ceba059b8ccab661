"""Finds, for records that only the reference has, the candidate's version of the same record.

Records are compared by what survives the usual mistakes: features that are still equal (the rarer, the
stronger), a coarse picture of each large feature without its scale and offset (survives resizing, narrowing
and scaling), and the distribution of its values (survives flips, transposition and exchanged channels).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tfqueue.equivalence.chunk import Chunk
from tfqueue.equivalence.leaves import Array, Dense, Leaf

_GRID = 8
_QUANTILES = 24
_SMALL = 6
_ACCEPT = 0.5
_NEARLY = 0.02  # so near only a record and itself are; an equal label must not outweigh it
_DISTRIBUTION = 1


def split_rows(chunk: Chunk) -> list[Chunk]:
    """A chunk as chunks of one record."""
    return [chunk.part(row, row + 1) for row in range(chunk.size)]


@dataclass(slots=True)
class Match:
    """A pair of records that are taken for one.

    Attributes:
        reference: The reference's record, a chunk of one.
        candidate: The candidate's.
        equal: The indices of the features that are equal.
    """

    reference: Chunk
    candidate: Chunk
    equal: tuple[int, ...]


def match_records(left: list[Chunk], right: list[Chunk], background: list[Chunk]) -> list[Match]:
    """Pair records of one side with records of the other, each at most once, the surest first.

    Args:
        left: Chunks of one record of the reference.
        right: Chunks of one record of the candidate.
        background: Any records of the reference, to learn how near unrelated records are.
    """
    if not left or not right:
        return []
    cost = np.full((len(left), len(right)), 2.0)
    for index in range(len(left[0].leaves)):
        cost = np.minimum(cost, _distance(*([c.leaves[index] for c in chunks] for chunks in (left, right, background))))
    bonus = np.zeros_like(cost)
    rare: set[int] = set()
    for index in range(len(left[0].leaves)):
        one, two, usual = (np.array([c.features[index][0] for c in chunks]) for chunks in (left, right, background))
        equal = one[:, np.newaxis] == two[np.newaxis, :]
        # An equal feature counts by how rarely it is equal by chance: a file name decides, a label hardly.
        chance = _equal_by_chance(usual)
        if chance * len(right) < 0.05:
            rare.add(index)
        bonus += np.where(equal, 2.0 if index in rare else 0.3 * (1 - chance), 0.0)
    cost = cost - bonus - np.where(cost < _NEARLY, 0.5, 0.0)
    matches = []
    taken_left, taken_right = set(), set()
    for flat in np.argsort(cost, axis=None, kind="stable"):
        i, j = divmod(int(flat), len(right))
        if cost[i, j] >= _ACCEPT:
            break
        if i in taken_left or j in taken_right:
            continue
        taken_left.add(i)
        taken_right.add(j)
        same = tuple(k for k in range(len(left[i].features)) if left[i].features[k][0] == right[j].features[k][0])
        matches.append(Match(left[i], right[j], same))
    # Where most pairs are sure by a rare feature, a pair without one is a record whose partner is not there.
    sure = [match for match in matches if rare.intersection(match.equal)]
    if 2 * len(sure) > len(matches):
        matches = sure
    return sorted(matches, key=lambda m: m.reference.first)


def _distance(left: list[Leaf], right: list[Leaf], background: list[Leaf]) -> Array:
    """Distances of one feature, 1 or more between unrelated records; 2 where nothing can be said."""
    one = [_signature(leaf) for leaf in left]
    two = [_signature(leaf) for leaf in right]
    others = [_signature(leaf) for leaf in background]
    best = np.full((len(left), len(right)), 2.0)
    for kind in range(3):
        a = [s[kind] if s is not None else None for s in one]
        b = [s[kind] if s is not None else None for s in two]
        length = next((len(v) for v in a if v is not None), None)
        if length is None:
            continue
        empty = np.full(length, np.nan)
        known = [s[kind] for s in others if s is not None]
        usual = [v for v in known if v is not None and len(v) == length]
        left_rows = np.stack([v if v is not None and len(v) == length else empty for v in a])
        right_rows = np.stack([v if v is not None and len(v) == length else empty for v in b])
        distance = np.stack([np.abs(right_rows - row).mean(axis=1) for row in left_rows])
        if length <= _SMALL:
            best = np.fmin(best, _chance(usual, distance))
            continue
        among = _among(usual)
        scale = float(np.quantile(among, 0.1)) if len(among) else 0.0
        if scale > 0:
            # Unrelated records may well have nearly the same distribution of values, so that one must fit better.
            best = np.fmin(best, distance / scale * (4.0 if kind == _DISTRIBUTION else 1.0))
    return best


def _among(rows: list[Array]) -> Array:
    """The distances among some unrelated records, in ascending order."""
    if len(rows) < 2:
        return np.zeros(0)
    stacked = np.stack(rows)
    i, j = np.triu_indices(len(rows), 1)
    if len(i) > 500:
        i, j = i[:: len(i) // 500], j[:: len(j) // 500]
    return np.sort(np.abs(stacked[i] - stacked[j]).mean(axis=1))


def _equal_by_chance(digests: Array) -> float:
    """The share of pairs of records that have one value in a feature; 1 where there are too few to tell."""
    if len(digests) < 2:
        return 1.0
    counts = np.unique(digests, return_counts=True)[1]
    return float((counts * (counts - 1)).sum() / (len(digests) * (len(digests) - 1)))


def _chance(rows: list[Array], distance: Array) -> Array:
    """How many unrelated records would come as near, times ten: few numbers are often near each other by
    chance.
    """
    among, count = _among(rows), distance.shape[1]
    if len(among) < 20:
        return np.full_like(distance, 2.0)
    share = np.searchsorted(among, distance, side="right") / len(among)
    # Nearer than the nearest tenth, the share is taken to fall in proportion: as for a single number.
    tenth = float(np.quantile(among, 0.1))
    if tenth > 0:
        share = np.where(distance < tenth, np.maximum(share, 0.1 * distance / tenth), share)
    return np.asarray(share * count * 10)


def _signature(leaf: Leaf) -> tuple[Array | None, Array | None, Array | None] | None:
    """(coarse picture, distribution, plain values) of one feature of one record, as far as it has them."""
    if not isinstance(leaf, Dense) or leaf.array.dtype.kind not in "biuf":
        return None
    with np.errstate(invalid="ignore"):  # of a signalling NaN
        values = np.nan_to_num(np.asarray(leaf.array[0], dtype=np.float64), posinf=0.0, neginf=0.0)
    if values.size <= _SMALL:
        return None, None, values.ravel()
    plain = values.ravel() if values.size <= 64 else None
    spread = values.std()
    if spread == 0:
        return None, None, plain
    normal = (values - values.mean()) / spread
    quantiles = np.quantile(normal, np.linspace(0, 1, _QUANTILES))
    return _pooled(normal), quantiles, plain


def _pooled(values: Array) -> Array:
    """The feature averaged over a coarse grid along its first two axes (or its only one)."""
    if values.ndim == 1:
        return _pool(values, 0, _GRID * 2)
    picture = values.reshape(values.shape[0], values.shape[1], -1).mean(axis=2)
    return _pool(_pool(picture, 0, _GRID), 1, _GRID).ravel()


def _pool(values: Array, axis: int, bins: int) -> Array:
    size = values.shape[axis]
    edges = np.linspace(0, size, bins + 1)
    total = np.concatenate([np.zeros_like(np.take(values, [0], axis=axis)), np.cumsum(values, axis=axis)], axis=axis)
    low = np.floor(edges).astype(int)
    part = np.expand_dims(edges - low, tuple(i for i in range(values.ndim) if i != axis))
    upper = np.take(total, np.minimum(low + 1, size), axis=axis)
    at = np.take(total, low, axis=axis)
    whole: Any = at + part * (upper - at)
    return np.asarray(np.diff(whole, axis=axis) / (size / bins))
