"""Runs the programs of the project as a person does, but inside the test process (importing TensorFlow is slow)."""

from __future__ import annotations

import contextlib
import io
import logging
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run_program(path: Path, *arguments: str) -> str:
    """Run a program in the current folder; returns what it printed. An exit code other than 0 fails."""
    printed = io.StringIO()
    before = sys.argv
    sys.argv = [str(path), *arguments]
    level = logging.getLogger("tensorflow").level
    logging.getLogger("tensorflow").setLevel(logging.ERROR)  # deprecation notices of the TF1 calls
    try:
        with contextlib.redirect_stdout(printed):
            code = None
            try:
                runpy.run_path(str(path), run_name="__main__")
            except SystemExit as end:
                code = end.code
            assert not code, f"{path} ended with {code}:\n{printed.getvalue()}"
    finally:
        sys.argv = before
        logging.getLogger("tensorflow").setLevel(level)
    return printed.getvalue()
