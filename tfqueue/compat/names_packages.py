"""Rows of the table: recurrent cells, the smaller packages of tf.contrib, and those that are gone as a whole."""

from __future__ import annotations

from tfqueue.compat.names_row import OldName, alias, gone, rebuilt

_CELLS = [
    "BasicLSTMCell",
    "BasicRNNCell",
    "DeviceWrapper",
    "DropoutWrapper",
    "GRUCell",
    "LSTMCell",
    "LSTMStateTuple",
    "MultiRNNCell",
    "ResidualWrapper",
    "RNNCell",
]
_RNN = (
    *(
        OldName(
            f"tf.contrib.rnn.{name}",
            "keras",
            f"tf_keras: {name}",
            "tf.keras.layers.LSTMCell, GRUCell, RNN",
            "",
            f"tfqueue.compat.legacy_layers:{name}",
            "2.0",
        )
        for name in _CELLS
    ),
    alias("contrib.rnn.static_rnn", "nn.static_rnn", "tf.keras.layers.RNN(unroll=True)", removed="2.0"),
    alias(
        "contrib.rnn.static_bidirectional_rnn",
        "nn.static_bidirectional_rnn",
        "tf.keras.layers.Bidirectional",
        removed="2.0",
    ),
    alias(
        "contrib.rnn.static_state_saving_rnn",
        "nn.static_state_saving_rnn",
        "tf.keras.layers.RNN(stateful=True)",
        removed="2.0",
    ),
    rebuilt(
        "contrib.rnn.stack_bidirectional_dynamic_rnn",
        "contrib.small:stack_bidirectional_dynamic_rnn",
        "several tf.keras.layers.Bidirectional",
    ),
    rebuilt("contrib.rnn.transpose_batch_time", "contrib.small:transpose_batch_time", "tf.transpose"),
    rebuilt(
        "contrib.rnn.LSTMBlockCell",
        "contrib.small:LSTMBlockCell",
        "tf.keras.layers.LSTMCell",
        here="tf_keras: BasicLSTMCell, with the same variables",
    ),
    gone("contrib.rnn.*", "a part of tf.contrib.rnn", "tf.keras.layers.RNN"),
)

_GONE_PACKAGES = {
    "bayesflow": ("Monte Carlo methods", "tensorflow_probability"),
    "checkpoint": ("object-based checkpoints while they were an experiment", "tf.train.Checkpoint"),
    "cluster_resolver": ("the addresses of a cluster", "tf.distribute.cluster_resolver"),
    "compiler": ("XLA scopes", "tf.function(jit_compile=True)"),
    "constrained_optimization": ("optimization under constraints", "tensorflow_constrained_optimization"),
    "copy_graph": ("copies of graph elements", "tf.graph_util, tf.import_graph_def"),
    "estimator": ("further estimators, hooks and heads", "tf.keras callbacks, such as EarlyStopping"),
    "factorization": ("k-means, Gaussian mixtures and matrix factorization", "scikit-learn"),
    "gan": ("training of generative adversarial networks", "tensorflow_gan"),
    "graph_editor": ("changes of a graph in place", "tf.graph_util, tf.import_graph_def(input_map=)"),
    "integrate": ("odeint", "tensorflow_probability.math.ode"),
    "memory_stats": ("ops that ask for the memory in use", "tf.config.experimental.get_memory_info"),
    "mixed_precision": ("loss scaling", "tf.keras.mixed_precision"),
    "nccl": ("sums over several GPUs", "tf.distribute.NcclAllReduce"),
    "nn": ("sampled and sparse variants of losses", "tf.nn"),
    "predictor": ("prediction from saved models", "tf.saved_model.load"),
    "quantize": ("graphs rewritten for quantized training", "tensorflow_model_optimization"),
    "resampler": ("an image resampler by custom C++ ops", "tfa.image.resampler of TensorFlow Addons (archived)"),
    "saved_model": ("helpers for saved models", "tf.saved_model"),
    "session_bundle": ("the form of saved models before SavedModel", "tf.saved_model"),
    "skflow": ("estimators in the manner of scikit-learn, later tf.contrib.learn", "tf.keras.Model.fit"),
    "sparsemax": ("an alternative to softmax", "tfa.activations.sparsemax of TensorFlow Addons (archived)"),
    "summary": ("summaries for eager execution, which became those of TF2", "tf.summary"),
    "tensor_forest": ("random forests by custom C++ ops", "tensorflow_decision_forests"),
    "tensorboard": ("settings of TensorBoard's plugins", "tensorboard.plugins.projector of the package tensorboard"),
    "tensorrt": ("conversion to TensorRT", "tf.experimental.tensorrt.Converter"),
    "text": ("skip-gram samples by custom C++ ops", "tf.keras.preprocessing.sequence.skipgrams of tf_keras"),
    "tfprof": ("the profiler's old name", "tf.compat.v1.profiler"),
    "timeseries": ("models of time series", "tensorflow_probability.sts"),
}

