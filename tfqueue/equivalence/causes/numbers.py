"""Causes that show in the numbers alone: scale, offset, dtype, byte order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tfqueue.equivalence.align import ulps
from tfqueue.equivalence.causes.functions import function_causes
from tfqueue.equivalence.causes.pairs import Changed
from tfqueue.equivalence.leaves import Array
from tfqueue.equivalence.rounding import fine

Narrowing = Callable[[Array], Array | None]
_FEW_OFF = 50  # one value in so many may be rounded otherwise
_MOST_COLUMNS = 4096
_MOST = 0.9  # of the matched records; a few may be matched wrongly
Found = tuple[str, str]  # (name of the cause, what it is concluded from)


def number_causes(changed: Changed) -> Iterator[Found]:
    """Likely causes for one feature, the surest first."""
    whole, changed = changed, changed.thinned
    yield from _bytes(changed)
    if not changed.numeric or not changed.alike:
        return
    yield from _narrowing(changed)
    yield from _grey_levels(changed)
    if all(a.dtype.kind in "biu" and b.dtype.kind in "biu" for a, b in zip(changed.left, changed.right, strict=True)):
        yield from _integers(changed)
    yield from _reordered(changed)
    yield from rounding(changed)
    linear = list(_linear(changed, whole))
    yield from linear
    if not linear:
        yield from function_causes(*changed.stacked, _line, lambda: whole.stacked)


def rounding(changed: Changed) -> Iterator[Found]:
    """Values that differ in the last digits only."""
    both = list(zip(changed.left, changed.right, strict=True))
    near = [(a, b) for a, b in both if fine(a, b)]
    if len(near) >= _MOST * len(both):
        # Near zero, what a subtraction leaves, steps are tiny: they would tell nothing.
        steps = [ulps(a, b)[np.abs(a) > 1e-3 * np.abs(np.nan_to_num(a)).max(initial=0)] for a, b in near]  # type: ignore[index]
        worst = max((float(part.max(initial=0)) for part in steps), default=0)
        yield "rounding", f"no value is off by more than {worst:.0f} units in the last place"


def _bytes(changed: Changed) -> Iterator[Found]:
    both = list(zip(changed.left, changed.right, strict=True))
    if all(
        a.dtype == b.dtype and a.dtype.itemsize > 1 and np.array_equal(a.byteswap(), b, equal_nan=a.dtype.kind == "f")
        for a, b in both
    ):
        yield "byte-order", "every value is the other side's with its bytes reversed"
    elif all(a.tobytes() == b.tobytes() and a.dtype != b.dtype and a.size for a, b in both):
        yield "decode-dtype", f"the bytes are the same, read as {both[0][0].dtype} and as {both[0][1].dtype}"
    else:
        dtype = _reread(both)
        if dtype:
            yield "decode-dtype", f"the candidate's values are the reference's bytes read as {dtype}"


def _reread(both: list[tuple[Array, Array]]) -> str | None:
    """The dtype as which one side's bytes give the other side's values, if there is one."""
    for name in ("uint8", "int8", "uint16", "int16", "int32", "uint32", "int64", "float16", "float32", "float64"):
        for here, there in ((0, 1), (1, 0)):
            if all(_reads(pair[here], pair[there], name) for pair in both):
                return name
    return None


def _reads(one: Array, two: Array, name: str) -> bool:
    data, dtype = one.tobytes(), np.dtype(name)
    if dtype == one.dtype or not data or len(data) % dtype.itemsize:
        return False
    values = np.frombuffer(data, dtype=dtype)
    if not two.size or values.size != two.size:
        return False
    with np.errstate(all="ignore"):
        return np.array_equal(values.astype(two.dtype), two.ravel(), equal_nan=two.dtype.kind == "f")


def _narrowing(changed: Changed) -> Iterator[Found]:
    for made, wanted, side in (
        (changed.left, changed.right, "candidate"),
        (changed.right, changed.left, "reference"),
    ):
        for words, narrow in _NARROWINGS.items():
            with np.errstate(all="ignore"):
                results = [narrow(a) for a in made]
            triples = zip(made, results, wanted, strict=True)
            if np.mean([r is not None and _made(narrow, a, r, b) for a, r, b in triples]) >= _MOST:
                kind = words.split(":")[0]
                yield kind, f"the {side}'s values are the other side's {words.split(': ')[1]}"
                return


def _made(narrow: Narrowing, before: Array, result: Array, wanted: Array) -> bool:
    """Whether narrowing gave the other side's values, up to a few that stood on the edge."""
    if _equal(result, wanted):
        return True
    if before.dtype.kind != "f" or wanted.size < _FEW_OFF or before.shape != wanted.shape:
        return False
    again = narrow(wanted.astype(before.dtype))
    if again is None or not _equal(again, wanted):
        return False  # the other side holds values that narrowing never leaves
    return float(np.mean(result.astype(np.float64) != wanted.astype(np.float64))) <= 1 / _FEW_OFF


