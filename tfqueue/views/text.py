"""Characters that no picture and no page should take as they are."""

from __future__ import annotations

import unicodedata

# Control and format characters, surrogates, separators of lines: what could hide or reorder the text around it.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def is_visible(character: str) -> bool:
    """Whether a character has a shape of its own (or is a plain space)."""
    return unicodedata.category(character) not in _INVISIBLE


def escaped(character: str) -> str:
    """A character as Python writes it in ASCII: ``\\x1b``, ``\\u202e``, ``\\U0001f9ff``."""
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
