"""What describes a run of the tf.estimator subset: modes, specs, the configuration, exporters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tfqueue.errors import InvalidArgument

__all__ = ["EstimatorSpec", "EvalSpec", "Exporter", "ModeKeys", "RunConfig", "TrainSpec"]


class ModeKeys:
    """What a model function is called for."""

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"


class EstimatorSpec(NamedTuple):
    """What a model function returns.

    Attributes:
        mode: One of `ModeKeys`.
        predictions: Tensors, in EVAL and PREDICT mode.
        loss: A scalar, in TRAIN and EVAL mode.
        train_op: The op of a training step, which also advances the global step.
        eval_metric_ops: From names to pairs (value, update op), as tf.metrics gives them.
        export_outputs: Kept for who reads it: saved models are not exported.
        training_chief_hooks: Hooks of training, as ``training_hooks``: there is one machine.
        training_hooks: Hooks of training only; `evaluation_hooks` and `prediction_hooks` likewise.
        scaffold: A `tf.train.Scaffold`, or None.
    """

    mode: str
    predictions: Any = None
    loss: Any = None
    train_op: Any = None
    eval_metric_ops: Mapping[str, tuple[Any, Any]] | None = None
    export_outputs: Mapping[str, Any] | None = None
    training_chief_hooks: Sequence[Any] | None = None
    training_hooks: Sequence[Any] | None = None
    scaffold: Any = None
    evaluation_hooks: Sequence[Any] | None = None
    prediction_hooks: Sequence[Any] | None = None


@dataclass(frozen=True, slots=True)
class RunConfig:
    """Settings of an estimator.

    Attributes:
        model_dir: The folder of checkpoints; None: a temporary one.
        tf_random_seed: The graph's seed, or None.
        save_summary_steps: Steps from one writing of the summaries to the next; None: never.
        save_checkpoints_steps: Steps from one checkpoint to the next; None: by time.
        save_checkpoints_secs: Seconds from one checkpoint to the next, where steps do not say it (600 unless given).
        session_config: A `tf.ConfigProto`, or None.
        keep_checkpoint_max: Checkpoints that are kept; None or 0: all.
        keep_checkpoint_every_n_hours: One checkpoint of so many hours is kept for good.
        log_step_count_steps: Steps from one message about the speed and the loss to the next; None: never.

    Raises:
        InvalidArgument: Steps and seconds are both given, or a number is not positive.
    """

    model_dir: str | None = None
    tf_random_seed: int | None = 1
    save_summary_steps: int | None = 100
    save_checkpoints_steps: int | None = None
    save_checkpoints_secs: float | None = None
    session_config: Any = None
    keep_checkpoint_max: int | None = 5
    keep_checkpoint_every_n_hours: float = 10000
    log_step_count_steps: int | None = 100

    def __post_init__(self) -> None:
        if self.save_checkpoints_steps is not None and self.save_checkpoints_secs is not None:
            raise InvalidArgument("save_checkpoints_steps and save_checkpoints_secs exclude each other")
        for name in ("save_summary_steps", "save_checkpoints_steps", "save_checkpoints_secs", "log_step_count_steps"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise InvalidArgument(f"{name} must be positive, or None; got {value}")

    def replace(self, **values: Any) -> RunConfig:
        """A copy with other values."""
        return replace(self, **values)


@dataclass(frozen=True, slots=True)
class TrainSpec:
    """How `train_and_evaluate` trains: from ``input_fn`` up to the global step ``max_steps`` (None: to its end)."""

    input_fn: Callable[..., Any]
    max_steps: int | None = None
    hooks: Sequence[Any] | None = None
    saving_listeners: Sequence[Any] | None = None


@dataclass(frozen=True, slots=True)
class EvalSpec:
    """How `train_and_evaluate` evaluates: ``steps`` batches (None: all) of ``input_fn``.

    Attributes:
        input_fn: The input function.
        steps: Batches of an evaluation.
        name: A name for the folder of summaries, or None.
        hooks: Session hooks.
        exporters: One `Exporter`, or several, which are called after each evaluation.
        start_delay_secs: Seconds of training before the first evaluation between checkpoints.
        throttle_secs: Seconds from one such evaluation to the next; after training there is always one.
    """

    input_fn: Callable[..., Any]
    steps: int | None = 100
    name: str | None = None
    hooks: Sequence[Any] | None = None
    exporters: Any = None
    start_delay_secs: float = 120
    throttle_secs: float = 600


class Exporter:
    """The base of what a program exports after evaluations; a subclass has ``name`` and ``export``."""

    @property
    def name(self) -> str:
        """The name of the folder below ``model_dir/export``."""
        raise NotImplementedError(f"{type(self).__name__} must have a name")

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: str, eval_result: Any, is_the_final_export: bool
    ) -> Any:
        """Export what was evaluated; the result is what `train_and_evaluate` returns of the last time."""
        raise NotImplementedError(f"{type(self).__name__} must have a method export")
