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
_CHUNK = 8192  # words worked on at once: three buffers of this size stay in the level 2 cache
_NARROW = 64  # words a row
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
    x, t = (np.empty((min(step, rows), width), dtype=np.uint64) for _ in range(2))
    for start in range(0, rows, step):
        part = words[start : start + step]
        _mix(part, x[: len(part)], t[: len(part)], total[start : start + step])
    return total


def _mix(words: Words, x: Words, t: Words, total: Words) -> None:
    """Write the sum over axis 1 of ``g(word, i)`` to ``total``, by way of two buffers of the shape of ``words``."""
    width = words.shape[1]
    np.multiply(words, _K[:width], out=x)
    np.right_shift(x, _32, out=t)
    np.bitwise_xor(x, t, out=x)
    np.multiply(x, _C1, out=x)
    np.right_shift(x, _29, out=t)
    np.bitwise_xor(x, t, out=x)
    if width < _NARROW:
        np.einsum("ij->i", x, out=total)  # add.reduce costs a call of its inner loop a row
    else:
        np.add.reduce(x, axis=1, out=total)


def fold(words: Words) -> Words:
    """Rows of words of shape [n, w] folded to one word a row, zeros at the end not counting."""
    rows, width = words.shape
    if width == 0:
        return np.zeros(rows, dtype=np.uint64)
    if width <= _BLOCK:
        return _sum_g(words)
    return _joined(np.stack([_sum_g(words[:, start : start + _BLOCK]) for start in range(0, width, _BLOCK)], axis=1))


def _joined(sums: Words) -> Words:
    """One word a row from the sums of its blocks, shape [n, blocks]."""
    starts = np.arange(sums.shape[1], dtype=np.uint64) * _GOLDEN
    total = np.add.reduce(np.where(sums != 0, fmix(sums + starts), np.uint64(0)), axis=1)
    # One block alone passes as it is, so that zeros at the end may start a further block without a trace.
    return np.where((sums[:, 1:] != 0).any(axis=1), total, sums[:, 0])


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
    return digests_and_nan(leaf, nested=nested)[0]


def digests_and_nan(leaf: Leaf, *, nested: bool = False) -> tuple[Words, bool | None]:
    """`feature_digests`, and whether a row of the leaf holds a NaN; None where that was not looked for on the way."""
    if isinstance(leaf, Digested):
        return leaf.digests, None
    if isinstance(leaf, Dense):
        return (_nested_digests(leaf.array), None) if nested and leaf.rank > 2 else _dense_digests(leaf.array)
    return (_ragged_digests(leaf) if isinstance(leaf, Ragged) else _sparse_digests(leaf)), None


def _dense_digests(array: Array) -> tuple[Words, bool | None]:
    """The digests of the rows, and whether one holds a NaN; None where that was not looked for."""
    if array.dtype == object:
        return fmix(fold(string_words(array))), False
    rows = len(array)
    flat = array.reshape(rows, math.prod(array.shape[1:]))
    width = -(-flat.shape[1] * flat.itemsize // 8)
    if width == 0 or rows == 0:
        return np.zeros(rows, dtype=np.uint64), False
    source = _Source(flat, min(width, _BLOCK))
    if width <= _BLOCK:
        total = np.empty(rows, dtype=np.uint64)
        step = len(source.filled)
        for start in range(0, rows, step):
            source.sum(flat[start : start + step], total[start : start + step])
        return fmix(total), source.nan
    blocks = -(-width // _BLOCK)
    sums = np.empty((rows, blocks), dtype=np.uint64)
    step, items = len(source.filled), _BLOCK * 8 // flat.itemsize
    for row, out in zip(flat, sums, strict=True):
        whole = len(row) // items
        cut = row[: whole * items].reshape(whole, items)
        for start in range(0, whole, step):
            source.sum(cut[start : start + step], out[start : min(start + step, whole)])
        if whole < blocks:
            out[whole] = fold(_words(row[np.newaxis, whole * items :]))[0]
            source.nan = source.nan or _holds_nan(row[whole * items :])
    return fmix(_joined(sums)), source.nan


def _holds_nan(values: Array) -> bool | None:
    return bool(np.isnan(np.min(values))) if values.dtype.kind in "fc" else None if values.dtype.kind == "V" else False


class _Source:
    """Sums up rows of numbers by way of the same few buffers, which stay in the cache.

    Args:
        flat: All rows, shape [n, numbers].
        width: Words that are summed up at once.

    Attributes:
        filled: The words of some rows; those of a part of ``flat`` are written here where they cannot be read in place.
        nan: Whether a NaN was seen; None for floats that numpy itself lacks.
    """

    def __init__(self, flat: Array, width: int) -> None:
        rows = min(len(flat) * -(-flat.shape[1] * flat.itemsize // (8 * width)), max(1, _CHUNK // width))
        # Three arrays, each small enough for malloc to give them out of what it has, without new pages.
        self.filled = np.zeros((rows, width), dtype=np.uint64)
        self.x, self.t = np.empty((rows, width), dtype=np.uint64), np.empty((rows, width), dtype=np.uint64)
        self.plain = flat.dtype.kind in "biu" and flat.dtype.isnative and sys.byteorder == "little"
        self.floats = flat.dtype.kind in "fc"
        self.nan: bool | None = None if not self.floats and flat.dtype.kind not in "biu" else False

    def sum(self, part: Array, total: Words) -> None:
        """Write the sum of ``g(word, i)`` over each row of ``part`` to ``total``."""
        count, numbers = part.shape
        rows = self.filled[:count]
        if self.plain and part.flags.c_contiguous and not (part.ctypes.data % 8 or numbers * part.itemsize % 8):
            rows = part.view(np.uint64)
        else:
            into = rows.view(part.dtype.newbyteorder("<"))[:, :numbers]
            if self.floats:
                with np.errstate(invalid="ignore"):  # of a signalling NaN
                    np.add(part, part.dtype.type(0), out=into)  # -0.0 + 0 is +0.0
                if _holds_nan(into):
                    self.nan = True
                    into[np.isnan(into)] = np.nan
            elif self.nan is None:
                into[...] = part + part.dtype.type(0)
            else:
                into[...] = part
            if sys.byteorder == "big":
                rows = rows.byteswap()
        _mix(rows, self.x[:count], self.t[:count], total)


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
