"""Position by position: record i of the reference against record i of the candidate, with figures on the
values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfqueue.equivalence.chunk import Chunk
from tfqueue.equivalence.leaves import Array, Dense, Leaf, as_plain_floats
from tfqueue.equivalence.options import Options

_PAIRS = 64
_PAIR_BYTES = 32 << 20  # 26 pairs of float images of 224 x 224
_BLOCK = 1 << 16  # elements looked at at once: what is computed on the way stays in the cache
_ENOUGH = 6


@dataclass(slots=True)
class ValueStats:
    """How the values of one feature differ, over the records that were compared value by value.

    Attributes:
        feature: The feature's name in the reference.
        records: Records in which it differs.
        elements: Elements of those records.
        differing: Elements that are not equal.
        beyond: Elements that are not within the tolerance.
        incomparable: Records whose shapes or kinds differ, so that no element was compared.
        max_abs: The largest absolute difference.
        sum_abs: The sum of all absolute differences of the differing elements.
        max_ulp: The largest difference in units in the last place, for floats of one dtype.
        worst: (record, index, reference value, candidate value) of the largest difference.
    """

    feature: str
    records: int = 0
    elements: int = 0
    differing: int = 0
    beyond: int = 0
    incomparable: int = 0
    max_abs: float = 0.0
    sum_abs: float = 0.0
    max_ulp: int | None = None
    worst: tuple[int, tuple[int, ...], Any, Any] | None = None

    def described(self) -> dict[str, Any]:
        """The figures as plain values."""
        worst = None
        if self.worst is not None:
            record, index, left, right = self.worst
            worst = {"record": record, "index": list(index), "reference": left, "candidate": right}
        return {
            "records": self.records,
            "elements": self.elements,
            "differing": self.differing,
            "share": self.differing / self.elements if self.elements else None,
            "beyond_tolerance": self.beyond,
            "incomparable_records": self.incomparable,
            "max_abs": self.max_abs,
            "mean_abs": self.sum_abs / self.differing if self.differing else 0.0,
            "max_ulp": self.max_ulp,
            "worst": worst,
        }


@dataclass(frozen=True, slots=True)
class Pair:
    """Two records held side by side, each a chunk of one record."""

    reference: Chunk
    candidate: Chunk


def differing(left: Array, right: Array, equal_nan: bool) -> Array:
    """Which elements of two arrays of one shape differ."""
    unequal: Array = np.asarray(left != right)
    if equal_nan and left.dtype.kind == "f" and right.dtype.kind == "f":
        unequal = unequal & ~(np.isnan(left) & np.isnan(right))
    return unequal


def ulps(left: Array, right: Array) -> Array | None:
    """The distances of two float arrays of one dtype in units in the last place; None for other dtypes."""
    if left.dtype != right.dtype or left.dtype.kind != "f" or left.dtype.itemsize > 8:
        return None
    as_int = np.dtype(f"i{left.dtype.itemsize}")
    lowest = np.iinfo(as_int).min

    def ordered(values: Array) -> Array:
        bits = np.ascontiguousarray(values).view(as_int)
        return np.where(bits < 0, lowest - bits, bits).astype(np.float64)

    return np.asarray(np.abs(ordered(left) - ordered(right)))


class Aligned:
    """The comparison position by position.

    Args:
        names: The features, by the reference's names.
        options: The options of the comparison.

    Attributes:
        compared: Positions compared.
        equal: Positions with equal records.
        close: Positions that are not equal but within the tolerance.
        first: The first position that is not equal, or None.
        active: False once the values at equal positions turned out to be of different records.
        stats: The figures, one a feature.
        pairs: The first records that are not equal, bounded in number and bytes.
    """

    def __init__(self, names: tuple[str, ...], options: Options) -> None:
        self.names = names
        self.options = options
        self.compared = 0
        self.equal = 0
        self.close = 0
        self.first: int | None = None
        self.active = True
        self.stats = [ValueStats(name) for name in names]
        self.pairs: list[Pair] = []
        self._pair_bytes = 0
        self._judged = False

    @property
    def unequal(self) -> int:
        return self.compared - self.equal

    def add(self, reference: Chunk, candidate: Chunk) -> None:
        """Compare two chunks of equal size that stand at the same place of their streams."""
        rows = np.flatnonzero(reference.records != candidate.records)
        self.compared += reference.size
        self.equal += reference.size - len(rows)
        if not len(rows):
            return
        if self.first is None:
            self.first = reference.first + int(rows[0])
        if not self.active:
            return
        self._look(reference, candidate, rows)
        if self.unequal >= _PAIRS:
            self.finish()

    def finish(self) -> None:
        """Decide, once, whether records at the same place are the same records."""
        if not self._judged:
            self._judged = True
            with np.errstate(all="ignore"):  # values may be anything
                self.active = self.equal >= self.compared / 2 or self.alike() is not False

    def _look(self, reference: Chunk, candidate: Chunk, rows: Array) -> None:
        for row in rows[: _PAIRS - len(self.pairs)]:
            one, two = reference.part(row, row + 1), candidate.part(row, row + 1)
            self._pair_bytes += sum(leaf.nbytes for leaf in (*one.leaves, *two.leaves))
            if self.pairs and self._pair_bytes > _PAIR_BYTES:
                break
            self.pairs.append(Pair(one.copied(), two.copied()))
        far = np.zeros(reference.size, dtype=bool)
        for index, stats in enumerate(self.stats):
            changed = np.flatnonzero(reference.features[index] != candidate.features[index])
            if len(changed):
                add_values(
                    stats,
                    reference.leaves[index],
                    candidate.leaves[index],
                    changed,
                    reference.first,
                    self.options,
                    far,
                )
        self.close += int(np.count_nonzero(~far[rows]))

    def alike(self) -> bool | None:
        """Whether the pairs are the same records with other values; None if nothing speaks for or against it.

        Compares each record of the reference with its partner and with its partner's neighbour: equal
        features, distance, distance after normalisation, and over all pairs the correlation of single
        numbers.
        """
        count = len(self.pairs)
        if count < 2:
            return None
        verdict: bool | None = None
        for index in range(len(self.names)):
            left = [pair.reference for pair in self.pairs]
            right = [pair.candidate for pair in self.pairs]
            own = [a.features[index][0] == b.features[index][0] for a, b in zip(left, right, strict=True)]
            other = [
                a.features[index][0] == b.features[index][0] for a, b in zip(left, right[1:] + right[:1], strict=True)
            ]
            if np.mean(own) - np.mean(other) > 0.5:
                return True
            answer = _near([a.leaves[index] for a in left], [b.leaves[index] for b in right])
            if answer:
                return True
            verdict = answer if answer is not None else verdict
        return verdict


def _near(left: list[Leaf], right: list[Leaf]) -> bool | None:
    rows = [
        (a.array[:1], b.array[:1])
        for a, b in zip(left, right, strict=True)
        if isinstance(a, Dense) and isinstance(b, Dense)
    ]
    rows = [(a, b) for a, b in rows if a.shape == b.shape and a.dtype.kind in "biuf" and b.dtype.kind in "biuf"]
    if len(rows) < 2 or len({a.shape for a, _ in rows}) > 1:
        return None
    every = -(-rows[0][0].size // _BLOCK)  # of a large image, some of the numbers tell as much as all
    one, two = (
        np.nan_to_num(np.stack([row[k].reshape(-1)[::every] for row in rows]).astype(np.float64)) for k in (0, 1)
    )
    normal = (
        [(_normal(one), _normal(two))] if one.shape[1] >= _ENOUGH else []
    )  # of two numbers nothing is left but a sign
    for a, b in [(one, two), *normal]:
        own = np.median(np.abs(a - b).mean(axis=1))
        other = np.median(np.abs(a - np.roll(b, 1, axis=0)).mean(axis=1))
        if other > 0 and own < other / 2:
            return True
    if one.shape[1] == 1:
        if len(rows) < 8 or np.ptp(one) == 0 or np.ptp(two) == 0:
            return None
        own, other = (float(np.corrcoef(one[:, 0], b)[0, 1]) for b in (two[:, 0], np.roll(two[:, 0], 1)))
        # Numbers in a slow order, such as labels of sorted files, are near those of their neighbours, too.
        return own > 0.9 and 1 - own < 0.3 * (1 - other)
    return False


def _normal(rows: Array) -> Array:
    centred = rows - rows.mean(axis=1, keepdims=True)
    scale = centred.std(axis=1, keepdims=True)
    return np.asarray(centred / np.where(scale > 0, scale, 1))


def add_values(
    stats: ValueStats, left: Leaf, right: Leaf, rows: Array, first: int, options: Options, far: Array
) -> None:
    """Add the differences of some rows of two leaves to the figures, and mark the rows that are beyond
    tolerance.
    """
    stats.records += len(rows)
    one, two = _values(left, rows), _values(right, rows)
    if one is not None and two is not None:
        one, two = as_plain_floats(one), as_plain_floats(two)
    if one is None or two is None or one.shape != two.shape or (one.dtype == object) != (two.dtype == object):
        stats.incomparable += len(rows)
        far[rows] = True
        return
    shape, width = one.shape[1:], math.prod(one.shape[1:])
    one, two = one.reshape(len(rows), width), two.reshape(len(rows), width)
    step = max(1, _BLOCK // max(1, width))
    for start in range(0, len(rows), step):
        for column in range(0, width, _BLOCK):
            part = slice(start, start + step), slice(column, column + _BLOCK)
            too_far, worst = _add_block(stats, one[part], two[part], options)
            far[rows[start : start + step]] |= too_far
            if worst is not None:
                row, place = start + worst[0], column + worst[1]
                index = tuple(int(i) for i in np.unravel_index(place, shape)) if shape else ()
                stats.worst = (first + int(rows[row]), index, _item(one[row, place]), _item(two[row, place]))


def _add_block(stats: ValueStats, one: Array, two: Array, options: Options) -> tuple[Array, tuple[int, int] | None]:
    """Add some elements of some rows to the figures.

    Returns:
        Which rows are beyond tolerance, and where the largest difference is, if it is the largest so far.
    """
    unequal = differing(one, two, options.equal_nan)
    stats.elements += unequal.size
    count = int(np.count_nonzero(unequal))
    stats.differing += count
    if not count:
        return np.zeros(len(one), dtype=bool), None
    if one.dtype == object or one.dtype.kind not in "biuf" or two.dtype.kind not in "biuf":
        beyond, apart = unequal, unequal.astype(np.float64)
    else:
        apart = np.where(unequal, distance(one, two), 0.0)
        beyond = unequal & ~within(one, two, apart, options.tolerance(stats.feature))
        finite = apart[np.isfinite(apart)]
        stats.sum_abs += float(finite.sum())
        steps = ulps(one, two)
        if steps is not None:
            usable = steps[unequal & np.isfinite(apart)]
            stats.max_ulp = max(stats.max_ulp or 0, int(usable.max(initial=0)))
    stats.beyond += int(np.count_nonzero(beyond))
    far: Array = np.any(beyond, axis=1)
    flat = int(np.argmax(apart))
    largest = float(apart.flat[flat])
    if largest > stats.max_abs or stats.worst is None:
        stats.max_abs = max(stats.max_abs, largest)
        return far, (flat // apart.shape[1], flat % apart.shape[1])
    return far, None


def distance(one: Array, two: Array) -> Array:
    """How far unequal elements are apart, as float64; infinite where one of them is NaN or infinite."""
    with np.errstate(all="ignore"):
        apart = np.abs(one.astype(np.float64) - two.astype(np.float64))
    if one.dtype.kind in "biu" and two.dtype.kind in "biu":
        apart = np.maximum(apart, 1.0)  # beyond 2**53, integers may differ though their nearest floats do not
    return np.where(np.isnan(apart), np.inf, apart)


def within(one: Array, two: Array, apart: Array, tolerance: tuple[float, float]) -> Array:
    """Which elements are within a tolerance; an infinity is near nothing but itself.

    Args:
        one: The reference's elements.
        two: The candidate's.
        apart: Their distances, as `distance` gives them.
        tolerance: (rtol, atol).
    """
    rtol, atol = tolerance
    with np.errstate(all="ignore"):
        allowed = atol + rtol * np.abs(one.astype(np.float64))
        return np.asarray((one == two) | ((apart <= allowed) & np.isfinite(apart)))


def _values(leaf: Leaf, rows: Array) -> Array | None:
    if isinstance(leaf, Dense):
        return np.asarray(leaf.array[rows])
    values = [leaf.row(int(row)) for row in rows]
    if all(isinstance(v, np.ndarray) for v in values) and len({v.shape for v in values}) == 1:
        return np.stack(values)
    return None


def _item(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
