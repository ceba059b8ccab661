"""The JSON form of a report.

The object has the attributes of `Report` and of the dataclasses inside it, plus ``"equivalent"``;
``report.schema.json`` beside this file is its JSON Schema, with the names of all checks and causes. Values of
records:

* finite numbers, booleans, None: as themselves; NaN and infinities as ``"NaN"``, ``"Infinity"``,
  ``"-Infinity"``;
* bytes that are UTF-8 text of at most 200 bytes: as a string; other bytes: ``{"bytes": length, "base64":
  first 48}``;
* arrays of at most 64 elements: ``{"dtype", "shape", "values": nested lists}``; larger arrays: ``{"dtype",
  "shape", "min", "max", "mean"}``, without min, max and mean for strings and complex numbers.

`Report.schema_version` grows when a name goes or changes its meaning, not when one is added.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import os
import tempfile
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

_WHOLE_ARRAY = 64
_WHOLE_TEXT = 200


def plain(value: Any) -> Any:
    """``value`` as something json can write, by the rules above."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        form = {
            f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value) if f.metadata.get("json", True)
        }
        if hasattr(value, "equivalent"):
            form["equivalent"] = value.equivalent
        return form
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, np.generic):
        return plain(value.item()) if value.dtype.kind in "biufcSUO" else plain(float(value))
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, bytes):
        return _bytes(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def _bytes(value: bytes) -> Any:
    if len(value) <= _WHOLE_TEXT:
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            pass
    return {"bytes": len(value), "base64": base64.b64encode(value[:48]).decode("ascii")}


def _array(array: np.ndarray[Any, Any]) -> Any:
    if array.ndim == 0:
        return plain(array.item())
    form: dict[str, Any] = {
        "dtype": "string" if array.dtype == object else array.dtype.name,
        "shape": list(array.shape),
    }
    if array.size <= _WHOLE_ARRAY:
        form["values"] = plain(array.tolist())
    elif array.dtype.kind in "biuf":
        form.update(min=plain(array.min()), max=plain(array.max()), mean=plain(float(array.mean(dtype=np.float64))))
    return form


def dumps(report: Any) -> str:
    """The report as indented JSON text that ends with a newline."""
    return json.dumps(plain(report), indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def write(path: str | PathLike[str], text: str) -> None:
    """Write a text file that appears whole or not at all."""
    target = os.fspath(path)
    folder = os.path.dirname(target) or "."
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".tfqueue-", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
