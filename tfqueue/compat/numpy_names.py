"""The names that NumPy has removed, given back for the length of a block.

`np.ndarray` is a C type whose attributes Python may not set, so ``tostring`` goes into its dictionary by way of the
garbage collector's references; this file is the only place that does such a thing, and it undoes it.
"""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tfqueue.compat import names

_TYPES = {
    "bool": bool,
    "int": int,
    "float": float,
    "complex": complex,
    "object": object,
    "str": str,
    "long": int,
    "unicode": str,
}
_lock = threading.Lock()
_depth = 0
_given: list[str] = []
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
        **_TYPES,
        "float_": np.float64,
        "complex_": np.complex128,
        "unicode_": np.str_,
        "string_": np.bytes_,
        "Inf": np.inf,
        "Infinity": np.inf,
        "NaN": np.nan,
        "product": np.prod,
        "cumproduct": np.cumprod,
        "sometrue": np.any,
        "alltrue": np.all,
        "row_stack": np.vstack,
        "in1d": _in1d,
        "asscalar": _asscalar,
    }


def _give() -> None:
    global _fromstring
    for name, value in _replacements().items():
        if name not in vars(np):
            setattr(np, name, value)
            _given.append(name)
    _fromstring = np.fromstring
    np.fromstring = _from_string  # type: ignore[assignment]
    for kind in (np.ndarray, np.generic):
        if "tostring" not in vars(kind):
            _dictionary(kind)["tostring"] = _to_string
            ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


def _take() -> None:
    while _given:
        delattr(np, _given.pop())
    np.fromstring = _fromstring
    for kind in (np.ndarray, np.generic):
        if vars(kind).get("tostring") is _to_string:
            del _dictionary(kind)["tostring"]
            ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


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
