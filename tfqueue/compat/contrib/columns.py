"""tf.contrib.layers' feature columns as descriptions of what to parse; the model side of them is not restored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from tfqueue.errors import InvalidArgument

tf1 = tf.compat.v1


@dataclass(frozen=True, slots=True)
class FeatureColumn:
    """A feature column.

    Attributes:
        kind: The function that made it.
        name: The name of the feature, or of all features it is made of, joined by ``_X_``.
        config: What tf.parse_example needs: from the names of features to FixedLenFeature or VarLenFeature.
        options: The other arguments, for who reads them.
    """

    kind: str
    name: str
    config: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)

    def __hash__(self) -> int:  # programs make sets of columns; the settings of a column cannot be hashed
        return hash(self.key)

    @property
    def key(self) -> str:
        """The name by which columns are sorted."""
        return f"{self.kind}({self.name})"


def real_valued_column(
    column_name: str,
    dimension: int | None = 1,
    default_value: Any = None,
    dtype: Any = tf.float32,
    normalizer: Callable[[Any], Any] | None = None,
) -> FeatureColumn:
    """A dense feature of ``dimension`` numbers, or of any number of them (a VarLenFeature) with ``dimension=None``.

    Args:
        column_name: The name of the feature.
        dimension: How many numbers it has.
        default_value: For examples that lack the feature: one number, or ``dimension`` of them; None: it must be there.
        dtype: A dtype of numbers.
        normalizer: Kept for who reads it; parsing does not apply it.
    """
    if dimension is not None and (not isinstance(dimension, int) or dimension < 1):
        raise InvalidArgument(
            f"dimension of {column_name!r} must be an integer of at least 1, or None; got {dimension!r}"
        )
    if not (tf.as_dtype(dtype).is_integer or tf.as_dtype(dtype).is_floating):
        raise InvalidArgument(f"dtype of {column_name!r} must be numbers; got {tf.as_dtype(dtype).name}")
    feature: Any = tf1.VarLenFeature(dtype)
    if dimension is not None:
        feature = tf1.FixedLenFeature([dimension], dtype, _defaults(column_name, default_value, dimension))
    options = {"dimension": dimension, "default_value": default_value, "normalizer": normalizer}
    return FeatureColumn("real_valued_column", column_name, {column_name: feature}, options)


def sparse_column_with_hash_bucket(
    column_name: str, hash_bucket_size: int, combiner: str = "sum", dtype: Any = tf.string
) -> FeatureColumn:
    """A categorical feature whose ids are hashes."""
    if hash_bucket_size < 1:
        raise InvalidArgument(f"hash_bucket_size of {column_name!r} must be at least 1; got {hash_bucket_size}")
    options = {"hash_bucket_size": hash_bucket_size, "combiner": combiner}
    return _sparse("sparse_column_with_hash_bucket", column_name, dtype, options)


def sparse_column_with_integerized_feature(
    column_name: str, bucket_size: int, combiner: str = "sum", dtype: Any = tf.int64
) -> FeatureColumn:
    """A categorical feature that holds its ids."""
    if bucket_size < 1:
        raise InvalidArgument(f"bucket_size of {column_name!r} must be at least 1; got {bucket_size}")
    options = {"bucket_size": bucket_size, "combiner": combiner}
    return _sparse("sparse_column_with_integerized_feature", column_name, dtype, options)


def sparse_column_with_keys(
    column_name: str, keys: Sequence[Any], default_value: int = -1, combiner: str = "sum", dtype: Any = tf.string
) -> FeatureColumn:
    """A categorical feature whose ids are positions in ``keys``."""
    options = {"keys": tuple(keys), "default_value": default_value, "combiner": combiner}
    return _sparse("sparse_column_with_keys", column_name, dtype, options)


def sparse_column_with_vocabulary_file(
    column_name: str,
    vocabulary_file: str,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    combiner: str = "sum",
    dtype: Any = tf.string,
) -> FeatureColumn:
    """A categorical feature whose ids are line numbers of a file."""
    options = {
        "vocabulary_file": vocabulary_file,
        "num_oov_buckets": num_oov_buckets,
        "vocab_size": vocab_size,
        "default_value": default_value,
        "combiner": combiner,
    }
    return _sparse("sparse_column_with_vocabulary_file", column_name, dtype, options)


def weighted_sparse_column(
    sparse_id_column: FeatureColumn, weight_column_name: str, dtype: Any = tf.float32
) -> FeatureColumn:
    """A categorical feature with a feature of weights beside it."""
    config = {**sparse_id_column.config, weight_column_name: tf1.VarLenFeature(dtype)}
    name = f"{sparse_id_column.name}_weighted_by_{weight_column_name}"
    return FeatureColumn("weighted_sparse_column", name, config, {"column": sparse_id_column})


def one_hot_column(sparse_id_column: FeatureColumn) -> FeatureColumn:
    """A categorical feature as a vector with a one for each of its values."""
    return _over("one_hot_column", [sparse_id_column], {})


def embedding_column(
    sparse_id_column: FeatureColumn, dimension: int, combiner: str = "mean", **options: Any
) -> FeatureColumn:
    """A categorical feature as the mean, sum or square-root-weighted sum of learned vectors."""
    return _over("embedding_column", [sparse_id_column], {"dimension": dimension, "combiner": combiner, **options})


def scattered_embedding_column(
    column_name: str, size: int, dimension: int, hash_key: int, combiner: str = "mean", initializer: Any = None
) -> FeatureColumn:
    """A string feature as a learned vector whose parameters are shared by hashing."""
    options = {"size": size, "dimension": dimension, "hash_key": hash_key, "combiner": combiner}
    return _sparse("scattered_embedding_column", column_name, tf.string, {**options, "initializer": initializer})


def bucketized_column(source_column: FeatureColumn, boundaries: Sequence[float]) -> FeatureColumn:
    """A real-valued feature by the interval that it falls into."""
    if list(boundaries) != sorted(set(boundaries)):
        raise InvalidArgument(f"boundaries must increase; got {list(boundaries)}")
    return _over("bucketized_column", [source_column], {"boundaries": tuple(boundaries)})


def crossed_column(columns: Iterable[FeatureColumn], hash_bucket_size: int, **options: Any) -> FeatureColumn:
    """Combinations of categorical features, hashed."""
    columns = sorted(columns, key=lambda column: column.key)
    if len(columns) < 2:
        raise InvalidArgument(f"crossed_column needs at least 2 columns; got {len(columns)}")
    return _over("crossed_column", columns, {"hash_bucket_size": hash_bucket_size, **options})


def create_feature_spec_for_parsing(feature_columns: Iterable[FeatureColumn]) -> dict[str, Any]:
    """What tf.parse_example needs to parse all features of the columns.

    Raises:
        InvalidArgument: Two columns describe one feature differently, or something is no column of this module.
    """
    spec: dict[str, Any] = {}
    for column in sorted(feature_columns, key=lambda column: getattr(column, "key", "")):
        if not isinstance(column, FeatureColumn):
            raise InvalidArgument(
                f"create_feature_spec_for_parsing takes columns of tf.contrib.layers; got {type(column).__name__}. "
                f"For columns of tf.feature_column: tf.feature_column.make_parse_example_spec"
            )
        for name, feature in column.config.items():
            if name in spec and spec[name] != feature:
                raise InvalidArgument(f"feature {name!r} is described twice: as {spec[name]} and as {feature}")
            spec[name] = feature
    return spec


def parse_feature_columns_from_examples(
    serialized: Any, feature_columns: Iterable[FeatureColumn], name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """The parsed features of a vector of serialized examples, by their names."""
    spec = create_feature_spec_for_parsing(feature_columns)
    return dict(tf1.parse_example(serialized, spec, name=name, example_names=example_names))


def _sparse(kind: str, name: str, dtype: Any, options: Mapping[str, Any]) -> FeatureColumn:
    return FeatureColumn(kind, name, {name: tf1.VarLenFeature(tf.as_dtype(dtype))}, options)


def _over(kind: str, columns: Sequence[FeatureColumn], options: Mapping[str, Any]) -> FeatureColumn:
    config = create_feature_spec_for_parsing(columns)
    return FeatureColumn(kind, "_X_".join(column.name for column in columns), config, {**options, "columns": columns})


def _defaults(name: str, value: Any, dimension: int) -> list[Any] | None:
    if value is None:
        return None
    values = list(value) if isinstance(value, list | tuple) else [value] * dimension
    if len(values) != dimension:
        raise InvalidArgument(f"default_value of {name!r} has {len(values)} numbers; its dimension is {dimension}")
    return values
