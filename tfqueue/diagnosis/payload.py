"""What a serialized record holds, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from google.protobuf.message import DecodeError


@dataclass(frozen=True, slots=True)
class Stored:
    """One stored feature: its kind, how many values it has, and the first value of a bytes list."""

    kind: str
    count: int
    where: str = "example"
    first: bytes | None = None

    @property
    def tensorflow_type(self) -> str | None:
        """The dtype to ask for."""
        kind = self.kind.removeprefix("list of ")
        return {"bytes": "tf.string", "float": "tf.float32", "int64": "tf.int64"}.get(kind)

    def __str__(self) -> str:
        return f"{self.kind}, {self.count} {'value' if self.count == 1 else 'values'}"


def stored_features(payload: bytes) -> dict[str, Stored]:
    """The features of a serialized Example or SequenceExample by key; empty when it is neither."""
    try:
        message = tf.train.SequenceExample.FromString(payload)  # an Example is one without feature lists
    except DecodeError:
        return {}
    found = {key: _stored(feature, "example") for key, feature in message.context.feature.items()}
    for key, features in message.feature_lists.feature_list.items():
        kind = _stored(features.feature[0], "feature_list").kind if features.feature else "empty"
        found[key] = Stored(f"list of {kind}", len(features.feature), "feature_list")
    return found


def _stored(feature: Any, where: str) -> Stored:
    name = feature.WhichOneof("kind")
    if name is None:
        return Stored("empty", 0, where)
    values = getattr(feature, name).value
    first = bytes(values[0]) if name == "bytes_list" and values else None
    return Stored(name.removesuffix("_list"), len(values), where, first)
