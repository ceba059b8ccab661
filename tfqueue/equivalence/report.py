"""The result of a comparison: one tree of frozen dataclasses, which text, JSON and pictures only render."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfqueue.errors import InvalidArgument

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA_VERSION = 1

SAME = "same"
DIFFERENT = "different"
NOT_CHECKED = "not checked"

EQUIVALENT = "equivalent"
UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Location:
    """Where a record was delivered; everything counts from 0.

    Attributes:
        batch: The number of the batch.
        row: The record's place in the batch.
        record: The record's number in the stream.
    """

    batch: int
    row: int
    record: int

    def __str__(self) -> str:
        return f"record {self.record} (batch {self.batch}, row {self.row})"


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between records, with the values.

    Attributes:
        kind: ``"changed"`` (both sides have the record, with other values), ``"missing"`` (only the reference
            has it) or ``"extra"`` (only the candidate has it).
        reference: Where the reference delivered the record, or None.
        candidate: Where the candidate delivered it, or None.
        feature: The first feature that differs, for ``"changed"``.
        index: The index of the first differing element inside the record's feature; ``()`` for a scalar.
        reference_value: The element's value in the reference.
        candidate_value: The element's value in the candidate.
        differing: How many elements differ, by feature.
        reference_record: The whole record, by feature, or None where its values were not kept.
        candidate_record: The same of the candidate, under the reference's names.
    """

    kind: str
    reference: Location | None = None
    candidate: Location | None = None
    feature: str | None = None
    index: tuple[int, ...] | None = None
    reference_value: Any = None
    candidate_value: Any = None
    differing: Mapping[str, int] = field(default_factory=dict)
    reference_record: Mapping[str, Any] | None = None
    candidate_record: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check found.

    Attributes:
        name: The check's name, such as ``"records"``.
        status: ``"same"``, ``"different"`` or ``"not checked"``.
        summary: One sentence.
        counts: False if the result is information only and does not enter the verdict.
        hint: What to look at or to do, or None.
        evidence: Figures, by name; plain values that JSON can hold.
    """

    name: str
    status: str
    summary: str
    counts: bool = True
    hint: str | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cause:
    """A likely mistake behind the differences.

    Attributes:
        name: The stable name, one of `tfqueue.equivalence.causes.NAMES`.
        side: The side to look at: ``"candidate"``, or ``"reference"`` where the fault is there.
        summary: What was done, in a sentence.
        evidence: What it is concluded from.
        advice: What to change.
        feature: The feature concerned, or None.
    """

    name: str
    side: str
    summary: str
    evidence: str
    advice: str
    feature: str | None = None


@dataclass(frozen=True, slots=True)
class FeatureReport:
    """One feature as a side delivered it.

    Attributes:
        name: Its name in the batch structure.
        kind: ``"dense"``, ``"ragged"`` or ``"sparse"``.
        dtype: Its dtype, or the dtypes joined by ``/`` where they change.
        shape: The shape of one record, None where a dimension changes.
    """

    name: str
    kind: str
    dtype: str
    shape: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class SideReport:
    """What a side delivered.

    Attributes:
        role: ``"reference"`` or ``"candidate"``.
        kind: What kind of side it is, such as ``"tf.data.Dataset"``.
        name: What the user gave, in a few words.
        batches: Batches read.
        records: Records read.
        batch_sizes: (size, how many batches in a row have it), in order of delivery.
        ended: ``"clean"``, ``"error"``, ``"cut"`` (at max_records), ``"going on"`` (stopped long after the
            other) or ``"not read"`` (the sides have no feature in common).
        error: The error's type and words, or None.
        order: What is known about its order, in words.
        seconds: Time spent waiting for its batches.
        features: Its features.
    """

    role: str
    kind: str
    name: str
    batches: int
    records: int
    batch_sizes: tuple[tuple[int, int], ...]
    ended: str
    error: str | None
    order: str
    seconds: float
    features: tuple[FeatureReport, ...]


@dataclass(frozen=True, slots=True)
class Orders:
    """The order in which the records came, by their digests, for pictures of it; no part of the JSON form.

    Attributes:
        reference: The digest of each record of the reference, uint64.
        candidate: The same of the candidate.
        source: The digests in the order of the source, where that was learnt; else None.
        reference_labels: The labels of the first 100,000 records of the reference, integers or strings; None where
            no feature is a label.
        candidate_labels: The same of the candidate.
    """

    reference: npt.NDArray[np.uint64]
    candidate: npt.NDArray[np.uint64]
    source: npt.NDArray[np.uint64] | None = None
    reference_labels: npt.NDArray[Any] | None = None
    candidate_labels: npt.NDArray[Any] | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """The whole result of a comparison.

    Attributes:
        verdict: ``"equivalent"``, ``"different"``, or ``"undecided"`` where too little could be looked at.
        checks: Every check, in the order in which they are made.
        differences: Samples of records that differ.
        causes: Likely mistakes, the most likely first.
        reference: What the reference delivered.
        candidate: What the candidate delivered.
        options: The options of the comparison.
        schema_version: Version of the tree, and of the JSON form.
        orders: The order in which the records came, or None.
        pipelines: How the reference and the candidate were made, for pictures of it: the `tfqueue.topology.Topology` of
            a queue-runner pipeline, the chain of a tf.data.Dataset, or None; no part of the JSON form.
    """

    verdict: str
    checks: tuple[CheckResult, ...]
    differences: tuple[Difference, ...]
    causes: tuple[Cause, ...]
    reference: SideReport
    candidate: SideReport
    options: Mapping[str, Any]
    schema_version: int = SCHEMA_VERSION
    orders: Orders | None = field(default=None, repr=False, compare=False, metadata={"json": False})
    pipelines: tuple[Any, Any] = field(default=(None, None), repr=False, compare=False, metadata={"json": False})

    @property
    def equivalent(self) -> bool:
        """True if every check that counts found the same, and the records could be checked."""
        return self.verdict == EQUIVALENT

    def check(self, name: str) -> CheckResult:
        """The result of the check called ``name``.

        Raises:
            KeyError: There is no such check.
        """
        for result in self.checks:
            if result.name == name:
                return result
        raise KeyError(f"no check {name!r}; there are: {', '.join(r.name for r in self.checks)}")

    def __str__(self) -> str:
        from tfqueue.equivalence.text import render

        return render(self)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values, as `to_json` writes them."""
        from tfqueue.equivalence.jsonform import plain

        form: dict[str, Any] = plain(self)
        return form

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """The report as JSON text.

        Args:
            path: Where to write it as well (UTF-8; appears whole or not at all), or None.

        Raises:
            InvalidArgument: ``path`` cannot be written.
        """
        from tfqueue.equivalence.jsonform import dumps, write

        text = dumps(self)
        if path is not None:
            try:
                write(path, text)
            except OSError as error:
                raise InvalidArgument(f"cannot write the report to {os.fspath(path)!r}: {error.strerror}") from error
        return text

    def to_html(
        self,
        path: str | PathLike[str],
        *,
        figures: Mapping[str, Figure] | None = None,
        shown: int = 50,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        """Write the report as one HTML file that needs nothing else.

        It shows how the sides were made, where they are queue-runner pipelines or Datasets, and how they mix their
        records, where the order of the source is known.

        Args:
            path: The file, ending in .html; it appears whole or not at all.
            figures: More pictures by their heading, such as that of `tfqueue.views.plot_stats`.
            shown: Show at most so many differing records with their values.
            notes: More lines for the section "How it was run", such as the command.

        Raises:
            InvalidArgument: ``path`` cannot be written, or an option does not fit.
        """
        from tfqueue.views.html import write_report

        write_report(self, path, figures=figures, shown=shown, notes=notes)

    def plot(self, path: str | PathLike[str] | None = None) -> Figure:
        """The report as a matplotlib Figure: verdict, checks, and the images of the first differing records.

        Args:
            path: PNG file to write as well; its folder must exist.

        Raises:
            InvalidArgument: ``path`` cannot be written.
        """
        from tfqueue.views import plot_report

        return plot_report(self, path)

    def _repr_html_(self) -> str:
        """The page of `to_html` in a frame of its own, for notebooks: its styles and keys stay inside."""
        from tfqueue.views.html import frame

        return frame(self)
