"""Values as bounded, visible text."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfqueue.views.html.words import value_words, visible


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=[])))
def test_nothing_invisible_is_left(text):
    shown = visible(text)
    shown.encode("utf-8")
    assert not {unicodedata.category(character) for character in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert len(shown) <= 300 * 10 + 30


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=3000))
def test_any_bytes_are_bounded_text(value):
    shown = value_words(value)
    shown.encode("utf-8")
    assert len(shown) <= 300 * 10 + 60


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"text", "text"),
        (b"caf\xc3\xa9", "café"),
        (b"\xff", r"\xff"),
        (b"\x00\x01\x02\x03", "4 bytes: 00 01 02 03"),
        (bytes(5000), "5,000 bytes: " + "00 " * 15 + "00 …"),
        (b"a" * 5000, "a" * 300 + "… (5,000 bytes)"),
        ("a" * 301, "a" * 300 + "… (301 characters)"),
        (3, "3"),
        (np.float32(0.5), "0.5"),
        (np.array(7), "7"),
        (np.array([1, 2]), "[1, 2]"),
        (np.array([b"a", b"b"], object), "[a, b]"),
        (np.zeros((4, 5), np.float32), "float32[4, 5], 0 to 0, mean 0"),
        (None, "not kept"),
        ([[1], [2, 3]], "[[1], [2, 3]]"),
        ("two\nlines\tand\u200b", r"two⏎lines and\u200b"),
    ],
)
def test_words(value, words):
    assert value_words(value) == words
