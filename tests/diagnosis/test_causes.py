"""Each cause of a failure, in a real graph: its name, the record, the line, the advice.

The bad record is in the middle of the second file, so that a failure is neither the first thing that happens nor found
by the checks before the start.
"""

from __future__ import annotations

import zlib

import numpy as np
import pytest
import tensorflow as tf

from tests.diagnosis.running import BAD_RECORD, run_to_failure, two_files
from tests.pipelines import LABEL, example, read, tf1

F = tf1.FixedLenFeature
STRING = {"img": F([], tf.string)}


def good(number: int) -> bytes:
    return example(label=[number], box=[1.0, 2.0, 3.0, 4.0], img=bytes([number]) * 48)


def batch(value, size=2, **options):
    return tf1.train.batch([value], size, **options)


def with_image(data: bytes, encoded: bytes | None = None):
    """Good records whose image is ``encoded`` (else raw bytes), and a bad one whose image is ``data``."""
    return (lambda n: example(img=encoded or bytes(48))), example(img=data)


PNG = tf.io.encode_png(np.full((4, 4, 3), 9, np.uint8)).numpy()
JPEG = tf.io.encode_jpeg(np.random.default_rng(0).integers(0, 255, (40, 40, 3), np.uint8)).numpy()
WAV = tf.audio.encode_wav(np.zeros((8, 1), np.float32), 8000).numpy()
TENSOR = tf.io.serialize_tensor(np.zeros(3, np.float32)).numpy()
ZLIB = zlib.compress(b"abc")


def sequence(context: dict, lists: dict) -> bytes:
    message = tf.train.SequenceExample()
    for name, values in context.items():
        message.context.feature[name].int64_list.value.extend(values)
    for name, rows in lists.items():
        for row in rows:
            message.feature_lists.feature_list[name].feature.add().int64_list.value.extend(row)
    return message.SerializeToString()


def good_sequence(number: int) -> bytes:
    return sequence({"label": [number]}, {"words": [[1], [2]]})


def parse_sequence(serialized, context=LABEL, words=tf.int64, shape=()):
    spec = {"words": tf1.FixedLenSequenceFeature(list(shape), words)}
    parsed = tf1.parse_single_sequence_example(serialized, context, spec)
    return parsed[0]["label"], parsed[1]["words"]


def parsed(spec, key, then=lambda value: value, size=2, **options):
    """A stage that parses a record, does something to one feature and puts it into a batch."""
    return lambda serialized: batch(then(tf1.parse_single_example(serialized, spec)[key]), size, **options)


def of_image(then, **options):
    return parsed(STRING, "img", then, **options)


def csv(text: str, defaults=([0.0], [0.0])):
    return lambda line: batch(tf1.decode_csv(line, list(defaults))[0]), (lambda n: b"1,2"), text.encode()


def record_with(change) -> bytes:
    message = tf.train.Example.FromString(good(0))
    change(message.features)
    return message.SerializeToString()


