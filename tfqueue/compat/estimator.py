"""A subset of tf.estimator, which TensorFlow 2.16 dropped: train, evaluate and predict on one machine.

Here are `Estimator` over a model function, `model_to_estimator` over a compiled Keras model of tf_keras, `TrainSpec`,
`EvalSpec` and `train_and_evaluate`, and `run_input_fn`, which runs an input function by itself; the input functions
over arrays are in estimator_inputs.py. Not here: canned estimators, feature columns of the model side, export of saved
models, distribution, warm starts, heads.
"""

from __future__ import annotations

import copy
import inspect
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tfqueue.compat.estimator_specs import EstimatorSpec, EvalSpec, Exporter, ModeKeys, RunConfig, TrainSpec
from tfqueue.errors import CannotRestore, InvalidArgument, PipelineError
from tfqueue.pipeline import QueuePipeline

__all__ = [
    "Estimator",
    "EstimatorSpec",
    "EvalSpec",
    "Exporter",
    "ModeKeys",
    "RunConfig",
    "TrainSpec",
    "model_to_estimator",
    "run_input_fn",
    "train_and_evaluate",
]

tf1 = tf.compat.v1


class _Listener(tf1.train.CheckpointSaverListener):  # type: ignore[misc, name-defined]
    """Calls a function with the global step after a checkpoint was saved."""

    def __init__(self, after: Callable[[int], None]) -> None:
        self._after = after

    def after_save(self, session: Any, global_step_value: int) -> None:
        self._after(global_step_value)


