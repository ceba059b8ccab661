"""tf.contrib.lookup's tables between words and ids, over tf.lookup's; tf.tables_initializer() initialises them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfqueue.errors import InvalidArgument

tf1 = tf.compat.v1


def index_table_from_tensor(
    mapping: Any, num_oov_buckets: int = 0, default_value: int = -1, dtype: Any = tf.string, name: str | None = None
) -> Any:
    """From the entries of ``mapping`` to their positions, int64.

    What is not in it gets ``default_value``, or a hashed id after the known ones with ``num_oov_buckets``.
    """
    keys = tf.convert_to_tensor(mapping, dtype)
    values = tf.range(tf.size(keys, tf.int64), dtype=tf.int64)
    return _to_index(tf1.lookup.KeyValueTensorInitializer(keys, values), num_oov_buckets, default_value, name)


def index_table_from_file(
    vocabulary_file: Any,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    name: str | None = None,
) -> Any:
    """From the lines of a file to their 0-based numbers, int64; otherwise as `index_table_from_tensor`."""
    if not vocabulary_file:
        raise InvalidArgument("vocabulary_file is empty: give the path of a file with one word a line")
    initializer = tf1.lookup.TextFileInitializer(
        vocabulary_file,
        tf.string,
        tf.lookup.TextFileIndex.WHOLE_LINE,
        tf.int64,
        tf.lookup.TextFileIndex.LINE_NUMBER,
        vocab_size=vocab_size,
    )
    return _to_index(initializer, num_oov_buckets, default_value, name)


def index_to_string_table_from_tensor(mapping: Any, default_value: str = "UNK", name: str | None = None) -> Any:
    """From positions (int64) to the entries of ``mapping``, ``default_value`` for others."""
    values = tf.convert_to_tensor(mapping, tf.string)
    keys = tf.range(tf.size(values, tf.int64), dtype=tf.int64)
    initializer = tf1.lookup.KeyValueTensorInitializer(keys, values)
    return tf1.lookup.StaticHashTable(initializer, default_value, name=name)


def index_to_string_table_from_file(
    vocabulary_file: Any, vocab_size: int | None = None, default_value: str = "UNK", name: str | None = None
) -> Any:
    """From 0-based line numbers (int64) to the lines of a file, ``default_value`` for others."""
    initializer = tf1.lookup.TextFileInitializer(
        vocabulary_file,
        tf.int64,
        tf.lookup.TextFileIndex.LINE_NUMBER,
        tf.string,
        tf.lookup.TextFileIndex.WHOLE_LINE,
        vocab_size=vocab_size,
    )
    return tf1.lookup.StaticHashTable(initializer, default_value, name=name)


def _to_index(initializer: Any, num_oov_buckets: int, default_value: int, name: str | None) -> Any:
    if num_oov_buckets < 0:
        raise InvalidArgument(f"num_oov_buckets cannot be negative; got {num_oov_buckets}")
    if num_oov_buckets > 0:
        return tf1.lookup.StaticVocabularyTable(initializer, num_oov_buckets, name=name)
    return tf1.lookup.StaticHashTable(initializer, default_value, name=name)
