"""What is written is what protobuf would have written; what cannot be stored is refused by name."""

from __future__ import annotations

import enum
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tfqueue.errors import RecordError
from tfqueue.records.encode import ExampleEncoder, encode_example
from tfqueue.records.reader import decode

INT64 = st.integers(-(2**63), 2**63 - 1)
FLOAT = st.floats(width=32, allow_nan=False)
BYTES = st.binary(max_size=300)
TEXT = st.text(max_size=20)
NAMES = st.text(max_size=12)
FEW = settings(deadline=None, max_examples=150)

VALUES = st.one_of(
    INT64,
    st.booleans(),
    FLOAT,
    BYTES,
    TEXT,
    st.lists(INT64, max_size=200),
    st.lists(FLOAT, max_size=200),
    st.lists(BYTES, max_size=5),
    st.lists(TEXT, max_size=5),
)


def as_feature(value: Any) -> tf.train.Feature:
    values = value if isinstance(value, list) else [value]
    if not values:
        return tf.train.Feature()
    if isinstance(values[0], (bytes, str)):
        encoded = [item.encode() if isinstance(item, str) else item for item in values]
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=encoded))
    if isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=list(map(int, values))))


def as_example(features: dict[str, Any]) -> tf.train.Example:
    return tf.train.Example(
        features=tf.train.Features(feature={name: as_feature(value) for name, value in features.items()})
    )


@FEW
@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_protobuf_reads_what_was_meant(features: dict[str, Any]) -> None:
    encoded = encode_example(features)
    expected = as_example(features)
    assert tf.train.Example.FromString(encoded) == expected
    # Not only equal in meaning: no byte more than protobuf needs.
    assert len(encoded) == len(expected.SerializeToString())


@FEW
@given(
    st.dictionaries(NAMES, VALUES, max_size=4),
    st.dictionaries(NAMES, st.lists(st.one_of(VALUES), max_size=4), max_size=3),
)
def test_protobuf_reads_sequence_examples(context: dict[str, Any], sequences: dict[str, Any]) -> None:
    encoded = ExampleEncoder().encode_sequence(context, sequences)
    expected = tf.train.SequenceExample(
        context=as_example(context).features,
        feature_lists=tf.train.FeatureLists(
            feature_list={
                name: tf.train.FeatureList(feature=[as_feature(step) for step in steps])
                for name, steps in sequences.items()
            }
        ),
    )
    assert tf.train.SequenceExample.FromString(encoded) == expected


@FEW
@given(hnp.arrays(np.int64, st.integers(0, 300), elements=INT64))
def test_integers(values: np.ndarray) -> None:
    example = tf.train.Example.FromString(encode_example({"x": values}, layout="list"))
    assert example == as_example({"x": values.tolist()}) or not values.size
    assert list(example.features.feature["x"].int64_list.value) == values.tolist()


def test_every_length_of_a_varint() -> None:
    edges = sorted({sign * (2**bits + step) for bits in range(63) for step in (-1, 0, 1) for sign in (1, -1)})
    edges += [-(2**63), 2**63 - 1]
    array = np.array(edges)
    for layout_values in (array, edges, array[::-1]):
        example = tf.train.Example.FromString(encode_example({"x": layout_values}, layout="list"))
        assert list(example.features.feature["x"].int64_list.value) == list(layout_values)


DTYPES = [
    np.bool_,
    *(f"{order}{kind}{size}" for order in "<>" for kind in "iu" for size in (1, 2, 4, 8)),
    *(f"{order}f{size}" for order in "<>" for size in (2, 4, 8)),
    *(f"{order}c{size}" for order in "<>" for size in (8, 16)),
    "<M8[ns]",
    ">M8[D]",
    "<m8[s]",
    "S5",
    "<U3",
    ">U3",
]


@FEW
@given(st.sampled_from(DTYPES).flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, min_side=0))))
def test_layout_bytes_brings_arrays_back_exactly(array: np.ndarray) -> None:
    restored = decode(encode_example({"x": array}))["x"]
    assert restored.dtype == array.dtype.newbyteorder("=")
    assert restored.shape == array.shape
    # By their bytes: NaN and NaT are equal to themselves here.
    assert restored.tobytes() == array.astype(restored.dtype).tobytes()


