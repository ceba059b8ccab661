"""What is in records: the features, their kinds, lengths, ranges and likely meaning, and the spec that parses them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tfqueue.errors import InvalidArgument, RecordError
from tfqueue.records.decode import Feature, MalformedError, features, parse
from tfqueue.records.meaning import BytesMeaning
from tfqueue.records.paths import Paths, expand
from tfqueue.records.progress import bar
from tfqueue.records.scan import frames
from tfqueue.records.values import DTYPE_SUFFIX, ROW_LENGTHS_SUFFIX, SHAPE_SUFFIX, Array

if TYPE_CHECKING:
    pass

DECODABLE: Final = frozenset(
    {
        "bool",
        "uint8",
        "uint16",
        "int8",
        "int16",
        "int32",
        "int64",
        "bfloat16",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    }
)
"""The dtypes that tf.io.decode_raw takes."""
_TF_DTYPES: Final = {"bytes": "string", "float": "float32", "int64": "int64"}


@dataclass(frozen=True, slots=True)
class FeatureSchema:
    """What is known of one feature.

    Attributes:
        name: Its name.
        kind: "bytes", "float" or "int64", the list that it is stored in; "none" if it never has a value; "mixed" if
            it differs from record to record.
        present: In how many of the records it is.
        min_length: The least number of values (of a sequence: in a step).
        max_length: The largest number of values.
        low: The least finite value, or the least number of bytes of a value; None if there is none.
        high: The largest.
        meaning: What it probably is, in words.
        dtype: The dtype of the array it was made of, if it was written with layout "bytes"; "mixed" if that differs.
        shape: The shape of this array, None in the place of a dimension that differs; None if the number of
            dimensions differs or there is no array.
        ragged: Whether ``<name>/row_lengths`` says how the values are divided into rows.
        max_steps: The largest number of steps of a sequence; None if it is none.
    """

    name: str
    kind: str
    present: int
    min_length: int
    max_length: int
    low: float | int | None
    high: float | int | None
    meaning: str
    dtype: str | None = None
    shape: tuple[int | None, ...] | None = None
    ragged: bool = False
    max_steps: int | None = None


@dataclass(frozen=True, slots=True)
class SpecEntry:
    """One line of a parse spec.

    Attributes:
        kind: "FixedLenFeature", "VarLenFeature", "RaggedFeature", "FixedLenSequenceFeature".
        dtype: "string", "float32" or "int64".
        shape: For the fixed ones.
    """

    kind: str
    dtype: str
    shape: tuple[int, ...] = ()

    def source(self, name: str) -> str:
        """Returns the entry as Python code."""
        dtype = f"tf.{self.dtype}"
        if self.kind == "VarLenFeature":
            return f"tf.io.VarLenFeature({dtype})"
        if self.kind == "RaggedFeature":
            lengths = f"tf.io.RaggedFeature.RowLengths({name + ROW_LENGTHS_SUFFIX!r})"
            return f"tf.io.RaggedFeature({dtype}, {name!r}, [{lengths}])"
        return f"tf.io.{self.kind}({list(self.shape)}, {dtype})"

    def feature(self, name: str) -> Any:
        """Returns the entry as TensorFlow takes it."""
        import tensorflow as tf

        dtype = getattr(tf, self.dtype)
        if self.kind == "VarLenFeature":
            return tf.io.VarLenFeature(dtype)
        if self.kind == "RaggedFeature":
            return tf.io.RaggedFeature(dtype, name, [tf.io.RaggedFeature.RowLengths(name + ROW_LENGTHS_SUFFIX)])
        return getattr(tf.io, self.kind)(list(self.shape), dtype)


@dataclass(frozen=True, slots=True)
class Schema:
    """What is in records.

    Attributes:
        records: How many records were looked at.
        features: The features of a tf.train.Example, or the context of a SequenceExample, sorted by name.
        sequences: The feature lists of a SequenceExample.
    """

    records: int
    features: tuple[FeatureSchema, ...]
    sequences: tuple[FeatureSchema, ...] = ()

    def feature(self, name: str) -> FeatureSchema:
        """Returns what is known of a feature; raises KeyError if there is none of this name."""
        for feature in (*self.features, *self.sequences):
            if feature.name == name:
                return feature
        raise KeyError(name)

    def parse_spec(self) -> dict[str, Any]:
        """Returns the spec that tf.io.parse_single_example needs for these records.

        A feature with the same number of values in all records is a FixedLenFeature (a scalar if that is one), any
        other a VarLenFeature or, with row lengths, a RaggedFeature. An array written with layout "bytes" is its
        memory, to be decoded with tf.io.decode_raw; ``RecordReader.dataset`` does that.

        Raises:
            RecordError: A feature is stored in lists of different kinds, which no spec reads.
        """
        return {name: entry.feature(name) for name, entry in self.entries().items()}

    def sequence_spec(self) -> dict[str, Any]:
        """Returns the ``sequence_features`` for tf.io.parse_single_sequence_example."""
        return {name: entry.feature(name) for name, entry in self.sequence_entries().items()}

    def spec_source(self) -> str:
        """Returns the spec as Python code to paste."""
        lines = ["spec = {", *_lines(self.entries()), "}"]
        if self.sequences:
            lines += ["sequence_spec = {", *_lines(self.sequence_entries()), "}"]
        for feature in self.features:
            if feature.dtype not in (None, "mixed", "str", "bytes") and feature.kind == "bytes":
                lines.append(_decoding(feature))
        return "\n".join(lines)

    def entries(self) -> dict[str, SpecEntry]:
        """Returns the spec of the features in a form without TensorFlow."""
        return {
            name: entry
            for feature in self.features
            if feature.kind != "none"
            for name, entry in _entries_of(feature, self.records).items()
        }

    def sequence_entries(self) -> dict[str, SpecEntry]:
        """Returns the spec of the sequences in a form without TensorFlow."""
        entries = {}
        for feature in self.sequences:
            dtype = _tf_dtype(feature)
            if feature.min_length == feature.max_length and feature.present == self.records:
                shape = () if feature.max_length == 1 else (feature.max_length,)
                entries[feature.name] = SpecEntry("FixedLenSequenceFeature", dtype, shape)
            else:
                entries[feature.name] = SpecEntry("VarLenFeature", dtype)
        return entries

    def to_dict(self) -> dict[str, Any]:
        """Returns the same as a dict of numbers, str and lists, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        rows = [("feature", "kind", "values", "range", "missing", "meaning")]
        rows += [_row(feature, self.records) for feature in (*self.features, *self.sequences)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([f"{self.records} records", *lines])


def describe(
    paths: Paths, *, records: int | None = None, compression: str | None = "auto", progress: bool | None = None
) -> Schema:
    """Looks into records and says what is in them.

    Args:
        paths: One path, a pattern, or a list.
        records: How many records to look at; None for all.
        compression: As for ``read``.
        progress: True or False to show a progress bar or not; None shows it on a terminal.

    Raises:
        InvalidArgument: ``records`` is no positive int.
        RecordError: A file does not exist, or a record is no tf.train.Example.
        DamagedRecord: A file is damaged within the records looked at.
    """
    if records is not None and (isinstance(records, bool) or not isinstance(records, int) or records < 1):
        raise InvalidArgument(f"records is {records!r}; expected a positive int or None")
    builder = SchemaBuilder()
    names = expand(paths)
    with bar("describing", records, progress=progress) as advance:
        for name in names:
            for index, offset, payload in frames(name, compression=compression):
                try:
                    builder.add(payload)
                except MalformedError as error:
                    raise RecordError(
                        f"{name!r}, record {index}, byte {offset}: the record is no tf.train.Example: {error}",
                        file=name,
                        record=index,
                        offset=offset,
                    ) from error
                advance(1)
                # Not one record further, which may be damaged.
                if builder.records == records:
                    return builder.schema()
    return builder.schema()


class SchemaBuilder:
    """Collects what is in records, one after the other."""

    def __init__(self) -> None:
        self.records = 0
        self._columns: dict[str, _Column] = {}
        self._sequences: dict[str, _Column] = {}

    def add(self, payload: bytes) -> None:
        """Looks at a serialized record; raises MalformedError if it is none."""
        message = parse(payload)
        restored = features(message)
        context = message.context
        numbers = {
            name: int(feature[0])
            for name, feature in context.items()
            if isinstance(feature, np.ndarray) and feature.dtype == np.int64 and len(feature) == 1
        }
        for name in context.keys() & restored.keys():
            column = self._columns.setdefault(name, _Column())
            column.add(context[name], numbers)
            column.present += 1
            if name + SHAPE_SUFFIX in context and name + SHAPE_SUFFIX not in restored:
                dtype_name = context[name + DTYPE_SUFFIX]
                assert isinstance(dtype_name, list)
                column.add_array(restored[name], dtype_name[0].decode())
            elif name + ROW_LENGTHS_SUFFIX in context and name + ROW_LENGTHS_SUFFIX not in restored:
                column.ragged = True
        for name, steps in (message.sequences or {}).items():
            column = self._sequences.setdefault(name, _Column())
            column.present += 1
            column.max_steps = max(column.max_steps or 0, len(steps))
            for step in steps:
                column.add(step, {})
        self.records += 1

    def schema(self) -> Schema:
        """Returns what was found."""
        return Schema(self.records, _sorted(self._columns), _sorted(self._sequences))


class _Column:
    """Collects the values of one feature."""

    def __init__(self) -> None:
        self.present = 0
        self.ragged = False
        self.max_steps: int | None = None
        self._arrays = 0
        self._not_finite = False
        self._kinds: set[str] = set()
        self._lengths: tuple[int | float, int | float] | None = None
        self._range: tuple[float | int, float | int] | None = None
        self._dtypes: set[str] = set()
        self._shape: tuple[int | None, ...] | None = None
        self._meaning = BytesMeaning()

    def add(self, feature: Feature, numbers: dict[str, int]) -> None:
        length = 0 if feature is None else len(feature)
        self._lengths = _wider(self._lengths, length, length)
        if feature is None:
            return
        if isinstance(feature, list):
            self._kinds.add("bytes")
            for value in feature:
                self._range = _wider(self._range, len(value), len(value))
                self._meaning.add(value, numbers)
            return
        self._kinds.add("float" if feature.dtype == np.float32 else "int64")
        if feature.dtype == np.float32:
            finite = np.isfinite(feature)
            if not finite.all():
                self._not_finite = True
                feature = feature[finite]
        if feature.size:
            self._range = _wider(self._range, feature.min().item(), feature.max().item())

    def add_array(self, array: Array, dtype: str) -> None:
        # Texts differ in the length that numpy gives their dtype; for a spec they are all strings.
        self._dtypes.add({"<U": "str", "|S": "bytes"}.get(dtype[:2], dtype))
        if not self._arrays:
            self._shape = array.shape
        elif self._shape is not None and len(self._shape) == array.ndim:
            self._shape = tuple(old if old == new else None for old, new in zip(self._shape, array.shape, strict=True))
        else:
            self._shape = None
        self._arrays += 1

    def schema(self, name: str) -> FeatureSchema:
        kind = "mixed" if len(self._kinds) > 1 else next(iter(self._kinds), "none")
        low, high = self._range or (None, None)
        shortest, longest = self._lengths or (0, 0)
        dtype = None
        meaning = self._meaning.words() if kind == "bytes" else ""
        if self._arrays:
            # Only an array in each record makes it a feature of arrays.
            whole = len(self._dtypes) == 1 and self._arrays == self.present
            dtype = next(iter(self._dtypes)) if whole else "mixed"
            shape = "?" if self._shape is None else str(["?" if dim is None else dim for dim in self._shape])
            meaning = f"{dtype} array {shape}".replace("'", "")
        elif self.ragged:
            meaning = "ragged rows"
        if self._not_finite:
            meaning = f"{meaning}, not all finite".removeprefix(", ")
        return FeatureSchema(
            name=name,
            kind=kind,
            present=self.present,
            min_length=int(shortest),
            max_length=int(longest),
            low=low,
            high=high,
            meaning=meaning,
            dtype=dtype,
            shape=self._shape if self._arrays else None,
            ragged=self.ragged,
            max_steps=self.max_steps,
        )


def _sorted(columns: dict[str, _Column]) -> tuple[FeatureSchema, ...]:
    return tuple(columns[name].schema(name) for name in sorted(columns))


def _wider(known: tuple[Any, Any] | None, low: float | int, high: float | int) -> tuple[float | int, float | int]:
    return (low, high) if known is None else (min(known[0], low), max(known[1], high))


def _tf_dtype(feature: FeatureSchema) -> str:
    if feature.kind == "mixed":
        raise RecordError(
            f"feature {feature.name!r} is stored in lists of different kinds, which no spec reads", feature=feature.name
        )
    return _TF_DTYPES.get(feature.kind, "float32")


def _entries_of(feature: FeatureSchema, records: int) -> dict[str, SpecEntry]:
    dtype = _tf_dtype(feature)
    if feature.ragged:
        return {feature.name: SpecEntry("RaggedFeature", dtype)}
    fixed = feature.present == records and feature.min_length == feature.max_length
    if not fixed:
        entries = {feature.name: SpecEntry("VarLenFeature", dtype)}
    else:
        shape = () if feature.max_length == 1 else (feature.max_length,)
        entries = {feature.name: SpecEntry("FixedLenFeature", dtype, shape)}
    if feature.dtype is not None and (feature.shape is None or None in feature.shape):
        # Where the shape differs it must be read with the array.
        dims = None if feature.shape is None or feature.present != records else len(feature.shape)
        name = feature.name + SHAPE_SUFFIX
        entries[name] = (
            SpecEntry("VarLenFeature", "int64") if dims is None else SpecEntry("FixedLenFeature", "int64", (dims,))
        )
    return entries


def _lines(entries: dict[str, SpecEntry]) -> Iterable[str]:
    return [f"    {name!r}: {entry.source(name)}," for name, entry in entries.items()]


def _decoding(feature: FeatureSchema) -> str:
    name = feature.name
    if feature.dtype not in DECODABLE:
        return f"# features[{name!r}] is the memory of {feature.dtype} values; RecordReader(paths).dataset() decodes it"
    dims = feature.shape
    shape = f"features[{name + SHAPE_SUFFIX!r}]" if dims is None or None in dims else str(list(dims))
    return f"# features[{name!r}] = tf.reshape(tf.io.decode_raw(features[{name!r}], tf.{feature.dtype}), {shape})"


def _row(feature: FeatureSchema, records: int) -> tuple[str, str, str, str, str, str]:
    low, high = feature.min_length, feature.max_length
    values = str(low) if low == high else f"{low} to {high}"
    if feature.max_steps is not None:
        values = f"{values} in each of up to {feature.max_steps} steps"
    spread = ""
    if feature.low is not None and feature.high is not None:
        spread = f"{feature.low:g}" if feature.low == feature.high else f"{feature.low:g} to {feature.high:g}"
        spread += " bytes" if feature.kind == "bytes" else ""
    missing = f"{1 - feature.present / records:.1%}" if feature.present < records else ""
    return feature.name, feature.kind, values, spread, missing, feature.meaning
