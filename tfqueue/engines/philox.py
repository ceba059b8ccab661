"""TensorFlow's random numbers as a pure function of seeds and position, in TensorFlow ops.

The kernels of RandomShuffle and RandomShuffleQueue draw from Philox4x32-10 (Salmon, Moraes, Dror and Shaw,
"Parallel random numbers: as easy as 1, 2, 3", SC 2011), with the key = seed, the counter = (number of the block,
seed2), and the four 32-bit words of each block in order; a draw below n is ``word % n``.

Tensors are compared with tf.equal: in a graph of TF1 ``==`` compares the Python objects.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_MASK = 0xFFFFFFFF
_ROUNDS = 10
_DOUBLINGS = 3


def words(seed: int, seed2: int, first: Any, count: Any) -> Any:
    """The random words at positions ``first`` to ``first + count - 1``, as int64 below 2**32.

    Args:
        seed: The graph-level seed of the op.
        seed2: The op-level seed of the op.
        first: The position of the first word, an int64 scalar; a block begins at each multiple of 4.
        count: How many, an int64 scalar.
    """
    return _words(_signed(seed), _signed(seed2), tf.cast(first, tf.int64), tf.cast(count, tf.int64))


def _signed(seed: int) -> int:
    """A seed as the int64 with the same bits."""
    return (seed + 2**63) % 2**64 - 2**63


_SCALAR = tf.TensorSpec([], tf.int64)
_VECTOR = tf.TensorSpec([None], tf.int64)


# Traced once for all: about a hundred ops, which would else be traced anew into each dataset.
@tf.function(input_signature=[_SCALAR] * 4, autograph=False)  # type: ignore[untyped-decorator]
def _words(seed: Any, seed2: Any, first: Any, count: Any) -> Any:
    block = first // 4
    blocks = tf.cast(tf.range(block, (first + count + 3) // 4), tf.uint64)
    # Both halves of the counter, then of the key, as numbers below 2**32.
    counter2 = tf.fill(tf.shape(blocks), tf.bitcast(seed2, tf.uint64))
    key = tf.bitcast(seed, tf.uint64)
    state = [_low(blocks), _high(blocks), _low(counter2), _high(counter2)]
    keys = [_low(key), _high(key)]
    for _ in range(_ROUNDS):
        left = tf.constant(0xD2511F53, tf.uint64) * state[0]
        right = tf.constant(0xCD9E8D57, tf.uint64) * state[2]
        state = [
            _xor(_high(right), state[1], keys[0]),
            _low(right),
            _xor(_high(left), state[3], keys[1]),
            _low(left),
        ]
        keys = [
            _low(keys[0] + tf.constant(0x9E3779B9, tf.uint64)),
            _low(keys[1] + tf.constant(0xBB67AE85, tf.uint64)),
        ]
    drawn = tf.reshape(tf.stack(state, axis=1), [-1])
    start = first - 4 * block
    return tf.cast(drawn[start : start + count], tf.int64)


def _low(value: Any) -> Any:
    return tf.bitwise.bitwise_and(value, tf.constant(_MASK, tf.uint64))


def _high(value: Any) -> Any:
    return tf.bitwise.right_shift(value, tf.constant(32, tf.uint64))


def _xor(first: Any, second: Any, third: Any) -> Any:
    return tf.bitwise.bitwise_xor(tf.bitwise.bitwise_xor(first, second), third)


def shuffled_indices(count: Any, seed: int, seed2: int, call: Any) -> Any:
    """The permutation that a seeded RandomShuffle op applies to ``count`` rows when it runs for the n-th time.

    Args:
        count: The number of rows, a scalar.
        seed: The graph-level seed of the op.
        seed2: The op-level seed of the op.
        call: How many times the op has run before on as many rows, an int64 scalar.

    Returns:
        int64 of shape [count]: output row i is input row ``result[i]``.
    """
    return _shuffled_indices(tf.cast(count, tf.int64), _signed(seed), _signed(seed2), tf.cast(call, tf.int64))


@tf.function(input_signature=[_SCALAR] * 4, autograph=False)  # type: ignore[untyped-decorator]
def _shuffled_indices(count: Any, seed: Any, seed2: Any, call: Any) -> Any:
    draws = tf.maximum(count - 1, 0)
    # A run takes whole blocks of four words.
    first = call * ((draws + 3) // 4) * 4
    step = tf.range(draws)
    other = step + _words(seed, seed2, first, draws) % tf.maximum(count - step, 1)
    # Step i swaps rows i and other[i] >= i, and row i is final. What was at row k when step k began: the row that
    # the last earlier step with other == k put there (its own row at that step), or k itself.
    index = tf.range(count)
    own = tf.equal(other, step)
    origin = _last_step(tf.where(own, _nothing(), step), other, count)
    origin = _roots(origin)
    previous, _ = equal_neighbours(other)
    taken = tf.where(previous >= 0, tf.gather(origin, tf.maximum(previous, 0)), other)
    taken = tf.where(own, tf.gather(origin, step), taken)
    # The last row is what is left there.
    return tf.concat([taken, tf.gather(origin, index[draws:])], axis=0)


def drawn_positions(words_drawn: Any, size: Any) -> tuple[Any, Any, Any]:
    """Draws without replacement from a buffer, as RandomShuffleQueue does it.

    Each draw takes the element at ``word % size``, moves the last element into its place, and shortens the
    buffer by one.

    Args:
        words_drawn: Random words, int64 of shape [n], n <= size.
        size: The number of elements in the buffer, an int64 scalar.

    Returns:
        ``(taken, holes, fillers)``, int64: the positions (before any draw) of the elements taken, in order, and
        which positions below size - n get the element of which other position (each hole once).
    """
    result: tuple[Any, Any, Any] = _drawn_positions(words_drawn, tf.cast(size, tf.int64))
    return result


@tf.function(input_signature=[_VECTOR, _SCALAR], autograph=False)  # type: ignore[untyped-decorator]
def _drawn_positions(words_drawn: Any, size: Any) -> tuple[Any, Any, Any]:
    count = tf.size(words_drawn, out_type=tf.int64)
    step = tf.range(count)
    last = size - 1 - step
    at = words_drawn % (size - step)
    # In the order of positions counted from the end, the last element of step i is position i from the end.
    from_end = size - 1 - at
    inside = from_end < count
    # Where the last element of a step has been moved in by an earlier step, it is that step's last element.
    target = tf.where(inside, from_end, count)
    origin = _last_step(tf.where(tf.equal(target, step), _nothing(), step), target, count + 1)[:count]
    origin = _roots(origin)
    moved = tf.gather(last, origin)
    previous, is_last = equal_neighbours(at)
    taken = tf.where(previous >= 0, tf.gather(moved, tf.maximum(previous, 0)), at)
    # A position that stays is filled by the last step that took from it.
    final = tf.logical_and(at < size - count, is_last)
    return taken, tf.boolean_mask(at, final), tf.boolean_mask(moved, final)


def _last_step(step: Any, target: Any, count: Any) -> Any:
    """For each target the largest step that names it, or the target itself where none does; -1 names nothing."""
    last = tf.math.unsorted_segment_max(step, target, count)
    return tf.where(last >= 0, last, tf.range(tf.cast(count, tf.int64)))


def _roots(parent: Any) -> Any:
    """Follow a forest of parents (each no larger than its child) to its roots, by doubling."""
    for _ in range(_DOUBLINGS):
        parent = tf.gather(parent, parent)

    def double(_: Any, parent: Any) -> tuple[Any, Any]:
        further = tf.gather(parent, parent)
        return tf.reduce_all(tf.equal(further, parent)), further

    # Longer chains than those are rare, and a round of a loop costs more than all of them.
    done, parent = double(None, parent)
    _, parent = tf.while_loop(lambda done, _: tf.logical_not(done), double, [done, parent])
    return parent


def equal_neighbours(values: Any) -> tuple[Any, Any]:
    """For each place the nearest earlier place with an equal value, or -1; and whether no later place has one.

    Args:
        values: int64 of shape [n].
    """
    # top_k is stable: of equal values the one at the lower place comes first.
    ordered, order = tf.math.top_k(-values, k=tf.size(values))
    same = tf.equal(ordered[1:], ordered[:-1])
    other = tf.zeros_like(ordered[:1], tf.bool)
    order = tf.cast(order, tf.int64)
    before = tf.where(tf.concat([other, same], axis=0), tf.concat([order[:1], order[:-1]], axis=0), _nothing())
    place = tf.math.invert_permutation(order)
    last = tf.logical_not(tf.concat([same, other], axis=0))
    return tf.gather(before, place), tf.gather(last, place)


def _nothing() -> Any:
    return tf.constant(-1, tf.int64)
