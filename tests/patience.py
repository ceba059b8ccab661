"""More time for what tfqueue does against the clock."""

from __future__ import annotations


def give_time() -> None:
    """Widen what the start checks and the search for a failed record may take, for the rest of the process.

    For a user a cause without a record number is better than a late one; a test that looks at the number must not
    depend on how busy the machine is. Tests of what is found when the time is up set it themselves.
    """
    from tfqueue.diagnosis import locate
    from tfqueue.startcheck import files

    locate.SECONDS = files.LOOK_SECONDS = files.COUNT_SECONDS = 60.0
