"""Rows of the table: tf.contrib.data, training, learn, layers and framework, all removed in TensorFlow 2.0."""

from __future__ import annotations

from tfqueue.compat.names_row import OldName, alias, gone, rebuilt, slim

_DATA_ALIASES = {
    "AUTOTUNE": "data.AUTOTUNE",
    "Counter": "data.Dataset.counter",
    "CsvDataset": "data.experimental.CsvDataset",
    "Iterator": "iter(dataset)",
    "RandomDataset": "data.Dataset.random",
    "Reducer": "data.experimental.Reducer",
    "SqlDataset": "data.experimental.SqlDataset",
    "bucket_by_sequence_length": "Dataset.bucket_by_sequence_length",
    "choose_from_datasets": "data.Dataset.choose_from_datasets",
    "copy_to_device": "data.experimental.copy_to_device",
    "Optional": "data.experimental.Optional",
    "dense_to_sparse_batch": "data.experimental.dense_to_sparse_batch",
    "enumerate_dataset": "Dataset.enumerate",
    "get_next_as_optional": "data.experimental.get_next_as_optional",
    "get_single_element": "Dataset.get_single_element",
    "group_by_reducer": "data.experimental.group_by_reducer",
    "group_by_window": "Dataset.group_by_window",
    "ignore_errors": "Dataset.ignore_errors",
    "make_batched_features_dataset": "data.experimental.make_batched_features_dataset",
    "make_csv_dataset": "data.experimental.make_csv_dataset",
    "make_saveable_from_iterator": "train.Checkpoint(iterator=iterator)",
    "map_and_batch": "Dataset.map(f, num_parallel_calls=tf.data.AUTOTUNE).batch(n)",
    "parallel_interleave": "Dataset.interleave(..., num_parallel_calls=, deterministic=)",
    "parse_example_dataset": "data.experimental.parse_example_dataset",
    "prefetch_to_device": "data.experimental.prefetch_to_device",
    "rejection_resample": "Dataset.rejection_resample",
    "sample_from_datasets": "data.Dataset.sample_from_datasets",
    "scan": "Dataset.scan",
    "shuffle_and_repeat": "Dataset.shuffle(n).repeat(count)",
    "unbatch": "Dataset.unbatch",
    "unique": "Dataset.unique",
}
_DATA_HOMES = {
    "AUTOTUNE": "data.AUTOTUNE",
    "Iterator": "data.Iterator",
}
_DATA_CHANGES = {
    "shuffle_and_repeat": "the same order of epochs; each epoch is shuffled apart",
    "parallel_interleave": "sloppy=True is deterministic=False",
}

_DATA = (
    *(
        alias(
            f"contrib.data.{name}",
            _DATA_HOMES.get(name, f"data.experimental.{name}"),
            f"tf.{today}" if today[0].islower() and not today.startswith("iter(") else today,
            _DATA_CHANGES.get(name, ""),
            removed="2.0",
        )
        for name, today in _DATA_ALIASES.items()
    ),
    *(
        rebuilt(
            f"contrib.data.{name}",
            f"contrib.old_dataset:{name}",
            f"tf.data.{name}",
            "map(num_threads=, output_buffer_size=) of 1.2 and 1.3 is map(num_parallel_calls=).prefetch()",
            here=f"tf.compat.v1.data.{name}, with the arguments and methods of 1.2 and 1.3 as well",
        )
        for name in ("Dataset", "FixedLengthRecordDataset", "TFRecordDataset", "TextLineDataset")
    ),
    rebuilt(
        "contrib.data.batch_and_drop_remainder",
        "contrib.datasets:batch_and_drop_remainder",
        "Dataset.batch(n, drop_remainder=True)",
    ),
    rebuilt(
        "contrib.data.padded_batch_and_drop_remainder",
        "contrib.datasets:padded_batch_and_drop_remainder",
        "Dataset.padded_batch(n, drop_remainder=True)",
    ),
    rebuilt(
        "contrib.data.sloppy_interleave",
        "contrib.datasets:sloppy_interleave",
        "Dataset.interleave(..., deterministic=False)",
    ),
    rebuilt(
        "contrib.data.sliding_window_batch",
        "contrib.datasets:sliding_window_batch",
        "Dataset.window(size, shift, stride, drop_remainder=True)",
        "window gives datasets of datasets",
    ),
    rebuilt(
        "contrib.data.assert_element_shape",
        "contrib.datasets:assert_element_shape",
        "Dataset.map(tf.ensure_shape)",
    ),
    rebuilt(
        "contrib.data.read_batch_features",
        "contrib.datasets:read_batch_features",
        "tf.data.experimental.make_batched_features_dataset",
        "a dataset, not tensors",
    ),
    gone("contrib.data.*", "a part of tf.contrib.data", "tf.data.experimental"),
)

