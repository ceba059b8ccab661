"""Functions for datasets that are taken as they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import tensorflow as tf

_F = TypeVar("_F", bound=Callable[..., Any])


def plain(function: _F) -> _F:
    """The function, marked so that AutoGraph does not rewrite it: it holds ops only, and tracing gets faster."""
    marked: _F = tf.autograph.experimental.do_not_convert(function)
    return marked
