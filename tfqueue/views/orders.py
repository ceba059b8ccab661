"""The order in which a stream delivers its records, against the order in which they lie in the source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfqueue.equivalence.digest import feature_digests, record_digests
from tfqueue.equivalence.followed import is_one_hot
from tfqueue.equivalence.leaves import Dense, Leaf, as_one_record, common_size, flatten, spread
from tfqueue.equivalence.report import Report
from tfqueue.equivalence.streams import side_of
from tfqueue.errors import InvalidArgument
from tfqueue.topology.model import Topology
from tfqueue.views.features import Feature, find_label

Integers = NDArray[np.int64]

_POORLY_MIXED = 0.2


@dataclass(frozen=True, slots=True)
class Delivery:
    """One stream as a sequence of source positions.

    Attributes:
        name: What the stream is called.
        source: The position in the source of each delivered record; -1 for one that is not in the source.
        batch: The number of the batch that each came in.
        size: Number of records of the source, which is one epoch.
        labels: The label of each delivered record, maybe of the first ones only; or None.
    """

    name: str
    source: Integers
    batch: Integers
    size: int
    labels: NDArray[Any] | None = None

    @property
    def epoch(self) -> Integers:
        """How often each record was delivered before."""
        return _occurrence(self.source)

    @property
    def displacement(self) -> Integers:
        """Delivered position minus source position (its epoch counted in), of the records that are in the source."""
        moved = np.arange(len(self.source)) - (self.epoch * self.size + self.source)
        return moved[self.source >= 0].astype(np.int64)

    @property
    def mixing(self) -> float:
        """Mean absolute displacement, as a part of what a uniform shuffle gives (a third of the records); at most 1."""
        moved = self.displacement
        return min(1.0, float(np.abs(moved).mean() / max(self.size / 3, 1e-9))) if len(moved) else 0.0

    @property
    def blurred(self) -> float:
        """The part of the records that come in the place of another epoch."""
        known = self.source >= 0
        return float((np.arange(len(self.source)) // self.size != self.epoch)[known].mean()) if known.any() else 0.0

    def facts(self) -> list[str]:
        """What a person should see, in words."""
        moved = self.displacement
        if not len(moved):
            return ["none of its records is in the source"]
        if not moved.any():
            return ["in the order of the source, not shuffled"]
        facts = [f"moved by {np.abs(moved).mean():.3g} places on average: {self.mixing:.0%} of a full shuffle"]
        facts.append(f"at most {-int(moved.min())} places early and {int(moved.max())} late")
        if self.blurred:
            facts.append(f"{self.blurred:.1%} come in the place of another epoch")
        return facts

    def alarms(self) -> list[str]:
        """What is probably wrong, in words."""
        alarms = []
        moved = self.displacement
        unknown = int((self.source < 0).sum())
        if unknown:
            alarms.append(f"{unknown} of its records are not in the source.")
        if len(moved) and moved.any() and self.mixing < _POORLY_MIXED:
            alarms.append(
                f"records stay near their place: a shuffle buffer of about {1 - int(moved.min())} "
                f"for {self.size} records is small."
            )
        unshuffled = self.unshuffled_epochs()
        if unshuffled:
            alarms.append(f"{_listed('epoch', unshuffled)} not shuffled, unlike the others.")
        alike = self.repeated_order()
        if alike is not None:
            alarms.append(f"epochs {alike[0] + 1} and {alike[1] + 1} have the same order.")
        return alarms

    def unshuffled_epochs(self) -> list[int]:
        """The epochs, counted from 1, that keep the order of the source, where others do not."""
        epoch = self.epoch
        orders = {n + 1: self.source[(epoch == n) & (self.source >= 0)] for n in range(self.epochs)}
        # A few records, as of an epoch that was cut short, come in order by chance.
        kept = {n: bool((np.diff(o) > 0).all()) for n, o in orders.items() if len(o) >= max(8, self.size // 2)}
        return [] if all(kept.values()) else [n for n, flag in kept.items() if flag]

    def repeated_order(self) -> tuple[int, int] | None:
        """Two successive epochs that deliver all records in one order, although that is not the source's."""
        epoch = self.epoch
        ordered = [self.source[(epoch == number) & (self.source >= 0)] for number in range(self.epochs)]
        for number, (one, other) in enumerate(pairwise(ordered)):
            if len(one) == len(other) > 2 and np.array_equal(one, other) and (np.diff(one) != 1).any():
                return number, number + 1
        return None

    @property
    def epochs(self) -> int:
        """How many epochs were delivered, at least in part."""
        return int(self.epoch[self.source >= 0].max(initial=-1)) + 1


