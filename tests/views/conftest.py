"""Fixtures of the picture tests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest


@pytest.fixture
def run_python() -> Callable[[str], None]:
    """Run a program in an interpreter of its own; fails with what it printed."""

    def run(program: str) -> None:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr

    return run
