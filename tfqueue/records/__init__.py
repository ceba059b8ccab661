"""TFRecord files: written whole and typed, read without silent loss, looked into, checked and repaired."""

from __future__ import annotations

from tfqueue.records.arrays import write_arrays
from tfqueue.records.examples import write_examples
from tfqueue.records.images import write_images
from tfqueue.records.reader import RecordReader, count, read
from tfqueue.records.salvage import salvage
from tfqueue.records.schema import describe
from tfqueue.records.verify import verify
from tfqueue.records.writer import RecordWriter

__all__ = [
    "RecordReader",
    "RecordWriter",
    "count",
    "describe",
    "read",
    "salvage",
    "verify",
    "write_arrays",
    "write_examples",
    "write_images",
]