# name of the case: (the stage: serialized record -> fetches, good records, the bad one), cause name, type of the
# original error, words of the advice
INVALID, LOSS = tf.errors.InvalidArgumentError, tf.errors.DataLossError
CASES = {
    # features
    "a key that is missing": (
        (parsed({"label": F([], tf.int64)}, "label"), good, example(lable=[3], box=[1.0])),
        "missing-feature",
        INVALID,
        ["the record has box (float, 1 value), lable (int64, 1 value)", "did you mean 'lable'?"],
    ),
    "a key that resembles none": (
        (parsed(LABEL, "label"), good, example(x=[3])),
        "missing-feature",
        INVALID,
        ["the record has x (int64, 1 value); you asked for 'label'"],
    ),
    "a record without a byte": (
        (parsed(LABEL, "label"), good, b""),
        "missing-feature",
        INVALID,
        ["the record is empty: leave it out"],
    ),
    "a feature without a value": (
        (parsed(LABEL, "label"), good, record_with(lambda f: f.feature["label"].Clear())),
        "missing-feature",
        INVALID,
        ["the record has 'label', but with no value in it: give the feature a default_value"],
    ),
    "a feature list asked for as a feature": (
        (parsed({"words": F([], tf.int64)}, "words"), lambda n: example(words=[n]), good_sequence(1)),
        "missing-feature",
        INVALID,
        ["the record is a SequenceExample, and 'words' is one of its feature lists", "parse_single_sequence_example"],
    ),
    "a feature of another type": (
        (parsed(LABEL, "label"), good, example(label=[1.5])),
        "feature-type",
        INVALID,
        ["label is stored as float, 1 value: ask for tf.float32"],
    ),
    "a feature of variable length of another type": (
        (
            parsed({"box": tf1.VarLenFeature(tf.int64)}, "box", size=1),
            lambda n: example(box=[n]),
            example(box=[1.5, 2.5]),
        ),
        "feature-type",
        INVALID,
        ["box is stored as float, 2 values: ask for tf.float32"],
    ),
    "more values than were asked for": (
        (parsed({"box": F([4], tf.float32)}, "box"), good, example(box=[1.0] * 6)),
        "feature-length",
        INVALID,
        ["box is stored as float, 6 values, FixedLenFeature of shape [4] (4 values) was asked: ask for [6]"],
    ),
    "a list where one value was asked for": (
        (parsed(LABEL, "label"), good, example(label=[1, 2])),
        "feature-length",
        INVALID,
        ["label is stored as int64, 2 values, FixedLenFeature of shape [] (1 values)", "VarLenFeature"],
    ),
    "a list that is empty": (
        (
            parsed({"box": F([4], tf.float32)}, "box"),
            good,
            record_with(lambda f: f.feature["box"].float_list.ClearField("value")),
        ),
        "feature-length",
        INVALID,
        ["box is stored empty, FixedLenFeature of shape [4] (4 values) was asked: give a default_value"],
    ),
    "no Example at all": (
        (parsed(LABEL, "label"), good, b"this is not a proto at all....."),
        "not-an-example",
        INVALID,
        ["the record is no tf.train.Example"],
    ),
    # SequenceExamples
    "a plain Example parsed as a SequenceExample": (
        (
            lambda s: tf1.train.batch(list(parse_sequence(s)), 1, dynamic_pad=True),
            good_sequence,
            example(label=[1], box=[2.0]),
        ),
        "missing-feature-list",
        INVALID,
        ["a plain Example without feature lists (box (float, 1 value), label"],
    ),
    "a feature list that is missing": (
        (
            lambda s: tf1.train.batch(list(parse_sequence(s)), 1, dynamic_pad=True),
            good_sequence,
            sequence({"label": [1]}, {"word": [[1]]}),
        ),
        "missing-feature-list",
        INVALID,
        ["you asked for 'words': did you mean 'word'?"],
    ),
    "a feature of the context asked for as a list": (
        (
            lambda s: tf1.train.batch(list(parse_sequence(s)), 1, dynamic_pad=True),
            good_sequence,
            sequence({"label": [1], "words": [1]}, {"tags": [[1]]}),
        ),
        "missing-feature-list",
        INVALID,
        ["'words' is a feature of the context, no feature list"],
    ),
    "a context feature that is missing": (
        (
            lambda s: tf1.train.batch(list(parse_sequence(s)), 1, dynamic_pad=True),
            good_sequence,
            sequence({"labels": [1]}, {"words": [[1]]}),
        ),
        "missing-feature",
        INVALID,
        ["did you mean 'labels'?"],
    ),
    "a feature list of another type": (
        (
            lambda s: tf1.train.batch(list(parse_sequence(s)), 1, dynamic_pad=True),
            good_sequence,
            (lambda m: (m.feature_lists.feature_list["words"].feature.add().float_list.value.append(1.5), m)[1])(
                tf.train.SequenceExample.FromString(sequence({"label": [1]}, {}))
            ).SerializeToString(),
        ),
        "feature-type",
        INVALID,
        ["words is stored as list of float, 1 value: ask for tf.float32"],
    ),
    "entries of a feature list of another length": (
        (
            lambda s: tf1.train.batch(list(parse_sequence(s)), 1, dynamic_pad=True),
            good_sequence,
            sequence({"label": [1]}, {"words": [[1, 2], [3, 4]]}),
        ),
        "feature-length",
        INVALID,
        ["words is stored as list of int64, 2 values, and its entries have not the length", "FixedLenSequenceFeature"],
    ),
    # bytes into numbers
    "raw bytes of another dtype": (
        (
            of_image(lambda v: tf.reshape(tf.cast(tf1.decode_raw(v, tf.float32), tf.float64) / 255.0, [3, 4])),
            lambda n: example(img=np.zeros(12, np.float32).tobytes()),
            example(img=np.zeros(12, np.float64).tobytes()),
        ),
        "reshape",
        INVALID,
        ["96 bytes are stored, decode_raw read them as float32: as int64 or float64 they would be the 12 values"],
    ),
    "raw bytes of an image of another size": (
        (of_image(lambda v: tf.reshape(tf1.decode_raw(v, tf.uint8), [4, 4, 3])), *with_image(bytes(8 * 8 * 3))),
        "reshape",
        INVALID,
        ["192 bytes are stored, decode_raw read them as uint8", "or are they an image of [8, 8, 3]?"],
    ),
    "raw bytes that are cut": (
        (of_image(lambda v: tf.reshape(tf1.decode_raw(v, tf.float32), [12])), *with_image(bytes(47))),
        "decode-raw-length",
        INVALID,
        ["47 bytes are stored: that is a whole number of uint8, int8, bool"],
    ),
    "a reshape without raw bytes": (
        (
            parsed({"box": tf1.VarLenFeature(tf.float32)}, "box", lambda v: tf.reshape(v.values, [4])),
            good,
            example(box=[1.0] * 6),
        ),
        "reshape",
        INVALID,
        ["the tensor has 6 values for this record, the shape asked for needs 4"],
    ),
    "a shape that was only claimed": (
        (
            of_image(lambda v: (lambda t: (t.set_shape([48]), t)[1])(tf.concat([tf1.decode_raw(v, tf.uint8)], 0))),
            *with_image(bytes(50)),
        ),
        "element-shape",
        INVALID,
        ["50 bytes are stored (50 values of uint8), the shape asked for needs 48: no dtype fits"],
    ),
    "an image with another number of channels": (
        (
            of_image(lambda v: (lambda t: (t.set_shape([4, 4, 3]), t)[1])(tf1.image.decode_png(v))),
            *with_image(tf.io.encode_png(np.zeros((4, 4, 1), np.uint8)).numpy(), PNG),
        ),
        "element-shape",
        INVALID,
        ["built for elements of shape [4,4,3], this record gave [4,4,1]"],
    ),
    "rows of different numbers": (
        (
            lambda s: tf1.train.batch(
                [tf1.decode_raw(tf1.parse_single_example(s, STRING)["img"], tf.uint8), tf.zeros([48])],
                2,
                enqueue_many=True,
                shapes=[[], []],
            ),
            *with_image(bytes(6)),
        ),
        "element-shape",
        INVALID,
        ["with enqueue_many=True all tensors must have the same number of rows; one has 6, and number 1 has 48"],
    ),
    "a serialized tensor that is none": (
        (of_image(lambda v: tf.reshape(tf.io.parse_tensor(v, tf.float32), [3])), *with_image(b"xxxx", TENSOR)),
        "not-a-tensor",
        INVALID,
        ["tf.io.serialize_tensor"],
    ),
    "bytes that are not compressed": (
        (of_image(lambda v: tf.reshape(tf.io.decode_compressed(v, "ZLIB"), [])), *with_image(b"abc", ZLIB)),
        "not-compressed",
        LOSS,
        ["not compressed in the way that decode_compressed was told"],
    ),
    "bytes that are no base64": (
        (of_image(lambda v: tf.reshape(tf.io.decode_base64(v), [])), *with_image(b"+++++", b"YWJj")),
        "not-base64",
        INVALID,
        ["web-safe base64"],
    ),
    "an example that is no JSON": (
        (of_image(lambda v: tf.reshape(tf.io.decode_json_example(v), [])), *with_image(b"xxxx", b"{}")),
        "not-json",
        INVALID,
        ["parse_single_example"],
    ),
    # images and audio
    "an image that is none": (
        (
            of_image(lambda v: tf1.image.resize_images(tf1.image.decode_jpeg(v, channels=3), [4, 4])),
            *with_image(b"GAR BAGE bytes", JPEG),
        ),
        "not-an-image",
        INVALID,
        ["the stored bytes begin with b'GAR BAGE byt': use decode_raw and reshape"],
    ),
    "a JPEG that is cut": (
        (
            of_image(lambda v: tf1.image.resize_images(tf1.image.decode_jpeg(v, channels=3), [4, 4])),
            *with_image(JPEG[:200], JPEG),
        ),
        "damaged-image",
        INVALID,
        ["the image is damaged or cut off"],
    ),
    "a PNG that is cut": (
        (of_image(lambda v: tf.reshape(tf1.image.decode_png(v, channels=3), [4, 4, 3])), *with_image(PNG[:40], PNG)),
        "damaged-image",
        INVALID,
        ["the image is damaged or cut off"],
    ),
    "a crop that is larger than the image": (
        (
            of_image(lambda v: tf1.random_crop(tf.reshape(tf1.decode_raw(v, tf.uint8), [-1, 4, 3]), [4, 4, 3])),
            *with_image(bytes(36)),
        ),
        "crop-too-large",
        INVALID,
        ["the image is 3 x 4 x 3, the crop asked for 4 x 4 x 3"],
    ),
    "audio that is none": (
        (of_image(lambda v: tf.reshape(tf.audio.decode_wav(v)[0], [8])), *with_image(b"OggS" * 20, WAV)),
        "not-audio",
        INVALID,
        ["no WAV audio: they begin with 'OggS'"],
    ),
    # lines of text, kept in records
    "a line with too few fields": (
        csv("1"),
        "csv-fields",
        INVALID,
        ["the line has 1 fields where record_defaults has 2", "skip_header_lines=1"],
    ),
    "a field that is no number": (csv("x,2"), "csv-value", INVALID, ["field 0 holds 'x', which is no float"]),
    "a quote inside a field": (csv('1,a"b', ([0.0], [""])), "csv-quotes", INVALID, ["twice"]),
    "a field that is required": (
        csv("1,", ([0.0], np.zeros(0, np.float32))),
        "csv-required",
        INVALID,
        ["field 1 is empty", "give it a default value"],
    ),
    "a string that is no number": (
        (lambda line: batch(tf1.string_to_number(line)), lambda n: b"3.5", b"3,5"),
        "not-a-number",
        INVALID,
        ["'3,5' is no number"],
    ),
    "a split line that is too short": (
        (
            lambda line: batch(tf.reshape(tf1.string_split([line], ",").values[1], [])),
            lambda n: b"a,b",
            b"a",
        ),
        "slice-out-of-range",
        INVALID,
        ["no element 1 in dimension 0"],
    ),
    # numbers
    "a label that is no class": (
        (parsed(LABEL, "label", lambda v: tf.gather(tf.range(20), v)), good, example(label=[20])),
        "index-out-of-range",
        INVALID,
        ["does it count from 1?"],
    ),
    "a division by zero": (
        (parsed(LABEL, "label", lambda v: 6 // (v + 1)), good, example(label=[-1])),
        "division-by-zero",
        INVALID,
        ["divided by zero"],
    ),
    "a number that is none": (
        (
            parsed({"box": F([1], tf.float32)}, "box", lambda v: tf1.check_numerics(tf1.log(v), "bad")),
            lambda n: example(box=[1.0]),
            example(box=[-1.0]),
        ),
        "not-finite",
        INVALID,
        ["hold NaN"],
    ),
    "an assertion of the user's": (
        (
            lambda s: (lambda v: batch(_asserted(v)))(tf1.parse_single_example(s, LABEL)["label"]),
            good,
            example(label=[99]),
        ),
        "assertion",
        INVALID,
        ["an assertion of the graph failed"],
    ),
}


def _asserted(value):
    with tf.control_dependencies([tf1.assert_less(value, tf.constant(50, tf.int64))]):
        return tf.identity(value)


@pytest.mark.parametrize("case", CASES)
def test_the_cause_is_named(case, tmp_path) -> None:
    (stage, good_record, bad_record), cause_name, error, advice = CASES[case]
    paths = two_files(tmp_path, good_record, bad_record)
    failed = run_to_failure(lambda: stage(read(paths)))
    assert failed.cause_name == cause_name
    assert (failed.file, failed.record) == (paths[1], BAD_RECORD)
    assert isinstance(failed.__cause__, error)
    assert failed.source.startswith("test_causes.py")
    assert f"file: {paths[1]}, record {BAD_RECORD}" in str(failed)
    for words in advice:
        assert words in failed.advice


@pytest.mark.parametrize(
    ("options", "size"),
    [({"num_threads": 4}, 2), ({"num_threads": 3, "capacity": 4}, 3)],
)
@pytest.mark.parametrize("shuffle", [False, True])
def test_several_threads_and_shuffled_files(tmp_path, options, size, shuffle) -> None:
    paths = two_files(tmp_path, good, example(x=[1]))
    shuffled = {"shuffle": True, "seed": 3} if shuffle else {"shuffle": True, "seed": 1}

    def build_fn():
        return batch(tf1.parse_single_example(read(paths, **shuffled), LABEL)["label"], size, **options)

    failed = run_to_failure(build_fn)
    assert (failed.cause_name, failed.file, failed.record) == ("missing-feature", paths[1], BAD_RECORD)