_BUCKETS = "Dataset.bucket_by_sequence_length"
_RESAMPLED = "Dataset.rejection_resample"
_REPEATED = "Dataset.flat_map of each element, repeated a drawn number of times"
_TRAINING = (
    rebuilt(
        "contrib.training.bucket_by_sequence_length",
        "contrib.buckets:bucket_by_sequence_length",
        _BUCKETS,
        "a dataset emits the leftover of every bucket at the end; the queue only with allow_smaller_final_batch",
    ),
    rebuilt(
        "contrib.training.bucket",
        "contrib.buckets:bucket",
        "Dataset.group_by_window",
        "a dataset emits the leftover of every bucket",
    ),
    rebuilt(
        "contrib.training.rejection_sample", "contrib.sampling:rejection_sample", "Dataset.filter with a random number"
    ),
    rebuilt("contrib.training.stratified_sample", "contrib.sampling:stratified_sample", _RESAMPLED),
    rebuilt("contrib.training.resample_at_rate", "contrib.sampling:resample_at_rate", _REPEATED),
    rebuilt("contrib.training.weighted_resample", "contrib.sampling:weighted_resample", _REPEATED),
    rebuilt("contrib.training.HParams", "contrib.hparams:HParams", "a dataclass, or a dict", "no parsing of strings"),
    rebuilt("contrib.training.parse_values", "contrib.hparams:parse_values", "argparse or json"),
    alias(
        "contrib.training.checkpoints_iterator",
        "train.checkpoints_iterator",
        "tf.train.checkpoints_iterator",
        removed="2.0",
    ),
    *(
        slim(f"contrib.training.{name}", f"training.training:{name}", "tf.keras.Model.fit")
        for name in ("add_gradients_summaries", "clip_gradient_norms", "create_train_op", "multiply_gradients", "train")
    ),
    *(
        slim(f"contrib.training.{name}", f"training.evaluation:{name}", "tf.keras.Model.evaluate")
        for name in (
            "StopAfterNEvalsHook",
            "SummaryAtEndHook",
            "evaluate_once",
            "evaluate_repeatedly",
            "get_or_create_eval_step",
            "wait_for_new_checkpoint",
        )
    ),
    *(
        gone(
            f"contrib.training.{name}",
            "batches of unrolled segments of sequences whose state training saves back into a barrier of the graph",
            "tf.keras.layers.LSTM(stateful=True) over Dataset.window segments; the state lives in the layer",
        )
        for name in ("batch_sequences_with_states", "NextQueuedSequenceBatch", "SequenceQueueingStateSaver")
    ),
    gone("contrib.training.*", "a part of tf.contrib.training", "tf.keras, or tf.distribute"),
)

