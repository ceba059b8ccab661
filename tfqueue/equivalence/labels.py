"""How many different labels a batch holds: what a training run feels of a shuffle that is too small."""

from __future__ import annotations

import numpy as np

from tfqueue.equivalence.observe import Observation

_MOST = 1000  # different values, beyond which a feature is no label
_BATCHES = 200


def labels_a_batch(side: Observation) -> tuple[str, float] | None:
    """(feature, mean number of its different values in a batch), over the first records, whose values were kept.

    The label is the single integer or string that has the fewest values, but several, and far fewer than there are
    records. None where no feature is one.
    """
    best: tuple[int, int] | None = None
    for index, view in enumerate(side.views):
        if (
            view.kind != "dense"
            or view.shape
            or not view.dtypes
            or not view.dtypes[0].startswith(("int", "uint", "str"))
        ):
            continue
        found = len({int(word) for chunk in side.kept for word in np.unique(chunk.features[index])})
        if 1 < found <= min(_MOST, side.count // 4) and (best is None or found < best[0]):
            best = (found, index)
    if best is None or not side.sizes:
        return None
    digests = np.concatenate([chunk.features[best[1]] for chunk in side.kept])
    size = side.sizes[0][0]
    starts = range(0, min(len(digests), size * _BATCHES) - size + 1, size)
    counts = [len(np.unique(digests[start : start + size])) for start in starts]
    return (side.names[best[1]], round(float(np.mean(counts)), 3)) if counts and size > 1 else None
