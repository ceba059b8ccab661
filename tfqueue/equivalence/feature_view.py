"""What is remembered of one feature of a side while its batches go by."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfqueue.equivalence.leaves import Dense, Digested, Leaf, values_of


@dataclass(slots=True)
class FeatureView:
    """What was seen of one feature.

    Attributes:
        name: Its name on this side.
        dtypes: The dtypes seen, in order of appearance.
        low: The smallest size seen of each dimension of a record.
        high: The largest.
        kind: Dense, ragged or sparse.
        fingerprint: The multiset fingerprint of its digests.
        nan_records: How many records hold a NaN.
        first_nan: The number of the first such record, or None.
        idle_tails: In how many batches the last slice along a record's first axis is nothing but zeros.
        rank_changes: True if the rank of a record changed.
        seen: True once a batch was noted.
    """

    name: str
    dtypes: list[str] = field(default_factory=list)
    low: list[int] = field(default_factory=list)
    high: list[int] = field(default_factory=list)
    kind: str = "dense"
    fingerprint: int = 0
    nan_records: int = 0
    first_nan: int | None = None
    idle_tails: int = 0
    rank_changes: bool = False
    seen: bool = False

    def note_make(self, dtype: str, shape: tuple[int, ...], kind: str) -> None:
        """Note how batches are made, as often as that changes.

        Args:
            dtype: The dtype.
            shape: The shape of a record.
            kind: Dense, ragged or sparse.
        """
        if dtype not in self.dtypes:
            self.dtypes.append(dtype)
        if not self.seen:
            self.low, self.high, self.kind, self.seen = list(shape), list(shape), kind, True
        elif len(shape) != len(self.high):
            self.rank_changes = True
        else:
            self.low = [min(a, b) for a, b in zip(self.low, shape, strict=True)]
            self.high = [max(a, b) for a, b in zip(self.high, shape, strict=True)]

    def note_values(self, leaf: Leaf, first: int) -> None:
        """Note what must be told of each batch by itself.

        Args:
            leaf: The feature in the batch.
            first: The number of the batch's first record.
        """
        if isinstance(leaf, Digested):
            if leaf.nan_records and self.first_nan is None:
                self.first_nan = first
            self.nan_records += leaf.nan_records
            self.idle_tails += leaf.idle_tail
        elif isinstance(leaf, Dense) and leaf.array.ndim > 1 and leaf.array.shape[1] > 1 and leaf.size:
            # The first record alone settles it nearly always.
            self.idle_tails += not _any(leaf.array[0, -1]) and not _any(leaf.array[:, -1])

    def add(self, leaf: Leaf, number: int, first: int, known: bool) -> None:
        """Add the values of one batch or of several.

        Args:
            leaf: The values.
            number: Their multiset fingerprint.
            first: The number of the first record.
            known: True if it is known that no NaN is among them.
        """
        self.fingerprint = (self.fingerprint + number) % 2**64
        values = values_of(leaf)
        if known or not values.size or values.dtype.kind in "biuO":
            return  # bool, integers and strings have no NaN
        if np.isnan(np.min(values)):
            rows = _nan_rows(leaf)
            if self.first_nan is None:
                self.first_nan = first + int(np.argmax(rows))
            self.nan_records += int(rows.sum())

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The shape of a record, None where a dimension changes."""
        return tuple(a if a == b else None for a, b in zip(self.low, self.high, strict=True))


def _nan_rows(leaf: Leaf) -> Any:
    """Which records of a leaf of floats hold a NaN."""
    if isinstance(leaf, Dense):
        return np.isnan(leaf.array.reshape(leaf.size, -1)).any(axis=1)
    return np.array([bool(np.isnan(values_of(leaf.rows(i, i + 1))).any()) for i in range(leaf.size)])


def _any(values: Any) -> bool:
    """Whether a number is not zero, or a string not empty."""
    if not np.ndim(values):
        return bool(values)
    if values.dtype == object:
        return any(len(item) for item in values.ravel())
    return bool(values.any())
