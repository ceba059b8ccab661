"""What is remembered of one side while its batches go by: 8 bytes a record, and a bounded sample of
values.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfqueue.equivalence.digest import Words, feature_digests, fingerprint, record_digests
from tfqueue.equivalence.leaves import (
    STRING,
    Dense,
    Digested,
    Leaf,
    Ragged,
    Sparse,
    as_one_record,
    common_size,
    flatten,
    skeleton,
    spread,
)
from tfqueue.equivalence.ordering import Ordering
from tfqueue.equivalence.report import FeatureReport, Location, SideReport
from tfqueue.equivalence.streams import Run, Side
from tfqueue.errors import InvalidStream, TFQueueError

KEPT_BYTES = 8 << 20
_END = object()


@dataclass(slots=True)
class Chunk:
    """One batch, or the rest of one that waits for the other side.

    Attributes:
        first: The number of its first record in the stream.
        leaves: One leaf a feature, in the reference's order.
        features: The digests of each feature, each uint64 of shape [size].
        records: The digests of the records, uint64 of shape [size].
    """

    first: int
    leaves: tuple[Leaf, ...]
    features: tuple[Words, ...]
    records: Words

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
        return Chunk(self.first, tuple(_copy(leaf) for leaf in self.leaves), self.features, self.records)


def _copy(leaf: Leaf) -> Leaf:
    if isinstance(leaf, Digested):
        return leaf
    if isinstance(leaf, Dense):
        return Dense(leaf.array.copy())
    if isinstance(leaf, Ragged):
        return Ragged(tuple(s.copy() for s in leaf.splits), leaf.values.copy())
    return Sparse(leaf.indices.copy(), leaf.values.copy(), leaf.dense_shape.copy())


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
        last: The shape of a record in the last batch.
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
    last: tuple[int, ...] = ()

    def add(self, leaf: Leaf, digests: Words, first: int) -> None:
        if leaf.dtype not in self.dtypes:
            self.dtypes.append(leaf.dtype)
        shape = self.last = leaf.row_shape
        if not self.fingerprint and not self.high:
            self.low, self.high, self.kind = list(shape), list(shape), leaf.kind
        elif len(shape) != len(self.high):
            self.rank_changes = True
        elif list(shape) != self.high or self.low != self.high:
            self.low = [min(a, b) for a, b in zip(self.low, shape, strict=True)]
            self.high = [max(a, b) for a, b in zip(self.high, shape, strict=True)]
        self.fingerprint = (self.fingerprint + fingerprint(digests)) % 2**64
        if isinstance(leaf, Digested):
            if leaf.nan_records and self.first_nan is None:
                self.first_nan = first
            self.nan_records += leaf.nan_records
            self.idle_tails += leaf.idle_tail
        elif isinstance(leaf, Dense):
            if leaf.array.dtype.kind == "f" and leaf.array.size and np.isnan(np.min(leaf.array)):
                rows = np.isnan(leaf.array.reshape(leaf.size, -1)).any(axis=1)
                if self.first_nan is None:
                    self.first_nan = first + int(np.argmax(rows))
                self.nan_records += int(rows.sum())
            if len(shape) >= 1 and shape[0] > 1 and leaf.size and not _any(leaf.array[:, -1]):
                self.idle_tails += 1

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The shape of a record, None where a dimension changes."""
        return tuple(a if a == b else None for a, b in zip(self.low, self.high, strict=True))


def _any(values: Any) -> bool:
    if values.dtype == object:
        return any(len(item) for item in values.ravel())
    return bool(values.any())


