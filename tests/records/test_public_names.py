"""The public names of tfqueue.records, pinned."""

from __future__ import annotations

import subprocess
import sys

from tfqueue import records


def test_the_names() -> None:
    assert records.__all__ == [
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
    for name in records.__all__:
        assert callable(getattr(records, name)), name
        assert getattr(records, name).__doc__


def test_records_need_no_tensorflow() -> None:
    program = (
        "import sys; from tfqueue import records; [getattr(records, name) for name in records.__all__]; "
        "print('tensorflow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout == b"False\n"
