"""Numbers read in the dtype of the other side."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfqueue.equivalence.leaves import STRING, Dense, Leaf


def cast(leaf: Leaf, dtype: Any) -> Leaf:
    """The leaf with its numbers in another dtype, so that a difference of dtype alone is no difference of
    values.
    """
    if dtype is None or not isinstance(leaf, Dense) or leaf.dtype == STRING:
        return leaf
    with np.errstate(all="ignore"):
        return Dense(leaf.array.astype(dtype))


def changed_by_cast(leaf: Leaf, plain: Leaf) -> Any:
    """The records whose integers another dtype cannot hold; None if there are none. Floats may be rounded."""
    if plain is leaf or not isinstance(leaf, Dense) or not isinstance(plain, Dense):
        return None
    before, after = leaf.array, plain.array
    if before.dtype.kind not in "biu" and after.dtype.kind not in "biu":
        return None
    if np.can_cast(before.dtype, after.dtype, "safe"):
        return None
    with np.errstate(all="ignore"):
        rows = (after != before).reshape(leaf.size, -1).any(axis=1)
    return rows if rows.any() else None
