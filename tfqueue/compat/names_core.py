"""Rows of the table: the names that TensorFlow itself has, had, or had under another name."""

from __future__ import annotations

from tfqueue.compat import names_numpy
from tfqueue.compat.names_row import OldName, alias, gone, kept, rebuilt

_READERS = "reads whole files in the order of the dataset of names; interleave for several at a time"
_REPEAT = "repeat before shuffle gives the queue's mixing over epochs; shuffle before repeat keeps epochs apart"
_REMAINDER = "the queue drops the last partial batch: drop_remainder=True; several threads gave no fixed order"
_SHUFFLES = f"shuffles over what the queue promises to mix; a full queue reached up to capacity; {_REMAINDER}"

_PIPELINES = (
    kept("train.string_input_producer", "tf.data.Dataset.from_tensor_slices(names).shuffle(n).repeat(epochs)", _REPEAT),
    kept("train.slice_input_producer", "tf.data.Dataset.from_tensor_slices(arrays).shuffle(n).repeat(epochs)", _REPEAT),
    kept("train.range_input_producer", "tf.data.Dataset.range(n).shuffle(n).repeat(epochs)", _REPEAT),
    kept("train.input_producer", "tf.data.Dataset.from_tensor_slices(tensor).shuffle(n).repeat(epochs)", _REPEAT),
    kept("train.limit_epochs", "Dataset.repeat(epochs)", "no local variable to initialise"),
    kept("train.match_filenames_once", "tf.data.Dataset.list_files(pattern, shuffle=False)", "sorted, no variable"),
    kept("train.batch", "Dataset.batch(n, drop_remainder=True)", _REMAINDER),
    kept("train.batch_join", "Dataset.interleave(...).batch(n, drop_remainder=True)", _REMAINDER),
    kept("train.shuffle_batch", "Dataset.shuffle(min_after_dequeue + 1).batch(n, drop_remainder=True)", _SHUFFLES),
    kept("train.shuffle_batch_join", "Dataset.interleave(...).shuffle(min_after_dequeue + 1).batch(n, ...)", _SHUFFLES),
    kept("train.maybe_batch", "Dataset.filter(keep).batch(n, drop_remainder=True)", _REMAINDER),
    kept("train.maybe_batch_join", "Dataset.interleave(...).filter(keep).batch(n, ...)", _REMAINDER),
    kept("train.maybe_shuffle_batch", "Dataset.filter(keep).shuffle(min_after_dequeue + 1).batch(n, ...)", _SHUFFLES),
    kept("train.maybe_shuffle_batch_join", "Dataset.interleave(...).filter(keep).shuffle(...).batch(...)", _SHUFFLES),
    kept("train.QueueRunner", "a tf.data.Dataset runs its own threads", "nothing to start, nothing to join"),
    kept("train.queue_runner.QueueRunner", "a tf.data.Dataset runs its own threads", "nothing to start"),
    kept("train.add_queue_runner", "no counterpart is needed"),
    kept("train.start_queue_runners", "no counterpart is needed", "a dataset starts when it is read"),
    kept("train.Coordinator", "for batch in dataset", "the end of the data ends the loop, errors are raised in it"),
    rebuilt(
        "train.Supervisor",
        "supervisor:Supervisor",
        "tf.train.Checkpoint, tf.summary, tf.keras.Model.fit",
        here="tf.compat.v1.train.Supervisor, whose threads work where eager execution is on, too",
        removed="",
        replaces=True,
    ),
    kept("train.MonitoredTrainingSession", "tf.keras.Model.fit with callbacks"),
    kept("train.MonitoredSession", "tf.keras.Model.fit with callbacks"),
    kept("train.SingularMonitoredSession", "tf.keras.Model.fit with callbacks"),
    kept("TFRecordReader", "tf.data.TFRecordDataset", _READERS),
    kept("TextLineReader", "tf.data.TextLineDataset", _READERS),
    kept("WholeFileReader", "Dataset.map(tf.io.read_file)", "map the names; the key is the name"),
    kept("FixedLengthRecordReader", "tf.data.FixedLengthRecordDataset", _READERS),
    kept("IdentityReader", "the dataset of names itself"),
    kept("LMDBReader", "no counterpart in TensorFlow; tfio.IODataset.from_lmdb of tensorflow-io"),
    kept("FIFOQueue", "Dataset.prefetch(n)"),
    kept("PaddingFIFOQueue", "Dataset.padded_batch(n)", "pads to the longest of the batch, as the queue does"),
    kept("RandomShuffleQueue", "Dataset.shuffle(n)", "the buffer stays full until the end of the data"),
    kept("PriorityQueue", "no counterpart: sort in the source, or Dataset.from_generator over heapq"),
    kept("QueueBase", "tf.data.Dataset"),
    kept("parse_example", "tf.io.parse_example"),
    kept("parse_single_example", "tf.io.parse_single_example", "faster as tf.io.parse_example after batch"),
    kept("parse_single_sequence_example", "tf.io.parse_single_sequence_example"),
    kept("decode_raw", "tf.io.decode_raw", "the result is flat; the length must divide by the dtype's size"),
    kept("decode_csv", "tf.io.decode_csv"),
    kept("read_file", "tf.io.read_file"),
    kept("FixedLenFeature", "tf.io.FixedLenFeature"),
    kept("VarLenFeature", "tf.io.VarLenFeature"),
    kept("FixedLenSequenceFeature", "tf.io.FixedLenSequenceFeature"),
    kept("python_io.TFRecordWriter", "tf.io.TFRecordWriter"),
    kept("python_io.tf_record_iterator", "tf.data.TFRecordDataset"),
    kept("py_func", "tf.numpy_function"),
    kept("gfile.FastGFile", "tf.io.gfile.GFile"),
    kept("gfile.GFile", "tf.io.gfile.GFile"),
    kept("gfile.Exists", "tf.io.gfile.exists"),
    kept("gfile.Glob", "tf.io.gfile.glob"),
    kept("gfile.MakeDirs", "tf.io.gfile.makedirs"),
    kept("gfile.ListDirectory", "tf.io.gfile.listdir"),
    kept("gfile.DeleteRecursively", "tf.io.gfile.rmtree"),
    kept("placeholder", "the arguments of a tf.function"),
    kept("Session", "eager execution, tf.function"),
    kept("InteractiveSession", "eager execution"),
    kept("global_variables_initializer", "variables are initialised when they are made"),
    kept("local_variables_initializer", "variables are initialised when they are made"),
    kept("initialize_all_variables", "variables are initialised when they are made"),
    kept("app.run", "absl.app.run"),
    kept("logging.info", "absl.logging.info, or logging"),
    kept("get_variable", "tf.Variable"),
    kept("variable_scope", "modules and layers own their variables"),
)

