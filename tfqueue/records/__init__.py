"""TFRecord files: written whole and typed, read without silent loss, looked into, checked and repaired.

Names are loaded on first use, so that the command line can list its commands without numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfqueue.records.arrays import write_arrays
    from tfqueue.records.examples import write_examples
    from tfqueue.records.images import write_images
    from tfqueue.records.reader import RecordReader, count, read
    from tfqueue.records.salvaging import salvage
    from tfqueue.records.schema import describe
    from tfqueue.records.text import head
    from tfqueue.records.verification import verify
    from tfqueue.records.writer import RecordWriter

_HOMES = {
    "RecordReader": "reader",
    "RecordWriter": "writer",
    "count": "reader",
    "describe": "schema",
    "head": "text",
    "read": "reader",
    "salvage": "salvaging",
    "verify": "verification",
    "write_arrays": "arrays",
    "write_examples": "examples",
    "write_images": "images",
}
__all__ = [
    "RecordReader",
    "RecordWriter",
    "count",
    "describe",
    "head",
    "read",
    "salvage",
    "verify",
    "write_arrays",
    "write_examples",
    "write_images",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tfqueue.records' has no attribute {name!r}")
    return getattr(import_module(f"tfqueue.records.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
