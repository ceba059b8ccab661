"""Which feature of the candidate answers to which feature of the reference, and what one record of a batch
is.
"""

from __future__ import annotations

from dataclasses import dataclass

from tfqueue.equivalence.leaves import Leaf, common_size

Features = tuple[tuple[str, Leaf], ...]


@dataclass(frozen=True, slots=True)
class Pairing:
    """The features that both sides have, and those that only one has.

    Attributes:
        pairs: (name in the reference, name in the candidate), in the reference's order.
        missing: Names that only the reference has.
        extra: Names that only the candidate has.
        renamed: The pairs whose names differ, and why they were paired.
        moved: True if positions of a tuple were exchanged to make dtypes and shapes agree.
    """

    pairs: tuple[tuple[str, str], ...]
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    moved: bool = False


def pair_features(reference: Features, candidate: Features) -> Pairing:
    """Pair features by name; where names are left over, by dtype and shape, then by position."""
    left, right = dict(reference), dict(candidate)
    common = [name for name in left if name in right]
    if len(common) == len(left) == len(right) and all(name.startswith("[") for name in common):
        swapped = _exchange(left, right)
        if swapped is not None:
            return Pairing(swapped, moved=True)
    chosen = {name: name for name in common}
    rest_left = [name for name in left if name not in chosen]
    rest_right = [name for name in right if name not in chosen]
    for name in list(rest_left):
        alike = [other for other in rest_right if _kind(left[name]) == _kind(right[other])]
        rivals = [other for other in rest_left if _kind(left[other]) == _kind(left[name])]
        if len(alike) == len(rivals) and alike:
            match = alike[rivals.index(name)]
            chosen[name] = match
            rest_left.remove(name)
            rest_right.remove(match)
    if len(rest_left) == len(rest_right) and (len(rest_left) == 1 or not common):
        chosen.update(zip(rest_left, rest_right, strict=True))
        rest_left, rest_right = [], []
    pairs = tuple((name, chosen[name]) for name in left if name in chosen)
    renamed = tuple(pair for pair in pairs if pair[0] != pair[1])
    return Pairing(pairs, tuple(rest_left), tuple(rest_right), renamed)


def _kind(leaf: Leaf) -> tuple[str, str, tuple[int, ...]]:
    return leaf.kind, leaf.dtype, leaf.row_shape if leaf.rank else (-1,)


def _exchange(left: dict[str, Leaf], right: dict[str, Leaf]) -> tuple[tuple[str, str], ...] | None:
    """The pairing of two tuples whose positions were exchanged, if exactly that explains their dtypes and
    shapes.
    """
    if all(_kind(left[name]) == _kind(right[name]) for name in left):
        return None
    free = dict(right)
    pairs = []
    for name, leaf in left.items():
        alike = [other for other in free if _kind(free[other]) == _kind(leaf)]
        if len(alike) != 1:
            return None
        pairs.append((name, alike[0]))
        del free[alike[0]]
    return tuple(pairs)


def batched(features: Features) -> bool:
    """Whether axis 0 of the features counts records; if not, a batch as a whole is one record.

    Features without axes are values given once a batch, unless only one other feature is there to say so.
    """
    ranks = [leaf.rank for _, leaf in features]
    with_axes = sum(rank > 0 for rank in ranks)
    if common_size(features) is None:
        return False
    return with_axes == len(ranks) or with_axes > 1


def layouts(reference: Features, candidate: Features, pairing: Pairing) -> tuple[bool, bool]:
    """`batched` of both sides, seen together: one rank less in every feature means that a side is not
    batched.
    """
    left, right = dict(reference), dict(candidate)
    steps = {left[a].rank - right[b].rank for a, b in pairing.pairs}
    if steps == {1}:
        return batched(reference), False
    if steps == {-1}:
        return False, batched(candidate)
    return batched(reference), batched(candidate)
