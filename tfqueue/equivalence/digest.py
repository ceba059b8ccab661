"""Digests of records: 64 bits that stand for the value of a record, the same on every machine.

The definition (version 1), byte by byte. All arithmetic is on unsigned 64-bit numbers, modulo 2**64.

* ``fmix(x)``: ``x ^= x >> 30; x *= 0xBF58476D1CE4E5B9; x ^= x >> 27; x *= 0x94D049BB133111EB; x ^= x >> 31``
  (the finaliser of SplitMix64, Steele, Lea and Flood, 2014).
* ``K[i] = fmix((i + 1) * 0x9E3779B97F4A7C15) | 1`` for i = 0..4095.
* ``g(w, i)``: ``x = w * K[i]; x ^= x >> 32; x *= 0xBF58476D1CE4E5B9; x ^= x >> 29``. ``g(0, i)`` is 0.
* ``words(row)`` of numbers: the row's elements in row-major order, each as its little-endian bytes (booleans
  as one byte 0 or 1), the whole filled up with zero bytes to a multiple of 8 and read as little-endian words.
  Before that, -0.0 becomes +0.0, and every NaN becomes the quiet NaN with sign and payload 0.
* ``words(row)`` of strings: for each string in row-major order the word ``fold(words(bytes)) + len *
  K[4095]``, passed through fmix, where a string's bytes are filled up with zero bytes as above; an empty
  string gives the word 0.
* ``fold(words)``: cut into blocks of 4096 words, ``S[b] = sum of g(word, i)`` within a block; the result is
  ``S[0]`` if there is one block, else ``sum of fmix(S[b] + b * 0x9E3779B97F4A7C15) over the blocks b with
  S[b] != 0``.
* The digest of a feature of one record: ``fmix(fold(words(row)))``. A ragged row is the row of its values
  plus, for every ragged dimension d inside the record, ``fmix(fold(lengths) + d + 1)``, added before the
  fmix. A sparse row is ``fmix(sum over its entries of fmix(fold(words(value)) + fold(coordinates + 1) *
  K[1]))``, without the record's coordinate.
* The digest of a record: ``fmix(sum over the features f = 0, 1, ... of fmix(digest[f] + K[f mod 4096]))``.
* The fingerprint of a multiset of digests: the sum of ``fmix(digest + 0x9E3779B97F4A7C15)``.

Records padded along a further axis are folded axis by axis (`feature_digests`, ``nested``); goldens never are.

Zeros at the end of a row do not change a digest, so that a record padded to the longest of its batch keeps
its digest whatever the batch; shapes are compared apart from digests. Two different rows have the same digest
with a probability of about 2**-64.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from tfqueue.equivalence.leaves import Array, Dense, Digested, Leaf, Ragged, Sparse

Words = npt.NDArray[np.uint64]

VERSION = 1
_BLOCK = 4096
_STEP = 1 << 18  # bytes
_CHUNK = 16384  # words worked on at once: two buffers of this size stay in the level 2 cache
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_C1 = np.uint64(0xBF58476D1CE4E5B9)
_C2 = np.uint64(0x94D049BB133111EB)
_27, _29, _30, _31, _32 = (np.uint64(n) for n in (27, 29, 30, 31, 32))


def fmix(words: Words) -> Words:
    """The SplitMix64 finaliser of every word."""
    x: Words = words ^ (words >> _30)
    x *= _C1
    x ^= x >> _27
    x *= _C2
    x ^= x >> _31
    return x


_K: Words = fmix(np.arange(1, _BLOCK + 1, dtype=np.uint64) * _GOLDEN) | np.uint64(1)


def _sum_g(words: Words) -> Words:
    """The sum over axis 1 of ``g(word, i)``; at most 4096 columns."""
    rows, width = words.shape
    if width == 1:
        x: Words = words[:, 0] * _K[0]
        x ^= x >> _32
        x *= _C1
        x ^= x >> _29
        return x
    total = np.empty(rows, dtype=np.uint64)
    step = max(1, _CHUNK // width)
    x = np.empty((min(step, rows), width), dtype=np.uint64)
    t = np.empty_like(x)
    for start in range(0, rows, step):
        part = words[start : start + step]
        if len(part) != len(x):
            x, t = x[: len(part)], t[: len(part)]
        np.multiply(part, _K[:width], out=x)
        np.right_shift(x, _32, out=t)
        np.bitwise_xor(x, t, out=x)
        np.multiply(x, _C1, out=x)
        np.right_shift(x, _29, out=t)
        np.bitwise_xor(x, t, out=x)
        np.sum(x, axis=1, dtype=np.uint64, out=total[start : start + step])
    return total


def fold(words: Words) -> Words:
    """Rows of words of shape [n, w] folded to one word a row, zeros at the end not counting."""
    rows, width = words.shape
    if width == 0:
        return np.zeros(rows, dtype=np.uint64)
    if width <= _BLOCK:
        return _sum_g(words)
    sums = [_sum_g(words[:, start : start + _BLOCK]) for start in range(0, width, _BLOCK)]
    # One block alone passes as it is, so that zeros at the end may start a further block without a trace.
    alone = sums[0].copy()
    total = np.zeros(rows, dtype=np.uint64)
    longer = np.zeros(rows, dtype=bool)
    for block, value in enumerate(sums):
        filled = value != 0
        total += np.where(filled, fmix(value + np.uint64(block * int(_GOLDEN) % 2**64)), np.uint64(0))
        if block:
            longer |= filled
    return np.where(longer, total, alone)


def number_words(array: Array) -> Words:
    """The words of each row of an array of numbers, shape [n, ...] -> [n, w]."""
    rows = array.shape[0]
    flat = array.reshape(rows, math.prod(array.shape[1:]))
    kind = flat.dtype.kind
    if kind in "fc" or flat.dtype.name.startswith(("bfloat", "float8")):
        with np.errstate(invalid="ignore"):  # of a signalling NaN
            flat = flat + flat.dtype.type(0)  # -0.0 + 0 is +0.0
        if kind in "fc" and flat.size and np.isnan(np.min(flat)):
            flat[np.isnan(flat)] = np.nan
    flat = np.ascontiguousarray(flat)
    if flat.dtype.byteorder == ">" or (flat.dtype.byteorder == "=" and sys.byteorder == "big"):
        flat = flat.astype(flat.dtype.newbyteorder("<"))
    width = flat.shape[1] * flat.itemsize
    raw = flat.view(np.uint8).reshape(rows, width) if width else np.zeros((rows, 0), np.uint8)
    return _as_words(raw)


def _as_words(raw: npt.NDArray[np.uint8]) -> Words:
    rows, width = raw.shape
    rest = -width % 8
    if rest:
        filled = np.zeros((rows, width + rest), dtype=np.uint8)
        filled[:, :width] = raw
        raw = filled
    elif width and raw.ctypes.data % 8:
        raw = raw.copy()
    words: Words = np.ascontiguousarray(raw).view("<u8").astype(np.uint64, copy=False)
    return words.reshape(rows, (width + rest) // 8)


def string_words(array: Array) -> Words:
    """The words of each row of an object array of bytes, shape [n, ...] -> [n, strings in a row]."""
    strings: list[bytes] = list(array.ravel())
    lengths = np.fromiter((len(s) for s in strings), dtype=np.uint64, count=len(strings))
    out = np.zeros(len(strings), dtype=np.uint64)
    if strings:
        longest = int(lengths.max())
        if longest <= 256 or longest * len(strings) <= 2 * int(lengths.sum()):
            padded = np.array(strings, dtype=f"S{max(longest, 1)}")
            raw = padded.view(np.uint8).reshape(len(strings), -1)
            folded = fold(_as_words(raw))
        else:
            folded = np.concatenate([fold(_as_words(np.frombuffer(s, dtype=np.uint8).reshape(1, -1))) for s in strings])
        out = np.where(lengths > 0, fmix(folded + lengths * _K[_BLOCK - 1]), np.uint64(0))
    rows = array.shape[0]
    return out.reshape(rows, out.size // rows if rows else 0)


def _words(array: Array) -> Words:
    return string_words(array) if array.dtype == object else number_words(array)


def feature_digests(leaf: Leaf, *, nested: bool = False) -> Words:
    """The digest of every row of a leaf.

    Args:
        leaf: The feature.
        nested: For dense rows of several axes: fold the last axis, then the results along the axis before it, and so
            on, so that zeros at the end of any axis do not count. Goldens are not made in this way.

    Returns:
        uint64 of shape [records].
    """
    if isinstance(leaf, Digested):
        return leaf.digests
    if isinstance(leaf, Dense):
        return _nested_digests(leaf.array) if nested and leaf.rank > 2 else _dense_digests(leaf.array)
    return _ragged_digests(leaf) if isinstance(leaf, Ragged) else _sparse_digests(leaf)


def _dense_digests(array: Array) -> Words:
    rows = max(1, len(array))
    step = max(1, _STEP * rows // max(1, array.nbytes))
    if array.dtype == object or step >= rows:
        return fmix(fold(_words(array)))
    # In steps, so that the copies made on the way stay in the cache.
    parts = [fold(_words(array[start : start + step])) for start in range(0, rows, step)]
    return fmix(np.concatenate(parts))


def _nested_digests(array: Array) -> Words:
    words = fold(_words(array.reshape(math.prod(array.shape[:-1]), array.shape[-1])))
    for axis in range(array.ndim - 2, 0, -1):
        words = fold(words.reshape(math.prod(array.shape[:axis]), array.shape[axis]))
    return fmix(words)


def _ragged_digests(leaf: Ragged) -> Words:
    out = np.zeros(leaf.size, dtype=np.uint64)
    for index in range(leaf.size):
        row = leaf.rows(index, index + 1)
        total = fold(_words(row.values.reshape(1, -1)))
        for depth, level in enumerate(row.splits):
            lengths = np.diff(level).astype(np.uint64)
            total = total + fmix(fold(lengths.reshape(1, -1)) + np.uint64(depth + 1))
        out[index] = fmix(total)[0]
    return out


def _sparse_digests(leaf: Sparse) -> Words:
    total = np.zeros(leaf.size, dtype=np.uint64)
    if len(leaf.values):
        values = fold(_words(leaf.values.reshape(len(leaf.values), 1)))
        places = fold((leaf.indices[:, 1:] + 1).astype(np.uint64))
        np.add.at(total, leaf.indices[:, 0], fmix(values + places * _K[1]))
    return fmix(total)


def record_digests(features: list[Words]) -> Words:
    """The digest of every record from the digests of its features, in the reference's order of features."""
    total = np.zeros(len(features[0]), dtype=np.uint64)
    for index, digests in enumerate(features):
        total += fmix(digests + _K[index % _BLOCK])
    return fmix(total)


def fingerprint(digests: Words) -> int:
    """An order-free fingerprint of a multiset of digests; fingerprints of parts add up modulo 2**64."""
    return int(np.sum(fmix(digests + _GOLDEN), dtype=np.uint64))


def digest_value(value: Any) -> int:
    """The digest of one feature of one record, such as a key."""
    leaf = value if isinstance(value, (Dense, Ragged, Sparse)) else Dense(np.asarray(value)[np.newaxis])
    return int(feature_digests(leaf)[0])