class Observation:
    """One side while it runs: pulls batches, digests them, and remembers what the checks need.

    Args:
        side: The side.
        run: The pass that was started.
        max_records: Where to cut, or None.
    """

    def __init__(self, side: Side, run: Run, max_records: int | None) -> None:
        self.side = side
        self.ordering: Ordering = run.ordering
        self.endless = run.endless
        self.names: tuple[str, ...] = ()
        self.views: list[FeatureView] = []
        self.structure = ""
        self.count = 0
        self.batches = 0
        self.sizes: list[list[int]] = []
        self.ended = ""
        self.error: BaseException | None = None
        self.seconds = 0.0
        self.kept: list[Chunk] = []
        self.fingerprint = 0
        self.batched = True
        self.casts: tuple[Any, ...] = ()
        self._digests = array("Q")
        self._batches: Iterator[Any] = run.batches
        self._max = max_records
        self._skeleton = run.skeleton
        self._first: Any = _END
        self._peeked = False
        self._kept_bytes = 0

    @property
    def digests(self) -> Words:
        """The digests of all records seen, in order of delivery."""
        return np.frombuffer(self._digests, dtype=np.uint64)

    def peek(self) -> tuple[tuple[str, Leaf], ...] | None:
        """The features of the first batch, or None if there is none."""
        self._peeked = True
        self._first = self._next()
        if self._first is _END:
            return None
        try:
            self.structure = self._skeleton or skeleton(self._first)
            return flatten(self._first)
        except TFQueueError as error:
            self._fail(error)
            return None

    def prepare(self, names: tuple[str, ...], batched: bool, casts: tuple[Any, ...]) -> None:
        """Set which features are compared, in which order, what a record is, and to what dtype values are
        cast.
        """
        self.names, self.batched, self.casts = names, batched, casts
        self.views = [FeatureView(name) for name in names]

    def pull(self) -> Chunk | None:
        """The next batch, or None if the stream has ended."""
        if self.ended:
            return None
        if self._peeked:
            batch, self._first, self._peeked = self._first, _END, False
        else:
            batch = self._next()
        if batch is _END:
            return None
        try:
            return self._digest(batch)
        except TFQueueError as error:
            self._fail(error)
            return None

    def _next(self) -> Any:
        if self._max is not None and self.count >= self._max:
            self.ended = "cut"
            return _END
        start = time.perf_counter()
        try:
            return next(self._batches)
        except StopIteration:
            self.ended = "clean"
        except Exception as error:  # noqa: BLE001 - whatever a side raises ends that side and goes into the report
            self._fail(error)
        finally:
            self.seconds += time.perf_counter() - start
        return _END

    def _fail(self, error: BaseException) -> None:
        self.ended, self.error = "error", error

    def stop(self, how: str) -> None:
        """Do not read on."""
        self.ended = self.ended or how

    def _digest(self, batch: Any) -> Chunk | None:
        found = dict(flatten(batch))
        absent = [name for name in self.names if name not in found]
        if absent:
            raise InvalidStream(
                f"batch {self.batches} of the {self.side.role} has no feature {absent[0]}, which earlier "
                f"batches had; "
                f"it has: {', '.join(found)}"
            )
        features = tuple((name, found[name]) for name in self.names)
        leaves: tuple[Leaf, ...]
        if self.batched:
            size = common_size(features)
            if size is None:
                sizes = ", ".join(f"{name} {leaf.size if leaf.rank else 'no axis'}" for name, leaf in features)
                raise InvalidStream(
                    f"batch {self.batches} of the {self.side.role} holds unequal numbers of records: {sizes}"
                )
            leaves = tuple(spread(leaf, size) for _, leaf in features)
        else:
            size = 1
            leaves = tuple(as_one_record(leaf) for _, leaf in features)
        if self._max is not None and self.count + size > self._max:
            size = self._max - self.count
            leaves = tuple(leaf.rows(0, size) for leaf in leaves)
            self.ended = "cut"
        digests = tuple(feature_digests(cast(leaf, to)) for leaf, to in zip(leaves, self.casts, strict=True))
        chunk = Chunk(self.count, leaves, digests, record_digests(list(digests)))
        self._remember(chunk)
        return chunk

    def _remember(self, chunk: Chunk) -> None:
        for view, leaf, digests in zip(self.views, chunk.leaves, chunk.features, strict=True):
            view.add(leaf, digests, chunk.first)
        self._digests.frombytes(chunk.records.tobytes())
        self.fingerprint = (self.fingerprint + fingerprint(chunk.records)) % 2**64
        if self.sizes and self.sizes[-1][0] == chunk.size:
            self.sizes[-1][1] += 1
        else:
            self.sizes.append([chunk.size, 1])
        self.count += chunk.size
        self.batches += 1
        if self._kept_bytes < KEPT_BYTES:
            size = sum(leaf.nbytes for leaf in chunk.leaves)
            if self._kept_bytes + size <= KEPT_BYTES:
                self.kept.append(chunk.copied())
            self._kept_bytes += size

    def locate(self, record: int) -> Location:
        """Where a record was delivered."""
        batch = first = 0
        for size, count in self.sizes:
            if size and record < first + size * count:
                step = (record - first) // size
                return Location(batch + step, record - first - step * size, record)
            batch, first = batch + count, first + size * count
        raise IndexError(f"record {record} of {self.count}")

    def kept_record(self, record: int) -> dict[str, Any] | None:
        """The values of a record, by the names of this side, if they were kept."""
        for chunk in self.kept:
            if chunk.first <= record < chunk.first + chunk.size:
                return self.values(chunk, record - chunk.first)
        return None

    def values(self, chunk: Chunk, row: int) -> dict[str, Any]:
        """The values of one record of a chunk, by the names of this side."""
        return {name: leaf.row(row) for name, leaf in zip(self.names, chunk.leaves, strict=True)}

    def report(self) -> SideReport:
        """What the report says about the side."""
        return SideReport(
            role=self.side.role,
            kind=self.side.kind,
            name=self.side.name,
            batches=self.batches,
            records=self.count,
            batch_sizes=tuple((size, count) for size, count in self.sizes[:1000]),
            ended=self.ended,
            error=None if self.error is None else f"{type(self.error).__name__}: {self.error}",
            order=self.ordering.reason,
            seconds=round(self.seconds, 4),
            features=tuple(FeatureReport(v.name, v.kind, "/".join(v.dtypes), v.shape) for v in self.views),
        )


def cast(leaf: Leaf, dtype: Any) -> Leaf:
    """The leaf with its numbers in another dtype, so that a difference of dtype alone is no difference of
    values.
    """
    if dtype is None or not isinstance(leaf, Dense) or leaf.dtype == STRING:
        return leaf
    with np.errstate(all="ignore"):
        return Dense(leaf.array.astype(dtype))
