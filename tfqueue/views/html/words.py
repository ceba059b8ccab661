"""Text for a web page from values that anybody may have written: bounded, and nothing invisible in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfqueue.views.text import escaped, is_visible

LONGEST = 300
_SHOWN_VALUES = 16


def visible(text: str, longest: int = LONGEST) -> str:
    """``text`` with every character that has no shape of its own as an escape, cut after ``longest`` characters."""
    head = text[:longest]
    shown = "".join(
        character if is_visible(character) else escaped(character)
        for character in head.replace("\n", "⏎").replace("\t", " ")
    )
    return shown if len(text) <= longest else f"{shown}… ({len(text):,} characters)"


def value_words(value: Any, longest: int = LONGEST) -> str:
    """One feature of one record in words: short values in full, long ones by what they are."""
    if value is None:
        return "not kept"
    if isinstance(value, (bytes, str)):
        return _text(value, longest)
    if isinstance(value, list):
        return visible(str(value), longest)
    array = np.asarray(value)
    if array.ndim == 0:
        item = array.item() if array.dtype == object or array.dtype.kind in "biufcSU" else float(array)
        return _text(item, longest) if isinstance(item, (bytes, str)) else visible(_number(item))
    if array.size <= _SHOWN_VALUES:
        return "[" + ", ".join(value_words(item, 80) for item in array.reshape(-1)) + "]"
    kind = "string" if array.dtype == object else array.dtype.name
    words = f"{kind}[{', '.join(map(str, array.shape))}]"
    if array.dtype.kind in "biuf":
        mean = float(array.mean(dtype=np.float64))
        words += f", {_number(array.min().item())} to {_number(array.max().item())}, mean {_number(mean)}"
    return words


def _text(value: bytes | str, longest: int) -> str:
    if isinstance(value, str):
        return visible(value, longest)
    head = value[: 4 * longest]
    if sum(byte < 32 for byte in head[:200]) * 3 > len(head[:200]):
        return f"{len(value):,} bytes: {head[:16].hex(' ')}{' …' if len(value) > 16 else ''}"
    words = visible(head.decode("utf-8", "backslashreplace"), longest)
    return words if len(value) <= len(head) else f"{words.split('… (')[0]}… ({len(value):,} bytes)"


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
