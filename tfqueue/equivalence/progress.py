"""A line of progress on stderr, rewritten in place."""

from __future__ import annotations

import sys
import time

_EVERY = 0.25  # seconds


class Progress:
    """Shows how many records were read.

    Args:
        shown: False to show nothing.
    """

    def __init__(self, shown: bool) -> None:
        self._shown = shown
        self._next = 0.0

    def show(self, reference: int, candidate: int) -> None:
        """Show the counts, unless the last time was a moment ago."""
        if self._shown and time.monotonic() >= self._next:
            self._next = time.monotonic() + _EVERY
            words = f"read {reference:,} records of the reference, {candidate:,} of the candidate"
            print(f"\r{words:<78}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            print(f"\r{'':<78}\r", end="", file=sys.stderr, flush=True)