class Estimator:
    """Trains, evaluates and runs the model that a model function builds; checkpoints carry it from call to call.

    Args:
        model_fn: ``model_fn(features, labels, mode, params, config)`` -> `EstimatorSpec`; it may leave out the last
            three arguments.
        model_dir: The folder of checkpoints; training goes on from the last one in it.
        config: A `RunConfig`.
        params: What ``model_fn`` and input functions get as ``params``: a dictionary, or an object such as HParams.
    """

    def __init__(
        self,
        model_fn: Callable[..., EstimatorSpec],
        model_dir: str | None = None,
        config: RunConfig | None = None,
        params: Any = None,
    ) -> None:
        config = config or RunConfig()
        if not isinstance(config, RunConfig):
            raise InvalidArgument(f"config must be a RunConfig; got {type(config).__name__}")
        if model_dir is not None and config.model_dir is not None and str(model_dir) != str(config.model_dir):
            raise InvalidArgument(f"model_dir is {model_dir!r} here and {config.model_dir!r} in the config")
        folder = model_dir or config.model_dir or tempfile.mkdtemp(prefix="estimator-")
        self._model_fn = model_fn
        self._config = config.replace(model_dir=str(folder))
        self._params = copy.deepcopy(params) if params else {}

    @property
    def model_dir(self) -> str:
        """The folder of checkpoints."""
        return str(self._config.model_dir)

    @property
    def config(self) -> RunConfig:
        return self._config

    @property
    def params(self) -> Any:
        return copy.deepcopy(self._params)

    @property
    def model_fn(self) -> Callable[..., EstimatorSpec]:
        return self._model_fn

    def eval_dir(self, name: str | None = None) -> str:
        """The folder of the summaries of evaluations of that name."""
        return str(Path(self.model_dir) / ("eval" if not name else f"eval_{name}"))

    def __getattr__(self, name: str) -> Any:
        if name in ("export_saved_model", "export_savedmodel", "experimental_export_all_saved_models"):
            raise CannotRestore(
                f"Estimator.{name} is not part of the subset of tf.estimator that tfqueue rebuilds. Today: build the "
                "graph of the prediction, restore estimator.latest_checkpoint(), tf.compat.v1.saved_model.simple_save",
                name=f"tf.estimator.Estimator.{name}",
                modern="tf.saved_model.save",
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def latest_checkpoint(self) -> str | None:
        """The path of the newest checkpoint, or None before the first."""
        found: str | None = tf1.train.latest_checkpoint(self.model_dir)
        return found

    def get_variable_names(self) -> list[str]:
        """The names of the variables in the newest checkpoint."""
        return [name for name, _ in tf1.train.list_variables(self._checkpoint(None))]

    def get_variable_value(self, name: str) -> Any:
        """A variable of the newest checkpoint."""
        return tf1.train.load_variable(self._checkpoint(None), name)

    def train(
        self,
        input_fn: Callable[..., Any],
        hooks: Sequence[Any] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Sequence[Any] | None = None,
    ) -> Estimator:
        """Train for ``steps`` more steps, or up to the global step ``max_steps``, or to the end of the data.

        Returns:
            The estimator itself.
        """
        if steps is not None and max_steps is not None:
            raise InvalidArgument("steps and max_steps exclude each other: steps counts from here, max_steps from 0")
        for argument, value in (("steps", steps), ("max_steps", max_steps)):
            if value is not None and value < 1:
                raise InvalidArgument(f"{argument} must be at least 1; got {value}")
        if max_steps is not None and self._global_step() >= max_steps:
            return self
        with self._graph(input_fn, ModeKeys.TRAIN) as (spec, scaffold):
            stop = [tf1.train.StopAtStepHook(num_steps=steps, last_step=max_steps)] if steps or max_steps else []
            config = self._config
            saver = tf1.train.CheckpointSaverHook(
                self.model_dir,
                save_steps=config.save_checkpoints_steps,
                save_secs=None if config.save_checkpoints_steps else config.save_checkpoints_secs or 600,
                scaffold=scaffold,
                listeners=list(saving_listeners or ()),
            )
            tf1.summary.scalar("loss", spec.loss)
            told = {"loss": spec.loss, "step": tf1.train.get_global_step()}
            every = config.log_step_count_steps
            log = [tf1.train.LoggingTensorHook(told, every_n_iter=every)] if every else []
            own = [*(spec.training_hooks or ()), *(spec.training_chief_hooks or ()), tf1.train.NanTensorHook(spec.loss)]
            with tf1.train.MonitoredTrainingSession(
                checkpoint_dir=self.model_dir,
                scaffold=scaffold,
                hooks=[*(hooks or ()), *own, *log, *stop],
                chief_only_hooks=[saver],
                save_checkpoint_secs=None,
                save_summaries_steps=config.save_summary_steps,
                save_summaries_secs=None,
                config=config.session_config,
                log_step_count_steps=every,
            ) as session:
                while not session.should_stop():
                    session.run(spec.train_op)
        return self

    def evaluate(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Sequence[Any] | None = None,
        checkpoint_path: str | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """The metrics over ``steps`` batches (None: all), with ``"loss"`` and ``"global_step"``.

        ``"loss"`` is the mean of the batches' losses. Numbers are written as summaries into ``eval_dir(name)``, too.
        """
        if steps is not None and steps < 1:
            raise InvalidArgument(f"steps must be at least 1, or None; got {steps}")
        checkpoint = self._checkpoint(checkpoint_path)
        with self._graph(input_fn, ModeKeys.EVAL) as (spec, scaffold):
            metrics = dict(spec.eval_metric_ops or {})
            metrics["loss"] = tf1.metrics.mean(spec.loss)
            final = {key: value for key, (value, _) in metrics.items()}
            final["global_step"] = tf1.train.get_global_step()
            results = tf1.train.FinalOpsHook(final)
            updates = [update for _, update in metrics.values()]
            creator = tf1.train.ChiefSessionCreator(
                scaffold, checkpoint_filename_with_path=checkpoint, config=self._config.session_config
            )
            done = 0
            with tf1.train.MonitoredSession(
                creator, [*(hooks or ()), *(spec.evaluation_hooks or ()), results]
            ) as session:
                while (steps is None or done < steps) and not session.should_stop():
                    session.run(updates)
                    done += 1
        if not done:
            raise PipelineError("the input function of the evaluation gave no batch")
        found = dict(results.final_ops_values)
        _write_summary(self.eval_dir(name), found)
        return found

    def predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: Sequence[str] | str | None = None,
        hooks: Sequence[Any] | None = None,
        checkpoint_path: str | None = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """The predictions, one for each example (or each batch), to the end of the data."""
        checkpoint = self._checkpoint(checkpoint_path)
        with self._graph(input_fn, ModeKeys.PREDICT) as (spec, scaffold):
            predictions = spec.predictions
            if predict_keys is not None:
                keys = [predict_keys] if isinstance(predict_keys, str) else list(predict_keys)
                missing = sorted(set(keys) - set(predictions if isinstance(predictions, Mapping) else ()))
                if missing:
                    raise InvalidArgument(f"the model function predicts no {missing}; it predicts {predictions}")
                predictions = {key: predictions[key] for key in keys}
            creator = tf1.train.ChiefSessionCreator(
                scaffold, checkpoint_filename_with_path=checkpoint, config=self._config.session_config
            )
            session = tf1.train.MonitoredSession(creator, [*(hooks or ()), *(spec.prediction_hooks or ())])
        # Outside of the graph's context, which must not stay open while the caller does other things.
        with session:
            while not session.should_stop():
                batch = session.run(predictions)
                if not yield_single_examples:
                    yield batch
                    continue
                flat = tf.nest.flatten(batch)
                for row in range(len(flat[0])):
                    yield tf.nest.pack_sequence_as(batch, [part[row] for part in flat])

    def _graph(self, input_fn: Callable[..., Any], mode: str) -> _BuiltGraph:
        return _BuiltGraph(self._model_fn, input_fn, mode, self._params, self._config)

    def _checkpoint(self, path: str | None) -> str:
        found = path or self.latest_checkpoint()
        if found is None:
            raise PipelineError(f"there is no checkpoint in {self.model_dir}: train first")
        return found

    def _global_step(self) -> int:
        latest = self.latest_checkpoint()
        return 0 if latest is None else int(tf1.train.load_variable(latest, tf1.GraphKeys.GLOBAL_STEP))


class _BuiltGraph:
    """A graph with the input and the model of one mode, entered as the default graph."""

    def __init__(
        self,
        model_fn: Callable[..., EstimatorSpec],
        input_fn: Callable[..., Any],
        mode: str,
        params: Any,
        config: RunConfig,
    ) -> None:
        self._context = tf.Graph().as_default()
        self._arguments = (model_fn, input_fn, mode, params, config)

    def __enter__(self) -> tuple[EstimatorSpec, Any]:
        model_fn, input_fn, mode, params, config = self._arguments
        self._context.__enter__()
        try:
            tf1.set_random_seed(config.tf_random_seed)
            tf1.train.get_or_create_global_step()
            features, labels = _features_and_labels(input_fn, mode=mode, params=params, config=config)
            options = {"labels": labels, "mode": mode, "params": copy.deepcopy(params), "config": config}
            known = inspect.signature(model_fn).parameters
            spec = model_fn(features, **{name: value for name, value in options.items() if name in known})
            _check(spec, mode)
            scaffold = spec.scaffold or tf1.train.Scaffold(
                saver=tf1.train.Saver(
                    max_to_keep=config.keep_checkpoint_max,
                    keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours,
                    save_relative_paths=True,
                )
            )
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return spec, scaffold

    def __exit__(self, *error: Any) -> None:
        self._context.__exit__(*error)
        after_graph = getattr(self._arguments[0], "after_graph", None)
        if after_graph is not None:
            after_graph()


def train_and_evaluate(
    estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec
) -> tuple[dict[str, Any] | None, list[Any]]:
    """Train, and evaluate after checkpoints (no sooner than ``throttle_secs`` after the one before) and at the end.

    Returns:
        The metrics of the last evaluation, and what each exporter returned after it.
    """
    if not isinstance(train_spec, TrainSpec) or not isinstance(eval_spec, EvalSpec):
        raise InvalidArgument("train_and_evaluate takes a TrainSpec and an EvalSpec")
    last = time.monotonic() + eval_spec.start_delay_secs - eval_spec.throttle_secs
    result: dict[str, Any] | None = None
    evaluated = -1
    exporters = eval_spec.exporters or ()
    exporters = list(exporters) if isinstance(exporters, Sequence) else [exporters]
    exported: list[Any] = []

    def evaluate(step: int, *, final: bool = False) -> None:
        nonlocal result, last, evaluated, exported
        result = estimator.evaluate(
            eval_spec.input_fn, steps=eval_spec.steps, hooks=eval_spec.hooks, name=eval_spec.name
        )
        evaluated, last = step, time.monotonic()
        exported = [
            exporter.export(
                estimator, str(Path(estimator.model_dir) / "export" / exporter.name),
                estimator.latest_checkpoint(), result, final,
            )
            for exporter in exporters
        ]  # fmt: skip

    def after_save(step: int) -> None:
        if step > 0 and time.monotonic() - last >= eval_spec.throttle_secs:
            evaluate(step)

    estimator.train(
        train_spec.input_fn,
        hooks=train_spec.hooks,
        max_steps=train_spec.max_steps,
        saving_listeners=[*(train_spec.saving_listeners or ()), _Listener(after_save)],
    )
    step = estimator._global_step()
    if step != evaluated or exporters:
        evaluate(step, final=True)
    return result, exported


def run_input_fn(input_fn: Callable[..., Any], steps: int | None = None, **arguments: Any) -> Iterator[Any]:
    """The batches of an input function as arrays, without a model: (features, labels), or the features alone.

    Queue runners are run if it builds any, and datasets are read; ``arguments`` are passed on (mode, params, config).

    Args:
        input_fn: What an estimator would be given.
        steps: Batches at most; None: all.

    Raises:
        InvalidArgument: ``steps`` is below 1, or the function returns something else.
    """
    if steps is not None and steps < 1:
        raise InvalidArgument(f"steps must be at least 1, or None; got {steps}")

    def build_fn() -> Any:
        features, labels = _features_and_labels(input_fn, **arguments)
        return features if labels is None else (features, labels)

    with QueuePipeline(build_fn) as pipeline:
        for done, batch in enumerate(pipeline, 1):
            yield batch
            if done == steps:
                return


def model_to_estimator(
    keras_model: Any = None, model_dir: str | None = None, config: RunConfig | None = None, **others: Any
) -> Estimator:
    """An estimator over a compiled model of tf_keras (functional or sequential), as it is now.

    Training begins from the model's weights; the model itself stays as it is. Features are a tensor, or a dictionary
    by the names of the model's inputs; labels of several outputs are a list, or a dictionary by their names.

    Raises:
        InvalidArgument: It is no such model, or it is not compiled.
    """
    from tfqueue.compat.keras_estimator import model_function

    if others:
        raise InvalidArgument(f"model_to_estimator of this subset does not know {sorted(others)}")
    if keras_model is None:
        raise InvalidArgument("keras_model is missing: give a compiled model of tf_keras")
    return Estimator(model_function(keras_model), model_dir=model_dir, config=config)


def _write_summary(folder: str, values: Mapping[str, Any]) -> None:
    numbers = {name: value for name, value in values.items() if np.ndim(value) == 0 and np.isreal(value)}
    step = int(values["global_step"])
    with tf.Graph().as_default():  # without a graph, the writer refuses to work where eager execution is on
        writer = tf1.summary.FileWriter(folder, filename_suffix=f".{step}")
    summary = tf1.Summary(value=[tf1.Summary.Value(tag=name, simple_value=float(n)) for name, n in numbers.items()])
    writer.add_summary(summary, step)
    writer.close()


def _features_and_labels(input_fn: Callable[..., Any], **arguments: Any) -> tuple[Any, Any]:
    known = inspect.signature(input_fn).parameters
    found = input_fn(**{name: value for name, value in arguments.items() if name in known})
    if isinstance(found, tf.data.Dataset):
        iterator = tf1.data.make_initializable_iterator(found)
        tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
        found = iterator.get_next()
    if not any(isinstance(part, tf.Tensor | tf.SparseTensor | tf.Variable) for part in tf.nest.flatten(found)):
        raise InvalidArgument(
            f"an input function returns (features, labels), features or a Dataset; this one returned {found!r}"
        )
    if isinstance(found, list | tuple):
        if len(found) != 2:
            raise InvalidArgument(f"an input function returns (features, labels); this one returned {len(found)} parts")
        return found[0], found[1]
    return found, None


def _check(spec: Any, mode: str) -> None:
    if not isinstance(spec, EstimatorSpec):
        raise InvalidArgument(f"a model function must return an EstimatorSpec; got {type(spec).__name__}")
    needed = {ModeKeys.TRAIN: ("loss", "train_op"), ModeKeys.EVAL: ("loss",), ModeKeys.PREDICT: ("predictions",)}[mode]
    missing = [name for name in needed if getattr(spec, name) is None]
    if missing:
        raise InvalidArgument(f"the EstimatorSpec for mode {mode!r} lacks {', '.join(missing)}")
