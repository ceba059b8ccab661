"""Wrong twins of other pipelines than the tiles: sequences, texts, boxes, tuples, planes, passes; all named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tfqueue
from tests.equivalence.batches import cut, taken

COUNT, BATCH = 120, 8
CLASSES = [b"cat", b"dog", b"emu", b"fox"]
Data = dict[str, np.ndarray]
Change = Callable[[np.ndarray], Any]


def texts(values: list[Any]) -> np.ndarray:
    array = np.empty(np.shape(np.array(values, dtype="S")), dtype=object)
    array[...] = values
    return array


def records() -> Data:
    rng = np.random.default_rng(0)
    lengths = 1 + np.arange(COUNT) * 5 % 7
    tokens = np.where(np.arange(7) < lengths[:, np.newaxis], rng.integers(1, 50, (COUNT, 7)), 0)
    classes = rng.integers(0, 4, COUNT)
    return {
        "id": texts([b"id-%03d" % i for i in range(COUNT)]),
        "box": rng.random((COUNT, 4)).astype(np.float32),
        "point": rng.random((COUNT, 4)).astype(np.float32),
        "class": texts([CLASSES[c] for c in classes]),
        "number": classes,
        "tokens": tokens,
        "words": texts([[b"w%d" % t if t else b"" for t in row] for row in tokens]),
        "image": rng.integers(0, 256, (COUNT, 8, 6, 3)).astype(np.uint8),
    }


def ragged(tokens: np.ndarray) -> Any:
    return tf.RaggedTensor.from_tensor(tokens, padding=0)


def sparse(tokens: np.ndarray) -> Any:
    return tf.sparse.from_dense(tokens)


def whole_words(size: int) -> Change:
    return lambda words: texts([[w[:size] for w in row] for row in words.tolist()])


def through(table: dict[bytes, Any]) -> Change:
    values = list(table.values())
    if isinstance(values[0], bytes):
        return lambda classes: texts([table[c] for c in classes.tolist()])
    return lambda classes: np.array([table[c] for c in classes.tolist()])


def backwards(tokens: np.ndarray) -> np.ndarray:
    out = np.zeros_like(tokens)
    for row, values in zip(out, tokens, strict=True):
        used = values[values > 0][::-1]
        row[: len(used)] = used
    return out


def colourless(images: np.ndarray) -> np.ndarray:
    return images.mean(axis=-1, keepdims=True).astype(np.uint8)


# what is wrong: (the cause, the feature, what the reference makes of it, what the candidate makes of it)
VALUES: dict[str, tuple[str, str, Change | None, Change]] = {
    "words filled up": ("padding-value", "words", None, lambda w: np.where(w == b"", b"<pad>", w).astype(object)),
    "lists of words cut": ("truncated", "words", None, lambda w: w[:, :3]),
    "words cut": ("truncated", "words", None, whole_words(2)),
    "vocabulary counted from one": ("label-off-by-one", "tokens", None, lambda t: np.where(t, t + 1, 0)),
    "ragged, counted from one": ("label-off-by-one", "tokens", ragged, lambda t: ragged(np.where(t, t + 1, 0))),
    "sparse, counted from one": ("label-off-by-one", "tokens", sparse, lambda t: sparse(np.where(t, t + 1, 0))),
    "ragged, tenfold": ("scaled", "tokens", ragged, lambda t: ragged(10 * t)),
    "sequences backwards": ("elements-reordered", "tokens", None, backwards),
    "ragged against dense": ("sparse-dense", "tokens", ragged, lambda t: t),
    "classes by another list": (
        "labels-mapped",
        "class",
        None,
        through(dict(zip(CLASSES, CLASSES[1:] + CLASSES[:1], strict=True))),
    ),
    "classes as numbers": ("labels-mapped", "class", None, through({c: i for i, c in enumerate(CLASSES)})),
    "numbers as classes": ("labels-mapped", "number", None, lambda n: texts([CLASSES[i] for i in n])),
    "corners as (x, y)": ("elements-reordered", "box", None, lambda b: b[:, [1, 0, 3, 2]]),
    "boxes with an axis more": ("reshaped", "box", None, lambda b: b[:, np.newaxis]),
    "numbers with an axis more": ("reshaped", "number", None, lambda n: n[:, np.newaxis]),
    "flat images": ("reshaped", "image", None, lambda i: i.reshape(COUNT, -1)),
    "height for width": ("transposed", "image", None, lambda i: i.reshape(COUNT, 6, 8, 3)),
    "one channel": ("grayscale", "image", None, colourless),
    "no channel": ("grayscale", "image", None, lambda i: colourless(i)[..., 0]),
}


def parts(data: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            name: tf.sparse.slice(v, [i, 0], [BATCH, 7]) if isinstance(v, tf.SparseTensor) else v[i : i + BATCH]
            for name, v in data.items()
        }
        for i in range(0, COUNT, BATCH)
    ]


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("shuffled", [False, True])
def test_values(name: str, shuffled: bool) -> None:
    cause, feature, old, new = VALUES[name]
    data = records()
    left = {"id": data["id"], feature: data[feature] if old is None else old(data[feature])}
    other = taken(data, np.random.default_rng(1).permutation(COUNT)) if shuffled else data
    right = {"id": other["id"], feature: new(other[feature])}
    report = tfqueue.compare(parts(left), parts(right), order="any" if shuffled else "auto")
    assert not report.equivalent
    assert cause in {c.name for c in report.causes}, str(report)
    assert {c.feature for c in report.causes if c.name == cause} == {feature}


@pytest.mark.parametrize("kind", [dict, tuple])
def test_two_features_of_one_shape_in_each_others_place(kind: type) -> None:
    data = records()
    left = cut({name: data[name] for name in ("id", "box", "point")})
    right = cut({"id": data["id"], "box": data["point"], "point": data["box"]})
    if kind is tuple:
        left, right = ([tuple(batch.values()) for batch in side] for side in (left, right))
    report = tfqueue.compare(left, right)
    assert [c.name for c in report.causes] == ["features-reordered"], str(report)
    assert tfqueue.compare(left, left).equivalent


@pytest.mark.parametrize("epochs", [1, 3])
@pytest.mark.parametrize(
    ("cause", "kept"),
    [
        ("last-record-lost", lambda i: i % 30 != 29),
        ("first-record-lost", lambda i: i % 30 != 0),
        ("file-missing", lambda i: not 30 <= i < 60),
        ("records-lost", lambda i: i % 7 != 3),
    ],
)
def test_records_lost_in_each_pass(cause: str, kept: Callable[[int], bool], epochs: int) -> None:
    once = np.arange(COUNT)
    data = records()

    def stream(places: np.ndarray) -> Any:
        return tf.data.Dataset.from_tensor_slices(
            {"n": np.tile(places, epochs), "box": np.tile(data["box"][places], (epochs, 1))}
        )

    left, right = (stream(places).batch(BATCH) for places in (once, np.array([i for i in once if kept(i)])))
    assert [c.name for c in tfqueue.compare(left, right).causes] == [cause]


def test_every_record_twice_is_no_pass_more() -> None:
    def build() -> Any:
        number = tf.compat.v1.train.range_input_producer(COUNT, num_epochs=1, shuffle=False).dequeue()
        return {"n": tf.compat.v1.train.batch([number], BATCH)}

    def twin() -> tf.data.Dataset:
        numbers = tf.data.Dataset.range(COUNT).map(lambda n: {"n": tf.cast(n, tf.int32)})
        return numbers.flat_map(lambda record: tf.data.Dataset.from_tensors(record).repeat(2)).batch(BATCH)

    assert [c.name for c in tfqueue.compare(build, twin).causes] == ["records-doubled"]
    again = tfqueue.compare(
        build, lambda: tf.data.Dataset.range(COUNT).map(lambda n: {"n": tf.cast(n, tf.int32)}).repeat(2).batch(BATCH)
    )
    assert [c.name for c in again.causes] == ["epochs-differ"]


def test_sequences_filled_up_to_the_longest_of_their_batch_are_no_random_values() -> None:
    """Shuffled, each run has other batches, and so other lengths: the fill is what differs, not the values."""
    data = records()
    source = tf.data.Dataset.from_tensor_slices({"id": data["id"], "tokens": data["tokens"]})

    def stream(value: int) -> tf.data.Dataset:
        short = source.map(lambda r: {"id": r["id"], "tokens": tf.boolean_mask(r["tokens"], r["tokens"] > 0)})
        padding = {"id": "", "tokens": tf.constant(value, tf.int64)}
        return short.shuffle(40).padded_batch(BATCH, padding_values=padding)

    report = tfqueue.compare(stream(0), stream(-1))
    assert [c.name for c in report.causes] == ["padding-value"], str(report)
