"""What is remembered of one side while its batches go by: 8 bytes a record, and a bounded sample of
values.
"""

from __future__ import annotations

import time
from array import array
from collections import deque
from collections.abc import Iterator, Mapping
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
    values_of,
)
from tfqueue.equivalence.ordering import Ordering
from tfqueue.equivalence.report import FeatureReport, Location, SideReport
from tfqueue.equivalence.streams import Run, Side
from tfqueue.errors import InvalidStream, TFQueueError

KEPT_BYTES = 8 << 20
_GROUP_ROWS = 1024  # small batches are joined up to here: what numpy costs, it costs a call
_GROUP_BYTES = 128 << 10
_END = object()


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
        leaves = tuple(_copy(leaf) for leaf in self.leaves)
        return Chunk(self.first, leaves, self.features, self.records, self.prints)


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
        seen: True once a batch was noted.
        last_dtype: The numpy dtype of the last batch.
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
    last_dtype: Any = None

    def note(self, leaf: Leaf, first: int) -> None:
        """Note dtype and shape of one batch.

        Args:
            leaf: The feature in the batch.
            first: The number of the batch's first record.
        """
        dtype = leaf.array.dtype if isinstance(leaf, Dense) else None
        if dtype is None or dtype is not self.last_dtype:  # a dtype's name is slow to make
            self.last_dtype = dtype
            if leaf.dtype not in self.dtypes:
                self.dtypes.append(leaf.dtype)
        shape = leaf.row_shape
        if not self.seen:
            self.low, self.high, self.kind, self.seen = list(shape), list(shape), leaf.kind, True
        elif len(shape) != len(self.high):
            self.rank_changes = True
        elif list(shape) != self.high or self.low != self.high:
            self.low = [min(a, b) for a, b in zip(self.low, shape, strict=True)]
            self.high = [max(a, b) for a, b in zip(self.high, shape, strict=True)]
        if isinstance(leaf, Digested):
            if leaf.nan_records and self.first_nan is None:
                self.first_nan = first
            self.nan_records += leaf.nan_records
            self.idle_tails += leaf.idle_tail
        elif isinstance(leaf, Dense) and shape and shape[0] > 1 and leaf.size:
            # The first record alone settles it nearly always.
            self.idle_tails += not _any(leaf.array[:1, -1]) and not _any(leaf.array[:, -1])

    def add(self, leaf: Leaf, number: int, first: int, known: bool) -> None:
        """Add the values of one batch or of several.

        Args:
            leaf: The values.
            number: Their multiset fingerprint.
            first: The number of the first record.
            known: True if they were found equal to the other side's, so that no NaN is among them.
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


def _joinable(one: tuple[Leaf, ...], two: tuple[Leaf, ...]) -> bool:
    """Whether two batches can be joined to one: dense features of the same dtypes and shapes."""
    return all(
        isinstance(a, Dense) and isinstance(b, Dense) and a.array.dtype == b.array.dtype and a.row_shape == b.row_shape
        for a, b in zip(one, two, strict=True)
    )


def _joined(parts: tuple[Leaf, ...]) -> Leaf:
    return Dense(np.concatenate([part.array for part in parts if isinstance(part, Dense)]))


def _same(one: Leaf, two: Leaf) -> bool:
    """Whether two dense leaves hold equal values; NaN equals nothing here, so that it is looked for
    elsewhere.
    """
    if not isinstance(one, Dense) or not isinstance(two, Dense):
        return False
    a, b = one.array, two.array
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return np.array_equal(a[:1], b[:1]) and np.array_equal(a, b)


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
        grouped: False to give every batch as a chunk of its own.
    """

    def __init__(self, side: Side, run: Run, max_records: int | None, *, grouped: bool = True) -> None:
        self.side = side
        self.ordering: Ordering = run.ordering
        self.endless = run.endless
        self.names: tuple[str, ...] = ()
        self.views: list[FeatureView] = []
        self.structure = ""
        self.count = 0
        self.batches = 0
        self.sizes: list[list[int]] = []
        self.shapes: deque[tuple[int, tuple[tuple[int, ...], ...]]] = deque()
        self.ended = ""
        self.error: BaseException | None = None
        self.seconds = 0.0
        self.kept: list[Chunk] = []
        self.fingerprint = 0
        self.batched = True
        self._features: frozenset[str] = frozenset()
        self.casts: tuple[Any, ...] = ()
        self.nested: frozenset[int] = frozenset()
        self.rounded: Mapping[int, Any] = {}
        self.labels: Any = None  # a KeptLabels where pictures will want them
        self._digests = array("Q")
        self._batches: Iterator[Any] = run.batches
        self._max = max_records
        self._skeleton = run.skeleton
        self.static = run.static
        self.fresh = run.fresh
        self._first: Any = _END
        self._peeked = False
        self._kept_bytes = 0
        self._grouped = grouped
        self._held: tuple[Leaf, ...] | None = None
        self._emitted = 0

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
            features = flatten(self._first)
            self._features = frozenset(name for name, _ in features)
            return features
        except TFQueueError as error:
            self._fail(error)
            return None

    def prepare(
        self,
        names: tuple[str, ...],
        batched: bool,
        casts: tuple[Any, ...],
        nested: frozenset[int] = frozenset(),
        rounded: Mapping[int, Any] | None = None,
    ) -> None:
        """Set which features are compared, in which order, and how.

        Args:
            names: The features, by this side's names.
            batched: Whether axis 0 counts records.
            casts: The dtype to read each feature's numbers in, or None for its own.
            nested: The numbers of the features that are padded along an axis after their first.
            rounded: By the number of a feature, the `Rounded` that gives its digests without rounding.
        """
        self.names, self.batched, self.casts, self.nested = names, batched, casts, nested
        self.rounded = rounded or {}
        self.views = [FeatureView(name) for name in names]

    def pull(self, twin: Chunk | None = None) -> Chunk | None:
        """The next batch, or several small ones joined; None if the stream has ended.

        Args:
            twin: The other side's chunk at the same place: features that are equal to it need no digests of
                their own.
        """
        group: list[tuple[Leaf, ...]] = []
        size, room = 0, _GROUP_BYTES
        while True:
            leaves, self._held = self._held or self._taken(), None
            if leaves is None:
                break
            if group and not _joinable(group[0], leaves):
                self._held = leaves
                break
            group.append(leaves)
            size += leaves[0].size
            room -= sum(leaf.nbytes for leaf in leaves)
            if room <= 0 or size >= _GROUP_ROWS or not self._grouped:
                break
            if not self.fresh:
                group[-1] = tuple(_copy(leaf) for leaf in leaves)  # the stream may fill the same buffer again
        if not group:
            return None
        joined = group[0] if len(group) == 1 else tuple(_joined(parts) for parts in zip(*group, strict=True))
        first, self._emitted = self._emitted, self._emitted + size
        return self._digest(joined, first, size, twin)

    @property
    def done(self) -> bool:
        """True if nothing more will come."""
        return bool(self.ended) and self._held is None

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

    def _taken(self) -> tuple[Leaf, ...] | None:
        """The leaves of the next batch, noted; None if there is none, or it is no batch."""
        if self.ended:
            return None
        if self._peeked:
            batch, self._first, self._peeked = self._first, _END, False
        else:
            batch = self._next()
        if batch is _END:
            return None
        try:
            leaves = self._leaves_of(batch)
        except TFQueueError as error:
            self._fail(error)
            return None
        for view, leaf in zip(self.views, leaves, strict=True):
            view.note(leaf, self.count)
        size = leaves[0].size
        self.shapes.append((size, tuple(leaf.row_shape for leaf in leaves)))
        if self.sizes and self.sizes[-1][0] == size:
            self.sizes[-1][1] += 1
        else:
            self.sizes.append([size, 1])
        self.count += size
        self.batches += 1
        return leaves

    def _leaves_of(self, batch: Any) -> tuple[Leaf, ...]:
        found = dict(flatten(batch))
        absent = [name for name in self.names if name not in found]
        if absent:
            raise InvalidStream(
                f"batch {self.batches} of the {self.side.role} has no feature {absent[0]}, which earlier "
                f"batches had; "
                f"it has: {', '.join(found)}"
            )
        new = [name for name in found if name not in self._features]
        if new:
            raise InvalidStream(
                f"batch {self.batches} of the {self.side.role} has the feature {new[0]}, which earlier batches lacked; "
                f"they had: {', '.join(sorted(self._features))}"
            )
        features = tuple((name, found[name]) for name in self.names)
        if not self.batched:
            return tuple(as_one_record(leaf) for _, leaf in features)
        size = common_size(features)
        if size is None:
            sizes = ", ".join(f"{name} {leaf.size if leaf.rank else 'no axis'}" for name, leaf in features)
            raise InvalidStream(
                f"batch {self.batches} of the {self.side.role} holds unequal numbers of records: {sizes}"
            )
        leaves = tuple(spread(leaf, size) for _, leaf in features)
        if self._max is not None and self.count + size > self._max:
            self.ended = "cut"
            leaves = tuple(leaf.rows(0, self._max - self.count) for leaf in leaves)
        return leaves

    def _digest(self, leaves: tuple[Leaf, ...], first: int, size: int, twin: Chunk | None) -> Chunk:
        twin = twin if twin is not None and twin.prints and (twin.first, twin.size) == (first, size) else None
        same = tuple(
            twin is not None and _same(a, b) for a, b in zip(leaves, twin.leaves if twin else leaves, strict=True)
        )
        digests = tuple(
            twin.features[i] if twin is not None and same[i] else self._feature(leaf, i)
            for i, leaf in enumerate(leaves)
        )
        if twin is not None and all(same):
            chunk = Chunk(first, leaves, digests, twin.records, twin.prints)
        else:
            records = record_digests(list(digests))
            prints = tuple(fingerprint(part) for part in (*digests, records))
            chunk = Chunk(first, leaves, digests, records, prints)
        self._remember(chunk, same)
        return chunk

    def _feature(self, leaf: Leaf, index: int) -> Words:
        plain = cast(leaf, self.casts[index])
        digests = feature_digests(plain, nested=index in self.nested)
        if index in self.rounded:
            digests = self.rounded[index].words(plain, digests)
        changed = changed_by_cast(leaf, plain)
        return digests if changed is None else np.where(changed, ~digests, digests)

    def _remember(self, chunk: Chunk, same: tuple[bool, ...]) -> None:
        for view, leaf, number, known in zip(self.views, chunk.leaves, chunk.prints, same, strict=False):
            view.add(leaf, number, chunk.first, known)
        if self.labels is not None:
            self.labels.add(chunk.leaves)
        self._digests.frombytes(chunk.records.tobytes())
        self.fingerprint = (self.fingerprint + chunk.prints[-1]) % 2**64
        if self._kept_bytes < KEPT_BYTES:
            size = sum(leaf.nbytes for leaf in chunk.leaves)
            if self._kept_bytes + size <= KEPT_BYTES:
                self.kept.append(chunk if self.fresh else chunk.copied())
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


def changed_by_cast(leaf: Leaf, plain: Leaf) -> Any:
    """The records whose integers another dtype cannot hold; None if there are none. Floats may be rounded."""
    if plain is leaf or not isinstance(leaf, Dense) or not isinstance(plain, Dense):
        return None
    before, after = leaf.array, plain.array
    if before.dtype.kind not in "biu" and after.dtype.kind not in "biu":
        return None
    if np.can_cast(before.dtype, after.dtype, "safe"):
        return None
    with np.errstate(all="ignore"):
        rows = (after != before).reshape(leaf.size, -1).any(axis=1)
    return rows if rows.any() else None
