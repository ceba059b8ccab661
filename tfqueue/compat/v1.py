"""`tf.compat.v1` with the names that TF1 programs use and today's TensorFlow lacks.

    import tfqueue.compat.v1 as tf

Importing it changes nothing in TensorFlow: eager execution, resource variables and shapes stay as they are. Names that
are gone for good raise `tfqueue.errors.CannotRestore`. tfqueue/compat/tf1-names.md lists every name.
"""

from __future__ import annotations

from typing import Any

from tfqueue.compat import overlay

_tf = overlay.module("tf")


def __getattr__(name: str) -> Any:
    return getattr(_tf, name)


def __dir__() -> list[str]:
    return dir(_tf)
