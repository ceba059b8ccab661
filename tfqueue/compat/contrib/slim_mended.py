"""tf_slim, with what fails on today's TensorFlow mended.

tf_slim 1.1 takes several functions and classes from places inside TensorFlow that they have left since (behind
batch_norm, dropout with a tensor as is_training, optimize_loss, tfexample_decoder.Image, rev_block and more). Inside
tf_slim's own modules the names of those places are replaced by stand-ins that know where the things are today;
without, they raise when they are reached. Nothing of TensorFlow is touched.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

import tensorflow as tf
import tf_slim

from tfqueue.compat import legacy_layers
from tfqueue.compat.supervisor import Supervisor

tf1 = tf.compat.v1

# By the name that tf_slim's modules use for a module of TensorFlow: what it does not have any more, and where it is.
_MOVED: dict[str, dict[str, Any]] = {
    "array_ops": {"stack": tf.stack, "unstack": tf.unstack},
    "control_flow_ops": {
        "Assert": tf1.Assert,
        "case": tf1.case,
        "cond": tf1.cond,
        "while_loop": tf1.while_loop,
    },
    "framework_ops": {"IndexedSlices": tf.IndexedSlices, "Tensor": tf.Tensor},
    "ops": {"IndexedSlices": tf.IndexedSlices, "Tensor": tf.Tensor},
    "variable_scope": {"variable": tf1.Variable},
}


# What is there and does not work where eager execution is on.
_REPLACED: dict[str, dict[str, Any]] = {"supervisor": {"Supervisor": Supervisor}}


class _StandIn(ModuleType):
    """A module of TensorFlow as tf_slim knew it: some names from elsewhere, and else what the module has."""

    def __init__(self, of: ModuleType, names: dict[str, Any]) -> None:
        super().__init__(of.__name__)
        self.__dict__.update(names)
        self._of = of

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)


class _NormalizationLayers(ModuleType):
    """tensorflow.python.layers.normalization, whose class is in tf_keras now."""

    @property
    def BatchNormalization(self) -> Any:  # noqa: N802 - the name that tf_slim looks for
        return legacy_layers.BatchNormalization


def _mend() -> None:
    for name, module in list(sys.modules.items()):
        if not name.startswith("tf_slim."):
            continue
        for used, moved in _MOVED.items():
            place = vars(module).get(used)
            missing = {part: value for part, value in moved.items() if not hasattr(place, part)}
            if isinstance(place, ModuleType) and missing:
                setattr(module, used, _StandIn(place, missing))
        for used, replaced in _REPLACED.items():
            if isinstance(vars(module).get(used), ModuleType):
                setattr(module, used, _StandIn(vars(module)[used], replaced))
    layers: Any = sys.modules["tf_slim.layers.layers"]
    try:
        there = hasattr(layers.normalization_layers, "BatchNormalization")
    except ImportError:  # what TensorFlow's lazy loader raises under Keras 3
        there = False
    if not there:
        layers.normalization_layers = _NormalizationLayers("normalization_layers")


_mend()


def __getattr__(name: str) -> Any:
    if not name.startswith("__"):
        try:
            return getattr(tf_slim, name)
        except AttributeError:
            pass
        try:
            return import_module(f"tf_slim.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"tf_slim.{name}":
                raise
    raise AttributeError(f"tf_slim has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*dir(tf_slim), "nets"])
