"""From a report to the page: everything is decided here, the template only places it."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import metadata
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from tfqueue.equivalence.report import DIFFERENT, SAME, Difference, Report
from tfqueue.errors import InvalidArgument
from tfqueue.views import style
from tfqueue.views.html.embed import Picture, common_range, data_uri, images_of, pictures_of
from tfqueue.views.html.figures import PIPELINE_OF, figures_of
from tfqueue.views.html.gallery import check_html_path, write_page
from tfqueue.views.html.page import alt_text, render
from tfqueue.views.html.words import value_words, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_FEATURES = 30
# A picture that is broader, in inches, has a row of the page for itself.
_COLUMN = 6.2
_VERDICTS = {
    "equivalent": ("✓", "Equivalent", "The candidate delivers the same data as the reference."),
    "different": ("✗", "Different", "The candidate does not deliver the same data as the reference."),
    "undecided": ("?", "Undecided", "Too little could be compared to say whether the two sides deliver the same data."),
}
# Why there is no picture of how a side was made.
_UNTOLD = {
    "golden": "not known: a golden holds digests only",
    "iterable": "not known: an iterable does not tell how it was made",
    "iterator": "not known: an iterator does not tell how it was made",
    "callable": "not known: only a function that returns a Dataset tells how it was made",
}
_ICONS = {SAME: "✓", DIFFERENT: "✗"}


@dataclass(frozen=True, slots=True)
class _Row:
    """One feature of a differing record: name, words on both sides, how many elements differ."""

    name: str
    reference: str
    candidate: str
    differing: str
    differs: bool


@dataclass(frozen=True, slots=True)
class _Record:
    """One differing record as the page shows it."""

    kind: str
    title: str
    place: str
    summary: str
    number: int
    size: float
    rows: list[_Row]
    hidden_rows: int
    pictures: list[Picture]
    image: str


def write_report(
    report: Report,
    path: str | os.PathLike[str],
    *,
    figures: Mapping[str, Figure] | None = None,
    shown: int = 50,
    notes: Mapping[str, str] | None = None,
) -> None:
    """Write the report of a comparison as one HTML file that needs nothing else.

    The file loads nothing from anywhere, works with scripts off, in light and dark, on a phone and in print.

    Args:
        report: What `tfqueue.compare` returned.
        path: The file to write, ending in .html or .htm; its folder must exist. It appears whole or not at
            all.
        figures: More pictures by their heading, such as that of `plot_stats`, beside those of `figures_of`.
        shown: Show at most so many differing records with their values.
        notes: More lines for the section "How it was run", such as the command.

    Raises:
        InvalidArgument: ``path`` cannot be written, or an option does not fit.
    """
    target = check_html_path(path)
    write_page(target, render_report(report, figures=figures, shown=shown, notes=notes))


def render_report(
    report: Report,
    *,
    figures: Mapping[str, Figure] | None = None,
    shown: int = 50,
    notes: Mapping[str, str] | None = None,
) -> str:
    """The page that `write_report` writes, as text.

    Raises:
        InvalidArgument: ``report`` is no report, or ``shown`` is negative.
    """
    if not isinstance(report, Report):
        raise InvalidArgument(f"report is a {type(report).__name__}; expected what tfqueue.compare returned")
    if shown < 0:
        raise InvalidArgument(f"shown={shown!r}: expected 0 or more")
    figures = {**figures_of(report), **(figures or {})}
    icon, verdict, sentence = _VERDICTS[report.verdict]
    checks = [
        {
            "name": result.name,
            "icon": _ICONS.get(result.status, "–") if result.counts else "–",
            "status": result.status if result.counts else "note",
            "kind": result.status.replace(" ", "-") if result.counts else "note",
            "summary": visible(result.summary, 1000),
            "hint": visible(result.hint or "", 1000),
        }
        for result in report.checks
    ]
    return render(
        "report.html.j2",
        verdict=report.verdict,
        icon=icon,
        heading=verdict,
        sentence=sentence,
        sides=[_side(side, list(figures)) for side in (report.reference, report.candidate)],
        causes=[
            {
                "name": cause.name,
                "where": cause.side + (f", {visible(cause.feature)}" if cause.feature else ""),
                "summary": visible(cause.summary, 1000),
                "evidence": visible(cause.evidence, 1000),
                "advice": visible(cause.advice, 1000),
            }
            for cause in report.causes
        ],
        checks=checks,
        records=_records(report.differences[:shown]),
        why_none=_why_none(report, shown),
        left_out=len(report.differences) - min(shown, len(report.differences)),
        figures=[
            {
                "heading": visible(heading),
                "uri": data_uri("png", style.png(figure)),
                "alt": alt_text(figure),
                "broad": figure.get_figwidth() > _COLUMN,
            }
            for heading, figure in figures.items()
        ],
        run=_run(report, notes),
    )


def _why_none(report: Report, shown: int) -> str:
    if report.differences and not shown:
        return "none was asked for."
    found = next((result.status for result in report.checks if result.name == "records"), None)
    if found == SAME:
        return "all records agree."
    return "the values of the records that differ were not kept." if found == DIFFERENT else "no records were compared."


def frame(report: Report, *, height: int = 640) -> str:
    """The page as a frame that a notebook can hold; the frame may run the page's own script and nothing else.

    Args:
        report: What `tfqueue.compare` returned.
        height: Height of the frame in pixels.
    """
    page = Markup.escape(render_report(report, shown=20))
    return (
        f'<iframe sandbox="allow-scripts" title="Comparison: {report.verdict}" width="100%" height="{int(height)}" '
        f'style="border: 1px solid #c8ccd2; border-radius: 4px" srcdoc="{page}"></iframe>'
    )


def _side(side: Any, headings: list[str]) -> dict[str, Any]:
    drawn = PIPELINE_OF.format(role=side.role)
    sizes = ", ".join(
        f"{count:,} of {size}" if count > 1 else f"one of {size}" for size, count in side.batch_sizes[:6]
    ) + (" …" if len(side.batch_sizes) > 6 else "")
    return {
        "role": side.role,
        "kind": side.kind,
        "name": visible(side.name),
        "records": f"{side.records:,}",
        "batches": f"{side.batches:,}",
        "sizes": sizes or "none",
        "order": visible(side.order),
        "ended": visible(side.error, 600) if side.error else side.ended,
        "seconds": f"{side.seconds:.2f} s",
        "figure": headings.index(drawn) + 1 if drawn in headings else 0,
        "untold": _UNTOLD.get(side.kind, "not drawn"),
        "features": [
            {
                "name": visible(feature.name),
                "type": f"{feature.dtype}[{', '.join('?' if d is None else str(d) for d in feature.shape)}]",
                "kind": feature.kind,
            }
            for feature in side.features
        ],
    }


def _records(differences: tuple[Difference, ...]) -> list[_Record]:
    images = [images_of(difference) for difference in differences]
    ranges = common_range(images)
    return [
        _record(difference, pictures_of(pair, ranges[pair.feature]) if pair.feature is not None else [], pair.feature)
        for difference, pair in zip(differences, images, strict=True)
    ]


def _record(difference: Difference, pictures: list[Picture], image: str | None) -> _Record:
    place = difference.reference or difference.candidate
    number = place.record if place is not None else 0
    rows = _rows(difference)
    return _Record(
        kind=difference.kind,
        title=f"Record {number:,}",
        place=_place(difference),
        summary=_summary(difference),
        number=number,
        size=float(sum(difference.differing.values())),
        rows=rows[:_MOST_FEATURES],
        hidden_rows=max(0, len(rows) - _MOST_FEATURES),
        pictures=pictures,
        image=visible(image or ""),
    )


def _place(difference: Difference) -> str:
    parts = []
    for role, place in (("reference", difference.reference), ("candidate", difference.candidate)):
        if place is not None:
            parts.append(f"{role} batch {place.batch}, row {place.row}")
    if len(parts) == 2 and difference.reference == difference.candidate:
        return parts[0].removeprefix("reference ")
    return "; ".join(parts)


def _summary(difference: Difference) -> str:
    if difference.kind == "missing":
        return "Only the reference delivers this record."
    if difference.kind == "extra":
        return "Only the candidate delivers this record."
    if difference.feature is None:
        return "The values differ."
    index = f"[{', '.join(map(str, difference.index))}]" if difference.index else ""
    return (
        f"{visible(difference.feature)}{index} is {value_words(difference.candidate_value, 120)} instead of "
        f"{value_words(difference.reference_value, 120)}."
    )


def _rows(difference: Difference) -> list[_Row]:
    mine, other = difference.reference_record or {}, difference.candidate_record or {}
    rows = []
    for name in dict.fromkeys([*mine, *other, *difference.differing]):
        count = difference.differing.get(name, 0)
        rows.append(
            _Row(
                visible(name),
                value_words(mine[name]) if name in mine else "–",
                value_words(other[name]) if name in other else "–",
                f"{count:,}" if count else "",
                bool(count),
            )
        )
    return sorted(rows, key=lambda row: not row.differs)


def _run(report: Report, notes: Mapping[str, str] | None) -> list[tuple[str, str]]:
    lines = [(visible(key), visible(words, 1000)) for key, words in (notes or {}).items()]
    lines += [(name, visible(str(value))) for name, value in report.options.items() if value is not None]
    lines.append(("written", datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")))
    for package in ("tfqueue", "tensorflow", "numpy"):
        try:
            lines.append((package, metadata.version(package)))
        except metadata.PackageNotFoundError:
            continue
    lines.append(("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"))
    return lines