_SMALL = (
    OldName(
        "tf.contrib.slim.*",
        "slim",
        "tf_slim, mended",
        "tf.keras",
        "tfqueue mends batch_norm, optimize_loss and tfexample_decoder.Image, which fail on today's TensorFlow",
        "tfqueue.compat.contrib.slim_mended:",
        "2.0",
    ),
    OldName(
        "tf.contrib.losses.*",
        "slim",
        "tf_slim.losses",
        "tf.keras.losses",
        "other order of the arguments",
        "tf_slim.losses:",
        "2.0",
    ),
    OldName(
        "tf.contrib.metrics.*",
        "slim",
        "tf_slim.metrics",
        "tf.keras.metrics",
        "streaming metrics are objects",
        "tf_slim.metrics:",
        "2.0",
    ),
    alias("contrib.metrics.confusion_matrix", "confusion_matrix", "tf.math.confusion_matrix", removed="2.0"),
    *(
        alias(f"contrib.metrics.set_{name}", f"sets.set_{name}", f"tf.sets.{name}", removed="2.0")
        for name in ("difference", "intersection", "size", "union")
    ),
    rebuilt("contrib.staging.StagingArea", "contrib.staging_area:StagingArea", "Dataset.prefetch"),
    *(
        rebuilt(f"contrib.lookup.{name}", f"contrib.lookups:{home}", f"tf.lookup.{modern}")
        for name, home, modern in (
            ("FastHashSpec", "FastHashSpec", "StaticVocabularyTable"),
            ("HashTable", "HashTable", "StaticHashTable"),
            ("MutableHashTable", "MutableHashTable", "experimental.MutableHashTable"),
            ("index_table_from_file", "index_table_from_file", "StaticVocabularyTable"),
            ("index_table_from_tensor", "index_table_from_tensor", "StaticVocabularyTable"),
            ("index_to_string", "index_to_string", "StaticHashTable"),
            ("index_to_string_table_from_file", "index_to_string_table_from_file", "StaticHashTable"),
            ("index_to_string_table_from_tensor", "index_to_string_table_from_tensor", "StaticHashTable"),
            ("string_to_index", "string_to_index", "StaticHashTable"),
            ("string_to_index_table_from_file", "index_table_from_file", "StaticVocabularyTable"),
            ("string_to_index_table_from_tensor", "index_table_from_tensor", "StaticVocabularyTable"),
        )
    ),
    *(
        alias(f"contrib.lookup.{name}", f"lookup.{name}", f"tf.lookup.{name}", removed="2.0")
        for name in ("KeyValueTensorInitializer", "TextFileIndex", "TextFileInitializer")
    ),
    gone("contrib.lookup.*", "a part of tf.contrib.lookup", "tf.lookup"),
    alias("contrib.util.make_tensor_proto", "make_tensor_proto", "tf.make_tensor_proto", removed="2.0"),
    alias("contrib.util.make_ndarray", "make_ndarray", "tf.make_ndarray", removed="2.0"),
    alias("contrib.util.constant_value", "get_static_value", "tf.get_static_value", removed="2.0"),
    *(
        rebuilt(f"contrib.deprecated.{name}", f"summaries:{name}", f"tf.summary.{name.partition('_')[0]}")
        for name in ("scalar_summary", "histogram_summary", "image_summary", "audio_summary")
    ),
    *(
        alias(f"contrib.deprecated.{name}", f"summary.{new}", "summaries of TF2 are written where they are made")
        for name, new in (("merge_summary", "merge"), ("merge_all_summaries", "merge_all"))
    ),
    *(
        rebuilt(
            f"contrib.image.{name}",
            f"contrib.image_ops:{name}",
            "tf.raw_ops.ImageProjectiveTransformV3, tf.keras.layers.RandomRotation",
            "V3 can also fill with what is at the edge",
        )
        for name in (
            "angles_to_projective_transforms",
            "compose_transforms",
            "flat_transforms_to_matrices",
            "matrices_to_flat_transforms",
            "rotate",
            "transform",
            "translate",
            "translations_to_projective_transforms",
        )
    ),
    rebuilt(
        "contrib.seq2seq.sequence_loss", "contrib.sequence_losses:sequence_loss", "tf.keras.losses, sample_weight="
    ),
    rebuilt(
        "contrib.legacy_seq2seq.sequence_loss", "contrib.sequence_losses:sequence_loss_of_lists", "tf.keras.losses"
    ),
    rebuilt(
        "contrib.legacy_seq2seq.sequence_loss_by_example",
        "contrib.sequence_losses:sequence_loss_by_example",
        "tf.keras.losses",
    ),
    OldName("tf.contrib.signal.*", "alias", "tf.compat.v1.signal", "tf.signal", "", "tf1:signal", "2.0"),
    *(
        alias(
            f"contrib.stateless.stateless_random_{name}",
            f"random.stateless_{name}",
            f"tf.random.stateless_{name}",
            removed="2.0",
        )
        for name in ("normal", "uniform")
    ),
    alias(
        "contrib.stateless.stateless_truncated_normal",
        "random.stateless_truncated_normal",
        "tf.random.stateless_truncated_normal",
        removed="2.0",
    ),
    *(
        alias(f"contrib.ctc.{name}", f"nn.{name}", f"tf.nn.{name}")
        for name in ("ctc_beam_search_decoder", "ctc_greedy_decoder", "ctc_loss")
    ),
    *(
        alias(
            f"contrib.distributions.{name}",
            f"distributions.{name}",
            "tensorflow_probability.distributions",
            removed="2.0",
        )
        for name in (
            "Bernoulli",
            "Beta",
            "Categorical",
            "Dirichlet",
            "DirichletMultinomial",
            "Distribution",
            "Exponential",
            "Gamma",
            "Laplace",
            "Multinomial",
            "Normal",
            "RegisterKL",
            "ReparameterizationType",
            "StudentT",
            "Uniform",
            "kl_divergence",
        )
    ),
    OldName(
        "tf.contrib.keras.*",
        "keras",
        "tf_keras",
        "tf.keras",
        "Keras 3 has no graph mode and no sessions",
        "tfqueue.compat.keras_v1:",
        "1.5",
    ),
    gone(
        "contrib.batching.*",
        "batching of separate session.run calls inside the server",
        "tf.nondifferentiable_batch_function",
    ),
    gone("contrib.crf.*", "linear-chain conditional random fields", "tfa.text.crf of TensorFlow Addons (archived)"),
    gone(
        "contrib.cudnn_rnn.*",
        "recurrent layers of cuDNN with their own weight format",
        "tf.keras.layers.LSTM, GRU, which use cuDNN where they can",
    ),
    gone("contrib.distribute.*", "distribution strategies", "tf.distribute"),
    gone("contrib.eager.*", "eager execution while it was an experiment", "eager execution, tf.GradientTape"),
    gone(
        "contrib.ffmpeg.*",
        "audio and video decoding by a custom op around ffmpeg",
        "tf.audio.decode_wav, or tfio.audio of tensorflow-io",
    ),
    gone(
        "contrib.image.*",
        "image ops by custom C++ ops",
        "tf.image, tf.keras.layers.RandomRotation and their like",
    ),
    gone("contrib.legacy_seq2seq.*", "the static sequence-to-sequence models", "tf.keras.layers.RNN with attention"),
    gone("contrib.opt.*", "experimental optimizers", "tf.keras.optimizers"),
    gone(
        "contrib.seq2seq.*",
        "decoders, helpers and attention wrappers of dynamic decoding",
        "tfa.seq2seq of TensorFlow Addons (archived), tf.keras.layers.Attention",
    ),
    gone("contrib.tpu.*", "TPU estimators and infeed queues", "tf.distribute.TPUStrategy"),
    *(gone(f"contrib.{package}.*", what, modern) for package, (what, modern) in _GONE_PACKAGES.items()),
    gone(
        "contrib.*",
        "a package of tf.contrib that went with TensorFlow 2.0 and has no counterpart in tfqueue",
        "https://www.tensorflow.org/guide/migrate",
    ),
)

ROWS: tuple[OldName, ...] = (*_RNN, *_SMALL)