def _grey_levels(changed: Changed) -> Iterator[Found]:
    """Images that went through whole grey levels and came back as floats."""
    one, two = changed.stacked
    for between, coarse, side in ((one, two, "candidate"), (two, one, "reference")):
        if not coarse.size or not 0.05 < float(np.abs(coarse).max()) <= 1.5:
            continue
        for factor, offset in ((255.0, 0.0), (127.5, 127.5)):
            levels, before = coarse * factor + offset, between * factor + offset
            if _near_whole(levels) and not _near_whole(before) and float(np.abs(levels - before).max()) <= 1.01:
                yield (
                    "truncated-to-int",
                    f"the values of the {side} are whole grey levels, the other side's lie between",
                )
                return


def _near_whole(values: Array) -> bool:
    return float(np.abs(values - np.rint(values)).max(initial=0)) < 2e-3


def _equal(one: Array, two: Array) -> bool:
    both = (one.astype(np.float64), two.astype(np.float64)) if "f" in one.dtype.kind + two.dtype.kind else (one, two)
    return np.array_equal(both[0], both[1])


def _as(name: str, kinds: str, narrower: bool = True) -> Narrowing:
    dtype = np.dtype(name)

    def narrow(values: Array) -> Array | None:
        if values.dtype.kind not in kinds or (narrower and dtype.itemsize >= values.dtype.itemsize):
            return None
        return values.astype(dtype)

    return narrow


def _bfloat16(values: Array) -> Array | None:
    if values.dtype.kind != "f" or values.dtype.itemsize < 4:
        return None
    bits = np.atleast_1d(values.astype(np.float32)).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return np.asarray(rounded.view(np.float32)).reshape(values.shape)


def _clipped(name: str) -> Narrowing:
    limits = np.iinfo(name)

    def clip(values: Array) -> Array | None:
        if values.dtype.kind not in "iu" or values.dtype.itemsize < limits.dtype.itemsize:
            return None
        return np.clip(values, max(limits.min, np.iinfo(values.dtype).min), min(limits.max, np.iinfo(values.dtype).max))

    return clip


def _whole(function: Callable[[Array], Array]) -> Narrowing:
    def whole(values: Array) -> Array | None:
        return np.asarray(function(values)) if values.dtype.kind == "f" else None

    return whole


_NARROWINGS = {
    "float-narrowing: rounded to float16": _as("float16", "f"),
    "float-narrowing: rounded to bfloat16": _bfloat16,
    "float-narrowing: rounded to float32": _as("float32", "f"),
    "truncated-to-int: with fractions cut off": _whole(np.trunc),
    "truncated-to-int: rounded to whole numbers": _whole(np.rint),
    "int-narrowing: wrapped to int8": _as("int8", "iu"),
    "int-narrowing: wrapped to uint8": _as("uint8", "iu"),
    "int-narrowing: wrapped to int16": _as("int16", "iu"),
    "int-narrowing: wrapped to uint16": _as("uint16", "iu"),
    "int-narrowing: wrapped to int32": _as("int32", "iu"),
    "int-narrowing: clipped to int8": _clipped("int8"),
    "int-narrowing: clipped to uint8": _clipped("uint8"),
    "int-narrowing: clipped to int16": _clipped("int16"),
    "int-narrowing: clipped to int32": _clipped("int32"),
    "int-narrowing: wrapped to the other sign of int8": _as("int8", "u", narrower=False),
    "int-narrowing: wrapped to the other sign of uint8": _as("uint8", "i", narrower=False),
}


def _integers(changed: Changed) -> Iterator[Found]:
    one, two = changed.stacked
    apart = two - one
    filled = (one == 0) & (two == 0)  # with which short records are filled up on both sides
    steps = np.unique(apart if one.ndim < 2 or filled.all() else apart[~filled])
    if len(steps) == 1 and steps[0] != 0 and one.size >= 2:
        yield "label-off-by-one", f"the candidate's integers are the reference's {steps[0]:+.0f}"
        return
    if one[0].size == 1 and one.size >= 8:
        pairs = {(a, b) for a, b in zip(one.ravel().tolist(), two.ravel().tolist(), strict=True)}
        sources, targets = {a for a, _ in pairs}, {b for _, b in pairs}
        if len(pairs) == len(sources) == len(targets) and len(pairs) <= one.size / 2:
            yield "labels-mapped", f"each of {len(pairs)} integers becomes always the same other one"


def _reordered(changed: Changed) -> Iterator[Found]:
    """Elements that stand at other places along the last axis: in all records alike, or backwards."""
    one, two = changed.stacked
    width = one.shape[-1] if one.ndim > 1 else 1
    if not 2 <= width <= _MOST_COLUMNS or len(one) < 4:
        return
    places = {column.tobytes(): at for at, column in enumerate(one.reshape(-1, width).T.copy())}
    order = [places.get(column.tobytes(), -1) for column in two.reshape(-1, width).T.copy()]
    if sorted(order) == list(range(width)):
        yield "elements-reordered", f"the candidate's elements are the reference's {_few(order)}"
        return
    backwards = [np.array_equal(_used(a)[::-1], _used(b)) for a, b in zip(one, two, strict=True) if one.ndim == 2]
    if backwards and np.mean(backwards) >= _MOST:
        yield "elements-reordered", "the candidate's sequences are the reference's backwards"


