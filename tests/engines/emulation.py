"""What the canonical schedule gives, worked out without TensorFlow: the oracle for lockstep and replay."""

from __future__ import annotations

_MASK = 0xFFFFFFFF


def philox(seed, seed2):
    """The 32-bit words of TensorFlow's Philox4x32-10 generator (Salmon et al., SC 2011), without end."""
    block = 0
    while True:
        key = [seed & _MASK, (seed >> 32) & _MASK]
        words = [block & _MASK, (block >> 32) & _MASK, seed2 & _MASK, (seed2 >> 32) & _MASK]
        for _ in range(10):
            first, second = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
            words = [
                (second >> 32) ^ words[1] ^ key[0],
                second & _MASK,
                (first >> 32) ^ words[3] ^ key[1],
                first & _MASK,
            ]
            key = [(key[0] + 0x9E3779B9) & _MASK, (key[1] + 0xBB67AE85) & _MASK]
        yield from words
        block += 1


def shuffled_batches(elements, capacity, min_after_dequeue, batch, seed, seed2, *, up_to=False):
    """The batches that a RandomShuffleQueue gives under the canonical schedule."""
    source = iter(elements)
    draws = philox(seed, seed2)
    queue = []
    closed = False

    def enqueue():
        nonlocal closed
        if closed or len(queue) >= capacity:
            return False
        try:
            queue.append(next(source))
        except StopIteration:
            closed = True
        return True

    while True:
        while enqueue():
            pass
        taken = []
        while len(taken) < batch:
            available = len(queue) - (0 if closed else min_after_dequeue)
            if closed and len(taken) + len(queue) < batch and not up_to:
                return
            if available > 0:
                at = next(draws) % len(queue)
                taken.append(queue[at])
                queue[at] = queue[-1]
                queue.pop()
            elif closed or not enqueue():
                break
        if not taken:
            return
        yield taken