_BATCH_READERS = (
    "read_batch_examples",
    "read_batch_features",
    "read_batch_record_features",
    "read_keyed_batch_examples",
    "read_keyed_batch_features",
)
_LEARN = (
    *(
        rebuilt(
            f"contrib.learn.{name}",
            f"contrib.readers:{name}",
            "tf.data.experimental.make_batched_features_dataset",
            "a dataset; the queue keeps the last partial batch",
        )
        for name in _BATCH_READERS
    ),
    *(
        rebuilt(
            f"contrib.learn.io.{name}",
            f"estimator_inputs:{name}",
            "tf.data.Dataset.from_tensor_slices((x, y))",
            "shuffles all rows of a pass, and begins at the first",
        )
        for name in ("numpy_input_fn", "pandas_input_fn")
    ),
    *(
        rebuilt(
            f"contrib.learn.preprocessing.{name}",
            f"contrib.vocabulary:{name}",
            modern,
            "other tokens: words in lower case without punctuation",
        )
        for name, modern in (
            ("ByteProcessor", "tf.io.decode_raw(text, tf.uint8, fixed_length=n)"),
            ("CategoricalVocabulary", "tf.keras.layers.StringLookup"),
            ("VocabularyProcessor", "tf.keras.layers.TextVectorization"),
            ("tokenizer", "tf.keras.layers.TextVectorization(split=)"),
        )
    ),
    rebuilt("contrib.learn.run_n", "contrib.learn_runs:run_n", "for batch in dataset.take(n)"),
    rebuilt("contrib.learn.run_feeds", "contrib.learn_runs:run_feeds", "a tf.function in a loop"),
    rebuilt("contrib.learn.ModeKeys", "contrib.learn_runs:ModeKeys", "the argument training= of a Keras layer"),
    rebuilt("contrib.learn.datasets.mnist.*", "mnist:", "tf.keras.datasets", "whole arrays", here="rebuilt by tfqueue"),
    rebuilt(
        "contrib.learn.python.learn.datasets.mnist.*",
        "mnist:",
        "tf.keras.datasets.mnist.load_data",
        "whole arrays, no next_batch",
        here="rebuilt by tfqueue, over local files",
    ),
    gone("contrib.learn.*", "a part of tf.contrib.learn: estimators and experiments", "tf.keras.Model.fit"),
)

_COLUMNS = (
    "bucketized_column",
    "create_feature_spec_for_parsing",
    "crossed_column",
    "embedding_column",
    "one_hot_column",
    "parse_feature_columns_from_examples",
    "real_valued_column",
    "scattered_embedding_column",
    "sparse_column_with_hash_bucket",
    "sparse_column_with_integerized_feature",
    "sparse_column_with_keys",
    "sparse_column_with_vocabulary_file",
    "weighted_sparse_column",
)
_LAYERS = (
    *(
        rebuilt(
            f"contrib.layers.{name}",
            f"contrib.columns:{name}",
            "tf.io.parse_example with a spec that is written down, tf.keras.layers",
            "only the description of the features: what parses them",
        )
        for name in _COLUMNS
    ),
    *(
        gone(
            f"contrib.layers.{name}",
            "the model side of tf.contrib.layers' feature columns",
            "tf.keras.layers.CategoryEncoding, StringLookup, Embedding",
        )
        for name in (
            "input_from_feature_columns",
            "joint_weighted_sum_from_feature_columns",
            "make_place_holder_tensors_for_base_features",
            "multi_class_target",
            "regression_target",
            "sequence_input_from_feature_columns",
            "shared_embedding_columns",
            "weighted_sum_from_feature_columns",
            "check_feature_columns",
            "parse_feature_columns_from_sequence_examples",
            "sparse_feature_cross",
            "transform_features",
        )
    ),
    *(
        rebuilt(f"contrib.layers.{name}", f"contrib.embeddings:{name}", "tf.keras.layers.Embedding")
        for name in ("bow_encoder", "embed_sequence", "embedding_lookup_unique")
    ),
    alias(
        "contrib.layers.safe_embedding_lookup_sparse",
        "nn.safe_embedding_lookup_sparse",
        "tf.nn.safe_embedding_lookup_sparse",
        removed="2.0",
    ),
    OldName(
        "tf.contrib.layers.*",
        "slim",
        "tf_slim.layers, mended",
        "tf.keras.layers, tf.keras.initializers, regularizers",
        "variables get other names",
        "tfqueue.compat.contrib.slim_mended:",
        "2.0",
    ),
)

