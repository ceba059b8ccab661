"""What is remembered of one side while its batches go by: 8 bytes a record, and a bounded sample of
values.
"""

from __future__ import annotations

import time
from array import array
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tfqueue.equivalence.casts import cast, changed_by_cast
from tfqueue.equivalence.chunk import Chunk, copied, joined, same_values
from tfqueue.equivalence.digest import Words, digests_and_nan, fingerprint, record_digests
from tfqueue.equivalence.feature_view import FeatureView
from tfqueue.equivalence.intake import Intake, Layout
from tfqueue.equivalence.leaves import Leaf, flatten, skeleton
from tfqueue.equivalence.ordering import Ordering
from tfqueue.equivalence.report import FeatureReport, Location, SideReport
from tfqueue.equivalence.streams import Run, Side
from tfqueue.errors import TFQueueError

KEPT_BYTES = 8 << 20
_GROUP_ROWS = 1024  # small batches are joined up to here: what numpy costs, it costs a call
_GROUP_BYTES = 128 << 10
_END = object()


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
        self.shapes: deque[Layout] = deque()
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
        self._held: tuple[tuple[Leaf, ...], Layout] | None = None
        self._emitted = 0
        self._intake: Intake
        self._layout: Layout | None = None

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
        self._intake = Intake(self.side.role, names, self._features, batched)

    def pull(self, twin: Chunk | None = None) -> Chunk | None:
        """The next batch, or several small ones joined; None if the stream has ended.

        Args:
            twin: The other side's chunk at the same place: features that are equal to it need no digests of
                their own.
        """
        group: list[tuple[Leaf, ...]] = []
        size, room = 0, _GROUP_BYTES
        make: Layout | None = None
        while True:
            taken, self._held = self._held or self._taken(), None
            if taken is None:
                break
            leaves, layout = taken
            if make is not None and not make.same_rows(layout):
                self._held = taken
                break
            make = layout
            group.append(leaves)
            size += layout.size
            room -= sum(leaf.nbytes for leaf in leaves) if layout.nbytes is None else layout.nbytes
            if room <= 0 or size >= _GROUP_ROWS or not self._grouped:
                break
            if not self.fresh:
                group[-1] = tuple(copied(leaf) for leaf in leaves)  # the stream may fill the same buffer again
        if not group:
            return None
        whole = group[0] if len(group) == 1 else tuple(joined(parts) for parts in zip(*group, strict=True))
        first, self._emitted = self._emitted, self._emitted + size
        return self._digest(whole, first, size, twin)

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

    def _taken(self) -> tuple[tuple[Leaf, ...], Layout] | None:
        """The next batch, noted; None if there is none, or it is no batch."""
        if self.ended:
            return None
        if self._peeked:
            batch, self._first, self._peeked = self._first, _END, False
        else:
            batch = self._next()
        if batch is _END:
            return None
        try:
            leaves, layout = self._intake.take(batch, self.batches)
        except TFQueueError as error:
            self._fail(error)
            return None
        if self._max is not None and self.count + layout.size > self._max:
            self.ended = "cut"
            leaves = tuple(leaf.rows(0, self._max - self.count) for leaf in leaves)
            layout = Layout.of(leaves)
        if layout is not self._layout:
            self._layout = layout
            for view, made in zip(self.views, layout.makes, strict=True):
                view.note_make(*made)
        for view, leaf in zip(self.views, leaves, strict=True):
            view.note_values(leaf, self.count)
        size = layout.size
        self.shapes.append(layout)
        if self.sizes and self.sizes[-1][0] == size:
            self.sizes[-1][1] += 1
        else:
            self.sizes.append([size, 1])
        self.count += size
        self.batches += 1
        return leaves, layout

    def _digest(self, leaves: tuple[Leaf, ...], first: int, size: int, twin: Chunk | None) -> Chunk:
        twin = twin if twin is not None and twin.prints and (twin.first, twin.size) == (first, size) else None
        features, prints, known = [], [], []
        for index, leaf in enumerate(leaves):
            same = twin is not None and same_values(leaf, twin.leaves[index])
            words, nan = (twin.features[index], False) if twin is not None and same else self._feature(leaf, index)
            features.append(words)
            known.append(nan is False)
            prints.append(twin.prints[index] if twin is not None and same else fingerprint(words))
        if twin is not None and all(a is b for a, b in zip(features, twin.features, strict=True)):
            chunk = Chunk(first, leaves, twin.features, twin.records, twin.prints)
        else:
            records = record_digests(features)
            chunk = Chunk(first, leaves, tuple(features), records, (*prints, fingerprint(records)))
        self._remember(chunk, known)
        return chunk

    def _feature(self, leaf: Leaf, index: int) -> tuple[Words, bool | None]:
        """The digests of a feature, and whether it holds a NaN; None where that is not known."""
        plain = cast(leaf, self.casts[index])
        digests, nan = digests_and_nan(plain, nested=index in self.nested)
        if index in self.rounded:
            digests = self.rounded[index].words(plain, digests)
        changed = changed_by_cast(leaf, plain)
        return digests if changed is None else np.where(changed, ~digests, digests), nan if plain is leaf else None

    def _remember(self, chunk: Chunk, known: list[bool]) -> None:
        for view, leaf, number, without_nan in zip(self.views, chunk.leaves, chunk.prints, known, strict=False):
            view.add(leaf, number, chunk.first, without_nan)
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