def _listed(noun: str, numbers: Sequence[int]) -> str:
    """``epoch 2 is``, ``epochs 1, 2, 3 and 4 more are``."""
    if len(numbers) == 1:
        return f"{noun} {numbers[0]} is"
    more = f" and {len(numbers) - 4} more" if len(numbers) > 4 else ""
    return f"{noun}s {', '.join(map(str, numbers[:4]))}{more} are"


@dataclass(frozen=True, slots=True)
class _Read:
    """A stream that was read: what identifies each record, its label, its batch."""

    identity: NDArray[Any]
    labels: NDArray[Any] | None
    batch: Integers
    names: tuple[str, ...] = ()


def deliveries(
    reference: Any,
    candidate: Any,
    *,
    source: Any = None,
    key: str | None = None,
    label: str | None = None,
    max_records: int,
) -> tuple[list[Delivery], str]:
    """Read one or two streams and find the source position of each record; see `tfqueue.views.plot_mixing`.

    Returns:
        The deliveries, and what the source's order is, in words.
    """
    if isinstance(reference, Report):
        if candidate is not None or source is not None or key is not None or label is not None:
            raise InvalidArgument(
                "a report knows its two sides and their source; give it alone (and path= for the file)"
            )
        return of_report(reference, max_records)
    read = [_read(reference, "reference", key, label, max_records)]
    if candidate is not None:
        read.append(_read(candidate, "candidate", key, label, max_records))
    names = ["reference", "candidate"] if candidate is not None else ["stream"]
    if source is not None:
        # Not only those first seen: equal records of the source are records of their own.
        order, words = _read(source, "reference", key, None, max_records).identity, "the source given"
    elif key is not None:
        order, words = np.unique(np.concatenate([part.identity for part in read])), f"the order of {key}"
    elif all(part.names == ("positions",) for part in read):
        order, words = np.unique(np.concatenate([part.identity for part in read])), "the order of the numbers given"
    elif candidate is not None:
        order, words = _first_seen(read[0].identity), "the order of the reference"
        read, names = read[1:], names[1:]
    else:
        raise InvalidArgument(
            "the source positions of one stream alone are not known; give source= (the same records in their order "
            "on disk), key= (a feature that counts the records), or a second stream"
        )
    return [
        Delivery(name, _positions(part.identity, order), part.batch, len(order), part.labels)
        for name, part in zip(names, read, strict=True)
    ], words


def of_report(report: Report, max_records: int) -> tuple[list[Delivery], str]:
    """The deliveries of both sides of a report; of the candidate only where the source's order is not known.

    Returns:
        The deliveries, and what the source's order is, in words.

    Raises:
        InvalidArgument: The report does not hold the order of its records, or a side delivered none.
    """
    orders = report.orders
    if orders is None:
        raise InvalidArgument("the report does not hold the order in which records came (it was read from a file?)")
    if not len(orders.reference) or not len(orders.candidate):
        raise InvalidArgument("a side of the report delivered no record: there is no order to plot")
    sides = [
        ("reference", orders.reference, report.reference.batch_sizes, orders.reference_labels),
        ("candidate", orders.candidate, report.candidate.batch_sizes, orders.candidate_labels),
    ]
    if orders.source is None:
        order, words, sides = _first_seen(orders.reference), "the order of the reference", sides[1:]
    else:
        order, words = _one_pass(orders.source, report.pipelines[0]), "the reference run without shuffling"
    return [
        Delivery(
            name,
            _positions(digests[:max_records], order),
            _batches(sizes, len(digests))[:max_records],
            len(order),
            None if labels is None else labels[:max_records],
        )
        for name, digests, sizes, labels in sides
    ], words


def _one_pass(order: NDArray[Any], made: Any) -> NDArray[Any]:
    """The records of one epoch, of an order in which the same records come several times over.

    Args:
        order: The records in the order of the source, in all epochs.
        made: The topology of the pipeline, where it is known: one epoch may hold equal records, too.
    """
    size = len(np.unique(order))
    several = not isinstance(made, Topology) or any(producer.num_epochs != 1 for producer in made.producers)
    return order[:size] if several and 1 < size < len(order) and np.array_equal(order[size:], order[:-size]) else order


