"""The report of a comparison as one figure: the verdict, the checks, and the records that differ."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tfqueue.equivalence.report import DIFFERENT, SAME, CheckResult, Difference, Report
from tfqueue.errors import InvalidArgument
from tfqueue.views import style
from tfqueue.views.diff import causes_in_words
from tfqueue.views.features import find_label, label_words
from tfqueue.views.html.embed import common_range, images_of, record_features
from tfqueue.views.pairs import LIMIT, ImageDifference, Pair, Sheet, image_difference

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAME, _RESULT = 1.2, 1.2
_SAME = "#0b6b47"


def plot_report(report: Report, path: str | os.PathLike[str] | None = None, *, n: int = 4) -> Figure:
    """Draw the report of a comparison: the verdict, every check, and the first differing records with their images.

    Args:
        report: What `tfqueue.compare` returned.
        path: PNG file to write as well; its folder must exist.
        n: Show at most so many differing records, up to 100.

    Returns:
        A matplotlib Figure.

    Raises:
        InvalidArgument: ``report`` is no report, ``n`` does not fit, or ``path`` cannot be written.
    """
    target = style.check_path(path)
    if not isinstance(report, Report):
        raise InvalidArgument(f"report is a {type(report).__name__}; expected what tfqueue.compare returned")
    if not 0 <= n <= LIMIT:
        raise InvalidArgument(f"n={n!r}: expected 0 to {LIMIT} records in one picture")
    pairs, feature, sheet = _sheet(report, n)
    line = style.BODY * style.POINT * style.LINE
    body = max(sheet.width if sheet else 0.0, 8.0)
    lines = [style.wrap(result.summary, style.BODY, body - _NAME - _RESULT, most=3) for result in report.checks]
    table = sum(max(1, len(part)) for part in lines) * line
    below = table + ((0.45 + sheet.height) if sheet else 0)
    sides = [f"{side.role}: {side.name}, {side.records:,} records" for side in (report.reference, report.candidate)]
    figure, top = style.header(_heading(report), "; ".join(sides) + ".", causes_in_words(report.causes, 3), body, below)
    for result, words in zip(report.checks, lines, strict=True):
        _draw_check(figure, result, words, top)
        top += max(1, len(words)) * line
    if sheet is not None:
        top += 0.15
        style.write(
            figure, style.MARGIN, top, f"{feature} of {style.plural(len(pairs), 'record')} that differ", weight="bold"
        )
        sheet.draw(figure, top + 0.3)
    return style.save(figure, target, str(report))


def _heading(report: Report) -> str:
    if report.verdict != DIFFERENT:
        return report.verdict.capitalize()
    failed = [result.name for result in report.checks if result.status == DIFFERENT and result.counts]
    return f"Different in {', '.join(failed)}"


def _draw_check(figure: Figure, result: CheckResult, words: list[str], top: float) -> None:
    icon, colour = {SAME: ("✓", _SAME), DIFFERENT: ("✗", style.ALARM)}.get(result.status, ("–", style.MUTED))
    if not result.counts:
        icon, colour = "–", style.MUTED
    style.write(figure, style.MARGIN, top, result.name, weight="bold")
    status = result.status if result.counts else "note"
    style.write(figure, style.MARGIN + _NAME, top, f"{icon} {status}", colour=colour)
    for number, line in enumerate(words):
        offset = number * style.BODY * style.POINT * style.LINE
        style.write(figure, style.MARGIN + _NAME + _RESULT, top + offset, line, colour=style.MUTED)


def _sheet(report: Report, n: int) -> tuple[list[Pair], str, Sheet | None]:
    """The pairs of images of the first differing records: of one feature, since they share a range."""
    images = [(difference, images_of(difference)) for difference in report.differences]
    feature = next((pair.feature for _, pair in images if pair.feature is not None), None)
    if feature is None or n < 1:
        return [], "", None
    chosen = [(difference, pair) for difference, pair in images if pair.feature == feature][:n]
    pairs = [_pair(difference, pair.reference, pair.candidate) for difference, pair in chosen]
    shown = common_range([pair for _, pair in chosen])[feature]
    return pairs, feature, Sheet(pairs, shown)


def _pair(difference: Difference, reference: object, candidate: object) -> Pair:
    from numpy import ndarray

    place = difference.reference or difference.candidate
    number = f"#{place.record}" if place is not None else ""
    one = reference if isinstance(reference, ndarray) else None
    two = candidate if isinstance(candidate, ndarray) else None
    if one is not None and two is not None:
        words = image_difference(one, two)
    else:
        words = ImageDifference(0.0, 0.0, 1, f"only in the {'reference' if two is None else 'candidate'}")
    labels = []
    for record in (difference.reference_record, difference.candidate_record):
        found = find_label(record_features(record)) if record else None
        labels.append(label_words(found.values)[0] if found is not None else None)
    return Pair(number, one, two, words, labels[0] or labels[1], labels[1])