@pytest.mark.parametrize(
    "dtype",
    [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4, ml_dtypes.uint4],
)
def test_extension_dtypes(dtype: Any) -> None:
    array = np.arange(6).astype(dtype).reshape(2, 3)
    for value in (array, array[0, 1], array[:, 1]):
        restored = decode(encode_example({"x": value}))["x"]
        assert (restored.dtype, restored.shape) == (np.dtype(dtype), value.shape)
        assert (restored == value).all()
        flat = decode(encode_example({"x": value}, layout="list"))["x"]
        assert flat.dtype in (np.float32, np.int64)
        assert (flat == np.asarray(value).reshape(-1).astype(flat.dtype)).all()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1),
        np.arange(24)[::-2],
        np.broadcast_to(np.float32(3), (4, 5)),
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    ],
)
def test_arrays_that_are_not_contiguous(array: np.ndarray) -> None:
    assert np.array_equal(decode(encode_example({"x": array}))["x"], array)
    narrow = encode_example({"x": array}, layout="list", narrow=True)
    assert np.array_equal(decode(narrow)["x"], array.reshape(-1))


def test_object_arrays_of_text() -> None:
    text = np.array([["a", "é"], ["", "ccc"]], object)
    restored = decode(encode_example({"x": text}))["x"]
    assert (restored.dtype, restored.tolist()) == (np.dtype(object), text.tolist())
    data = np.array([b"a\0", b""], object)
    assert decode(encode_example({"x": data}))["x"].tolist() == data.tolist()
    assert decode(encode_example({"x": data}, layout="list"))["x"].tolist() == data.tolist()
    assert decode(encode_example({"x": text[:0]}))["x"].shape == (0, 2)


def test_layout_bytes_is_what_decode_raw_reads() -> None:
    array = np.random.default_rng(0).random((3, 2)).astype(">f4")
    spec = {
        "x": tf.io.FixedLenFeature([], tf.string),
        "x/shape": tf.io.FixedLenFeature([2], tf.int64),
        "x/dtype": tf.io.FixedLenFeature([], tf.string),
        "y": tf.io.FixedLenFeature([], tf.int64),
    }
    parsed = tf.io.parse_single_example(encode_example({"x": array, "y": np.int8(-3)}), spec)
    assert np.array_equal(tf.reshape(tf.io.decode_raw(parsed["x"], tf.float32), parsed["x/shape"]), array)
    assert (parsed["x/dtype"].numpy(), int(parsed["y"])) == (b"float32", -3)


@FEW
@given(st.lists(st.lists(INT64, max_size=4), min_size=1, max_size=6), st.booleans())
def test_ragged_lists_are_what_ragged_features_read(rows: list[list[int]], arrays: bool) -> None:
    value = [np.array(row, np.int64) for row in rows] if arrays else rows
    encoded = encode_example({"x": value})
    assert [row.tolist() for row in decode(encoded)["x"]] == rows
    spec = tf.io.RaggedFeature(tf.int64, "x", [tf.io.RaggedFeature.RowLengths("x/row_lengths")])
    assert tf.io.parse_single_example(encoded, {"x": spec})["x"].to_list() == rows


def test_values_of_other_types() -> None:
    class Colour(enum.IntEnum):
        RED = 3

    features = {
        "enum": Colour.RED,
        "tensor": tf.constant([[1.0, 2.0]]),
        "bytearray": bytearray(b"a"),
        "memoryview": memoryview(b"b"),
        "none": None,
        "mixed": [1, 2.5, True],
        "numpy_items": [np.float32(1), np.float32(2)],
        "tuple": (1, 2),
    }
    found = decode(encode_example(features))
    assert {name: value.tolist() for name, value in found.items()} == {
        "enum": [3],
        "tensor": [[1.0, 2.0]],
        "bytearray": [b"a"],
        "memoryview": [b"b"],
        "mixed": [1.0, 2.5, 1.0],
        "numpy_items": [1.0, 2.0],
        "tuple": [1, 2],
    }


