"""tf.contrib.learn.preprocessing: texts as ids and bytes."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import tfqueue.compat.v1 as tf
from tfqueue.errors import InvalidArgument

preprocessing = tf.contrib.learn.preprocessing
TEXTS = ["the cat's CamelCase NASA word-list", "the dog", "the cat's dog: the end"]


def test_words() -> None:
    words = list(preprocessing.tokenizer(TEXTS))
    assert words[0] == ["the", "cat's", "Camel", "Case", "NASA", "word-list"]
    assert words[2] == ["the", "cat's", "dog", "the", "end"]


def test_ids_in_the_order_of_first_sight(tmp_path: Path) -> None:
    processor = preprocessing.VocabularyProcessor(4)
    rows = np.array(list(processor.fit_transform(TEXTS)))
    assert rows.dtype == np.int64
    np.testing.assert_array_equal(rows, [[1, 2, 3, 4], [1, 7, 0, 0], [1, 2, 7, 1]])
    assert len(processor.vocabulary_) == 9
    assert next(iter(processor.transform(["the mouse end"]))).tolist() == [1, 0, 8, 0]
    assert list(processor.reverse(rows[1:2])) == ["the dog <UNK> <UNK>"]
    processor.save(tmp_path / "vocabulary")
    again = preprocessing.VocabularyProcessor.restore(str(tmp_path / "vocabulary"))
    np.testing.assert_array_equal(np.array(list(again.transform(TEXTS))), rows)


def test_rare_words_are_left_out_and_frequent_ones_come_first() -> None:
    processor = preprocessing.VocabularyProcessor(3, min_frequency=1)
    processor.fit(["b a c", "b a", "c d", "c"])
    assert next(iter(processor.transform(["a b c", "d"]))).tolist() == [2, 3, 1]
    assert len(processor.vocabulary_) == 4
    vocabulary = preprocessing.CategoricalVocabulary("?", support_reverse=False)
    for word, count in (("x", 5), ("y", 3), ("z", 1)):
        vocabulary.add(word, count)
    vocabulary.trim(0, max_frequency=5)
    assert [vocabulary.get(word) for word in "yz"] == [1, 2]
    vocabulary.freeze()
    assert vocabulary.get("x") == 0
    with pytest.raises(InvalidArgument, match="support_reverse=False"):
        vocabulary.reverse(1)
    own = preprocessing.VocabularyProcessor(2, vocabulary=vocabulary, tokenizer_fn=lambda texts: map(list, texts))
    assert next(iter(own.transform(["zyx"]))).tolist() == [2, 1]


def test_bytes() -> None:
    processor = preprocessing.ByteProcessor(4)
    rows = list(processor.fit_transform(["aé", b"abcdef", ""]))
    assert [row.tolist() for row in rows] == [[97, 195, 169, 0], [97, 98, 99, 100], [0, 0, 0, 0]]
    assert list(processor.reverse([*rows, [195, 0, 0, 0]])) == ["aé", "abcd", "", ""]


def test_what_is_no_processor(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="max_document_length must be at least 1"):
        preprocessing.VocabularyProcessor(0)
    (tmp_path / "text").write_text("no pickle")
    with pytest.raises(InvalidArgument, match="is no VocabularyProcessor"):
        preprocessing.VocabularyProcessor.restore(tmp_path / "text")
    (tmp_path / "list").write_bytes(pickle.dumps([1]))
    with pytest.raises(InvalidArgument, match="holds a list"):
        preprocessing.VocabularyProcessor.restore(tmp_path / "list")