_IMAGES = (
    rebuilt(
        "image.resize_images",
        "renamed:resize_images",
        "tf.image.resize",
        "tf.image.resize samples at pixel centres and keeps half pixels: other numbers (up to 0.5 of the range)",
        here="tf.compat.v1.image.resize_images, which also takes (image, new_height, new_width) as before 1.0",
        removed="",
        replaces=True,
    ),
    alias("image.per_image_whitening", "image.per_image_standardization", "tf.image.per_image_standardization"),
    rebuilt(
        "image.random_crop",
        "renamed:random_crop_of_images",
        "tf.image.random_crop",
        "of height, width and channels",
        here="also (image, [height, width]) of before 0.7",
        removed="",
        replaces=True,
    ),
    kept("image.resize_bilinear", "tf.image.resize", "pixel centres: other numbers"),
    kept(
        "image.resize_bicubic", "tf.image.resize(method='bicubic')", "pixel centres and another kernel: other numbers"
    ),
    kept("image.resize_image_with_crop_or_pad", "tf.image.resize_with_crop_or_pad"),
    kept("image.decode_jpeg", "tf.io.decode_jpeg"),
    kept("image.decode_png", "tf.io.decode_png"),
)

_BATCH_FORMS = {
    "batch_cholesky": "cholesky",
    "batch_cholesky_solve": "cholesky_solve",
    "batch_fft": "fft",
    "batch_fft2d": "fft2d",
    "batch_fft3d": "fft3d",
    "batch_ifft": "ifft",
    "batch_ifft2d": "ifft2d",
    "batch_ifft3d": "ifft3d",
    "batch_matrix_band_part": "matrix_band_part",
    "batch_matrix_determinant": "matrix_determinant",
    "batch_matrix_diag": "matrix_diag",
    "batch_matrix_diag_part": "matrix_diag_part",
    "batch_matrix_inverse": "matrix_inverse",
    "batch_matrix_set_diag": "matrix_set_diag",
    "batch_matrix_solve": "matrix_solve",
    "batch_matrix_solve_ls": "matrix_solve_ls",
    "batch_matrix_transpose": "matrix_transpose",
    "batch_matrix_triangular_solve": "matrix_triangular_solve",
    "batch_self_adjoint_eig": "self_adjoint_eig",
    "batch_self_adjoint_eigvals": "self_adjoint_eigvals",
    "batch_svd": "svd",
}