def _batches(sizes: Sequence[tuple[int, int]], count: int) -> Integers:
    """The number of the batch of each record, from (size, how many batches in a row have it)."""
    each = np.repeat([size for size, _ in sizes], [times for _, times in sizes]).astype(np.int64)
    numbers = np.repeat(np.arange(len(each)), each)
    # A side that was cut in the middle of a batch has fewer records than its batches say, or more.
    return np.resize(numbers, count) if len(numbers) != count and len(numbers) else numbers[:count]


def _first_seen(identity: NDArray[Any]) -> NDArray[Any]:
    _, first = np.unique(identity, return_index=True)
    ordered: NDArray[Any] = identity[np.sort(first)]
    return ordered


def _positions(identity: NDArray[Any], order: NDArray[Any]) -> Integers:
    """The place of each record in the source ``order``, or -1.

    Of equal records the first delivered is taken for the first of the source, and so on, in every epoch anew.
    """
    ranks = np.argsort(order, kind="stable")
    ordered = order[ranks]
    first = np.searchsorted(ordered, identity, side="left")
    copies = np.searchsorted(ordered, identity, side="right") - first
    place = first + _occurrence(identity) % np.maximum(copies, 1)
    return np.where(copies > 0, ranks[np.minimum(place, len(ordered) - 1)], -1).astype(np.int64)


def _occurrence(values: NDArray[Any]) -> Integers:
    """How often each value came before."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    counted = np.empty(len(values), np.int64)
    counted[order] = np.arange(len(values)) - np.searchsorted(ordered, ordered, side="left")
    return counted


def _read(value: Any, role: str, key: str | None, label: str | None, max_records: int) -> _Read:
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iu":
        return _Read(value[:max_records], None, np.arange(len(value[:max_records])), ("positions",))
    identities: list[NDArray[Any]] = []
    labels: list[NDArray[Any]] = []
    batches: list[Integers] = []
    names: tuple[str, ...] = ()
    count = 0
    with side_of(value, role).open() as run:
        for number, batch in enumerate(run.batches):
            features = dict(_rows(flatten(batch)))
            names = tuple(features)
            identity = _identity(features, key, role)
            identities.append(identity)
            found = _labels(features, label, key, role)
            if found is not None:
                labels.append(found)
            batches.append(np.full(len(identity), number))
            count += len(identity)
            if count >= max_records:
                break
    if not identities:
        raise InvalidArgument(f"the {role} is empty: it ended before the first record")
    joined = np.concatenate(labels)[:max_records] if len(labels) == len(identities) else None
    return _Read(np.concatenate(identities)[:max_records], joined, np.concatenate(batches)[:max_records], names)


def _rows(features: tuple[tuple[str, Leaf], ...]) -> list[tuple[str, Leaf]]:
    """Leaves with one row a record; a batch whose features have no axis in common is one record."""
    size = common_size(features)
    if size is None:
        return [(name, as_one_record(leaf)) for name, leaf in features]
    return [(name, spread(leaf, size)) for name, leaf in features]


def _identity(features: dict[str, Leaf], key: str | None, role: str) -> NDArray[Any]:
    if key is None:
        return record_digests([feature_digests(leaf) for leaf in features.values()])
    values = _one_value(features, key, role, "key")
    return values.astype("U") if values.dtype == object else values


def _one_value(features: dict[str, Leaf], name: str, role: str, option: str) -> NDArray[Any]:
    leaf = features.get(name)
    if leaf is None:
        raise InvalidArgument(f"{option}={name!r}: the {role} has no such feature; there are {', '.join(features)}")
    if not isinstance(leaf, Dense) or leaf.array[0].size != 1:
        raise InvalidArgument(f"{option}={name!r}: expected one value a record, found shape {list(leaf.row_shape)}")
    return leaf.array.reshape(-1)


def _labels(features: dict[str, Leaf], label: str | None, key: str | None, role: str) -> NDArray[Any] | None:
    if label is not None:
        leaf = features.get(label)
        if isinstance(leaf, Dense) and is_one_hot(leaf.array):
            return np.asarray(leaf.array.argmax(axis=1))
        return _one_value(features, label, role, "label")
    found = find_label([Feature(n, leaf.array) for n, leaf in features.items() if isinstance(leaf, Dense) and n != key])
    if found is None or (found.values.dtype.kind == "f" and not is_one_hot(found.values)):
        return None
    return found.values.argmax(axis=1) if is_one_hot(found.values) else found.values.reshape(-1)
