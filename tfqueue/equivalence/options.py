"""The options of a comparison, checked at the door."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from tfqueue.errors import InvalidArgument

ORDERS = ("auto", "strict", "any")

Tolerance = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `tfqueue.compare`; see there."""

    order: str = "auto"
    key: str | Callable[[Mapping[str, Any]], Any] | None = None
    rtol: float = 0.0
    atol: float = 0.0
    tolerances: Mapping[str, Tolerance] | None = None
    equal_nan: bool = False
    max_records: int | None = None
    samples: int = 5

    def tolerance(self, feature: str) -> Tolerance:
        """(rtol, atol) of a feature."""
        return (self.tolerances or {}).get(feature, (self.rtol, self.atol))

    @property
    def exact(self) -> bool:
        """True if no feature has a tolerance."""
        return not (self.rtol or self.atol or any(any(pair) for pair in (self.tolerances or {}).values()))

    def described(self) -> dict[str, Any]:
        """The options as plain values."""
        return {
            "order": self.order,
            "key": self.key
            if isinstance(self.key, str) or self.key is None
            else getattr(self.key, "__name__", "a function"),
            "rtol": self.rtol,
            "atol": self.atol,
            "tolerances": None if self.tolerances is None else {k: list(v) for k, v in self.tolerances.items()},
            "equal_nan": self.equal_nan,
            "max_records": self.max_records,
            "samples": self.samples,
        }


def checked(
    *,
    order: str,
    key: Any,
    rtol: float,
    atol: float,
    tolerances: Mapping[str, Any] | None,
    equal_nan: bool,
    max_records: int | None,
    samples: int,
) -> Options:
    """The options, each of them possible.

    Raises:
        InvalidArgument: An option that cannot be meant.
    """
    if order not in ORDERS:
        raise InvalidArgument(f"order must be one of {', '.join(map(repr, ORDERS))}; got {order!r}")
    if not (key is None or isinstance(key, str) or callable(key)):
        raise InvalidArgument(
            f"key must be the name of a feature or a function of a record (a dict of arrays); got {key!r}"
        )
    if max_records is not None and (not _is_int(max_records) or max_records < 1):
        raise InvalidArgument(f"max_records must be a positive number of records or None; got {max_records!r}")
    if not _is_int(samples) or samples < 0:
        raise InvalidArgument(f"samples must be a number of records, 0 or more; got {samples!r}")
    if tolerances is not None and not isinstance(tolerances, Mapping):
        raise InvalidArgument(f"tolerances must be a dict from feature name to (rtol, atol); got {tolerances!r}")
    return Options(
        order=order,
        key=key,
        rtol=_amount(rtol, "rtol"),
        atol=_amount(atol, "atol"),
        tolerances=None if tolerances is None else {str(k): _tolerance(v, str(k)) for k, v in tolerances.items()},
        equal_nan=bool(equal_nan),
        max_records=None if max_records is None else int(max_records),
        samples=int(samples),
    )


def _is_int(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _amount(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or value < 0:
        raise InvalidArgument(f"{name} must be a finite number, 0 or more; got {value!r}")
    return float(value)


def _tolerance(value: Any, feature: str) -> Tolerance:
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return _amount(value[0], f"rtol of {feature}"), _amount(value[1], f"atol of {feature}")
    if isinstance(value, Real):
        return 0.0, _amount(value, f"tolerance of {feature}")
    raise InvalidArgument(f"the tolerance of {feature} must be (rtol, atol) or one absolute tolerance; got {value!r}")