_TODAY = {
    "cholesky": "linalg.cholesky",
    "cholesky_solve": "linalg.cholesky_solve",
    "fft": "signal.fft",
    "fft2d": "signal.fft2d",
    "fft3d": "signal.fft3d",
    "ifft": "signal.ifft",
    "ifft2d": "signal.ifft2d",
    "ifft3d": "signal.ifft3d",
    "matrix_band_part": "linalg.band_part",
    "matrix_determinant": "linalg.det",
    "matrix_diag": "linalg.diag",
    "matrix_diag_part": "linalg.diag_part",
    "matrix_inverse": "linalg.inv",
    "matrix_set_diag": "linalg.set_diag",
    "matrix_solve": "linalg.solve",
    "matrix_solve_ls": "linalg.lstsq",
    "matrix_transpose": "linalg.matrix_transpose",
    "matrix_triangular_solve": "linalg.triangular_solve",
    "self_adjoint_eig": "linalg.eigh",
    "self_adjoint_eigvals": "linalg.eigvalsh",
    "svd": "linalg.svd",
}

_BEFORE_1_0 = (
    alias("mul", "multiply", "tf.multiply"),
    alias("sub", "subtract", "tf.subtract"),
    alias("neg", "negative", "tf.negative"),
    alias("inv", "reciprocal", "tf.math.reciprocal"),
    alias("pack", "stack", "tf.stack"),
    alias("unpack", "unstack", "tf.unstack"),
    alias("complex_abs", "abs", "tf.abs"),
    rebuilt(
        "select", "renamed:select", "tf.where(condition, x, y)", "tf.where broadcasts its arguments", removed="1.0"
    ),
    rebuilt("listdiff", "renamed:listdiff", "tf.compat.v1.setdiff1d", removed="1.0"),
    rebuilt("batch_matmul", "renamed:batch_matmul", "tf.matmul(adjoint_a=, adjoint_b=)", removed="1.0"),
    *(alias(old, new, f"tf.{_TODAY[new]}") for old, new in _BATCH_FORMS.items()),
    rebuilt(
        "concat",
        "renamed:concat",
        "tf.concat(values, axis)",
        here="tf.compat.v1.concat, which also takes (concat_dim, values) as before 1.0",
        removed="",
        replaces=True,
    ),
    rebuilt(
        "sparse_split",
        "renamed:sparse_split",
        "tf.sparse.split",
        here="tf.compat.v1.sparse_split, which also takes (split_dim, num_split, sp_input) as before 1.0",
        removed="",
        replaces=True,
    ),
    alias("concat_v2", "concat", "tf.concat(values, axis)"),
    alias("split_v", "split", "tf.split(value, num_or_size_splits, axis)"),
    rebuilt(
        "split",
        "renamed:split",
        "tf.split(value, num_or_size_splits, axis)",
        here="tf.compat.v1.split, which also takes (split_dim, num_split, value) as before 1.0",
        removed="",
        replaces=True,
    ),
    rebuilt(
        "reverse",
        "renamed:reverse",
        "tf.reverse(tensor, axis)",
        here="tf.compat.v1.reverse, which also takes one bool for each dimension as before 1.0",
        removed="",
        replaces=True,
    ),
    *(
        rebuilt(
            f"nn.{function}",
            f"renamed:{function}",
            f"tf.nn.{function}(labels=, logits=)",
            "only by keyword",
            here=f"tf.compat.v1.nn.{function}, which also takes (logits, labels) by position as before 1.0",
            removed="",
            replaces=True,
        )
        for function in (
            "softmax_cross_entropy_with_logits",
            "sparse_softmax_cross_entropy_with_logits",
            "sigmoid_cross_entropy_with_logits",
        )
    ),
    alias("nn.rnn", "nn.static_rnn", "tf.keras.layers.RNN(unroll=True)"),
    alias("nn.bidirectional_rnn", "nn.static_bidirectional_rnn", "tf.keras.layers.Bidirectional"),
    alias("nn.state_saving_rnn", "nn.static_state_saving_rnn", "tf.keras.layers.RNN(stateful=True)"),
    alias("nn.deconv2d", "nn.conv2d_transpose", "tf.nn.conv2d_transpose", removed="0.7"),
    rebuilt(
        "scalar_summary", "summaries:scalar_summary", "tf.summary.scalar", "needs a writer and a step", removed="1.0"
    ),
    rebuilt(
        "histogram_summary",
        "summaries:histogram_summary",
        "tf.summary.histogram",
        "needs a writer and a step",
        removed="1.0",
    ),
    rebuilt("image_summary", "summaries:image_summary", "tf.summary.image", "needs a writer and a step", removed="1.0"),
    rebuilt("audio_summary", "summaries:audio_summary", "tf.summary.audio", "needs a writer and a step", removed="1.0"),
    alias("merge_summary", "summary.merge", "summaries of TF2 are written where they are made"),
    alias("merge_all_summaries", "summary.merge_all", "summaries of TF2 are written where they are made"),
    alias("train.SummaryWriter", "summary.FileWriter", "tf.summary.create_file_writer"),
)

