"""Records as text: each feature with its kind and the beginning of its values, safe to print."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from tfqueue.errors import InvalidArgument
from tfqueue.records.imagefile import image_format
from tfqueue.records.meaning import is_text
from tfqueue.records.paths import Paths, expand
from tfqueue.records.reader import decode
from tfqueue.records.scan import frames

_VALUES: Final = 8
_CHARACTERS: Final = 60


def head(paths: Paths, *, records: int = 5, compression: str | None = "auto") -> str:
    """Returns the first records as text.

    Args:
        paths: One path, a pattern, or a list.
        records: How many.
        compression: As for ``read``.

    Raises:
        InvalidArgument: ``records`` is no positive int.
        RecordError: A file does not exist, or a record is no tf.train.Example.
        DamagedRecord: A file is damaged within the first records.
    """
    lines = []
    for row in first(paths, records=records, compression=compression):
        lines.append(f"{row['file']}, record {row['record']}, byte {row['offset']}, {row['size']} bytes")
        width = max((len(name) for name in row["features"]), default=0)
        lines += [f"    {_safe(name):{width}}  {as_text(value)}" for name, value in row["features"].items()]
    return "\n".join(lines)


def first(paths: Paths, *, records: int, compression: str | None = "auto") -> list[dict[str, Any]]:
    """Returns the first records: of each "file", "record", "offset", "size" and the "features" as arrays."""
    if isinstance(records, bool) or not isinstance(records, int) or records < 1:
        raise InvalidArgument(f"records is {records!r}; expected a positive int")
    found: list[dict[str, Any]] = []
    for name in expand(paths):
        for index, offset, payload in frames(name, compression=compression):
            features = decode(payload, file=name, record=index, offset=offset)
            found.append({"file": name, "record": index, "offset": offset, "size": len(payload), "features": features})
            if len(found) == records:
                return found
    return found


def as_text(value: np.ndarray[Any, Any]) -> str:
    """Returns one line for the values of a feature."""
    shape = "scalar" if value.shape == () else str(list(value.shape))
    if value.dtype == object:
        if value.size and isinstance(value.flat[0], np.ndarray):
            rows = ", ".join(as_text(row) for row in value.flat[:3]) + (", ..." if value.size > 3 else "")
            return f"{len(value)} rows: {rows}"
        shown = ", ".join(_element(item) for item in value.flat[:_VALUES])
        kind = "str" if value.size and isinstance(value.flat[0], str) else "bytes"
    else:
        shown = ", ".join(_number(item) for item in value.reshape(-1)[:_VALUES])
        kind = str(value.dtype)
    more = ", ..." if value.size > _VALUES else ""
    return f"{kind} {shape}: {shown}{more}"


def as_json(value: np.ndarray[Any, Any]) -> Any:
    """Returns the values of a feature in a form that JSON can hold: no more of long ones than ``as_text`` shows."""
    if value.dtype == object and value.size and isinstance(value.flat[0], np.ndarray):
        return [as_json(row) for row in value.flat[:_VALUES]]
    items = value.reshape(-1)[:_VALUES]
    shown = [_json_element(item) for item in items.tolist()]
    return {
        "dtype": "bytes" if value.dtype == object else str(value.dtype),
        "shape": list(value.shape),
        "values": shown,
    }


def _json_element(item: Any) -> Any:
    if isinstance(item, bytes):
        return item.decode() if is_text(item) else {"bytes": len(item), "begins": item[:16].hex()}
    # JSON has no infinity and no NaN.
    plain = isinstance(item, (int, str)) or (isinstance(item, float) and math.isfinite(item))
    return item if plain else str(item)


def _element(item: Any) -> str:
    if isinstance(item, str):
        return _shortened(item)
    if is_text(item):
        return _shortened(item.decode())
    kind = image_format(item)
    what = f" ({kind.upper()})" if kind else ""
    return f"{len(item)} bytes{what} {item[:8].hex(' ')}{' ...' if len(item) > 8 else ''}"


def _number(item: Any) -> str:
    return f"{item:.6g}" if item.dtype.kind == "f" else str(item)


def _shortened(text: str) -> str:
    return repr(text if len(text) <= _CHARACTERS else text[:_CHARACTERS] + "...")


def _safe(name: str) -> str:
    """Returns a name without characters that a terminal obeys."""
    return name if name.isprintable() else repr(name)
