"""Pairs records in any order whose values agree within the tolerances."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from tfqueue.equivalence.align import differing, distance, within
from tfqueue.equivalence.chunk import Chunk
from tfqueue.equivalence.leaves import Dense, Leaf
from tfqueue.equivalence.options import Options


def pair_within(
    left: list[Chunk], right: list[Chunk], names: tuple[str, ...], options: Options
) -> list[tuple[Chunk, Chunk]]:
    """Pair records that are equal in every feature without a tolerance and close in every other one.

    Records that agree in the exact features are put in the order of a projection of their other values on a
    fixed direction; only records near each other in that order are compared value by value.

    Args:
        left: Chunks of one record of the reference.
        right: Chunks of one record of the candidate.
        names: The features, by the reference's names.
        options: The tolerances.

    Returns:
        The pairs, each record in one at most.
    """
    loose = [i for i, name in enumerate(names) if any(options.tolerance(name))]
    groups: dict[tuple[int, ...], tuple[list[Chunk], list[Chunk]]] = defaultdict(lambda: ([], []))
    for side, chunks in enumerate((left, right)):
        for chunk in chunks:
            exact = tuple(int(d[0]) for i, d in enumerate(chunk.features) if i not in loose)
            groups[exact][side].append(chunk)
    pairs: list[tuple[Chunk, Chunk]] = []
    for ones, twos in groups.values():
        pairs += _pair_group(ones, twos, names, loose, options)
    return pairs


def _pair_group(
    ones: list[Chunk], twos: list[Chunk], names: tuple[str, ...], loose: list[int], options: Options
) -> list[tuple[Chunk, Chunk]]:
    if not ones or not twos:
        return []
    places, windows = zip(*(_projection(chunk, names, loose, options) for chunk in ones), strict=True)
    order = np.argsort(places)
    sorted_places = np.asarray(places)[order]
    window = max(windows)
    free = np.ones(len(ones), dtype=bool)
    pairs = []
    for chunk in sorted(twos, key=lambda c: _projection(c, names, loose, options)[0]):
        place = _projection(chunk, names, loose, options)[0]
        low, high = np.searchsorted(sorted_places, [place - window, place + window])
        for at in range(int(low), int(min(high + 1, len(ones)))):
            other = ones[order[at]]
            if free[at] and all(_close(other.leaves[i], chunk.leaves[i], names[i], options) for i in loose):
                free[at] = False
                pairs.append((other, chunk))
                break
    return pairs


def _projection(chunk: Chunk, names: tuple[str, ...], loose: list[int], options: Options) -> tuple[float, float]:
    """(the record's place on the line, how far a record within the tolerances may stand from it)."""
    place = window = 0.0
    for index in loose:
        leaf = chunk.leaves[index]
        if isinstance(leaf, Dense) and leaf.array.dtype.kind in "biuf":
            values = np.nan_to_num(leaf.array.astype(np.float64).ravel(), posinf=0.0, neginf=0.0)
            signs = np.random.default_rng(index).choice([-1.0, 1.0], size=values.size)
            rtol, atol = options.tolerance(names[index])
            place += float(signs @ values)
            window += float((atol + rtol * np.abs(values)).sum()) * (1 + 1e-9) + 1e-9 * float(np.abs(values).sum())
    return place, window


def _close(left: Leaf, right: Leaf, name: str, options: Options) -> bool:
    if not isinstance(left, Dense) or not isinstance(right, Dense) or left.array.shape != right.array.shape:
        return False
    one, two = left.array, right.array
    unequal = differing(one, two, options.equal_nan)
    if not unequal.any():
        return True
    if one.dtype.kind not in "biuf" or two.dtype.kind not in "biuf":
        return False
    a, b = one[unequal], two[unequal]
    return bool(within(a, b, distance(a, b), options.tolerance(name)).all())
