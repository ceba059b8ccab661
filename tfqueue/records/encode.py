"""Features -> the bytes of a tf.train.Example or tf.train.SequenceExample, written straight in the wire
format.

Going through the protobuf classes costs one Python object a number. The wire format of a packed float list is
the little-endian memory of the array with a few lengths in front, so here it is copied as a whole. The
messages are defined in tensorflow/core/example/{example,feature}.proto, the format in
https://protobuf.dev/programming-guides/encoding:

    Example { Features features = 1; }
    Features { map<string, Feature> feature = 1; }
    Feature { oneof kind { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3; } }
    BytesList, FloatList, Int64List { repeated ... value = 1; }
    SequenceExample { Features context = 1; FeatureLists feature_lists = 2; }
    FeatureLists { map<string, FeatureList> feature_list = 1; }
    FeatureList { repeated Feature feature = 1; }
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from tfqueue.errors import InvalidArgument, RecordError
from tfqueue.records.framing import MAX_PAYLOAD
from tfqueue.records.values import (
    DTYPE_SUFFIX,
    FLOAT,
    INT64,
    MANY,
    ONE,
    ROW_LENGTHS_SUFFIX,
    SHAPE_SUFFIX,
    UNSET,
    Array,
    Payload,
    RefusedError,
    as_list,
    encode_text,
    floating,
    integer,
    is_small_float,
    is_small_integer,
    is_storable,
    is_text,
    many,
    raw,
    sequence,
    texts,
    varint,
    varints,
)

Layout: TypeAlias = Literal["bytes", "list"]

_LIST_TAG = {ONE: b"\x0a", MANY: b"\x0a", FLOAT: b"\x12", INT64: b"\x1a"}
_CACHE_SIZE = 4096
_NESTED = {list, tuple, np.ndarray}


class ExampleEncoder:
    """Turns dicts of features into serialized tf.train.Example messages.

    What a value is stored as:

    ==================================  =================================================================
    int, bool                           int64_list of one
    float                               float_list of one, rounded to float32
    bytes, bytearray, memoryview, str   bytes_list of one (str as UTF-8)
    flat list or tuple of these         the list of that kind; an empty one has no kind
    list of lists or of 1-D arrays      the values end to end, and ``<name>/row_lengths`` (int64_list);
                                        tf.io.RaggedFeature reads it
    array or numpy scalar,              its memory (little-endian, row-major) as a bytes_list of one, with
    layout "bytes"                      ``<name>/shape`` (int64_list) and ``<name>/dtype`` (numpy's name);
                                        a scalar that an int64_list or float_list holds exactly stands
                                        there; arrays of str or bytes are a bytes_list of their elements
    array or numpy scalar,              int64_list, float_list or bytes_list of its elements, row-major;
    layout "list"                       shape and dtype are lost
    None                                nothing: the feature is missing from this record
    ==================================  =================================================================

    Args:
        layout: How numpy arrays are stored.
        narrow: Whether float64 may be rounded to float32, and uint64 below 2**63 stored as int64, where a
            list holds nothing else. Python floats are always rounded.

    Raises:
        InvalidArgument: An unknown layout.
    """

    def __init__(self, *, layout: Layout = "bytes", narrow: bool = False) -> None:
        if layout not in ("bytes", "list"):
            raise InvalidArgument(f"layout is {layout!r}; expected 'bytes' or 'list'")
        self._as_bytes = layout == "bytes"
        self._narrow = narrow
        self._heads: dict[tuple[str, int, int], bytes] = {}
        self._sidecars: dict[tuple[str, str | np.dtype[Any], tuple[int, ...]], bytes] = {}

    def encode(self, features: Mapping[str, Any], *, record: int | None = None) -> bytes:
        """Returns the serialized tf.train.Example of ``features``.

        Args:
            features: Feature name -> value; see the class for what a value may be.
            record: The number of the record, for error messages only.

        Raises:
            RecordError: A value cannot be stored; the error names the feature and the record.
        """
        parts, size = self._features(features, record)
        _check_size(size, record)
        return b"".join([b"\x0a", varint(size), *parts])

    def encode_sequence(
        self,
        context: Mapping[str, Any],
        sequences: Mapping[str, Iterable[Any]],
        *,
        record: int | None = None,
    ) -> bytes:
        """Returns the serialized tf.train.SequenceExample.

        Args:
            context: The features of the record as a whole, as for ``encode``.
            sequences: Feature name -> one value a step. Arrays are stored as lists here, whatever the layout.
            record: The number of the record, for error messages only.

        Raises:
            RecordError: A value cannot be stored; the error names the feature and the record.
        """
        parts, size = self._features(context, record)
        lists: list[Payload] = []
        for name, steps in sequences.items():
            encoded: list[Payload] = []
            for step in _checked_steps(steps, name, record):
                try:
                    kind, payload = self._as_list(step)
                except RefusedError as error:
                    raise _refused(error, name, record) from error
                head = _feature_head(kind, len(payload))
                encoded += (b"\x0a", varint(len(head) + len(payload)), head, payload)
            key = _key(name, record)
            size_of_list = sum(map(len, encoded))
            head = key + b"\x12" + varint(size_of_list)
            lists += (b"\x0a", varint(len(head) + size_of_list), head, *encoded)
        size_of_lists = sum(map(len, lists))
        _check_size(size + size_of_lists, record)
        return b"".join([b"\x0a", varint(size), *parts, b"\x12", varint(size_of_lists), *lists])

    def _features(self, features: Mapping[str, Any], record: int | None) -> tuple[list[Payload], int]:
        """Returns the entries of a Features message, in parts, and their size in bytes."""
        parts: list[Payload] = []
        size = 0
        heads = self._heads
        for name, value in features.items():
            kind: int
            payload: Payload
            try:
                # The types of small mixed records first: this loop decides how fast they are.
                value_type = type(value)
                if value_type is int:
                    kind, payload = INT64, integer(value)
                elif value_type is bytes:
                    kind, payload = ONE, value
                elif value_type is float:
                    kind, payload = FLOAT, floating(value)
                elif value_type is str:
                    kind, payload = ONE, encode_text(value)
                elif value is None:
                    continue
                else:
                    kind, payload, extra = self._other(name, value, features)
                    if extra:
                        parts.append(extra)
                        size += len(extra)
            except RefusedError as error:
                raise _refused(error, name, record) from error
            head = heads.get((name, kind, len(payload)))
            if head is None:
                head = self._head(name, kind, len(payload), record)
            parts += (head, payload)
            size += len(head) + len(payload)
        return parts, size

    def _other(self, name: str, value: Any, features: Mapping[str, Any]) -> tuple[int, Payload, bytes]:
        """Returns kind, payload, and the entries that stand beside the feature."""
        if isinstance(value, (np.ndarray, np.generic)):
            _check_unmasked(value)
            if self._as_bytes:
                return self._array_as_bytes(name, value, features)
            return (*as_list(value, narrow=self._narrow), b"")
        if isinstance(value, (list, tuple)):
            kinds = set(map(type, value))
            if kinds & _NESTED and any(not _is_scalar(item) for item in value):
                return self._ragged(name, value, features)
            return (*sequence(value, kinds, narrow=self._narrow), b"")
        if isinstance(value, (bytes, bytearray, memoryview)):
            return ONE, bytes(value), b""
        if isinstance(value, str):
            return ONE, encode_text(value), b""
        if isinstance(value, int):  # bool, IntEnum
            return INT64, integer(int(value)), b""
        if isinstance(value, float):
            return FLOAT, floating(value), b""
        if hasattr(value, "__array__"):  # tensors, and the arrays of other libraries
            return self._other(name, np.asarray(value), features)
        raise RefusedError(f"a value of type {type(value).__name__}; expected a number, bytes, str, array, or a list")

    def _array_as_bytes(
        self, name: str, array: Array | np.generic, features: Mapping[str, Any]
    ) -> tuple[int, Payload, bytes]:
        dtype = array.dtype
        kind: int
        payload: Payload
        text_name = ""
        if is_text(dtype):
            elements, text_name = texts(np.asarray(array))
            kind, payload = many(elements)
        elif not is_storable(dtype):
            raise RefusedError(
                f"an array of dtype {dtype} cannot be stored so that it comes back everywhere; "
                "store its fields, or convert it"
            )
        elif not array.shape and (is_small_float(dtype) or is_small_integer(dtype)):
            kind, payload = as_list(array, narrow=False)
        else:
            kind, payload = ONE, raw(np.asarray(array))
        # Not by dtype.name, which takes longer than all the rest.
        key = (name, text_name or dtype, array.shape)
        sidecar = self._sidecars.get(key)
        if sidecar is None:
            sidecar = self._sidecar(name, text_name or dtype.name, array.shape)
            if len(self._sidecars) >= _CACHE_SIZE:
                self._sidecars.clear()
            self._sidecars[key] = sidecar
        self._check_free(name, features, SHAPE_SUFFIX, DTYPE_SUFFIX)
        return kind, payload, sidecar

    def _sidecar(self, name: str, dtype_name: str, shape: tuple[int, ...]) -> bytes:
        dims = varints(np.array(shape, np.int64))
        text = dtype_name.encode()
        shape_head = self._head(name + SHAPE_SUFFIX, INT64, len(dims), None)
        dtype_head = self._head(name + DTYPE_SUFFIX, ONE, len(text), None)
        return b"".join((shape_head, dims, dtype_head, text))

    def _ragged(self, name: str, rows: Any, features: Mapping[str, Any]) -> tuple[int, Payload, bytes]:
        for row in rows:
            if isinstance(row, np.ndarray) and row.ndim == 1:
                continue
            if not isinstance(row, (list, tuple)) or any(isinstance(item, (list, tuple, np.ndarray)) for item in row):
                raise RefusedError(
                    "a list that is nested unevenly or more than two deep; expected a list of flat lists or "
                    "of 1-D arrays (or one numpy array, if all rows have the same length)"
                )
        arrays = [row for row in rows if isinstance(row, np.ndarray)]
        if len(arrays) == len(rows):
            kind, payload = as_list(np.concatenate(arrays), narrow=self._narrow)
        else:
            kind, payload = self._flat([item for row in rows for item in row])
        lengths = varints(np.array([len(row) for row in rows], np.int64))
        self._check_free(name, features, ROW_LENGTHS_SUFFIX)
        return kind, payload, self._head(name + ROW_LENGTHS_SUFFIX, INT64, len(lengths), None) + lengths

    def _flat(self, values: Sequence[Any]) -> tuple[int, Payload]:
        return sequence(values, set(map(type, values)), narrow=self._narrow)

    def _as_list(self, value: Any) -> tuple[int, Payload]:
        """Returns one step of a sequence."""
        if isinstance(value, (np.ndarray, np.generic)):
            _check_unmasked(value)
            return as_list(np.asarray(value), narrow=self._narrow)
        if isinstance(value, (list, tuple)):
            return self._flat(value)
        if value is None:
            return UNSET, b""
        kind, payload, extra = self._other("", value, {})
        return (kind, payload) if not extra else as_list(np.asarray(value), narrow=self._narrow)

    def _check_free(self, name: str, features: Mapping[str, Any], *suffixes: str) -> None:
        for suffix in suffixes:
            if name + suffix in features:
                raise RefusedError(f"{name + suffix!r} is a feature of its own, but tfqueue writes it beside {name!r}")

    def _head(self, name: str, kind: int, size: int, record: int | None) -> bytes:
        """Returns everything of a map entry that stands before a payload of ``size`` bytes."""
        feature = _feature_head(kind, size)
        entry = _key(name, record) + b"\x12" + varint(len(feature) + size) + feature
        head = b"\x0a" + varint(len(entry) + size) + entry
        if len(self._heads) >= _CACHE_SIZE:
            self._heads.clear()
        self._heads[name, kind, size] = head
        return head


def encode_example(features: Mapping[str, Any], *, layout: Layout = "bytes", narrow: bool = False) -> bytes:
    """Returns the serialized tf.train.Example of ``features``; see ``ExampleEncoder``."""
    return ExampleEncoder(layout=layout, narrow=narrow).encode(features)


def _key(name: Any, record: int | None) -> bytes:
    if not isinstance(name, str):
        raise RecordError(f"a feature name is {name!r}; expected a str", record=record)
    try:
        text = name.encode()
    except UnicodeEncodeError:
        raise RecordError(f"the feature name {name!r} is not valid Unicode", record=record) from None
    return b"\x0a" + varint(len(text)) + text


def _feature_head(kind: int, size: int) -> bytes:
    """Returns everything of a Feature that stands before a payload of ``size`` bytes."""
    if kind == UNSET:
        return b""
    # A packed list without values is left out altogether, as protobuf does; one empty string is still a
    # value.
    inner = b"" if kind == MANY or (size == 0 and kind != ONE) else b"\x0a" + varint(size)
    return _LIST_TAG[kind] + varint(len(inner) + size) + inner


def _check_size(size: int, record: int | None) -> None:
    # Before the record is put together, which would take as much memory again.
    if size > MAX_PAYLOAD - 16:
        where = "the record" if record is None else f"record {record}"
        words = "a protobuf message holds at most 2 GB, so divide it into several records"
        raise RecordError(f"{where} would have {size} bytes; {words}", record=record)


def _check_unmasked(array: Array | np.generic) -> None:
    if isinstance(array, np.ma.MaskedArray):
        raise RefusedError("a masked array, whose mask would be lost; store .filled(...), and the mask beside it")


def _is_scalar(item: Any) -> bool:
    return isinstance(item, np.ndarray) and item.ndim == 0


def _checked_steps(steps: Any, name: str, record: int | None) -> Iterable[Any]:
    if isinstance(steps, (str, bytes, bytearray, memoryview)) or not isinstance(steps, Iterable):
        raise _refused(
            RefusedError(f"a sequence of type {type(steps).__name__}; expected one value a step"),
            name,
            record,
        )
    return steps


def _refused(error: RefusedError, name: Any, record: int | None) -> RecordError:
    where = f"feature {name!r}" + ("" if record is None else f" of record {record}")
    return RecordError(f"{where}: {error}", record=record, feature=name if isinstance(name, str) else None)
