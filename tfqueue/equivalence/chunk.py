"""Batches with their digests, and parts of batches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tfqueue.equivalence.digest import Words
from tfqueue.equivalence.leaves import Dense, Digested, Leaf, Ragged, Sparse


@dataclass(slots=True)
class Chunk:
    """One batch, or the rest of one that waits for the other side.

    Attributes:
        first: The number of its first record in the stream.
        leaves: One leaf a feature, in the reference's order.
        features: The digests of each feature, each uint64 of shape [size].
        records: The digests of the records, uint64 of shape [size].
        prints: The multiset fingerprints of the features and, last, of the records; empty for a part of a
            batch.
    """

    first: int
    leaves: tuple[Leaf, ...]
    features: tuple[Words, ...]
    records: Words
    prints: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        return len(self.records)

    def split(self, count: int) -> tuple[Chunk, Chunk]:
        return self.part(0, count), self.part(count, self.size)

    def part(self, start: int, stop: int) -> Chunk:
        return Chunk(
            self.first + start,
            tuple(leaf.rows(start, stop) for leaf in self.leaves),
            tuple(digests[start:stop] for digests in self.features),
            self.records[start:stop],
        )

    def copied(self) -> Chunk:
        """The chunk with values of its own, for a stream that fills the same buffer again and again."""
        leaves = tuple(copied(leaf) for leaf in self.leaves)
        return Chunk(self.first, leaves, self.features, self.records, self.prints)


def copied(leaf: Leaf) -> Leaf:
    """The leaf with values of its own."""
    if isinstance(leaf, Digested):
        return leaf
    if isinstance(leaf, Dense):
        return Dense(leaf.array.copy())
    if isinstance(leaf, Ragged):
        return Ragged(tuple(s.copy() for s in leaf.splits), leaf.values.copy())
    return Sparse(leaf.indices.copy(), leaf.values.copy(), leaf.dense_shape.copy())


def joined(parts: tuple[Leaf, ...]) -> Leaf:
    """Dense leaves of records of one shape, as one."""
    return Dense(np.concatenate([part.array for part in parts if isinstance(part, Dense)]))


def same_values(one: Leaf, two: Leaf) -> bool:
    """Whether two dense leaves hold equal values; NaN equals nothing here, so that it is looked for
    elsewhere.
    """
    if not isinstance(one, Dense) or not isinstance(two, Dense):
        return False
    a, b = one.array, two.array
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return np.array_equal(a[:1], b[:1]) and np.array_equal(a, b)