_FRAMEWORK = (
    alias("contrib.framework.nest", "nest", "tf.nest", removed="2.0"),
    alias("contrib.framework.argsort", "argsort", "tf.argsort", removed="2.0"),
    alias("contrib.framework.sort", "sort", "tf.sort", removed="2.0"),
    alias(
        "contrib.framework.get_or_create_global_step",
        "train.get_or_create_global_step",
        "optimizer.iterations",
        removed="2.0",
    ),
    alias("contrib.framework.get_global_step", "train.get_global_step", "optimizer.iterations", removed="2.0"),
    alias("contrib.framework.create_global_step", "train.create_global_step", "optimizer.iterations", removed="2.0"),
    alias("contrib.framework.assert_global_step", "train.assert_global_step", "optimizer.iterations", removed="2.0"),
    alias("contrib.framework.list_variables", "train.list_variables", "tf.train.list_variables", removed="2.0"),
    alias("contrib.framework.load_variable", "train.load_variable", "tf.train.load_variable", removed="2.0"),
    alias("contrib.framework.load_checkpoint", "train.load_checkpoint", "tf.train.load_checkpoint", removed="2.0"),
    alias(
        "contrib.framework.init_from_checkpoint",
        "train.init_from_checkpoint",
        "tf.train.Checkpoint.restore",
        removed="2.0",
    ),
    alias("contrib.framework.is_tensor", "is_tensor", "tf.is_tensor", removed="2.0"),
    alias("contrib.framework.assert_scalar", "assert_scalar", "tf.debugging.assert_scalar", removed="2.0"),
    alias(
        "contrib.framework.assert_same_float_dtype",
        "assert_same_float_dtype",
        "tf.debugging.assert_same_float_dtype",
        removed="2.0",
    ),
    alias("contrib.framework.is_numeric_tensor", "is_numeric_tensor", "tf.debugging.is_numeric_tensor", removed="2.0"),
    alias("contrib.framework.is_non_decreasing", "is_non_decreasing", "tf.math.is_non_decreasing", removed="2.0"),
    alias(
        "contrib.framework.is_strictly_increasing",
        "is_strictly_increasing",
        "tf.math.is_strictly_increasing",
        removed="2.0",
    ),
    alias("contrib.framework.zero_initializer", "zeros_initializer", "tf.zeros_initializer", removed="2.0"),
    *(
        rebuilt(f"contrib.framework.{name}", f"contrib.small:{name}", modern)
        for name, modern in (
            ("assert_scalar_int", "tf.debugging.assert_scalar, tf.debugging.assert_integer"),
            ("convert_to_tensor_or_sparse_tensor", "tf.convert_to_tensor"),
            ("get_name_scope", "tf.get_current_name_scope"),
            ("reduce_sum_n", "tf.add_n of tf.reduce_sum"),
            ("remove_squeezable_dimensions", "tf.squeeze"),
            ("smart_cond", "Python's if, or tf.cond"),
            ("smart_constant_value", "tf.get_static_value"),
            ("with_same_shape", "tf.ensure_shape"),
            ("with_shape", "tf.ensure_shape"),
        )
    ),
    alias("contrib.framework.CriticalSection", "CriticalSection", "tf.CriticalSection", removed="2.0"),
    *(
        OldName(
            f"tf.contrib.framework.{name}",
            "slim",
            f"tf_slim.{name}",
            "no counterpart: pass the arguments",
            "",
            f"tfqueue.compat.contrib.slim_mended:{name}",
            "2.0",
        )
        for name in ("arg_scope", "add_arg_scope", "arg_scoped_arguments", "current_arg_scope", "has_arg_scope")
    ),
    *(
        OldName(
            f"tf.contrib.framework.{name}",
            "slim",
            f"tf_slim.{name}",
            "tf.Variable, tf.train.Checkpoint",
            "",
            f"tfqueue.compat.contrib.slim_mended:{name}",
            "2.0",
        )
        for name in (
            "VariableDeviceChooser",
            "add_model_variable",
            "assert_or_get_global_step",
            "assign_from_checkpoint",
            "assign_from_checkpoint_fn",
            "assign_from_values",
            "assign_from_values_fn",
            "filter_variables",
            "get_local_variables",
            "get_model_variables",
            "get_trainable_variables",
            "get_unique_variable",
            "get_variable_full_name",
            "get_variables",
            "get_variables_by_name",
            "get_variables_by_suffix",
            "get_variables_to_restore",
            "global_variable",
            "local_variable",
            "model_variable",
            "variable",
        )
    ),
    gone("contrib.framework.*", "a part of tf.contrib.framework", "TensorFlow's core"),
)

ROWS: tuple[OldName, ...] = (*_DATA, *_TRAINING, *_LEARN, *_LAYERS, *_FRAMEWORK)
