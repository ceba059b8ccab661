"""Causes that show in which records come, how often, and in which order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tfqueue.equivalence.checks.shuffle import check_shuffle
from tfqueue.equivalence.digest import Words
from tfqueue.equivalence.evidence import Evidence, Indices, fraction_kept, number
from tfqueue.equivalence.mixing import reach
from tfqueue.equivalence.observe import Observation
from tfqueue.equivalence.passes import Passes, passes, repeats_within, same_every_pass
from tfqueue.equivalence.report import DIFFERENT, CheckResult

Found = tuple[str, str]


def stream_causes(evidence: Evidence, source: Words | None) -> Iterator[Found]:
    """Likely causes from counts, batches and order.

    Args:
        evidence: What was seen.
        source: The digests in the order in which the reference's source delivers them, where that is known.
    """
    if evidence.aligned is None:
        return
    left, right = evidence.reference, evidence.candidate
    if "error" in (left.ended, right.ended) or "going on" in (left.ended, right.ended):
        if "error" not in (left.ended, right.ended):
            yield "epochs-differ", "one side goes on long after the other has ended"
        return
    found = list(_counts(evidence, source))
    yield from found
    if not found and evidence.nothing_lost:
        yield from _batches(left, right)
        if not evidence.same_sequence:
            yield from _order(evidence, source)


def _batches(left: Observation, right: Observation) -> Iterator[Found]:
    if left.sizes == right.sizes:
        return
    one, two = left.sizes[0][0], right.sizes[0][0]
    if one != two:
        yield "batch-size", (f"the first batch holds {number(one, 'record')} in the reference, {two} in the candidate")
    elif _partial(right) > 1 >= _partial(left) or _partial(left) > 1 >= _partial(right):
        yield "batch-before-repeat", "smaller batches come in the middle of one side, at the end of each pass"


def _partial(side: Observation) -> int:
    """How many batches are smaller than the largest."""
    largest = max(size for size, _ in side.sizes)
    return sum(count for size, count in side.sizes if size < largest)


def _counts(evidence: Evidence, source: Words | None) -> Iterator[Found]:
    left, right = evidence.reference, evidence.candidate
    missing, extra = evidence.surplus
    if not len(missing) and not len(extra):
        return
    look = evidence.look
    if look is not None and (look.remainder or len(look.matches) >= 0.5 * min(len(missing), 64) > 0):
        yield from _by_size(left, right)  # the same records with other values: only the sizes can tell
        return
    size = max(size for size, _ in left.sizes)
    other = max(size for size, _ in right.sizes)
    if size != other and len(missing) + len(extra) < max(size, other) and not (len(missing) and len(extra)):
        yield "batch-size", f"the batches hold {number(size, 'record')} in the reference, {other} in the candidate"
        return
    times = passes(evidence)
    whole = times.records // size * size
    crossing = times.records % size and max(times.reference, times.candidate) > 1
    if (
        crossing
        and right.count == times.candidate * whole
        and _partial(right) == 0
        and right.count != left.count // size * size
        and (right.count != times.candidate * times.records // size * size or _per_pass(right, times, size, whole))
    ):
        yield "batch-before-repeat", (f"the candidate drops {times.records % size} records at the end of each pass")
        return
    if crossing and right.count in (left.count, left.count // size * size) and _per_pass(right, times, size, whole):
        yield "batch-before-repeat", "the candidate's batches end with each pass over the data"
        return
    new = times.reference > 1 or not np.any(np.isin(right.digests[extra], left.digests))
    if (
        new
        and not len(missing)
        and 0 < len(extra) < size
        and right.sizes[-1][0] < size
        and _partial(left) == 0
        and _partial(right) == 1
    ):
        yield "remainder-kept", f"{number(len(extra), 'record')} more, all in a smaller last batch"
        return
    if not len(extra) and 0 < len(missing) < size and _partial(right) == 0 and left.sizes[-1][0] < size:
        yield (
            "remainder-dropped",
            (f"the {number(len(missing), 'record')} of the reference's smaller last batch are missing"),
        )
        return
    if _partial(right) > 1 >= _partial(left):
        yield "batch-before-repeat", ("a smaller batch ends each pass of the candidate")
        return
    if left.ordering.defined and _doubled(right) and not _doubled(left):
        yield "records-doubled", "the candidate delivers records twice, one right after the other"
        return
    ratio = right.count / left.count
    if (
        times.reference != times.candidate
        and abs(ratio * times.reference / times.candidate - 1) < 0.02 + size / left.count
    ):
        yield (
            "epochs-differ",
            (
                f"each record comes {number(times.reference, 'time')} in the reference, "
                f"{times.candidate} in the candidate"
            ),
        )
        return
    yield from _places(evidence, source, size)


def _doubled(side: Observation) -> bool:
    """Whether a quarter of the records are the same as the one before."""
    return side.count >= 8 and float(np.mean(side.digests[1:] == side.digests[:-1])) > 0.25


def _by_size(left: Observation, right: Observation) -> Iterator[Found]:
    """What the sizes of the batches alone tell, where no record is equal on both sides."""
    one, two = left.sizes[0][0], right.sizes[0][0]
    if left.sizes == right.sizes or min(left.batches, right.batches) < 2:
        return
    more = right.count - left.count
    if one != two:
        yield "batch-size", f"the first batch holds {number(one, 'record')} in the reference, {two} in the candidate"
    elif _partial(right) > 1 >= _partial(left):
        yield "batch-before-repeat", "a smaller batch ends each pass of the candidate"
    elif not _partial(left) and 0 < more == right.sizes[-1][0] < two:
        yield "remainder-kept", f"{number(more, 'record')} more, all in a smaller last batch"
    elif not _partial(right) and 0 < -more == left.sizes[-1][0] < one:
        yield "remainder-dropped", f"the {number(-more, 'record')} of the reference's smaller last batch are missing"


def _per_pass(side: Observation, times: Passes, size: int, whole: int) -> bool:
    """Whether each pass of a side delivers its whole batches only, though the passes together do not end
    there.
    """
    if whole == 0 or _partial(side):
        return False
    parts = [side.digests[i : i + whole] for i in range(0, side.count - whole + 1, whole)]
    return (
        len(parts) > 1
        and all(len(np.unique(part)) == whole for part in parts)
        and (len({part.tobytes() for part in (np.sort(p) for p in parts)}) == 1)
    )


def _places(evidence: Evidence, source: Words | None, size: int) -> Iterator[Found]:
    """From where the missing and extra records stand in the order of the source."""
    missing, extra = evidence.surplus
    left, right = evidence.reference, evidence.candidate
    ordered = left.digests if source is None else source
    known = source is not None or left.ordering.defined is not False
    new = ~np.isin(right.digests[extra], left.digests)
    if new.sum() >= max(1, 0.5 * len(missing)):
        return  # records with other values, not records that are gone
    if len(missing):
        lost = _positions(ordered, left.digests[missing]) if known else missing
        once = source is None and passes(evidence).reference == 1
        length = left.count if once else len(np.unique(ordered))
        blocks = _blocks(lost)
        at_end = len(blocks) > 1 and blocks[-1][1] == length and length - blocks[-1][0] < size
        # Single records at equal distances, the last at the end, are the last ones of files.
        of_files = len(blocks) == len(lost) and lost[0] != 0 and len(set(np.diff(lost).tolist())) == 1
        if at_end and not of_files and not _partial(right):
            lost = lost[: -(length - blocks.pop()[0])]  # what does not fill the last batch follows from what is lost
        yield _lost(lost, blocks, length, known)
    if len(extra):
        if np.mean(new) > 0.5:
            return
        again = _positions(ordered, right.digests[extra]) if known else extra
        if known and len(again) > 1 and len(_blocks(again)) <= max(1, len(again) // 8):
            yield "file-twice", f"{number(len(extra), 'record')} that stand together come once more"
        else:
            yield "records-doubled", f"{number(len(extra), 'record')} come more often than in the reference"


def _lost(lost: Indices, blocks: list[tuple[int, int]], length: int, known: bool) -> Found:
    words = number(len(lost), "record")
    if known and len(blocks) <= max(1, len(lost) // 4) and len(lost) > 1:
        start, stop = blocks[0]
        return "file-missing", f"{words} missing that stand together, such as {start}..{stop - 1}"
    single = all(stop - start == 1 for start, stop in blocks) and len(blocks) <= 0.25 * length
    if known and single and lost[0] == 0 and lost[-1] != length - 1:
        return "first-record-lost", f"{words} missing, at {_some(lost)}"
    if known and single and lost[-1] == length - 1 and lost[0] != 0:
        return "last-record-lost", f"{words} missing, at {_some(lost)}"
    return "records-lost", f"{words} missing" + (f", at {_some(lost)}" if known else "")


def _some(places: Indices) -> str:
    return ", ".join(str(p) for p in places[:6].tolist()) + (", ..." if len(places) > 6 else "")


def _positions(ordered: Words, digests: Words) -> Indices:
    """The first places of some digests in a stream, in ascending order."""
    order = np.argsort(ordered, kind="stable")
    wanted = np.intersect1d(digests, ordered)
    return np.sort(order[np.searchsorted(ordered[order], wanted)])


def _blocks(places: Indices) -> list[tuple[int, int]]:
    """Runs of consecutive numbers, as (start, stop)."""
    breaks = np.flatnonzero(np.diff(places) != 1) + 1
    parts = np.split(places, breaks)
    return [(int(part[0]), int(part[-1]) + 1) for part in parts if len(part)]


def _order(evidence: Evidence, source: Words | None) -> Iterator[Found]:
    left, right = evidence.reference, evidence.candidate
    times = passes(evidence)
    if times.reference > 1:
        blurred = list(_epochs(left, right, times.records))
        yield from blurred
        if blurred:
            return  # how far records move follows from it
    mixing = check_shuffle(evidence)
    if mixing.status == DIFFERENT:
        yield _mixing(evidence, source, mixing)
        return
    if left.ordering.defined is False:
        return
    kept = fraction_kept(left.digests, right.digests)
    if len(left.digests) >= 8 and kept < 0.3:
        if left.ordering.defined or right.ordering.defined is False:
            yield "not-shuffled", f"{kept:.0%} of neighbours stay together, so the candidate shuffles"
        return
    places = _map(left.digests, right.digests)
    blocks = np.flatnonzero(np.diff(places) != 1)
    if len(blocks) and len(places) / (len(blocks) + 1) >= 3 and not _swapped(places):
        yield "file-order", f"{len(blocks) + 1} blocks of records come in another order"
    else:
        yield "order-changed", f"{kept:.0%} of neighbours stay together"


def _mixing(evidence: Evidence, source: Words | None, mixing: CheckResult) -> Found:
    """What the shuffle check found, as a mistake."""
    figures, words = mixing.evidence, mixing.summary
    if source is None:
        name = "buffer-too-small" if figures.get("less") else "buffer-too-large"
        return ("batch-before-shuffle" if figures.get("together") else name), words
    right = evidence.candidate
    kept = fraction_kept(source, right.digests[: len(source)])
    if _whole_batches(kept, reach(source, right.digests, len(source)), max(size for size, _ in right.sizes)):
        return "batch-before-shuffle", f"{kept:.0%} of the records follow their neighbour in the source; {words}"
    if kept > 0.9:
        return "not-shuffled", words
    return ("buffer-too-small" if "at least" in (mixing.hint or "") else "buffer-too-large"), words


def _whole_batches(kept: float, far: float, size: int) -> bool:
    """Whether blocks of about a batch move as one.

    A buffer of b records moves a quarter of them 0.7 b places or more, and keeps one neighbour in b.

    Args:
        kept: The share of the records that follow their neighbour in the source.
        far: How far a quarter of the records move.
        size: Records in a batch.
    """
    return kept > 0.3 and kept * far > 4 and (1 - kept) * 1.5 * size >= 1


def _swapped(places: Indices) -> bool:
    """Whether only two records moved, not blocks of them."""
    return int(np.count_nonzero(places != np.arange(len(places)))) <= 2


def _map(left: Words, right: Words) -> Indices:
    """For each record of the candidate, its place in the reference; equal records in order."""
    one, two = np.argsort(left, kind="stable"), np.argsort(right, kind="stable")
    places = np.empty(len(right), dtype=np.int64)
    places[two] = one
    return places


def _epochs(left: Observation, right: Observation, length: int) -> Iterator[Found]:
    one, two = repeats_within(left.digests, length), repeats_within(right.digests, length)
    least = max(3, length // 200)
    if one >= least and two == 0:
        yield (
            "shuffle-before-repeat",
            (f"in the reference {one} records reach into the next pass, in the candidate none"),
        )
    elif two >= least and one == 0:
        yield (
            "repeat-before-shuffle",
            (f"in the candidate {two} records reach into the next pass, in the reference none"),
        )
    if same_every_pass(right.digests, length) and not same_every_pass(left.digests, length):
        yield "no-reshuffle", "the candidate has the same order in every pass, the reference has not"
