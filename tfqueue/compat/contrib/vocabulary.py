"""tf.contrib.learn.preprocessing: documents as rows of word ids (VocabularyProcessor), and as rows of bytes."""

from __future__ import annotations

import pickle
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tfqueue.errors import InvalidArgument

_WORD = re.compile(
    r"""
      [A-Z][A-Z]+ (?![a-z])     # an abbreviation
    | [A-Z][a-z]+ (?=[A-Z])     # a part of a word such as CamelCase
    | (?: \w | ' | - )+
    """,
    re.VERBOSE,
)


def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """The words of each text: runs of letters, digits, ``'`` and ``-``; words that are joined as in CamelCase apart."""
    for text in iterator:
        yield _WORD.findall(text)


class CategoricalVocabulary:
    """Ids of words in the order in which they were first seen; id 0 is what is not known.

    Args:
        unknown_token: The word of id 0.
        support_reverse: Whether `reverse` can be asked.
    """

    def __init__(self, unknown_token: str = "<UNK>", support_reverse: bool = True) -> None:
        self._unknown_token = unknown_token
        self._mapping = {unknown_token: 0}
        self._words = [unknown_token] if support_reverse else None
        self._counts: Counter[str] = Counter()
        self._freeze = False

    def __len__(self) -> int:
        return len(self._mapping)

    def freeze(self, freeze: bool = True) -> None:
        """After it, words that are not known have the id 0."""
        self._freeze = freeze

    def get(self, category: str) -> int:
        """The id of a word, which is made where it is not known and the vocabulary is not frozen."""
        if category not in self._mapping:
            if self._freeze:
                return 0
            self._mapping[category] = len(self._mapping)
            if self._words is not None:
                self._words.append(category)
        return self._mapping[category]

    def add(self, category: str, count: int = 1) -> None:
        """Count a word."""
        if self.get(category) > 0:
            self._counts[category] += count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Leave out the words that were counted ``min_frequency`` times or less, or ``max_frequency`` times or more.

        The others are numbered anew: the most frequent first, equal ones in the order of the alphabet.
        """
        kept = sorted(
            (word for word, count in self._counts.items() if count > min_frequency), key=lambda w: (-self._counts[w], w)
        )
        if max_frequency > 0:
            kept = [word for word in kept if self._counts[word] < max_frequency]
        self._mapping = {word: number for number, word in enumerate([self._unknown_token, *kept])}
        self._words = list(self._mapping) if self._words is not None else None
        self._counts = Counter({word: self._counts[word] for word in kept})

    def reverse(self, class_id: int) -> str:
        """The word of an id."""
        if self._words is None:
            raise InvalidArgument("this vocabulary was made with support_reverse=False")
        return self._words[class_id]


class VocabularyProcessor:
    """Texts as rows of word ids.

    Args:
        max_document_length: Words of a row: longer texts are cut, shorter ones filled with 0.
        min_frequency: Words that `fit` counted so many times or less are left out of the vocabulary.
        vocabulary: A `CategoricalVocabulary` to begin with.
        tokenizer_fn: From an iterable of texts to their lists of words; `tokenizer` unless given.
    """

    def __init__(
        self,
        max_document_length: int,
        min_frequency: int = 0,
        vocabulary: CategoricalVocabulary | None = None,
        tokenizer_fn: Callable[[Iterable[str]], Iterable[list[str]]] | None = None,
    ) -> None:
        if max_document_length < 1:
            raise InvalidArgument(f"max_document_length must be at least 1; got {max_document_length}")
        self.max_document_length = max_document_length
        self.min_frequency = min_frequency
        self.vocabulary_ = vocabulary or CategoricalVocabulary()
        self._tokenizer = tokenizer_fn or tokenizer

    def fit(self, raw_documents: Iterable[str], unused_y: Any = None) -> VocabularyProcessor:
        """Make the vocabulary of the words of texts, and freeze it."""
        for words in self._tokenizer(raw_documents):
            for word in words:
                self.vocabulary_.add(word)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def transform(self, raw_documents: Iterable[str]) -> Iterator[Any]:
        """The ids of each text's words: int64 vectors of ``max_document_length``."""
        for words in self._tokenizer(raw_documents):
            ids = np.zeros(self.max_document_length, np.int64)
            for place, word in enumerate(words[: self.max_document_length]):
                ids[place] = self.vocabulary_.get(word)
            yield ids

    def fit_transform(self, raw_documents: Iterable[str], unused_y: Any = None) -> Iterator[Any]:
        """`fit`, then `transform` of the same texts, which must be a list or what can be read twice."""
        return self.fit(raw_documents).transform(raw_documents)

    def reverse(self, documents: Iterable[Iterable[int]]) -> Iterator[str]:
        """The words of rows of ids, joined by blanks."""
        for ids in documents:
            yield " ".join(self.vocabulary_.reverse(int(number)) for number in ids)

    def save(self, filename: Any) -> None:
        """Write the processor, as a pickle."""
        with tf.io.gfile.GFile(str(filename), "wb") as file:
            file.write(pickle.dumps(self))

    @classmethod
    def restore(cls, filename: Any) -> VocabularyProcessor:
        """Read what `save` wrote. A pickle can run code: read only your own files.

        Raises:
            InvalidArgument: The file holds something else.
        """
        with tf.io.gfile.GFile(str(filename), "rb") as file:
            data = file.read()
        try:
            found = pickle.loads(data)
        except (pickle.UnpicklingError, AttributeError, EOFError, ImportError, IndexError) as error:
            raise InvalidArgument(f"{filename} is no VocabularyProcessor: {error}") from error
        if not isinstance(found, VocabularyProcessor):
            raise InvalidArgument(f"{filename} holds a {type(found).__name__}, not a VocabularyProcessor")
        return found


class ByteProcessor:
    """Texts as rows of the bytes of their UTF-8 form.

    Args:
        max_document_length: Bytes of a row: longer texts are cut, shorter ones filled with 0.
    """

    def __init__(self, max_document_length: int) -> None:
        self.max_document_length = max_document_length

    def fit(self, x: Any) -> ByteProcessor:
        """Nothing is to be learned."""
        return self

    def transform(self, x: Iterable[Any]) -> Iterator[Any]:
        """The bytes of each text: uint8 vectors of ``max_document_length``."""
        for document in x:
            data = document if isinstance(document, bytes) else str(document).encode()
            row = np.zeros(self.max_document_length, np.uint8)
            cut = data[: self.max_document_length]
            row[: len(cut)] = np.frombuffer(cut, np.uint8)
            yield row

    def fit_transform(self, x: Iterable[Any]) -> Iterator[Any]:
        return self.transform(x)

    def reverse(self, x: Iterable[Any]) -> Iterator[str]:
        """The texts of rows of bytes, without the zeros at their ends; empty where a row is cut inside a character."""
        for row in x:
            try:
                yield np.asarray(row, np.uint8).tobytes().rstrip(b"\0").decode()
            except UnicodeDecodeError:
                yield ""
