"""The names that NumPy has removed, given back for the length of a block.

`np.ndarray` is a C type whose attributes Python may not set, so ``tostring`` goes into its dictionary by way of the
garbage collector's references; this file is the only place that does such a thing, and it undoes it.
"""

from __future__ import annotations

import builtins
import ctypes
import functools
import gc
import math
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

from tfqueue.compat import names, names_numpy

_lock = threading.Lock()
_depth = 0
_given: list[tuple[ModuleType, str]] = []
_fromstring: Any = None


@contextmanager
def removed_names() -> Iterator[None]:
    """Inside the block, programs find np.bool, np.int, np.float_, np.asscalar, ndarray.tostring and their kind again.

    Only what the installed NumPy lacks is added, and taken away at the end. Blocks may be nested. ``np.fromstring``
    reads binary data again (a writable copy, as before); its text mode is NumPy's own.
    """
    global _depth
    with _lock:
        if _depth == 0:
            _give()
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                _take()


def _replacements() -> dict[str, Any]:
    return {
        **{old: getattr(builtins, new) for old, new in names_numpy.TYPES.items()},
        **{old: getattr(np, new) for old, new in names_numpy.SAME.items()},
        "NINF": -np.inf,
        "PZERO": 0.0,
        "NZERO": -0.0,
        "in1d": _in1d,
        "trapz": getattr(np, "trapezoid", None),
        "asscalar": _asscalar,
        "asfarray": _asfarray,
        "msort": _msort,
        "alen": _alen,
        "cast": _Cast(),
        "math": math,
        "warnings": warnings,
    }


def _give() -> None:
    global _fromstring
    for name, value in _replacements().items():
        if name not in vars(np):
            setattr(np, name, _told(f"np.{name}", value))
            _given.append((np, name))
    for name in names_numpy.LIB:
        if not hasattr(np.lib, name):
            setattr(np.lib, name, _told("np.lib.*", getattr(np, name)))
            _given.append((np.lib, name))
    _fromstring = np.fromstring
    np.fromstring = _from_string  # type: ignore[assignment]
    for kind, methods in _METHODS.items():
        for name, method in methods.items():
            if not hasattr(kind, name):
                _dictionary(kind)[name] = method
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


def _take() -> None:
    while _given:
        delattr(*_given.pop())
    np.fromstring = _fromstring
    for kind, methods in _METHODS.items():
        for name, method in methods.items():
            if vars(kind).get(name) is method:
                del _dictionary(kind)[name]
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


def _told(name: str, value: Any) -> Any:
    """A function that tells that it is used; everything else as it is."""
    if isinstance(value, type) or not callable(value):
        return value

    @functools.wraps(value)
    def function(*arguments: Any, **options: Any) -> Any:
        names.touch(name)
        return value(*arguments, **options)

    return function


def _dictionary(kind: type) -> dict[str, Any]:
    """The dictionary behind the read-only view that ``vars(kind)`` is."""
    found = gc.get_referents(vars(kind))[0]
    if not isinstance(found, dict):
        raise RuntimeError(f"the attributes of {kind.__name__} cannot be reached in this Python")
    return found


def _to_string(self: Any, order: Any = "C") -> bytes:
    names.touch("np.ndarray.tostring")
    result: bytes = self.tobytes(order)
    return result


def _from_string(string: Any, dtype: Any = float, count: int = -1, sep: str = "", **options: Any) -> Any:
    if sep != "":
        return _fromstring(string, dtype, count, sep=sep, **options)
    names.touch("np.fromstring")
    data = string.encode("latin-1") if isinstance(string, str) else string
    kind = np.dtype(dtype)
    if count == -1 and len(data) % kind.itemsize:
        raise ValueError("string size must be a multiple of element size")
    if not data:
        return np.empty(0, kind)
    return np.frombuffer(data, kind, count).copy()


def _in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    return np.isin(np.ravel(ar1), ar2, assume_unique=assume_unique, invert=invert)


def _asscalar(a: Any) -> Any:
    return a.item()


def _asfarray(a: Any, dtype: Any = np.float64) -> Any:
    return np.asarray(a, dtype if np.issubdtype(dtype, np.inexact) else np.float64)


def _msort(a: Any) -> Any:
    return np.sort(a, axis=0)


def _alen(a: Any) -> int:
    return len(np.atleast_1d(a))


class _Cast:
    """``np.cast[dtype](a)``."""

    def __getitem__(self, dtype: Any) -> Any:
        return lambda a: np.asarray(a).astype(dtype)


def _itemset(self: Any, *arguments: Any) -> None:
    *index, value = arguments
    if not index and self.size != 1:
        raise ValueError("can only place a scalar for an array of size 1")
    place = () if not index else index[0] if len(index) == 1 else tuple(index)
    if isinstance(place, int):
        self.flat[place] = value
    elif place == ():
        self.flat[0] = value
    else:
        self[place] = value


def _newbyteorder(self: Any, new_order: str = "S") -> Any:
    return self.view(self.dtype.newbyteorder(new_order))


def _ptp(self: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    return np.ptp(self, axis, out, keepdims)


_METHODS: dict[type, dict[str, Any]] = {
    np.ndarray: {"tostring": _to_string, "itemset": _itemset, "newbyteorder": _newbyteorder, "ptp": _ptp},
    np.generic: {"tostring": _to_string, "ptp": _ptp},
}
