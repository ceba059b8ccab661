"""tf.contrib.layers' layers over ids: embed_sequence and bow_encoder, and a lookup of each id only once."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfqueue.errors import InvalidArgument

tf1 = tf.compat.v1


def embed_sequence(
    ids: Any,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Any:
    """The rows of a variable ``embeddings`` for ids: [batch, steps] -> [batch, steps, embed_dim].

    Args:
        ids: int32 or int64, of any shape.
        vocab_size: Rows of the variable; needed unless an existing one is reused.
        embed_dim: The length of a row; likewise.
        unique: Look each id up only once, where many are equal.
        initializer: Of the variable.
        regularizer: Of the variable.
        trainable: Whether the variable is trained.
        scope: The variable scope; ``EmbedSequence`` unless given.
        reuse: As of tf.variable_scope.

    Raises:
        InvalidArgument: The size is missing and no variable is reused.
    """
    if not reuse and (vocab_size is None or embed_dim is None):
        raise InvalidArgument(f"embed_sequence needs vocab_size and embed_dim; got {vocab_size} and {embed_dim}")
    with tf1.variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        shape = None if vocab_size is None or embed_dim is None else [vocab_size, embed_dim]
        embeddings = _variable(shape, initializer, regularizer, trainable)
        look_up = embedding_lookup_unique if unique else tf1.nn.embedding_lookup
        return look_up(embeddings, ids)


def bow_encoder(
    ids: Any,
    vocab_size: int,
    embed_dim: int,
    sparse_lookup: bool = True,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Any:
    """The mean of the embeddings of each row's ids: [batch, steps] -> [batch, embed_dim].

    Args:
        ids: A matrix or a SparseTensor of ids. With ``sparse_lookup``, the id 0 of a matrix stands for nothing.
        vocab_size: Rows of the variable ``embeddings``.
        embed_dim: The length of a row.
        sparse_lookup: Leave out what is not there; without, every entry of the matrix counts.
        initializer: Of the variable; and so the further arguments, as of `embed_sequence`.
    """
    with tf1.variable_scope(scope, "bow_encoder", [ids], reuse=reuse):
        embeddings = _variable([vocab_size, embed_dim], initializer, regularizer, trainable)
        if sparse_lookup:
            return tf1.nn.embedding_lookup_sparse(embeddings, _sparse(ids), sp_weights=None, combiner="mean")
        if isinstance(ids, tf.SparseTensor):
            raise InvalidArgument("ids must be a dense tensor with sparse_lookup=False")
        return tf.reduce_mean(tf1.nn.embedding_lookup(embeddings, ids), axis=1)


def embedding_lookup_unique(params: Any, ids: Any, partition_strategy: str = "mod", name: str | None = None) -> Any:
    """tf.nn.embedding_lookup, with one look for each different id."""
    with tf1.name_scope(name, "EmbeddingLookupUnique", [params, ids]):
        ids = tf.convert_to_tensor(ids)
        different, where = tf.unique(tf.reshape(ids, [-1]))
        rows = tf1.nn.embedding_lookup(params, different, partition_strategy)
        found = tf.reshape(tf.gather(rows, where), tf.concat([tf.shape(ids), tf.shape(rows)[1:]], axis=0))
        found.set_shape(ids.shape.concatenate(rows.shape[1:]))
        return found


def _variable(shape: Any, initializer: Any, regularizer: Any, trainable: bool) -> Any:
    options = {"initializer": initializer, "regularizer": regularizer, "trainable": trainable}
    collections = [tf1.GraphKeys.GLOBAL_VARIABLES, tf1.GraphKeys.MODEL_VARIABLES]
    return tf1.get_variable("embeddings", shape=shape, collections=collections, **options)


def _sparse(ids: Any) -> Any:
    if isinstance(ids, tf.SparseTensor):
        return ids
    ids = tf.convert_to_tensor(ids)
    places = tf.where(tf.not_equal(ids, 0))
    return tf.SparseTensor(places, tf.gather_nd(ids, places), tf.shape(ids, tf.int64))
