"""How much memory does the comparison hold? For information only."""

from __future__ import annotations

import sys

from tfqueue.equivalence.evidence import Evidence
from tfqueue.equivalence.report import NOT_CHECKED, CheckResult


def check_memory(evidence: Evidence) -> CheckResult:
    """Bytes of the digests and of the records whose values were kept, and the most that the process ever held."""
    sides = evidence.reference, evidence.candidate
    digests = sum(side.digests.nbytes for side in sides)
    values = sum(leaf.nbytes for side in sides for chunk in side.kept for leaf in chunk.leaves)
    figures = {"digest_bytes": digests, "kept_value_bytes": values, "process_peak_bytes": _peak()}
    words = f"{digests / 1e6:.1f} MB of digests, {values / 1e6:.1f} MB of values of the first records"
    return CheckResult("memory", NOT_CHECKED, words, counts=False, evidence=figures)


def _peak() -> int | None:
    """The largest resident memory of the process so far, both pipelines and TensorFlow included; None on Windows."""
    if sys.platform == "win32":
        return None
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
