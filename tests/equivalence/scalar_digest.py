"""The digest's definition once more, number by number in plain Python: an oracle that shares no code."""

from __future__ import annotations

import struct
from typing import Any

M = 2**64
C1, C2, GOLDEN = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0x9E3779B97F4A7C15


def fmix(x: int) -> int:
    x ^= x >> 30
    x = x * C1 % M
    x ^= x >> 27
    x = x * C2 % M
    return x ^ (x >> 31)


def k(i: int) -> int:
    return fmix((i + 1) * GOLDEN % M) | 1


def g(word: int, i: int) -> int:
    x = word * k(i) % M
    x ^= x >> 32
    x = x * C1 % M
    return x ^ (x >> 29)


def words_of(data: bytes) -> list[int]:
    data += bytes(-len(data) % 8)
    return list(struct.unpack(f"<{len(data) // 8}Q", data))


def fold(words: list[int]) -> int:
    sums = [sum(g(w, i) for i, w in enumerate(words[b : b + 4096])) % M for b in range(0, len(words), 4096)]
    while sums and sums[-1] == 0:
        sums.pop()
    if len(sums) <= 1:
        return sums[0] if sums else 0
    return sum(fmix((s + b * GOLDEN) % M) for b, s in enumerate(sums) if s) % M


def numbers(format_letter: str, values: list[Any]) -> int:
    data = struct.pack(f"<{len(values)}{format_letter}", *(v + 0 if isinstance(v, float) else v for v in values))
    return fmix(fold(words_of(data)))


def strings(values: list[bytes]) -> int:
    words = [fmix((fold(words_of(v)) + len(v) * k(4095)) % M) if v else 0 for v in values]
    return fmix(fold(words))


def record(features: list[int]) -> int:
    return fmix(sum(fmix((d + k(f)) % M) for f, d in enumerate(features)) % M)
