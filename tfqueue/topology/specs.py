"""What parse and decode ops ask of a record, read from the ops' attributes and constant inputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tfqueue.topology.model import Decode, Feature, ParseSpec
from tfqueue.topology.subgraph import attribute, constant_values, shape_of, text

PARSE_TYPES = frozenset(
    {
        "ParseExample",
        "ParseExampleV2",
        "ParseSingleExample",
        "ParseSequenceExample",
        "ParseSequenceExampleV2",
        "ParseSingleSequenceExample",
        "DecodeCSV",
    }
)
DECODE_TYPES = frozenset(
    {
        "DecodeRaw",
        "DecodePaddedRaw",
        "DecodeJpeg",
        "DecodeAndCropJpeg",
        "DecodePng",
        "DecodeGif",
        "DecodeBmp",
        "DecodeImage",
        "DecodeWav",
        "DecodeCompressed",
        "DecodeBase64",
        "DecodeProtoV2",
        "ParseTensor",
        "DecodeJSONExample",
    }
)
_DECODE_OPTIONS = (
    "out_type",
    "little_endian",
    "channels",
    "dtype",
    "ratio",
    "fancy_upscaling",
    "try_recover_truncated",
    "acceptable_fraction",
    "dct_method",
    "expand_animations",
    "desired_channels",
    "desired_samples",
    "compression_type",
)


def read_parse_spec(op: Any, source: str | None) -> ParseSpec:
    """The parse spec of an op whose type is one of ``PARSE_TYPES``."""
    kind = "csv" if op.type == "DecodeCSV" else "sequence_example" if "Sequence" in op.type else "example"
    reader = {
        "ParseExample": _example_v1,
        "ParseExampleV2": _example_v2,
        "ParseSingleExample": _single_example,
        "ParseSequenceExample": _sequence_example,
        "ParseSequenceExampleV2": _sequence_example_v2,
        "ParseSingleSequenceExample": _single_sequence_example,
        "DecodeCSV": _csv,
    }[op.type]
    rank = op.inputs[0].shape.rank
    options: tuple[tuple[str, object], ...] = ()
    if kind == "csv":
        names = ("field_delim", "use_quote_delim", "na_value", "select_cols")
        options = tuple((name, _plain(attribute(op, name))) for name in names)
    return ParseSpec(
        op=op.name,
        op_type=op.type,
        kind=kind,
        features=tuple(reader(op)),
        serialized=op.inputs[0].name,
        batched=None if rank is None else rank > 0,
        options=options,
        source=source,
    )


def read_decode(op: Any, source: str | None) -> Decode:
    """The settings of an op whose type is one of ``DECODE_TYPES``."""
    found = ((name, _plain(attribute(op, name))) for name in _DECODE_OPTIONS)
    return Decode(op.name, op.type, tuple((name, value) for name, value in found if value is not None), source)


def _example_v2(op: Any) -> Iterator[Feature]:
    sparse, dense, ragged = (_keys(op.inputs[index]) for index in (2, 3, 4))
    yield from _ragged(ragged, attribute(op, "ragged_value_types", []), "example")
    yield from _sparse(sparse, attribute(op, "sparse_types", []), "example")
    yield from _dense(
        dense,
        attribute(op, "Tdense", []),
        attribute(op, "dense_shapes", []),
        list(op.inputs)[5:],
        "example",
    )


def _example_v1(op: Any) -> Iterator[Feature]:
    inputs = list(op.inputs)
    sparse_count, dense_count = attribute(op, "Nsparse", 0), attribute(op, "Ndense", 0)
    sparse = [_keys(tensor)[0] for tensor in inputs[2 : 2 + sparse_count]]
    first_default = 2 + sparse_count + dense_count
    dense = [_keys(tensor)[0] for tensor in inputs[2 + sparse_count : first_default]]
    yield from _sparse(sparse, attribute(op, "sparse_types", []), "example")
    yield from _dense(
        dense,
        attribute(op, "Tdense", []),
        attribute(op, "dense_shapes", []),
        inputs[first_default:],
        "example",
    )


def _single_example(op: Any) -> Iterator[Feature]:
    yield from _sparse(attribute(op, "sparse_keys", []), attribute(op, "sparse_types", []), "example")
    yield from _dense(
        attribute(op, "dense_keys", []),
        attribute(op, "Tdense", []),
        attribute(op, "dense_shapes", []),
        list(op.inputs)[1:],
        "example",
    )


def _sequence_example_v2(op: Any) -> Iterator[Feature]:
    context_sparse, context_dense, context_ragged, list_sparse, list_dense, list_ragged = (
        _keys(op.inputs[index]) for index in range(2, 8)
    )
    # Input 8 says of each dense feature list whether a missing one counts as empty.
    allowed = list(constant_values(op.inputs[8]) or ())
    yield from _ragged(context_ragged, attribute(op, "context_ragged_value_types", []), "context")
    yield from _sparse(context_sparse, attribute(op, "context_sparse_types", []), "context")
    yield from _context_dense(op, context_dense, list(op.inputs)[9:])
    yield from _ragged(list_ragged, attribute(op, "feature_list_ragged_value_types", []), "feature_list")
    yield from _sparse(list_sparse, attribute(op, "feature_list_sparse_types", []), "feature_list")
    optional = {key for key, missing_is_empty in zip(list_dense, allowed, strict=False) if missing_is_empty}
    yield from _list_dense(op, list_dense, optional)


def _sequence_example(op: Any) -> Iterator[Feature]:
    yield from _sequence_by_attributes(op, list(op.inputs)[2:])


def _single_sequence_example(op: Any) -> Iterator[Feature]:
    counts = [
        attribute(op, name, 0)
        for name in ("Ncontext_sparse", "Ncontext_dense", "Nfeature_list_sparse", "Nfeature_list_dense")
    ]
    inputs = list(op.inputs)
    optional = set(_keys(inputs[1]))
    groups: list[list[str]] = []
    at = 2
    for count in counts:
        groups.append([_keys(tensor)[0] for tensor in inputs[at : at + count]])
        at += count
    context_sparse, context_dense, list_sparse, list_dense = groups
    yield from _sparse(context_sparse, attribute(op, "context_sparse_types", []), "context")
    yield from _context_dense(op, context_dense, inputs[at:])
    yield from _sparse(list_sparse, attribute(op, "feature_list_sparse_types", []), "feature_list")
    yield from _list_dense(op, list_dense, optional)


def _sequence_by_attributes(op: Any, defaults: list[Any]) -> Iterator[Feature]:
    optional = {text(key) for key in attribute(op, "feature_list_dense_missing_assumed_empty", [])}
    context_sparse, context_dense, list_sparse, list_dense = (
        [text(key) for key in attribute(op, name, [])]
        for name in (
            "context_sparse_keys",
            "context_dense_keys",
            "feature_list_sparse_keys",
            "feature_list_dense_keys",
        )
    )
    yield from _sparse(context_sparse, attribute(op, "context_sparse_types", []), "context")
    yield from _context_dense(op, context_dense, defaults)
    yield from _sparse(list_sparse, attribute(op, "feature_list_sparse_types", []), "feature_list")
    yield from _list_dense(op, list_dense, optional)


def _context_dense(op: Any, keys: list[str], defaults: list[Any]) -> Iterator[Feature]:
    shapes = attribute(op, "context_dense_shapes", [])
    return _dense(keys, attribute(op, "Tcontext_dense", []), shapes, defaults, "context")


def _list_dense(op: Any, keys: list[str], optional: set[str]) -> Iterator[Feature]:
    types = attribute(op, "feature_list_dense_types", [])
    shapes = attribute(op, "feature_list_dense_shapes", [])
    for key, dtype, shape in zip(keys, types, shapes, strict=False):
        yield Feature(
            key=key,
            kind="fixed_sequence",
            dtype=tf.as_dtype(dtype).name,
            shape=shape_of(shape),
            required=key not in optional,
            where="feature_list",
        )


def _csv(op: Any) -> Iterator[Feature]:
    columns = attribute(op, "select_cols", []) or range(len(op.outputs))
    defaults = list(op.inputs)[1:]
    types = attribute(op, "OUT_TYPE", [])
    for column, dtype, default in zip(columns, types, defaults, strict=False):
        values = constant_values(default)
        yield Feature(
            key=str(column),
            kind="column",
            dtype=tf.as_dtype(dtype).name,
            shape=(),
            # An empty default marks a column that every line must have.
            required=default.shape.num_elements() == 0,
            default=values or None,
            where="line",
        )


def _dense(keys: list[Any], types: list[Any], shapes: list[Any], defaults: list[Any], where: str) -> Iterator[Feature]:
    for index, (key, dtype, raw_shape) in enumerate(zip(keys, types, shapes, strict=False)):
        shape = shape_of(raw_shape)
        default = defaults[index] if index < len(defaults) else None
        sequence = bool(shape) and shape is not None and shape[0] is None
        empty = default is None or default.shape.num_elements() == 0
        yield Feature(
            key=text(key),
            kind="fixed_sequence" if sequence else "fixed",
            dtype=tf.as_dtype(dtype).name,
            # The op counts the open first dimension, FixedLenSequenceFeature does not.
            shape=shape[1:] if sequence and shape is not None else shape,
            # Of a sequence the default is only the value to pad with: a missing one is empty.
            required=empty and not sequence,
            default=None if empty or default is None else constant_values(default),
            where=where,
        )


def _sparse(keys: list[Any], types: list[Any], where: str) -> Iterator[Feature]:
    for key, dtype in zip(keys, types, strict=False):
        yield Feature(text(key), "var", tf.as_dtype(dtype).name, None, required=False, where=where)


def _ragged(keys: list[Any], types: list[Any], where: str) -> Iterator[Feature]:
    for key, dtype in zip(keys, types, strict=False):
        yield Feature(text(key), "ragged", tf.as_dtype(dtype).name, None, required=False, where=where)


def _keys(tensor: Any) -> list[str]:
    values = constant_values(tensor)
    if values is None:
        return ["?"] * (tensor.shape.num_elements() or 1)
    return [str(value) for value in values]


def _plain(value: Any) -> object:
    """An attribute as a plain value: dtypes by name, bytes as text."""
    if isinstance(value, tf.DType):
        return value.name
    if isinstance(value, bytes):
        return text(value)
    if isinstance(value, list):
        return tuple(_plain(item) for item in value)
    if isinstance(value, float):
        # Stored as a 32-bit float in the graph; its shortest form is what the user wrote.
        return float(f"{value:.7g}")
    return value