def _used(values: Array) -> Array:
    """A sequence without the zeros that fill it up."""
    filled = np.flatnonzero(values)
    return values[: int(filled[-1]) + 1] if len(filled) else values[:0]


def _few(order: list[int]) -> str:
    return f"[{', '.join(map(str, order[:8]))}{', ...' if len(order) > 8 else ''}]"


def _linear(changed: Changed, whole: Changed) -> Iterator[Found]:
    one, two = changed.stacked
    fit = _line(one, two) or _median_line(one, two)
    if fit is not None:
        factor, offset = fit
        words = f"candidate = {factor:.6g} * reference {offset:+.6g}"
        if offset_is(offset, 0, two) and (abs(factor * 255 - 1) < 0.005 or abs(factor / 255 - 1) < 0.005):
            yield "scale-255", words
        elif _to_minus_one(factor, offset, two) or _to_minus_one(1 / factor, -offset / factor, one):
            yield "scale-127", words
        elif abs(factor - 1) < 1e-6:
            yield "mean-subtracted", words
        else:
            yield "scaled", words
        return
    if one.ndim >= 2 and one[0].size >= 4:
        yield from _by_record_or_channel(*whole.stacked)


def offset_is(offset: float, wanted: float, values: Array) -> bool:
    """Whether an offset is ``wanted``, on the scale of the values."""
    return abs(offset - wanted) <= 1e-3 * float(np.abs(values).max(initial=1e-30))


def _to_minus_one(factor: float, offset: float, values: Array) -> bool:
    scale = any(abs(factor * unit - 1) < 0.005 for unit in (127.5, 128, 0.5, 127))
    return scale and offset_is(offset, -1, values)


def _line(one: Array, two: Array) -> tuple[float, float] | None:
    """(factor, offset) that turn one side into the other, if they do so exactly up to rounding."""
    x, y = one.ravel(), two.ravel()
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0 or len(np.unique(x)) < 3:
        return None
    # By hand: np.polyfit warns of values that lie many orders of magnitude apart.
    centred = x - x.mean()
    spread = float(centred @ centred)
    factor = float(centred @ (y - y.mean())) / spread if 0 < spread < np.inf else np.nan
    offset = float(y.mean()) - factor * float(x.mean())
    if not np.isfinite([factor, offset]).all():
        return None
    rest = np.abs(factor * x + offset - y)
    # An 8-bit side is rounded to whole numbers; a sharper bound would miss it.
    bound = 2e-4 * np.ptp(y) if not _whole_numbers(y) else max(2e-4 * np.ptp(y), 1.001)
    if rest.max() > bound or (_whole_numbers(y) and np.ptp(y) < 20 and rest.max() > 0.51):
        return None
    return factor, offset


def _median_line(one: Array, two: Array) -> tuple[float, float] | None:
    """As `_line`, where it holds for nearly all records: a few may be matched wrongly."""
    if one[0].size < 8:
        return None
    lines = [line for line in map(_line, one, two) if line is not None]
    if len(lines) < _MOST * len(one):
        return None
    factor, offset = (float(np.median(values)) for values in zip(*lines, strict=True))
    near = 1e-3 * float(np.ptp(two)) + (0.5 if _whole_numbers(two) else 0)
    agree = [abs(f - factor) <= 1e-3 * abs(factor) and abs(o - offset) <= near for f, o in lines]
    return (factor, offset) if np.mean(agree) >= _MOST else None


def _whole_numbers(values: Array) -> bool:
    return bool(np.all(values == np.rint(values)))


def _by_record_or_channel(one: Array, two: Array) -> Iterator[Found]:
    flat_one, flat_two = one.reshape(len(one), -1), two.reshape(len(two), -1)
    for standard, other, side in ((flat_two, flat_one, "candidate"), (flat_one, flat_two, "reference")):
        centred = np.abs(standard.mean(axis=1)) < 1e-3
        spread = np.abs(standard.std(axis=1) - 1) < 1e-2
        varied = other.std(axis=1) > 0
        if np.mean((centred & spread) | ~varied) >= 0.9 and not np.all(np.abs(other.mean(axis=1)) < 1e-3):
            fits = [_line(o, s) is not None for o, s in zip(other, standard, strict=True) if np.ptp(o) > 0]
            if fits and np.mean(fits) >= 0.9:
                yield "standardised", f"each record of the {side} has mean 0 and standard deviation 1"
                return
    if one.ndim >= 3 and 2 <= one.shape[-1] <= 4:
        lines = [_line(one[..., c], two[..., c]) for c in range(one.shape[-1])]
        if all(line is not None for line in lines):
            offsets = ", ".join(f"{line[1]:+.4g}" for line in lines if line is not None)
            same = all(line is not None and abs(line[0] - 1) < 1e-3 for line in lines)
            yield ("mean-subtracted" if same else "scaled"), f"the channels are moved by {offsets}"
    difference = two - one
    if np.ptp(difference, axis=0).max(initial=0) <= 1e-5 * max(1.0, float(np.abs(two).max())) and len(one) > 1:
        yield "mean-subtracted", "the same array is added to every record"
