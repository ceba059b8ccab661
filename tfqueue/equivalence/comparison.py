"""Compares two streams of batches: one pass over both, side by side, then the checks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from tfqueue.equivalence.align import Aligned
from tfqueue.equivalence.causes import find_causes
from tfqueue.equivalence.checks import run_checks
from tfqueue.equivalence.chunk import Chunk
from tfqueue.equivalence.differences import samples_of
from tfqueue.equivalence.evidence import BatchShapes, Evidence
from tfqueue.equivalence.followed import KeptLabels, find_label, how_made
from tfqueue.equivalence.leaves import STRING, Dense, Leaf
from tfqueue.equivalence.observe import Observation
from tfqueue.equivalence.options import Options, Tolerance, checked
from tfqueue.equivalence.pairing import Pairing, layouts, pair_features
from tfqueue.equivalence.progress import Progress
from tfqueue.equivalence.report import DIFFERENT, EQUIVALENT, SAME, UNDECIDED, CheckResult, Orders, Report
from tfqueue.equivalence.rounding import Rounded, learn
from tfqueue.equivalence.second_look import look_again
from tfqueue.equivalence.streams import Run, Side, side_of
from tfqueue.errors import InvalidArgument, InvalidStream, NotEquivalent, PipelineError

# How far one side is followed after the other has ended: far enough to tell "a pass more" from "never ends".
_BEYOND = 10_000


def compare(
    reference: Any,
    candidate: Any,
    *,
    order: str = "auto",
    key: str | Callable[[Mapping[str, Any]], Any] | None = None,
    rtol: float = 0.0,
    atol: float = 0.0,
    tolerances: Mapping[str, Tolerance | float] | None = None,
    equal_nan: bool = False,
    max_records: int | None = None,
    samples: int = 5,
    progress: bool = False,
) -> Report:
    """Compare two streams of batches.

    A side is a build function (as the reference: it is run in a graph of its own), a `QueuePipeline` that is
    not entered, a `tf.data.Dataset`, a zero-argument function that returns a Dataset or an iterable (as the
    candidate: it is called eagerly, outside of any graph), an iterable of batches, or the path of a golden. A
    batch is an array or a tensor, or a nested tuple, named tuple, list or dict of them; axis 0 counts the records.
    Where the features of a batch have no axis in common, each batch is one record.

    Both sides are read side by side, once; of each record 8 bytes are remembered on each side. Only where they
    differ, or shuffle, are sides that can be run again run again: to fetch the values of records that differ, to see
    which records a side can deliver at all, and to learn the order of the source.

    Args:
        reference: The side that is right by definition.
        candidate: The side that should deliver the same.
        order: ``"strict"``: the records must come in the same order. ``"any"``: their order does not matter.
            ``"auto"``: it matters where the reference defines it, that is if its graph shuffles nothing and
            fills each queue from one thread; where nothing is known (an iterable), if the sides agree in most
            of it.
        key: The feature, or a function of a record (a dict of arrays by feature), that names a record, to
            pair records whose values differ.
        rtol: Relative tolerance of numbers: ``|candidate - reference| <= atol + rtol * |reference|``.
        atol: Absolute tolerance of numbers.
        tolerances: (rtol, atol), or atol alone, of single features by name, in place of ``rtol`` and
            ``atol``.
        equal_nan: Whether NaN equals NaN.
        max_records: Compare this many records of each side only; needed where both sides never end.
        samples: How many differing records the report shows with their values.
        progress: Whether to write a line of progress to stderr now and then.

    Returns:
        The report. `Report.equivalent` is True if nothing that counts differs.

    Raises:
        InvalidArgument: An option that cannot be meant, or sides that never end without ``max_records``.
        InvalidStream: A side that is no stream of batches.
        InvalidBuildFunction: A build function that returns no tensors of its graph.
    """
    options = checked(
        order=order,
        key=key,
        rtol=rtol,
        atol=atol,
        tolerances=tolerances,
        equal_nan=equal_nan,
        max_records=max_records,
        samples=samples,
    )
    sides = side_of(reference, "reference"), side_of(candidate, "candidate")
    if reference is candidate and not sides[0].repeatable:
        raise InvalidArgument("reference and candidate are the same iterator, which can be read only once")
    if reference is candidate and sides[0].kind == "QueuePipeline":
        raise InvalidArgument(
            "reference and candidate are the same QueuePipeline, which runs once at a time; make a second one"
        )
    evidence = observe(sides[0], sides[1], options, progress=progress)
    padded = _padded_inside(evidence)
    if padded and sides[0].repeatable and sides[1].repeatable:
        evidence = observe(sides[0], sides[1], options, progress=progress, nested=padded)
    with np.errstate(all="ignore"):  # values may be anything, signalling NaN among them
        evidence.look = look_again(evidence)
        rounded = learn(evidence)
        if rounded:
            evidence.aside = observe(sides[0], sides[1], options, nested=padded, rounded=rounded)
            evidence.aside.look = look_again(evidence.aside)
        return judge(evidence)


def assert_equivalent(reference: Any, candidate: Any, **options: Any) -> None:
    """Raise unless two streams of batches are equivalent; for tests, in any test runner.

    Args:
        reference: As for `compare`.
        candidate: As for `compare`.
        **options: The options of `compare`.

    Raises:
        NotEquivalent: They differ, or too little could be compared; ``.report`` holds the report.
    """
    report = compare(reference, candidate, **options)
    if not report.equivalent:
        raise NotEquivalent(str(report), report=report)


def judge(evidence: Evidence) -> Report:
    """Run the checks over what was seen, and put the report together."""
    differences = samples_of(evidence)
    results = run_checks(evidence)
    verdict = _verdict(results)
    return Report(
        verdict=verdict,
        checks=results,
        differences=differences,
        causes=() if verdict == EQUIVALENT else find_causes(evidence),
        reference=evidence.reference.report(),
        candidate=evidence.candidate.report(),
        options=evidence.options.described(),
        orders=_orders(evidence),
        pipelines=evidence.made,
    )


def _orders(evidence: Evidence) -> Orders:
    source = evidence.look.source if evidence.look is not None else None
    labels = [
        None if side.labels is None else side.labels.values() for side in (evidence.reference, evidence.candidate)
    ]
    return Orders(
        evidence.reference.digests,
        evidence.candidate.digests,
        None if source is None else source.digests,
        *labels,
    )


def _verdict(results: tuple[CheckResult, ...]) -> str:
    if any(result.counts and result.status == DIFFERENT for result in results):
        return DIFFERENT
    records = next(result for result in results if result.name == "records")
    return EQUIVALENT if records.status == SAME else UNDECIDED


def _padded_inside(evidence: Evidence) -> frozenset[int]:
    """The features whose records differ in the size of an axis after their first, which only padding explains.

    A record's digest does not depend on zeros at its end, but on zeros at the end of each of its rows, unless it is
    made in another, slower way. That is found out when the records do not agree.
    """
    if (
        evidence.aligned is None
        or evidence.same_records
        or "golden" in (evidence.reference.side.kind, evidence.candidate.side.kind)
    ):
        return frozenset()
    views = zip(evidence.reference.views, evidence.candidate.views, strict=True)
    return frozenset(
        index
        for index, (one, two) in enumerate(views)
        if one.kind == two.kind == "dense"
        and len(one.high) == len(two.high) > 1
        and (one.low[1:] != one.high[1:] or two.low[1:] != two.high[1:])
    )


def observe(
    left: Side,
    right: Side,
    options: Options,
    *,
    progress: bool = False,
    nested: frozenset[int] = frozenset(),
    rounded: Mapping[int, Rounded] | None = None,
) -> Evidence:
    """Read both sides to their ends, side by side.

    Args:
        left: The reference.
        right: The candidate.
        options: The options of the comparison.
        progress: Whether to show how far it is.
        nested: The numbers of the features that are padded along an axis after their first.
        rounded: By the number of a feature, what takes values that differ by rounding for equal.
    """
    with _opened(left) as (left_run, left_error), _opened(right) as (right_run, right_error):
        if left_run.endless and right_run.endless and options.max_records is None:
            raise InvalidArgument("both sides never end (repeat() without a count); give max_records")
        reference = Observation(left, left_run, options.max_records)
        candidate = Observation(right, right_run, options.max_records)
        evidence = _Reading(reference, candidate, options, progress, nested, rounded or {}).run()
        evidence.made = how_made(left_run), how_made(right_run)
    for observation, errors in ((reference, left_error), (candidate, right_error)):
        if errors and observation.ended == "clean":
            observation.ended, observation.error = "error", errors[0]
    return evidence


@contextmanager
def _opened(side: Side) -> Iterator[tuple[Run, list[BaseException]]]:
    """A running side, and the errors that came on its way out.

    A side that fails when it is opened gives a run that fails at its first batch, so that the report can say
    so; but what cannot be a side at all is an error of the call.
    """
    errors: list[BaseException] = []
    manager = side.open()
    try:
        run = manager.__enter__()
    except (InvalidArgument, InvalidStream):
        raise
    except Exception as error:  # noqa: BLE001 - see above
        yield Run(_failing(error)), errors
        return
    try:
        yield run, errors
    except BaseException as error:
        if not manager.__exit__(type(error), error, error.__traceback__):
            raise
    else:
        try:
            manager.__exit__(None, None, None)
        except PipelineError as error:
            errors.append(error)


def _failing(error: BaseException | None) -> Iterator[Any]:
    if error is not None:
        raise error
    yield None


class _Reading:
    """The pass over both sides: the side that has delivered fewer records is asked next."""

    def __init__(
        self,
        reference: Observation,
        candidate: Observation,
        options: Options,
        progress: bool,
        nested: frozenset[int],
        rounded: Mapping[int, Rounded],
    ) -> None:
        self.nested = nested
        self.rounded = rounded
        self.progress = Progress(progress)
        self.reference = reference
        self.candidate = candidate
        self.options = options
        self.shapes = BatchShapes()
        self.in_step = True
        self.waiting: tuple[deque[Chunk], deque[Chunk]] = (deque(), deque())
        self.aligned: Aligned | None = None

    def run(self) -> Evidence:
        pairing = self._prepare()
        if pairing is not None and pairing.pairs:
            self._read()
            if self.aligned is not None:
                self.aligned.finish()
        else:
            for observation in (self.reference, self.candidate):
                observation.stop("not read")
        return Evidence(self.reference, self.candidate, pairing, self.aligned, self.shapes, self.options)

    def _prepare(self) -> Pairing | None:
        left, right = self.reference.peek(), self.candidate.peek()
        for observation in (self.reference, self.candidate):
            if isinstance(observation.error, InvalidStream):
                raise observation.error
        if left is None or right is None:
            self._prepare_alone(left, right)
            return None
        pairing = pair_features(left, right)
        self._check_options(dict(left))
        if not pairing.pairs:
            return pairing
        batched = layouts(left, right, pairing)
        ones, twos = dict(left), dict(right)
        casts = tuple(_cast(ones[a], twos[b]) for a, b in pairing.pairs)
        plain = (None,) * len(casts)
        self.reference.prepare(tuple(a for a, _ in pairing.pairs), batched[0], plain, self.nested, self.rounded)
        self.candidate.prepare(tuple(b for _, b in pairing.pairs), batched[1], casts, self.nested, self.rounded)
        self.aligned = Aligned(self.reference.names, self.options)
        label = find_label(
            [(a, _array(ones[a])) for a, _ in pairing.pairs], [(b, _array(twos[b])) for _, b in pairing.pairs]
        )
        if label is not None:
            self.reference.labels, self.candidate.labels = KeptLabels(label), KeptLabels(label)
        return pairing

    def _prepare_alone(self, left: Any, right: Any) -> None:
        """One side has no batch: the other is still counted."""
        for observation, features in ((self.reference, left), (self.candidate, right)):
            if features is None:
                continue
            pairing = pair_features(features, features)
            observation.prepare(
                tuple(name for name, _ in features),
                layouts(features, features, pairing)[0],
                (None,) * len(features),
            )
            while observation.count < _BEYOND and observation.pull() is not None:
                pass
            observation.stop("going on")

    def _check_options(self, features: dict[str, Leaf]) -> None:
        for name in self.options.tolerances or {}:
            if name not in features:
                raise InvalidArgument(
                    f"tolerances names the feature {name!r}; the reference has: {', '.join(features)}"
                )
        if isinstance(self.options.key, str) and self.options.key not in features:
            raise InvalidArgument(
                f"key names the feature {self.options.key!r}; the reference has: {', '.join(features)}"
            )

    def _read(self) -> None:
        while not (self.reference.done and self.candidate.done):
            index = int(self.reference.done or self.candidate.count < self.reference.count)
            if (self.reference, self.candidate)[index].done:
                index = 1 - index
            observation = (self.reference, self.candidate)[index]
            waiting = self.waiting[index]
            if waiting and not observation.fresh:
                waiting[-1] = waiting[-1].copied()
            opposite = self.waiting[1 - index]
            chunk = observation.pull(opposite[0] if opposite else None)
            if chunk is not None:
                self._check_shapes()
                waiting.append(chunk)
                self._pair()
            self._limit()
            self.progress.show(self.reference.count, self.candidate.count)
        self.progress.clear()

    def _pair(self) -> None:
        left, right = self.waiting
        while left and right:
            one, two = left.popleft(), right.popleft()
            count = min(one.size, two.size)
            if one.size > count:
                one, rest = one.split(count)
                left.appendleft(rest)
            if two.size > count:
                two, rest = two.split(count)
                right.appendleft(rest)
            if count and self.aligned is not None:
                self.aligned.add(one, two)
        if self.reference.done:
            right.clear()
        if self.candidate.done:
            left.clear()

    def _check_shapes(self) -> None:
        """Compare the shapes of the batches that both sides have delivered, as long as they have equal
        sizes.
        """
        left, right = self.reference.shapes, self.candidate.shapes
        while left and right:
            ours, theirs = left.popleft(), right.popleft()
            self.in_step = self.in_step and ours.size == theirs.size
            if self.in_step and self.shapes.first is None:
                for name, (_, one, _), (_, two, _) in zip(self.reference.names, ours.makes, theirs.makes, strict=True):
                    if one != two:
                        self.shapes.first = (self.shapes.compared, name, one, two)
                        break
            self.shapes.compared += self.in_step
        if not self.in_step or self.reference.ended or self.candidate.ended:
            for observation, other in ((self.reference, self.candidate), (self.candidate, self.reference)):
                if not self.in_step or other.done:
                    observation.shapes.clear()

    def _limit(self) -> None:
        """Stop a side that goes on long after the other has ended."""
        for done, other in ((self.reference, self.candidate), (self.candidate, self.reference)):
            if done.done and not other.done and other.count > 2 * done.count + _BEYOND:
                other.stop("going on")


def _array(leaf: Leaf) -> Any:
    return leaf.array if isinstance(leaf, Dense) else np.zeros((0, 0, 0))


def _cast(reference: Leaf, candidate: Leaf) -> Any:
    """The dtype to read the candidate's numbers in, if it has another one than the reference; else None."""
    if reference.dtype == candidate.dtype or STRING in (reference.dtype, candidate.dtype):
        return None
    to, of = np.dtype(reference.dtype), np.dtype(candidate.dtype)
    return to if to.kind in "biuf" and of.kind in "biuf" else None
