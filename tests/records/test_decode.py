"""The parser reads whatever protobuf reads, and says what is wrong with the rest."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.records.test_encode import INT64, NAMES, VALUES, as_example, as_feature
from tfqueue.errors import RecordError
from tfqueue.records.decode import MalformedError, parse, read_varints
from tfqueue.records.encode import encode_example
from tfqueue.records.reader import decode

FEW = settings(deadline=None, max_examples=150)


def by_protobuf(payload: bytes) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, feature in tf.train.Example.FromString(payload).features.feature.items():
        kind = feature.WhichOneof("kind")
        found[name] = (kind, list(getattr(feature, kind).value) if kind else [])
    return found


def by_tfqueue(payload: bytes) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, feature in parse(payload).context.items():
        if feature is None:
            found[name] = (None, [])
        elif isinstance(feature, list):
            found[name] = ("bytes_list", feature)
        else:
            found[name] = ("float_list" if feature.dtype == np.float32 else "int64_list", feature.tolist())
    return found


@FEW
@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_what_protobuf_wrote(features: dict[str, object]) -> None:
    payload = as_example(features).SerializeToString()
    assert by_tfqueue(payload) == by_protobuf(payload)


@FEW
@given(st.dictionaries(NAMES, VALUES, max_size=3), st.dictionaries(NAMES, VALUES, max_size=3))
def test_messages_in_pieces(one: dict[str, object], two: dict[str, object]) -> None:
    # Two messages end to end are one: maps are merged, and of equal keys the last wins.
    payload = as_example(one).SerializeToString() + as_example(two).SerializeToString()
    assert by_tfqueue(payload) == by_protobuf(payload)


@pytest.mark.parametrize(
    "feature",
    [
        b"\x12\x05\x0d\x00\x00\x80\x3f",  # one float that is not packed
        b"\x1a\x04\x08\x05\x08\x07",  # integers that are not packed
        b"\x1a\x05\x08\x05\x0a\x01\x07",  # packed and not packed in one list
        b"\x1a\x02\x08\x05\x1a\x02\x08\x06",  # one list in two pieces
        b"\x0a\x03\x0a\x01a\x1a\x02\x08\x06",  # two kinds: the last wins
        b"\x1a\x02\x08\x06\x0a\x03\x0a\x01a",
        b"\x1a\x00",
        b"\x12\x00",
        b"\x0a\x00",
        b"\x0a\x02\x0a\x00",
        b"\x1a\x04\x0a\x02\x85\x00",  # a number longer than it need be
        b"\x22\x01a\x1a\x02\x08\x06",  # an unknown field
        b"\x28\x05\x31abcdefgh\x1a\x02\x08\x06",  # unknown numbers
    ],
)
def test_odd_forms(feature: bytes) -> None:
    entry = b"\x0a\x01x\x12" + bytes([len(feature)]) + feature
    features = b"\x0a" + bytes([len(entry)]) + entry
    payload = b"\x0a" + bytes([len(features)]) + features
    assert by_tfqueue(payload) == by_protobuf(payload)


@FEW
@given(st.data(), st.dictionaries(NAMES, VALUES, min_size=1, max_size=3))
def test_damaged_messages_never_crash(data: st.DataObject, features: dict[str, object]) -> None:
    payload = bytearray(as_example(features).SerializeToString())
    payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    del payload[data.draw(st.integers(0, len(payload))) :]
    try:
        found = by_tfqueue(bytes(payload))
    except MalformedError:
        return
    try:
        expected = by_protobuf(bytes(payload))
    except DecodeError:
        return  # protobuf also checks what tfqueue skips
    # NaN is not equal to itself, but its text is; a map of protobuf has no order.
    assert repr(sorted(found.items())) == repr(sorted(expected.items()))


@FEW
@given(st.lists(st.one_of(INT64, st.integers(-3, 3)), max_size=40))
def test_integers_short_and_long(values: list[int]) -> None:
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    payload = tf.train.Example(features=tf.train.Features(feature={"x": feature})).SerializeToString()
    assert by_tfqueue(payload)["x"] == ("int64_list", values)


@pytest.mark.parametrize("count", [1, 20])
def test_integers_that_are_none(count: int) -> None:
    for last, words in ((b"\xff", "ends in the middle"), (b"\xff" * 10 + b"\x01", "more than ten bytes")):
        with pytest.raises(MalformedError, match=words):
            read_varints(b"\x01" * count + last)


def test_sequence_examples_of_protobuf() -> None:
    message = tf.train.SequenceExample(
        context=as_example({"n": 3}).features,
        feature_lists=tf.train.FeatureLists(
            feature_list={"s": tf.train.FeatureList(feature=[as_feature([1, 2]), as_feature([])])}
        ),
    )
    found = decode(message.SerializeToString())
    assert found["n"].tolist() == [3]
    assert [step.tolist() for step in found["s"]] == [[1, 2], []]


def test_arrays_that_do_not_fit_their_shape_are_named() -> None:
    features = {"x": b"12345678", "x/shape": [3], "x/dtype": "float32"}
    with pytest.raises(RecordError, match=r"'x' has 8 bytes; float32 of shape \(3,\) needs 12"):
        decode(encode_example(features))
    assert decode(encode_example(features), raw=True)["x"].tolist() == [b"12345678"]
    features = {"x": [1, 2], "x/shape": [3], "x/dtype": "int8"}
    with pytest.raises(RecordError, match=r"'x' is not a int8 array of shape \(3,\)"):
        decode(encode_example(features))


@pytest.mark.parametrize(
    "beside",
    [
        {"x/shape": [1]},
        {"x/dtype": "int8"},
        {"x/shape": [1], "x/dtype": "JPEG"},
        {"x/shape": [1], "x/dtype": "object"},
        {"x/shape": [-1], "x/dtype": "int8"},
        {"x/shape": 1.5, "x/dtype": "int8"},
        {"x/shape": [1], "x/dtype": ["int8", "int8"]},
        {"x/row_lengths": [2]},
        {"x/row_lengths": [-1, 2]},
    ],
)
def test_features_of_other_programs_with_such_names_are_left_alone(beside: dict[str, object]) -> None:
    found = decode(encode_example({"x": b"1", **beside}))
    assert found["x"].tolist() == [b"1"]
    assert found.keys() == {"x", *beside}


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (b"\x0a\x05abc", "claims 5 bytes, but 3 are left"),
        (b"\x0b", "wire type 3"),
        (b"\x00\x00", "field number 0"),
        (b"\x0a", "cut or too long"),
        (b"\x0a" + b"\xff" * 11, "cut or too long"),
        (b"\x1a\x00", "field 3 at byte 2 is no field of an Example"),
    ],
)
def test_what_is_no_example(payload: bytes, words: str) -> None:
    with pytest.raises(RecordError, match=words):
        decode(payload)
