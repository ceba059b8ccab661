"""TFRecord files: written whole and typed, read without silent loss."""

from __future__ import annotations

from tfqueue.records.arrays import write_arrays
from tfqueue.records.images import write_images
from tfqueue.records.reader import read
from tfqueue.records.salvage import salvage
from tfqueue.records.verify import verify
from tfqueue.records.writer import RecordWriter

__all__ = ["RecordWriter", "read", "salvage", "verify", "write_arrays", "write_images"]
