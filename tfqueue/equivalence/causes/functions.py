"""Causes that are a function of each value, or of each record, which is no straight line through all values."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tfqueue.equivalence.leaves import Array

Found = tuple[str, str]  # (name of the cause, what it is concluded from)
Line = Callable[[Array, Array], tuple[float, float] | None]
Words = Callable[[str, float, float], str]  # (name of the other side, factor, offset) -> the formula

_EXACT = 2e-4  # of the range of the values
_SURE = 1e-5  # no more than rounding: of functions that fit so well, the first is told
_FEWEST = 8  # distinct values that make a function
_MOST_VALUES = 1 << 16
_MOST = 0.9  # of the records


def function_causes(
    one: Array, two: Array, line: Line, whole_records: Callable[[], tuple[Array, Array]] | None = None
) -> Iterator[Found]:
    """The likely causes for both sides of a feature, float64 of shape [records, ...].

    Args:
        one: The reference's values; of large records, a part.
        two: The candidate's.
        line: What gives (factor, offset) where one array is a straight line of another, else None.
        whole_records: What gives both sides whole, where they are asked for.
    """
    for words, made, whole in (
        ("the candidate's values are the reference's", two, one),
        ("the reference's values are the candidate's", one, two),
    ):
        limits = _clipped(whole, made)
        if limits:
            yield "clipped", f"{words}, {limits}"
            return
    of_columns = _columns(one, two, line)
    if of_columns:
        yield "scaled", of_columns
        return
    of_records = list(_records(one, two, line, whole_records or (lambda: (one, two))))
    if of_records:
        yield from of_records
        return
    x, y = one.ravel()[:_MOST_VALUES], two.ravel()[:_MOST_VALUES]
    formulas = list(_formulas(x, y, "candidate", "reference"))
    if all(rest > _SURE for rest, _ in formulas):
        formulas += _formulas(y, x, "reference", "candidate")
    if formulas:
        yield "function-applied", min(formulas, key=lambda found: max(found[0], _SURE))[1]


def _distinct(values: Array) -> int:
    return len(np.unique(values.ravel()[:_MOST_VALUES]))


def _clipped(whole: Array, made: Array) -> str | None:
    """In words, the limits that values were held within, if that is all that was done to them."""
    low, high = float(made.min()), float(made.max())
    below, above = whole < low, whole > high
    if _distinct(made) < 3 or not (below | above).any() or not np.array_equal(made, np.clip(whole, low, high)):
        return None
    said = [f"none below {low:.6g}"] * bool(below.any()) + [f"none above {high:.6g}"] * bool(above.any())
    return f"clipped: {' and '.join(said)}"


def _columns(one: Array, two: Array, line: Line) -> str | None:
    """Columns of a table that each have a factor and an offset of their own."""
    if one.ndim != 2 or len(one) < _FEWEST or not 2 <= one.shape[1] <= 4096:
        return None
    held = 0
    for x, y in zip(one.T, two.T, strict=True):
        if np.ptp(x) == 0 and np.ptp(y) == 0:
            continue
        if _distinct(x) < 4 or line(x, y) is None:
            return None
        held += 1
    return "each column is scaled and moved by constants of its own" if held >= 2 else None


def _records(one: Array, two: Array, line: Line, whole_records: Callable[[], tuple[Array, Array]]) -> Iterator[Found]:
    """Records that are each scaled by constants of their own."""
    flat, other = one.reshape(len(one), -1), two.reshape(len(two), -1)
    if flat.shape[1] < 4 or len(flat) < 3:
        return
    varied = [(x, y) for x, y in zip(flat, other, strict=True) if _distinct(x) >= 4 and np.ptp(y) > 0]
    lines = [found for found in (line(x, y) for x, y in varied) if found is not None]
    if len(varied) < 3 or len(lines) < _MOST * len(varied):
        return
    if all(abs(factor - 1) < 1e-5 for factor, _ in lines):
        yield "mean-subtracted", "each record is moved by a constant of its own"
        return
    reference, candidate = (values.reshape(len(values), -1) for values in whole_records())
    for values, side in ((candidate, "candidate"), (reference, "reference")):
        for words, measure in _MEASURES.items():
            if np.mean(np.abs(measure(values) - 1) < 1e-3) >= _MOST:
                yield "normalised", f"in each record of the {side}, {words}"
                return
    yield "normalised", "each record is scaled and moved by constants of its own"


_MEASURES: dict[str, Callable[[Array], Array]] = {
    "the values run from 0 to 1": lambda values: values.max(axis=1) + 10 * np.abs(values.min(axis=1)),
    "the squares of the values add up to 1": lambda values: (values**2).sum(axis=1),
    "the values add up to 1": lambda values: values.sum(axis=1),
    "the largest value is 1": lambda values: np.abs(values).max(axis=1),
}


def _formulas(x: Array, y: Array, result: str, of: str) -> Iterator[tuple[float, str]]:
    """(what is left over, the formula) of each function that gives ``y`` of ``x``, with a factor and an offset."""
    if min(_distinct(x), _distinct(y)) < _FEWEST:
        return
    for words, before, after in _FUNCTIONS:
        with np.errstate(all="ignore"):
            argument, value = before(x), after(y)
            if words is _power and np.array_equal(x == 0, y == 0):  # as 0 ** n is
                argument, value = argument[x != 0], value[y != 0]
            if not (np.isfinite(argument).all() and np.isfinite(value).all()):
                continue
            fit = _fit(argument, value)
            if fit is None:
                continue
            factor, offset, rest = fit
            offset = 0.0 if abs(offset) < _SURE * float(np.ptp(value)) else offset
        yield rest, f"{result} = {words(of, factor, offset)}"


def _fit(x: Array, y: Array) -> tuple[float, float, float] | None:
    """(factor, offset, largest rest as a share of the range) of a straight line through all points."""
    centred = x - x.mean()
    spread, reach = float(centred @ centred), float(np.ptp(y))
    if not 0 < spread < np.inf or reach == 0:
        return None
    factor = float(centred @ (y - y.mean())) / spread
    offset = float(y.mean()) - factor * float(x.mean())
    rest = float(np.abs(factor * x + offset - y).max()) / reach
    return (factor, offset, rest) if rest <= _EXACT else None


def _same(values: Array) -> Array:
    return values


def _sigmoid(values: Array) -> Array:
    return 1 / (1 + np.exp(-values))


def _times(factor: float) -> str:
    return "" if abs(factor - 1) < _SURE else f"{factor:.6g} * "


def _of(function: str) -> Words:
    return lambda of, factor, offset: f"{_times(factor)}{function}({of})" + (f" {offset:+.6g}" if offset else "")


def _of_sum(added: float) -> Words:
    return lambda of, factor, offset: _of("log")(f"{of} + {added:g}", factor, offset)


def _log_of_sum(added: float) -> Callable[[Array], Array]:
    return lambda values: np.log(values + added)


def _power(of: str, factor: float, offset: float) -> str:
    return f"{_times(float(np.exp(offset)))}{of} ** {factor:.6g}"


def _exp(of: str, factor: float, offset: float) -> str:
    return f"{_times(float(np.exp(offset)))}exp({_times(factor)}{of})"


_FUNCTIONS: tuple[tuple[Words, Callable[[Array], Array], Callable[[Array], Array]], ...] = (
    (_of("log"), np.log, _same),
    (_of("log1p"), np.log1p, _same),
    *((_of_sum(offset), _log_of_sum(offset), _same) for offset in (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10, 1e-12)),
    (_of("abs"), np.abs, _same),
    (_of("square"), np.square, _same),
    (_of("tanh"), np.tanh, _same),
    (_of("sigmoid"), _sigmoid, _same),
    (_power, np.log, np.log),
    (_exp, _same, np.log),
)
