"""Advice on records: features that are missing, or of another type or length than was asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from tfqueue.diagnosis.evidence import Evidence
from tfqueue.diagnosis.paths import most_similar
from tfqueue.diagnosis.payload import Stored, stored_features
from tfqueue.topology.model import ParseSpec

Match = re.Match[str]


def _stored(evidence: Evidence) -> dict[str, Stored]:
    return stored_features(evidence.place.payload) if evidence.place.payload is not None else {}


def _listing(stored: dict[str, Stored]) -> str:
    shown = [f"{name} ({feature})" for name, feature in sorted(stored.items())]
    return ", ".join(shown[:8]) + (f" and {len(shown) - 8} more" if len(shown) > 8 else "")


def missing_feature(match: Match, evidence: Evidence) -> str:
    key, stored = match.group(1), _stored(evidence)
    if evidence.place.payload == b"":
        return "the record is empty: leave it out, or look at what wrote it"
    if not stored:
        return f"the record has no feature {key!r}; look into the file with tfqueue.records.read"
    found = stored.get(key)
    if found is not None and found.where == "feature_list":
        return (
            f"the record is a SequenceExample, and {key!r} is one of its feature lists ({found}): parse it with "
            f"parse_single_sequence_example(..., sequence_features={{{key!r}: ...}})"
        )
    if found is not None:
        return (
            f"the record has {key!r}, but with no value in it: give the feature a default_value, or use "
            f"VarLenFeature (the record has {_listing(stored)})"
        )
    similar = most_similar(key, stored)
    suggestion = f": did you mean {similar!r}?" if similar is not None else ""
    return f"the record has {_listing(stored)}; you asked for {key!r}{suggestion}"


def missing_list(match: Match, evidence: Evidence) -> str:
    key, stored = match.group(1), _stored(evidence)
    if stored and not any(feature.where == "feature_list" for feature in stored.values()):
        return (
            f"the record is a plain Example without feature lists ({_listing(stored)}): parse it with "
            f"parse_single_example, or write SequenceExamples"
        )
    if key in stored:
        return (
            f"{key!r} is a feature of the context, no feature list ({_listing(stored)}): ask for it in context_features"
        )
    return missing_feature(match, evidence)


def feature_type(match: Match, evidence: Evidence) -> str:
    key = match.group(1)
    stored = _stored(evidence).get(key)
    kinds = {"int64": "tf.int64", "float": "tf.float32", "string": "tf.string"}
    found = kinds.get(match.group(2), match.group(2)) if match.lastindex and match.lastindex >= 2 else None
    detail = f"{key} is stored as {stored}" if stored else f"{key} is stored with another type"
    if found is None and stored is not None:
        found = stored.tensorflow_type
    return f"{detail}: ask for {found or 'the stored type'}, and tf.cast afterwards if needed"


def feature_length(match: Match, evidence: Evidence) -> str:
    key = match.group(1)
    stored = _stored(evidence).get(key)
    wanted = next((f.shape for spec in _specs(evidence) for f in spec.features if f.key == key), None)
    kind = "FixedLenFeature" if stored is None or stored.where != "feature_list" else "FixedLenSequenceFeature"
    asked = f"{kind} of shape {list(wanted)}" if wanted is not None else "a fixed length"
    if wanted is not None:
        asked += f" ({int(np.prod([d or 1 for d in wanted]))} values)"
    if stored is not None and stored.where == "feature_list":
        return (
            f"{key} is stored as {stored}, and its entries have not the length that was asked for ({asked}): ask for "
            f"the stored length, or use VarLenFeature if it varies"
        )
    if stored is None:
        return f"the length of {key!r} differs from what was asked ({asked}); use VarLenFeature if it varies"
    if stored.count == 0:
        return f"{key} is stored empty, {asked} was asked: give a default_value, or use VarLenFeature"
    return (
        f"{key} is stored as {stored}, {asked} was asked: ask for [{stored.count}], or use "
        f"VarLenFeature or FixedLenSequenceFeature(allow_missing=True) if the length varies"
    )


def _specs(evidence: Evidence) -> Iterator[ParseSpec]:
    if evidence.topology is not None:
        for transform in evidence.topology.transforms:
            yield from transform.parses


def not_an_example(match: Match, evidence: Evidence) -> str:
    return (
        "the record is no tf.train.Example: were raw bytes, text or another message written? "
        "Read them with tf.io.decode_raw or their own parser instead of parse_single_example"
    )
