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
        InvalidArgument: ``model`` is no functional or sequential model of tf_keras, or it is not compiled.
    """
    if not hasattr(model, "get_weights") or not type(model).__mro__[-2].__module__.startswith(
        ("tf_keras", "tensorflow")
    ):
        raise InvalidArgument(
            f"keras_model must be a model of tf_keras; got {type(model).__module__}.{type(model).__name__}"
        )
    if getattr(model, "optimizer", None) is None or model.loss is None:
        raise InvalidArgument("the model is not compiled: call model.compile(optimizer, loss) first")
    if not model.outputs:
        raise InvalidArgument("the model must be functional, or sequential with the shape of its input")
    kind, config, weights = type(model), model.get_config(), model.get_weights()
    input_names, output_names = list(model.input_names), list(model.output_names)
    losses = _by_output("loss", model.loss, output_names)
    given_weights = _compiled(model, "loss_weights", "loss_weights")
    shares = [1.0 if share is None else share for share in _by_output("loss_weights", given_weights, output_names)]
    metrics = _metrics(_compiled(model, "metrics", "_compile_metrics"), output_names)
    if all(loss is None for loss in losses):
        raise InvalidArgument("no output of the model has a loss")
    optimizer_name, optimizer_config = _optimizer(model.optimizer)

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        # The class of a model depends on whether it was made eagerly; the general ones stand for both.
        general = keras.models.Sequential if "Sequential" in kind.__name__ else keras.models.Model
        clone = general.from_config(config)
        inputs = _inputs(features, input_names)
        outputs = tf.nest.flatten(clone(inputs, training=mode == ModeKeys.TRAIN))
        predictions = dict(zip(output_names, outputs, strict=True))
        if mode == ModeKeys.PREDICT:
            return EstimatorSpec(mode, predictions=predictions)
        targets = [
            None if loss is None else _as_column(target, output)
            for target, output, loss in zip(_targets(labels, output_names), outputs, losses, strict=True)
        ]
        parts = {
            name: tf.reduce_mean(keras.losses.get(loss)(target, output))
            for name, loss, target, output in zip(output_names, losses, targets, outputs, strict=True)
            if loss is not None
        }
        value = tf.add_n(
            [parts[name] * share for name, share in zip(output_names, shares, strict=True) if name in parts]
        )
        # What does not depend on the input, and what depends on this one: not the placeholders the clone was made with.
        penalties = [*clone.get_losses_for(None), *clone.get_losses_for(inputs)]
        if penalties:
            value = value + tf.add_n(penalties)
        if mode == ModeKeys.EVAL:
            ops = {f"{name}_loss": tf1.metrics.mean(part) for name, part in parts.items() if len(outputs) > 1}
            for name, target, output, asked in zip(output_names, targets, outputs, metrics, strict=True):
                prefix = f"{name}_" if len(outputs) > 1 else ""
                for metric, function in _functions(asked, output) if target is not None else ():
                    ops[prefix + metric] = tf1.metrics.mean(function(target, output))
            return EstimatorSpec(mode, predictions, value, eval_metric_ops=ops)
        optimizer = getattr(keras.optimizers.legacy, optimizer_name).from_config(optimizer_config)
        steps = optimizer.get_updates(value, clone.trainable_weights)
        with tf.control_dependencies([*steps, *clone.get_updates_for(None), *clone.get_updates_for(inputs)]):
            train_op = tf1.assign_add(tf1.train.get_global_step(), 1).op
        return EstimatorSpec(mode, predictions, value, train_op, scaffold=_scaffold(clone, weights))

    layers = {type(part) for part in (model, *model.submodules) if isinstance(part, keras.layers.Layer)}
    model_fn.after_graph = lambda: _restore_eager_classes(layers)  # type: ignore[attr-defined]
    return model_fn


def _restore_eager_classes(layers: set[Any]) -> None:
    """Make eager models and layers work again.

    tf_keras gives its classes other bases when an object is made in a graph, and eager objects of these classes fail
    until one is made eagerly.
    """
    if tf.executing_eagerly():
        keras.models.Sequential()
        keras.models.Model()
        for kind in layers:
            kind.__new__(kind)


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


def _compiled(model: Any, key: str, attribute: str) -> Any:
    """What was given to ``compile``, which the two kinds of models keep in different places."""
    config = model.get_compile_config() if hasattr(model, "get_compile_config") else None
    return config[key] if config is not None else getattr(model, attribute, None)


def _by_output(argument: str, value: Any, names: list[str]) -> list[Any]:
    """What was given for each output: one value for all, a list, or a dictionary by the names of the outputs."""
    if isinstance(value, Mapping):
        unknown = sorted(set(value) - set(names))
        if unknown:
            raise InvalidArgument(f"{argument} has the names {unknown}; the model's outputs are {names}")
        return [value.get(name) for name in names]
    if isinstance(value, list | tuple):
        if len(value) != len(names):
            raise InvalidArgument(f"{argument} has {len(value)} entries; the model's outputs are {names}")
        return list(value)
    return [value] * len(names)


def _metrics(found: Any, names: list[str]) -> list[list[Any]]:
    """The metrics of each output; a plain list of them is for every output."""
    if isinstance(found, list | tuple) and not any(isinstance(part, list | tuple) for part in found):
        return [list(found) for _ in names]
    parts = _by_output("metrics", found, names)
    return [list(part) if isinstance(part, list | tuple) else [] if part is None else [part] for part in parts]


def _targets(labels: Any, names: list[str]) -> list[Any]:
    """The labels of each output; those of a single output may have any name."""
    if isinstance(labels, Mapping) and len(labels) == len(names) == 1:
        return list(labels.values())
    if labels is None or (len(names) > 1 and not isinstance(labels, Mapping | list | tuple)):
        raise InvalidArgument(f"the input function must give labels for the model's outputs {names}; got {labels!r}")
    return _by_output("labels", labels, names)


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
