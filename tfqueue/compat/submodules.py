"""The modules that TF1 programs import by name, such as tensorflow.contrib.slim.nets.vgg."""

from __future__ import annotations

from types import ModuleType

from tfqueue.compat import names, overlay

# Modules of tf.compat.v1 that programs import: `from tensorflow import flags`, `import tensorflow.contrib...`.
_OWN = (
    "app bitwise compat data data.experimental debugging distributions dtypes errors estimator examples "
    "examples.tutorials examples.tutorials.mnist feature_column flags gfile graph_util image initializers io layers "
    "linalg logging losses manip math metrics nn nn.rnn_cell profiler python_io queue random resource_loader "
    "saved_model sets sparse spectral strings summary sysconfig test train user_ops"
)

_KERAS = (
    "activations applications backend callbacks constraints datasets estimator initializers layers losses metrics "
    "models optimizers preprocessing preprocessing.image preprocessing.sequence preprocessing.text regularizers utils"
)

_SLIM_NETS = "alexnet inception inception_v1 inception_v2 inception_v3 overfeat resnet_utils resnet_v1 resnet_v2 vgg"
_SLIM_DATA = "data_decoder data_provider dataset dataset_data_provider parallel_reader prefetch_queue tfexample_decoder"
_SLIM = "evaluation learning losses metrics model_analyzer queues summaries"

# Where the sources of tf.contrib lay, which programs also imported from, and what is there now.
SOURCES = {
    **{f"contrib.slim.nets.{name}": f"contrib.slim.nets.{name}" for name in _SLIM_NETS.split()},
    **{f"contrib.slim.python.slim.nets.{name}": f"contrib.slim.nets.{name}" for name in _SLIM_NETS.split()},
    **{f"contrib.slim.python.slim.data.{name}": f"contrib.slim.{name}" for name in _SLIM_DATA.split()},
    **{f"contrib.slim.python.slim.{name}": f"contrib.slim.{name}" for name in _SLIM.split()},
    "contrib.slim.nets": "contrib.slim.nets",
    "contrib.slim.python.slim.nets": "contrib.slim.nets",
    "contrib.slim.python.slim.data": "contrib.slim",
    "contrib.slim.python.slim": "contrib.slim",
    "contrib.slim.python": "contrib.slim",
    "contrib.framework.python": "contrib.framework",
    "contrib.framework.python.ops": "contrib.framework",
    "contrib.framework.python.ops.arg_scope": "contrib.framework",
    "contrib.framework.python.ops.variables": "contrib.framework",
    "contrib.framework.python.framework": "contrib.framework",
    "contrib.framework.python.framework.checkpoint_utils": "contrib.framework",
    "contrib.framework.python.framework.tensor_util": "contrib.framework",
    "contrib.layers.python": "contrib.layers",
    "contrib.layers.python.layers": "contrib.layers",
    "contrib.layers.python.layers.initializers": "contrib.layers",
    "contrib.layers.python.layers.embedding_ops": "contrib.layers",
    "contrib.layers.python.layers.encoders": "contrib.layers",
    "contrib.layers.python.layers.feature_column": "contrib.layers",
    "contrib.layers.python.layers.layers": "contrib.layers",
    "contrib.layers.python.layers.utils": "contrib.slim.layers.utils",
    "contrib.layers.python.layers.regularizers": "contrib.layers",
    "contrib.training.python": "contrib.training",
    "contrib.training.python.training": "contrib.training",
    "contrib.training.python.training.bucket_ops": "contrib.training",
    "contrib.training.python.training.hparam": "contrib.training",
    "contrib.training.python.training.resample": "contrib.training",
    "contrib.training.python.training.sampling_ops": "contrib.training",
    "contrib.training.python.training.training": "contrib.training",
    "contrib.data.python": "contrib.data",
    "contrib.data.python.ops": "contrib.data",
    "contrib.rnn.python": "contrib.rnn",
    "contrib.rnn.python.ops": "contrib.rnn",
    "contrib.rnn.python.ops.core_rnn": "contrib.rnn",
    "contrib.rnn.python.ops.core_rnn_cell": "contrib.rnn",
    "contrib.rnn.python.ops.core_rnn_cell_impl": "contrib.rnn",
    "contrib.rnn.python.ops.lstm_ops": "contrib.rnn",
    "contrib.rnn.python.ops.rnn": "contrib.rnn",
    "contrib.rnn.python.ops.rnn_cell": "contrib.rnn",
    "contrib.seq2seq.python": "contrib.seq2seq",
    "contrib.seq2seq.python.ops": "contrib.seq2seq",
    "contrib.seq2seq.python.ops.loss": "contrib.seq2seq",
    "contrib.lookup.lookup_ops": "contrib.lookup",
    "contrib.image.python": "contrib.image",
    "contrib.image.python.ops": "contrib.image",
    "contrib.image.python.ops.image_ops": "contrib.image",
    "contrib.learn.python": "contrib.learn",
    "contrib.learn.python.learn": "contrib.learn",
    "contrib.learn.python.learn.learn_io": "contrib.learn",
    "contrib.learn.python.learn.preprocessing": "contrib.learn.preprocessing",
    "contrib.learn.python.learn.preprocessing.text": "contrib.learn.preprocessing",
    "contrib.learn.python.learn.learn_io.graph_io": "contrib.learn",
    "contrib.learn.python.learn.datasets": "contrib.learn.python.learn.datasets",
    "contrib.learn.python.learn.datasets.mnist": "contrib.learn.python.learn.datasets.mnist",
    "contrib.learn.datasets": "contrib.learn.datasets",
    "contrib.learn.datasets.mnist": "contrib.learn.python.learn.datasets.mnist",
    "examples.tutorials.mnist.input_data": "examples.tutorials.mnist.input_data",
    "examples.tutorials.mnist.mnist": "examples.tutorials.mnist.mnist",
    "g3doc": "examples",  # before 0.7
    "g3doc.tutorials": "examples.tutorials",
    "g3doc.tutorials.mnist": "examples.tutorials.mnist",
    "g3doc.tutorials.mnist.input_data": "examples.tutorials.mnist.input_data",
    "g3doc.tutorials.mnist.mnist": "examples.tutorials.mnist.mnist",
}


def modules() -> dict[str, ModuleType]:
    """The modules below ``tensorflow``, by their full names in TF1: ``"tensorflow.contrib.slim"`` and so on.

    Each is an empty shell until something is taken from it: no package is imported by this call.
    """
    found = {f"tensorflow.{name}": overlay.module(f"tf.{name}") for name in _OWN.split()}
    found["tensorflow.contrib"] = overlay.module("tf.contrib")
    for package in names.parts_below("tf.contrib"):
        found[f"tensorflow.contrib.{package}"] = overlay.module(f"tf.contrib.{package}")
    found["tensorflow.keras"] = overlay.module("tf.keras")
    for name in _KERAS.split():
        found[f"tensorflow.keras.{name}"] = overlay.module(f"tf.keras.{name}")
    for old, new in SOURCES.items():
        found[f"tensorflow.{old}"] = overlay.module(f"tf.{new}")
    return dict(found)
