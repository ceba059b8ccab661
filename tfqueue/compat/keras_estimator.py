"""A compiled Keras model of tf_keras as the model function of an estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from tfqueue.compat import keras_v1 as keras
from tfqueue.compat.estimator import EstimatorSpec, ModeKeys
from tfqueue.errors import InvalidArgument

tf1 = tf.compat.v1


def model_function(model: Any) -> Callable[..., EstimatorSpec]:
    """``model_fn(features, labels, mode)`` that builds the model anew in the default graph.

    Raises:
        InvalidArgument: ``model`` is no functional or sequential model of tf_keras with one output, or not compiled.
    """
    if not hasattr(model, "get_weights") or not type(model).__mro__[-2].__module__.startswith(
        ("tf_keras", "tensorflow")
    ):
        raise InvalidArgument(
            f"keras_model must be a model of tf_keras; got {type(model).__module__}.{type(model).__name__}"
        )
    if getattr(model, "optimizer", None) is None or model.loss is None:
        raise InvalidArgument("the model is not compiled: call model.compile(optimizer, loss) first")
    if len(model.outputs or ()) != 1 or isinstance(model.loss, list | tuple | dict):
        raise InvalidArgument("the model must have one output and one loss")
    kind, config, weights = type(model), model.get_config(), model.get_weights()
    loss, metrics = model.loss, list(_metrics(model))
    input_names = list(model.input_names)
    optimizer_name, optimizer_config = _optimizer(model.optimizer)

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        # The class of a model depends on whether it was made eagerly; the general ones stand for both.
        general = keras.models.Sequential if "Sequential" in kind.__name__ else keras.models.Model
        clone = general.from_config(config)
        inputs = _inputs(features, input_names)
        output = clone(inputs, training=mode == ModeKeys.TRAIN)
        predictions = {clone.output_names[0]: output}
        if mode == ModeKeys.PREDICT:
            return EstimatorSpec(mode, predictions=predictions)
        if isinstance(labels, Mapping):
            (labels,) = labels.values()
        labels = _as_column(labels, output)
        value = tf.reduce_mean(keras.losses.get(loss)(labels, output))
        # What does not depend on the input, and what depends on this one: not the placeholders the clone was made with.
        penalties = [*clone.get_losses_for(None), *clone.get_losses_for(inputs)]
        if penalties:
            value = value + tf.add_n(penalties)
        if mode == ModeKeys.EVAL:
            ops = {name: tf1.metrics.mean(function(labels, output)) for name, function in _functions(metrics, output)}
            return EstimatorSpec(mode, predictions, value, eval_metric_ops=ops)
        optimizer = getattr(keras.optimizers.legacy, optimizer_name).from_config(optimizer_config)
        steps = optimizer.get_updates(value, clone.trainable_weights)
        with tf.control_dependencies([*steps, *clone.get_updates_for(None), *clone.get_updates_for(inputs)]):
            train_op = tf1.assign_add(tf1.train.get_global_step(), 1).op
        return EstimatorSpec(mode, predictions, value, train_op, scaffold=_scaffold(clone, weights))

    model_fn.after_graph = _restore_eager_classes  # type: ignore[attr-defined]
    return model_fn


def _restore_eager_classes() -> None:
    """Make eager models work again.

    tf_keras gives its classes other bases when a model is made in a graph, and eager models of these classes fail until
    one is made eagerly.
    """
    if tf.executing_eagerly():
        keras.models.Sequential()
        keras.models.Model()


def _scaffold(model: Any, weights: list[Any]) -> Any:
    """Variables begin with the weights of the model that was given; a checkpoint comes before them."""
    feeds = {variable.initializer.inputs[1]: value for variable, value in zip(model.weights, weights, strict=True)}
    begin = tf1.global_variables_initializer()
    return tf1.train.Scaffold(init_op=begin, init_feed_dict=feeds)


def _optimizer(optimizer: Any) -> tuple[str, dict[str, Any]]:
    """Name and settings for the class of that name that works in a graph."""
    name = type(optimizer).__name__
    cls = getattr(keras.optimizers.legacy, name, None)
    if cls is None:
        raise InvalidArgument(f"the optimizer {name} has no form for graphs; use one of tf_keras.optimizers.legacy")
    config = optimizer.get_config()
    known = cls().get_config()
    unknown = {key: value for key, value in config.items() if key not in known and value}
    ignorable = {"is_legacy_optimizer", "jit_compile", "ema_momentum", "use_ema"}
    kept = sorted(set(unknown) - ignorable)
    if unknown.get("use_ema") or kept:
        raise InvalidArgument(f"the optimizer's settings {kept or ['use_ema']} have no counterpart in a graph")
    if not isinstance(config.get("learning_rate", 0.0), int | float):
        config["learning_rate"] = float(config["learning_rate"])
    return name, {key: value for key, value in config.items() if key in known}


def _metrics(model: Any) -> list[Any]:
    """The metrics that were given to ``compile``, which the two kinds of models keep in different places."""
    config = model.get_compile_config() if hasattr(model, "get_compile_config") else None
    found = config["metrics"] if config is not None else getattr(model, "_compile_metrics", None)
    if isinstance(found, Mapping):
        found = [metric for value in found.values() for metric in (value if isinstance(value, list) else [value])]
    return list(found or [])


def _functions(metrics: list[Any], output: Any) -> list[tuple[str, Callable[[Any, Any], Any]]]:
    found = []
    for metric in metrics:
        if metric in ("accuracy", "acc"):
            found.append((str(metric), _accuracy(output)))
        elif isinstance(metric, str):
            found.append((metric, keras.metrics.get(metric)))
        elif callable(metric) and not isinstance(metric, keras.metrics.Metric):
            found.append((getattr(metric, "__name__", type(metric).__name__), metric))
        else:
            raise InvalidArgument(
                f"metric {metric!r} keeps a state; give metrics by name, or as functions of labels and outputs"
            )
    return found


def _accuracy(output: Any) -> Callable[[Any, Any], Any]:
    def accuracy(labels: Any, predictions: Any) -> Any:
        if output.shape[-1] == 1:
            return keras.metrics.binary_accuracy(labels, predictions)
        if labels.shape[-1] == output.shape[-1]:
            return keras.metrics.categorical_accuracy(labels, predictions)
        return keras.metrics.sparse_categorical_accuracy(labels, predictions)

    return accuracy


def _inputs(features: Any, names: list[str]) -> Any:
    if isinstance(features, Mapping):
        missing = sorted(set(names) - set(features))
        if missing:
            raise InvalidArgument(
                f"the input function gives features {sorted(features)}; the model's inputs are {names}"
            )
        features = [features[name] for name in names]
    elif isinstance(features, list | tuple):
        features = list(features)
    else:
        features = [features]
    if len(features) != len(names):
        raise InvalidArgument(f"the input function gives {len(features)} features; the model's inputs are {names}")
    return features[0] if len(features) == 1 else features


def _as_column(labels: Any, output: Any) -> Any:
    """Labels of one dimension against an output of [batch, 1] are a column, as ``fit`` takes them."""
    if labels.shape.rank == 1 and output.shape.rank == 2:
        return labels[:, tf.newaxis]
    return labels