_LAYERS = [
    "Layer",
    "InputSpec",
    "AveragePooling1D",
    "AveragePooling2D",
    "AveragePooling3D",
    "BatchNormalization",
    "Conv1D",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "Dense",
    "Dropout",
    "Flatten",
    "MaxPooling1D",
    "MaxPooling2D",
    "MaxPooling3D",
    "SeparableConv1D",
    "SeparableConv2D",
    "average_pooling1d",
    "average_pooling2d",
    "average_pooling3d",
    "batch_normalization",
    "conv1d",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "dense",
    "dropout",
    "flatten",
    "max_pooling1d",
    "max_pooling2d",
    "max_pooling3d",
    "separable_conv1d",
    "separable_conv2d",
]
_CELLS = "BasicLSTMCell BasicRNNCell DeviceWrapper DropoutWrapper GRUCell LSTMCell MultiRNNCell ResidualWrapper RNNCell"


def _keras(name: str, home: str, modern: str, change: str = "", *, replaces: bool = False) -> OldName:
    part = home.rpartition(":")[2]
    here = "rebuilt by tfqueue over tf_keras" if "estimator" in home else f"tf_keras: {part}" if part else "tf_keras"
    return OldName(f"tf.{name}", "keras", here, modern, change, home, "2.16", replaces)


_KERAS = (
    _keras(
        "keras.*",
        "tfqueue.compat.keras_v1:",
        "tf.keras",
        "Keras 3 has no graph mode and no sessions",
        replaces=True,
    ),
    _keras(
        "keras.estimator.model_to_estimator",
        "tfqueue.compat.estimator:model_to_estimator",
        "tf.keras.Model.fit",
        "functional and sequential models of tf_keras; see tf.estimator",
        replaces=True,
    ),
    *(
        _keras(f"layers.{name}", f"tfqueue.compat.legacy_layers:{name}", f"tf.keras.layers, {name} by its class name")
        for name in _LAYERS
    ),
    *(
        _keras(f"nn.rnn_cell.{name}", f"tfqueue.compat.legacy_layers:{name}", "tf.keras.layers.LSTMCell, GRUCell, RNN")
        for name in (*_CELLS.split(), "LSTMStateTuple")
    ),
)

_HOOKS = (
    "CheckpointSaverHook CheckpointSaverListener FeedFnHook FinalOpsHook GlobalStepWaiterHook LoggingTensorHook "
    "NanLossDuringTrainingError NanTensorHook ProfilerHook SecondOrStepTimer SessionRunArgs SessionRunContext "
    "SessionRunHook SessionRunValues StepCounterHook StopAtStepHook SummarySaverHook"
)

