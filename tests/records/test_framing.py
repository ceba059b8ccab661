"""The frames are TensorFlow's, bit for bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tfqueue.records.framing import (
    crc32c,
    crc_changes,
    flipped_length,
    footer,
    frames,
    header,
    header_length,
    is_header,
    mask,
    unmask,
)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.binary(max_size=200), max_size=8))
def test_the_same_bytes_as_tensorflow(tmp_path_factory: object, payloads: list[bytes]) -> None:
    path = Path(str(tmp_path_factory.mktemp("frames"))) / "a"  # type: ignore[attr-defined]
    with tf.io.TFRecordWriter(str(path)) as writer:
        for payload in payloads:
            writer.write(payload)
    assert frames(payloads) == path.read_bytes()
    assert b"".join(header(len(payload)) + payload + footer(payload) for payload in payloads) == path.read_bytes()


def test_the_crc_of_rfc_3720() -> None:
    # Appendix B.4 of RFC 3720.
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_mask_and_unmask(crc: int) -> None:
    assert unmask(mask(crc)) == crc
    assert 0 <= mask(crc) < 2**32


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 2**64 - 1), st.integers(0, 7), st.integers(1, 255))
def test_one_wrong_byte_in_a_length_is_found_and_mended(length: int, position: int, change: int) -> None:
    head = bytearray(header(length))
    assert header_length(bytes(head)) == length
    head[position] ^= change
    assert header_length(bytes(head)) is None
    assert flipped_length(bytes(head)) == (length, position)
    assert is_header(bytes(head))


def test_random_bytes_are_no_header() -> None:
    rng = np.random.default_rng(0)
    assert not any(is_header(rng.bytes(12)) for _ in range(20_000))
    assert not is_header(b"short")
    assert header_length(b"short") is None
    assert flipped_length(b"short") is None


def test_the_crc_changes_are_linear() -> None:
    table = crc_changes()
    rng = np.random.default_rng(0)
    for _ in range(200):
        data = np.frombuffer(rng.bytes(8), np.uint8)
        crc = crc32c(bytes(8))
        for position, value in enumerate(data):
            crc ^= int(table[position, value])
        assert crc == crc32c(data.tobytes())
