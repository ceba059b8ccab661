"""tf_slim, with what fails on today's TensorFlow mended.

tf_slim 1.1 takes three things from places inside TensorFlow that have moved: the layer behind batch_norm, `case` behind
tfexample_decoder.Image, and the class of tensors behind optimize_loss. They are put into tf_slim's own modules, which
otherwise raise when they are reached; nothing of TensorFlow is touched.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

import tensorflow as tf
import tf_slim
from tf_slim.data import tfexample_decoder
from tf_slim.layers import layers, optimizers

from tfqueue.compat import legacy_layers


class _Mended(ModuleType):
    """A module of TensorFlow as tf_slim saw it once: some names first, then the module's own."""

    def __init__(self, of: ModuleType, **moved: Any) -> None:
        super().__init__(of.__name__)
        self.__dict__.update(moved)
        self._of = of

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)


class _NormalizationLayers(ModuleType):
    """tensorflow.python.layers.normalization, whose class is in tf_keras now."""

    @property
    def BatchNormalization(self) -> Any:  # noqa: N802 - the name that tf_slim looks for
        return legacy_layers.BatchNormalization


def _mend() -> None:
    if not hasattr(tfexample_decoder.control_flow_ops, "case"):
        tfexample_decoder.control_flow_ops = _Mended(tfexample_decoder.control_flow_ops, case=tf.compat.v1.case)
    if not hasattr(optimizers.ops, "Tensor"):
        optimizers.ops = _Mended(optimizers.ops, Tensor=tf.Tensor)
    try:
        layers.normalization_layers.BatchNormalization  # noqa: B018 - a lazy import that fails under Keras 3
    except (ImportError, AttributeError):
        layers.normalization_layers = _NormalizationLayers("normalization_layers")


_mend()


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        return getattr(tf_slim, name)
    except AttributeError:
        try:
            return import_module(f"tf_slim.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"tf_slim.{name}":
                raise
    raise AttributeError(f"tf_slim has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*dir(tf_slim), "nets"])
