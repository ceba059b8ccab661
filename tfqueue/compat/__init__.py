"""TF1 programs on today's TensorFlow: the names that are gone, and the libraries that went with them.

``import tfqueue.compat.v1 as tf`` is `tf.compat.v1` with those names; `tfqueue.compat.keras` feeds Keras from arrays
and pipelines; `tfqueue.compat.names` is the table of every name. Importing this package imports no TensorFlow.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["names"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"tfqueue.compat.{name}")
    raise AttributeError(f"module 'tfqueue.compat' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
