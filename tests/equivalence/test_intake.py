"""Batches taken apart like the one before them: the same leaves as if each were looked at anew, and the same errors."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tfqueue.equivalence.intake import Intake, Layout
from tfqueue.equivalence.leaves import Dense, flatten
from tfqueue.errors import InvalidStream

Pair = namedtuple("Pair", "image label")


def taker(batch: Any) -> Intake:
    names = tuple(name for name, _ in flatten(batch))
    return Intake("reference", names, frozenset(names), True)


def batch_of(form: str, size: int, width: int, dtype: str) -> Any:
    image, label = np.arange(size * width).reshape(size, width).astype(dtype), np.arange(size)
    text = np.array([b"%d" % i for i in range(size)], dtype=object)
    return {
        "dict": {"image": image, "label": label},
        "turned": {"label": label, "image": image},
        "named": Pair(image, label),
        "nested": ({"image": image, "text": text}, label),
        "tensors": {"image": tf.constant(image), "label": tf.constant(label)},
        "strings": {"image": text, "label": tf.constant(list(text))},
        "list": [image, label],
    }[form]


FORMS = ["dict", "turned", "named", "nested", "tensors", "strings", "list"]


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(FORMS),
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3), st.sampled_from(["f4", "i8"])), min_size=2, max_size=6),
)
def test_every_batch_is_taken_as_if_it_were_the_first(form: str, makes: list[tuple[int, int, str]]) -> None:
    batches = [batch_of(form, *make) for make in makes]
    intake = taker(batches[0])
    for number, batch in enumerate(batches):
        leaves, layout = intake.take(batch, number)
        expected = taker(batches[0]).take(batch, number)[0]
        assert layout.makes == Layout.of(expected).makes
        assert layout.size == makes[number][0]
        for leaf, other in zip(leaves, expected, strict=True):
            assert isinstance(leaf, Dense)
            assert isinstance(other, Dense)
            np.testing.assert_array_equal(leaf.array, other.array)


def test_the_order_of_a_dict_does_not_matter() -> None:
    one, two = batch_of("dict", 2, 3, "f4"), batch_of("turned", 2, 3, "f4")
    intake = taker(one)
    first = intake.take(one, 0)[0]
    for number in (1, 2, 3):
        assert [leaf.row_shape for leaf in intake.take(two, number)[0]] == [leaf.row_shape for leaf in first]


@pytest.mark.parametrize("form", ["dict", "tensors", "strings"])
def test_a_layout_stays_while_batches_are_alike(form: str) -> None:
    intake = taker(batch_of(form, 2, 3, "f4"))
    layouts = [intake.take(batch_of(form, size, 3, "f4"), number)[1] for number, size in enumerate((2, 2, 2, 1, 2))]
    assert layouts[0] is layouts[1] is layouts[2]
    assert layouts[3].size == 1
    assert layouts[3].same_rows(layouts[2])


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        ({"image": np.zeros((2, 3))}, "has no feature label"),
        ({"image": np.zeros((2, 3)), "label": np.zeros(2), "more": np.zeros(2)}, "has the feature more"),
        ({"image": np.zeros((2, 3)), "label": np.zeros(1)}, "unequal numbers of records"),
        ({"image": np.array([b"a", 3], dtype=object), "label": np.zeros(2)}, "Python objects"),
    ],
)
def test_a_batch_made_otherwise_is_told(odd: dict[str, Any], words: str) -> None:
    good = {"image": np.zeros((2, 3)), "label": np.zeros(2)}
    intake = taker(good)
    for number in range(3):
        intake.take(good, number)
    with pytest.raises(InvalidStream, match=words):
        intake.take(odd, 3)


def test_strings_are_looked_at_in_every_batch() -> None:
    good = {"name": np.array([b"a", b"b"], dtype=object)}
    intake = taker(good)
    intake.take(good, 0)
    with pytest.raises(InvalidStream, match="Python objects"):
        intake.take({"name": np.array([b"a", 3], dtype=object)}, 1)
    assert intake.take({"name": np.array(["é", "b"], dtype=object)}, 2)[0][0].array[0] == "é".encode()
