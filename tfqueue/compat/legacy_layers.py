"""tf.layers and tf.nn.rnn_cell, which Keras 3 does not have, from tf_keras.

This is the one place that names the module of tf_keras in which they live: its public packages lead to them only
through TensorFlow's own lazy loaders, which look at TF_USE_LEGACY_KERAS when TensorFlow is first imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = ("tf_keras.api._v1.keras.__internal__.legacy.layers", "tf_keras.api._v1.keras.__internal__.legacy.rnn_cell")


def __getattr__(name: str) -> Any:
    if not name.startswith("__"):
        for home in _HOMES:
            found = getattr(import_module(home), name, None)
            if found is not None:
                return found
    raise AttributeError(f"tf_keras has no legacy layer {name!r}")
