"""tf.contrib.lookup's tables between words and ids, over tf.lookup's; tf.tables_initializer() initialises them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfqueue.errors import InvalidArgument

tf1 = tf.compat.v1


@dataclass(frozen=True, slots=True)
class HasherSpec:
    """How ids outside of a vocabulary are hashed."""

    hasher: str
    key: Any = None


FastHashSpec = HasherSpec("fasthash")


class HashTable(tf1.lookup.StaticHashTable):  # type: ignore[misc, name-defined]
    """A table from keys to values that does not change; ``init`` is the op that fills it.

    Args:
        initializer: Such as a KeyValueTensorInitializer or TextFileInitializer.
        default_value: For keys that are not there.
        shared_name: Accepted; the table is not shared with other sessions.
        name: A name for the ops.
    """

    def __init__(
        self, initializer: Any, default_value: Any, shared_name: str | None = None, name: str | None = None
    ) -> None:
        super().__init__(initializer, default_value, name=name)

    @property
    def init(self) -> Any:
        return self.initializer


class IdTableWithHashBuckets(tf1.lookup.StaticVocabularyTable):  # type: ignore[misc, name-defined]
    """A table from keys to ids, with hashed ids after the known ones for other keys."""

    @property
    def init(self) -> Any:
        return self.initializer


class MutableHashTable(tf.lookup.experimental.MutableHashTable):  # type: ignore[misc]
    """A table that ``insert`` changes.

    Args:
        key_dtype: Of the keys.
        value_dtype: Of the values.
        default_value: For keys that are not there.
        shared_name: Accepted; the table is not shared with other sessions.
        name: A name for the ops.
        checkpoint: Save the content in checkpoints.
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        shared_name: str | None = None,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
    ) -> None:
        super().__init__(key_dtype, value_dtype, default_value, name=name, checkpoint=checkpoint)

    @property
    def init(self) -> Any:
        """Nothing is to be done: the table is empty at first."""
        return tf.no_op()


def index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    dtype: Any = tf.string,
    name: str | None = None,
) -> Any:
    """From the entries of ``mapping`` to their positions, int64.

    What is not in it gets ``default_value``, or a hashed id after the known ones with ``num_oov_buckets``.

    Raises:
        InvalidArgument: ``num_oov_buckets`` is negative, or ``hasher_spec`` is another than ``FastHashSpec``.
    """
    keys = tf.convert_to_tensor(mapping, dtype)
    values = tf.range(tf.size(keys, tf.int64), dtype=tf.int64)
    initializer = tf1.lookup.KeyValueTensorInitializer(keys, values)
    return _to_index(initializer, num_oov_buckets, default_value, hasher_spec, name)


def index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    key_dtype: Any = tf.string,
    name: str | None = None,
    key_column_index: int = tf.lookup.TextFileIndex.WHOLE_LINE,
    value_column_index: int = tf.lookup.TextFileIndex.LINE_NUMBER,
    delimiter: str = "\t",
) -> Any:
    """From the lines of a file to their 0-based numbers, int64; otherwise as `index_table_from_tensor`.

    Args:
        vocabulary_file: The path.
        num_oov_buckets: As of `index_table_from_tensor`.
        vocab_size: How many lines are read; None: all.
        default_value: As of `index_table_from_tensor`.
        hasher_spec: As of `index_table_from_tensor`.
        key_dtype: tf.string, or a dtype of integers.
        name: A name for the ops.
        key_column_index: The column of the key, where lines have several.
        value_column_index: The column of the id.
        delimiter: Between columns.
    """
    if not vocabulary_file:
        raise InvalidArgument("vocabulary_file is empty: give the path of a file with one word a line")
    initializer = tf1.lookup.TextFileInitializer(
        vocabulary_file,
        key_dtype if tf.as_dtype(key_dtype) == tf.string else tf.int64,
        key_column_index,
        tf.int64,
        value_column_index,
        vocab_size=vocab_size,
        delimiter=delimiter,
    )
    return _to_index(initializer, num_oov_buckets, default_value, hasher_spec, name)


def index_to_string_table_from_tensor(mapping: Any, default_value: str = "UNK", name: str | None = None) -> Any:
    """From positions (int64) to the entries of ``mapping``, ``default_value`` for others."""
    values = tf.convert_to_tensor(mapping, tf.string)
    keys = tf.range(tf.size(values, tf.int64), dtype=tf.int64)
    initializer = tf1.lookup.KeyValueTensorInitializer(keys, values)
    return HashTable(initializer, default_value, name=name)


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
    return HashTable(initializer, default_value, name=name)


def string_to_index(tensor: Any, mapping: Any, default_value: int = -1, name: str | None = None) -> Any:
    """The positions of strings in ``mapping``, int64."""
    return index_table_from_tensor(mapping, 0, default_value, name=name).lookup(tf.convert_to_tensor(tensor, tf.string))


def index_to_string(tensor: Any, mapping: Any, default_value: str = "UNK", name: str | None = None) -> Any:
    """The entries of ``mapping`` at positions (int64)."""
    return index_to_string_table_from_tensor(mapping, default_value, name).lookup(tf.cast(tensor, tf.int64))


def _to_index(initializer: Any, num_oov_buckets: int, default_value: int, hasher_spec: Any, name: str | None) -> Any:
    if num_oov_buckets < 0:
        raise InvalidArgument(f"num_oov_buckets cannot be negative; got {num_oov_buckets}")
    if hasher_spec != FastHashSpec:
        raise InvalidArgument("ids outside of a vocabulary can only be hashed by FastHashSpec")
    if num_oov_buckets > 0:
        return IdTableWithHashBuckets(initializer, num_oov_buckets, name=name)
    return HashTable(initializer, default_value, name=name)