_ESTIMATOR = (
    *(
        rebuilt(
            f"estimator.{name}",
            f"estimator:{name}",
            "tf.keras.Model.fit",
            "a subset: Keras models and model functions, one machine",
            removed="2.16",
            replaces=True,  # before 2.16: one kind of estimator, everywhere
        )
        for name in (
            "Estimator",
            "EstimatorSpec",
            "EvalSpec",
            "Exporter",
            "ModeKeys",
            "RunConfig",
            "TrainSpec",
            "train_and_evaluate",
        )
    ),
    *(
        rebuilt(
            f"estimator.inputs.{name}",
            f"estimator_inputs:{name}",
            "tf.data.Dataset.from_tensor_slices((x, y)).shuffle(n).repeat(epochs).batch(n)",
            "shuffles all rows of a pass, and begins at the first",
            removed="2.16",
            replaces=True,
        )
        for name in ("numpy_input_fn", "pandas_input_fn")
    ),
    *(
        alias(f"estimator.{name}", f"train.{name}", f"tf.compat.v1.train.{name}", removed="2.16")
        for name in _HOOKS.split()
    ),
    gone(
        "estimator.*",
        "a part of tf.estimator beyond the subset that tfqueue rebuilds",
        "tf.keras.Model.fit",
        removed="2.16",
    ),
)

_MODULES = (
    rebuilt(
        "examples.tutorials.mnist.input_data.*",
        "mnist:",
        "tf.keras.datasets.mnist.load_data",
        "whole arrays, no next_batch",
        here="rebuilt by tfqueue, over local files",
    ),
    rebuilt(
        "examples.tutorials.mnist.mnist.*",
        "mnist_model:",
        "a model of your own",
        here="rebuilt by tfqueue: the model of the MNIST how-tos",
    ),
    *(
        rebuilt(
            f"{flags}.{name}",
            "flags:DEFINE_boolean",
            f"absl.flags.{name}",
            here="a number as default makes a flag of that number, as before 1.5",
            removed="",
            replaces=True,
        )
        for flags in ("flags", "app.flags")
        for name in ("DEFINE_bool", "DEFINE_boolean")
    ),
    rebuilt(
        "flags.FLAGS",
        "flags:FLAGS",
        "absl.flags.FLAGS",
        here="tf.compat.v1.flags.FLAGS, with _parse_flags() and __flags as before 1.5",
        removed="",
        replaces=True,
    ),
    rebuilt(
        "app.flags.FLAGS",
        "flags:FLAGS",
        "absl.flags.FLAGS",
        here="tf.compat.v1.flags.FLAGS, with _parse_flags() and __flags as before 1.5",
        removed="",
        replaces=True,
    ),
    rebuilt(
        "nn.seq2seq.sequence_loss", "contrib.sequence_losses:sequence_loss_of_lists", "tf.keras.losses", removed="1.0"
    ),
    rebuilt(
        "nn.seq2seq.sequence_loss_by_example",
        "contrib.sequence_losses:sequence_loss_by_example",
        "tf.keras.losses",
        removed="1.0",
    ),
    alias("train.SyncReplicasOptimizerV2", "train.SyncReplicasOptimizer", "tf.distribute"),
    gone(
        "RegisterShape", "the registration of a shape function in Python", "shape functions of C++ ops", removed="1.0"
    ),
    *(
        gone(
            f"nn.rnn_cell.{name}",
            "a wrapper of recurrent cells",
            "tf.keras.layers.Embedding and Dense around tf.keras.layers.RNN",
            removed="1.1",
        )
        for name in ("EmbeddingWrapper", "InputProjectionWrapper", "OutputProjectionWrapper")
    ),
    gone(
        "nn.seq2seq.*",
        "the static sequence-to-sequence models, later tf.contrib.legacy_seq2seq",
        "tf.keras.layers.RNN with an attention layer",
        removed="1.0",
    ),
    gone(
        "models.*",
        "example models inside TensorFlow's package (rnn, ptb, image.cifar10)",
        "the repository tensorflow/models",
        removed="1.0",
    ),
    gone("examples.*", "the example programs inside TensorFlow's package", "the repository tensorflow/models"),
)

ROWS: tuple[OldName, ...] = (
    *_PIPELINES,
    *_IMAGES,
    *_BEFORE_1_0,
    *_KERAS,
    *_ESTIMATOR,
    *_MODULES,
    *names_numpy.ROWS,
)
