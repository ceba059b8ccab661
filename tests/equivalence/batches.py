"""Small streams of batches for tests."""

from __future__ import annotations

from typing import Any

import numpy as np


def records(count: int = 40, seed: int = 0) -> dict[str, np.ndarray]:
    """Images, labels and names; every record differs from every other."""
    rng = np.random.default_rng(seed)
    return {
        "image": rng.integers(0, 256, (count, 5, 4, 3)).astype(np.uint8),
        "label": (np.arange(count) % 7).astype(np.int64),
        "name": np.array([b"record-%d" % i for i in range(count)], dtype=object),
    }


def cut(data: dict[str, np.ndarray], size: int = 8, *, drop: bool = False) -> list[dict[str, np.ndarray]]:
    """The records in batches."""
    count = len(next(iter(data.values())))
    stop = count - count % size if drop else count
    return [{k: v[i : min(i + size, stop)] for k, v in data.items()} for i in range(0, stop, size)]


def taken(data: dict[str, np.ndarray], order: Any) -> dict[str, np.ndarray]:
    """The records in another order."""
    return {k: v[np.asarray(order)] for k, v in data.items()}


def changed(data: dict[str, np.ndarray], feature: str, place: tuple[int, ...], value: Any) -> dict[str, np.ndarray]:
    """The records with one value changed."""
    other = dict(data)
    other[feature] = data[feature].copy()
    other[feature][place] = value
    return other