@pytest.mark.parametrize(
    ("value", "layout", "words"),
    [
        (2**63, "bytes", "9223372036854775808 is outside the range of int64_list"),
        ([1, -(2**63) - 1], "bytes", "-9223372036854775809 is outside the range of int64_list"),
        (1e300, "bytes", r"1e\+300 is outside the range of float32"),
        ([1.0, -1e39], "bytes", r"-1e\+39.* is outside the range of float32"),
        ("\ud800", "bytes", "cannot be stored as UTF-8"),
        ({"a": 1}, "bytes", "a value of type dict; expected a number"),
        ({1, 2}, "bytes", "a value of type set"),
        ([1, "a"], "bytes", "a list of int, str"),
        ([[1], 2], "bytes", "nested unevenly or more than two deep"),
        ([[[1]]], "bytes", "nested unevenly or more than two deep"),
        ([None], "bytes", "a list of NoneType"),
        (np.zeros(2, "i4,f8"), "bytes", "store its fields"),
        (np.ma.array([1, 2], mask=[False, True]), "bytes", "a masked array, whose mask would be lost"),
        (np.ma.array([1, 2], mask=[False, True]), "list", "a masked array, whose mask would be lost"),
        (np.zeros(2, np.longdouble), "bytes", "cannot be stored so that it comes back everywhere"),
        (np.zeros(2), "list", "a float64 array would lose digits in a float_list.*narrow=True"),
        (np.float64(0.5), "list", "a float64 array would lose digits"),
        ([np.float64(0.5)], "list", "a float64 array would lose digits"),
        (np.zeros(2, np.uint64), "list", "a uint64 array does not fit in an int64_list"),
        (np.zeros(2, np.complex64), "list", "dtype complex64 has no list form"),
        (np.zeros(2, "M8[s]"), "list", r"dtype datetime64\[s\] has no list form"),
        (np.array([1, "a"], object), "list", "an object array of int, str"),
    ],
)
def test_what_cannot_be_stored_is_refused_by_name(value: Any, layout: Any, words: str) -> None:
    with pytest.raises(RecordError, match=rf"feature 'x' of record 7: .*{words}") as caught:
        ExampleEncoder(layout=layout).encode({"ok": 1, "x": value}, record=7)
    assert (caught.value.feature, caught.value.record) == ("x", 7)
    with pytest.raises(RecordError, match="feature 'x'"):
        ExampleEncoder(layout=layout).encode_sequence({}, {"x": [1, value, [[[0]]]]})


def test_a_mask_is_not_lost_in_a_step_either() -> None:
    with pytest.raises(RecordError, match="feature 'x': a masked array"):
        ExampleEncoder().encode_sequence({}, {"x": [np.ma.array([1, 2], mask=[False, True])]})


def test_names_that_are_taken_or_bad() -> None:
    with pytest.raises(RecordError, match="'x/shape' is a feature of its own, but tfqueue writes it beside 'x'"):
        encode_example({"x": np.zeros(3), "x/shape": [3]})
    with pytest.raises(RecordError, match="'x/row_lengths' is a feature of its own"):
        encode_example({"x/row_lengths": 1, "x": [[1]]})
    with pytest.raises(RecordError, match="a feature name is 3; expected a str"):
        encode_example({3: 1})  # type: ignore[dict-item]
    with pytest.raises(RecordError, match="is not valid Unicode"):
        encode_example({"\ud800": 1})
    with pytest.raises(RecordError, match="feature 'x': a sequence of type int; expected one value a step"):
        ExampleEncoder().encode_sequence({}, {"x": 3})  # type: ignore[dict-item]


def test_uint64_when_narrowing_is_asked_for() -> None:
    array = np.array([0, 2**63 - 1], np.uint64)
    assert decode(encode_example({"x": array}, layout="list", narrow=True))["x"].tolist() == array.tolist()
    with pytest.raises(RecordError, match="9223372036854775808 is outside the range of int64_list"):
        encode_example({"x": array + np.uint64(1)}, layout="list", narrow=True)


def test_the_caches_do_not_grow_without_end_nor_mix_records_up() -> None:
    encoder = ExampleEncoder()
    for size in range(5000):
        payload = encoder.encode({"x": b"a" * (size % 4999), "y": np.zeros((size % 4999, 1), np.bool_)})
        if size % 997 == 0 or size > 4990:
            found = decode(payload)
            assert (len(found["x"][0]), found["y"].shape) == (size % 4999, (size % 4999, 1))
    assert len(encoder._heads) + len(encoder._sidecars) <= 2 * 4096
