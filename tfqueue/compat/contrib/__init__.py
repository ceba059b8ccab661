"""The packages of tf.contrib that TF1 programs use: data, training, learn, slim, layers, framework and smaller ones.

`tfqueue.compat.v1.contrib` is the same thing. A package or name that is gone for good raises `CannotRestore`.
"""

from __future__ import annotations

import sys
from typing import Any

from tfqueue.compat import names, overlay

_packages = tuple(sorted(names.parts_below("tf.contrib")))
__all__ = ["data", "framework", "layers", "learn", "slim", "training"]

for _package in _packages:
    # An import statement looks for a submodule here first.
    sys.modules[f"{__name__}.{_package}"] = overlay.module(f"tf.contrib.{_package}")


def __getattr__(name: str) -> Any:
    return getattr(overlay.module("tf.contrib"), name)


def __dir__() -> list[str]:
    return list(_packages)
