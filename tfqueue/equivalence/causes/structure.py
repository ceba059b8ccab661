"""Causes that show in names, kinds, dtypes and shapes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from tfqueue.equivalence.causes.pairs import Changed
from tfqueue.equivalence.evidence import Evidence, listed
from tfqueue.equivalence.leaves import STRING, Array, Dense

Named = tuple[str, str, str | None]  # (name of the cause, what it is concluded from, feature)


def structure_causes(evidence: Evidence) -> Iterator[Named]:
    """Likely causes from the features that both sides have, or should have."""
    pairing = evidence.pairing
    if pairing is None:
        return
    for name, other in pairing.renamed:
        if not (name.startswith("[") and other.startswith("[")):
            yield "key-renamed", f"{name} in the reference is {other} in the candidate", name
    if pairing.missing:
        yield "feature-missing", f"the candidate lacks {listed(pairing.missing)}", pairing.missing[0]
    if pairing.extra:
        yield "feature-added", f"the candidate adds {listed(pairing.extra)}", pairing.extra[0]
    if pairing.moved:
        yield "features-reordered", listed(f"{a} is {b}" for a, b in pairing.pairs), None
    if evidence.aligned is not None and evidence.reference.batched != evidence.candidate.batched:
        yield "not-batched", "the features have one axis less on one side", None
    for one, two in zip(evidence.reference.views, evidence.candidate.views, strict=True):
        if one.kind != two.kind:
            yield "sparse-dense", (f"{one.name} is {one.kind} in the reference, {two.kind} in the candidate"), one.name
        elif one.dtypes != two.dtypes and one.dtypes and two.dtypes and STRING not in one.dtypes + two.dtypes:
            yield _of_dtypes(one.dtypes[-1], two.dtypes[-1], one.name)


def _of_dtypes(left: str, right: str, name: str) -> Named:
    one, two = np.dtype(left), np.dtype(right)
    words = f"{name} is {left} in the reference, {right} in the candidate"
    if one.kind == two.kind == "f" and two.itemsize < one.itemsize:
        return "float-narrowing", words, name
    if one.kind in "iu" and two.kind in "iu" and two.itemsize < one.itemsize:
        return "int-narrowing", words, name
    if one.kind == "f" and two.kind in "iu":
        return "truncated-to-int", words, name
    return "dtype-changed", words, name


def shape_causes(changed: Changed) -> Iterator[tuple[str, str]]:
    """Causes for one feature whose shapes differ, or that is filled up otherwise."""
    pairs = list(zip(changed.left, changed.right, strict=True))
    if _nearly_all(b.ndim == a.ndim + 1 and _one_hot(b) and np.array_equal(np.argmax(b, -1), a) for a, b in pairs):
        yield (
            "one-hot",
            (f"the candidate's last axis of {pairs[0][1].shape[-1]} is one-hot for the reference's integers"),
        )
        return
    if _nearly_all(a.ndim == b.ndim + 1 and _one_hot(a) and np.array_equal(np.argmax(a, -1), b) for a, b in pairs):
        yield (
            "one-hot",
            (f"the reference's last axis of {pairs[0][0].shape[-1]} is one-hot for the candidate's integers"),
        )
        return
    if any(a.ndim != b.ndim or not a.ndim for a, b in pairs):
        return
    if all(_one_hot(a) and _one_hot(b) for a, b in pairs) and any(a.shape[-1] != b.shape[-1] for a, b in pairs):
        yield (
            "one-hot-depth",
            (f"depth {pairs[0][0].shape[-1]} in the reference, {pairs[0][1].shape[-1]} in the candidate"),
        )
        return
    fills = [_fill(a, b) for a, b in pairs]
    fill = next((value for value in fills if value is not None), None)
    if fill is not None and _nearly_all(value == fill for value in fills):
        yield "padding-value", f"where the reference holds zeros at the end, the candidate holds {fill}"
        return
    cut = [a.shape != b.shape and _starts_with(a, b) and bool(np.any(a[len(b) :])) for a, b in pairs]
    if np.mean(cut) >= 0.9:
        yield "truncated", f"the candidate's values are the first {len(pairs[0][1])} of the reference's"


def _nearly_all(answers: Iterable[bool]) -> bool:
    """Whether nine in ten are true: a few records may be matched wrongly."""
    return float(np.mean(list(answers))) >= 0.9


def _one_hot(values: Array) -> bool:
    return bool(values.ndim and np.all(np.isin(values, (0, 1))) and np.all(values.sum(axis=-1) == 1))


def _starts_with(longer: Array, shorter: Array) -> bool:
    return len(longer) >= len(shorter) and np.array_equal(longer[: len(shorter)], shorter)


def _fill(left: Array, right: Array) -> float | None:
    """The value that the candidate has where the reference has nothing but zeros up to the end, if it is
    one.
    """
    if left.ndim < 1 or left.shape[1:] != right.shape[1:]:
        return None
    filled = np.flatnonzero(left.reshape(len(left), -1).any(axis=1)) if len(left) else np.zeros(0, int)
    used = int(filled[-1]) + 1 if len(filled) else 0
    tail = right[used:]
    if len(right) < used or not tail.size or not np.array_equal(left[:used], right[:used]):
        return None
    values = np.unique(tail)
    return float(values[0]) if len(values) == 1 and values[0] != 0 else None


def padding_causes(evidence: Evidence) -> Iterator[Named]:
    """Equal records in unequal shapes: filled up to another length."""
    if not evidence.same_records:
        return
    for one, two in zip(evidence.reference.views, evidence.candidate.views, strict=True):
        if one.kind == two.kind == "dense" and len(one.shape) != len(two.shape):
            yield "reshaped", f"{one.name} has shape {one.high} in the reference, {two.high} in the candidate", one.name
        elif one.kind == two.kind == "dense" and one.high:
            moved = one.low != two.low or one.high != two.high or bool(one.idle_tails) != bool(two.idle_tails)
            first = evidence.shapes.first
            fixed = one.low == one.high and two.low == two.high
            if fixed and one.high != two.high and len(one.high) > 1 and math.prod(one.high) == math.prod(two.high):
                words = f"the values of {one.name} are the same, in shape {one.high} and in shape {two.high}"
                yield "transposed", words, one.name
            elif moved and _first_one_hot(evidence, one.name) and fixed:
                words = f"depth {one.high[-1]} in the reference, {two.high[-1]} in the candidate"
                yield "one-hot-depth", words, one.name
            elif moved or (first is not None and first[1] == one.name and evidence.same_sequence):
                words = (
                    f"{one.name} has lengths {one.low}..{one.high} in the reference, "
                    f"{two.low}..{two.high} in the candidate"
                )
                yield "padding-length", words, one.name


def _first_one_hot(evidence: Evidence, name: str) -> bool:
    if not evidence.reference.kept:
        return False
    leaf = evidence.reference.kept[0].leaves[evidence.reference.names.index(name)]
    return isinstance(leaf, Dense) and leaf.dtype != STRING and leaf.rank > 1 and _one_hot(leaf.array)
