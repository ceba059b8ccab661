"""The subset of tf.estimator: model functions, Keras models, checkpoints, and input functions by themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf1

import tfqueue.compat.v1 as tf
from tfqueue.compat.estimator import Estimator, EstimatorSpec, EvalSpec, RunConfig, TrainSpec, run_input_fn
from tfqueue.compat.estimator import train_and_evaluate as run_both
from tfqueue.errors import CannotRestore, InvalidArgument, PipelineError

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(40, 3)).astype(np.float32)
Y = X @ np.array([[1.0], [-2.0], [0.5]], np.float32)


def queue_input(epochs: int | None = 1):
    """An input function of queues."""
    x, y = tf1.train.slice_input_producer([tf1.constant(X), tf1.constant(Y)], num_epochs=epochs, shuffle=False)
    x, y = tf1.train.batch([x, y], 8)
    return {"x": x}, y


def dataset_input(epochs: int | None = 1):
    """An input function of tf.data."""
    dataset = tf2.data.Dataset.from_tensor_slices(({"x": X}, Y))
    return dataset.batch(8).repeat(epochs)


def model_fn(features, labels, mode, params):
    weights = tf1.get_variable("weights", [3, 1], initializer=tf1.zeros_initializer())
    output = tf1.matmul(features["x"], weights)
    if mode == "infer":
        return EstimatorSpec(mode, {"y": output, "twice": 2 * output})
    loss = tf1.reduce_mean(tf1.square(output - labels))
    train = tf1.train.GradientDescentOptimizer(params["rate"]).minimize(loss, tf1.train.get_global_step())
    metrics = {"mae": tf1.metrics.mean_absolute_error(labels, output)}
    return EstimatorSpec(mode, output, loss, train, metrics)


def trained(steps: int) -> np.ndarray:
    """The weights after so many steps, in numpy."""
    weights = np.zeros([3, 1])
    for step in range(steps):
        x, y = (array[step % 5 * 8 : step % 5 * 8 + 8] for array in (X, Y))
        weights -= 0.1 * 2 * x.T @ (x @ weights - y) / 8
    return weights


@pytest.mark.parametrize("input_fn", [queue_input, dataset_input])
def test_train_evaluate_predict(tmp_path: Path, input_fn) -> None:
    estimator = Estimator(model_fn, str(tmp_path), params={"rate": 0.1})
    assert estimator.train(lambda: input_fn(None), steps=7) is estimator
    np.testing.assert_allclose(estimator.get_variable_value("weights"), trained(7), rtol=1e-4)
    estimator.train(lambda: input_fn(None), max_steps=10)
    estimator.train(lambda: input_fn(None), max_steps=9)  # is there already
    result = estimator.evaluate(input_fn)
    weights = estimator.get_variable_value("weights")
    assert result["global_step"] == 10
    np.testing.assert_allclose(result["loss"], ((X @ weights - Y) ** 2).mean(), rtol=1e-4)
    np.testing.assert_allclose(result["mae"], np.abs(X @ weights - Y).mean(), rtol=1e-4)
    few = estimator.evaluate(input_fn, steps=1)
    np.testing.assert_allclose(few["loss"], ((X[:8] @ weights - Y[:8]) ** 2).mean(), rtol=1e-4)
    predictions = list(estimator.predict(input_fn, predict_keys=["twice"]))
    np.testing.assert_allclose(np.stack([p["twice"] for p in predictions]), 2 * X @ weights, rtol=1e-4)
    assert "weights" in estimator.get_variable_names()


def test_training_ends_with_the_data(tmp_path: Path) -> None:
    estimator = Estimator(model_fn, str(tmp_path), params={"rate": 0.1})
    estimator.train(lambda: queue_input(2))
    assert estimator.evaluate(dataset_input)["global_step"] == 10


def test_train_and_evaluate_evaluates_after_checkpoints(tmp_path: Path) -> None:
    config = RunConfig(save_checkpoints_steps=4)
    estimator = Estimator(model_fn, str(tmp_path), config, {"rate": 0.1})
    evaluated = []

    class Hook(tf1.train.SessionRunHook):
        def after_create_session(self, session, coord) -> None:
            evaluated.append(int(session.run(tf1.train.get_global_step())))

    result, exported = run_both(
        estimator,
        TrainSpec(lambda: dataset_input(None), max_steps=10),
        EvalSpec(dataset_input, steps=None, hooks=[Hook()], start_delay_secs=0, throttle_secs=0),
    )
    assert exported == []
    assert evaluated == [4, 8, 10] or evaluated == [1, 5, 9, 10]
    assert result["global_step"] == 10
    np.testing.assert_allclose(result["loss"], ((X @ trained(10) - Y) ** 2).mean(), rtol=1e-3)


def keras_model(optimizer="sgd"):
    keras = tf.keras
    model = keras.models.Sequential(
        [
            keras.layers.Dense(4, input_shape=(3,), activation="relu", kernel_regularizer=keras.regularizers.l2(0.001)),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer, "mse", metrics=["mae"])
    return model


@pytest.mark.parametrize("eager", [True, False])
def test_a_keras_model_as_estimator(tmp_path: Path, eager: bool) -> None:
    graph = tf2.Graph()

    def context():
        return tf2.init_scope() if eager else graph.as_default()

    with context():
        model = keras_model(tf.keras.optimizers.Adam(0.01))
        name = model.input_names[0]
        before = model.get_weights()
        estimator = tf.keras.estimator.model_to_estimator(keras_model=model, model_dir=str(tmp_path))

    def input_fn(epochs=1):
        return dataset_input(epochs).map(lambda x, y: ({name: x["x"]}, y))

    estimator.train(lambda: input_fn(None), steps=1)
    first = estimator.evaluate(input_fn)
    result, _ = tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(lambda: input_fn(None), max_steps=120),
        tf.estimator.EvalSpec(input_fn, steps=None),
    )
    assert result["global_step"] == 120
    assert result["loss"] < 0.6 * first["loss"]
    assert result["mae"] < first["mae"]
    predictions = np.concatenate([next(iter(p.values())) for p in estimator.predict(input_fn)])
    mae = np.abs(predictions - Y[:, 0]).mean()
    np.testing.assert_allclose(result["mae"], mae, rtol=1e-4)
    moving = [n for n in estimator.get_variable_names() if "moving_mean" in n and "Adam" not in n]
    assert np.abs(estimator.get_variable_value(moving[0])).max() > 0
    with context():
        for value, kept in zip(before, model.get_weights(), strict=True):
            np.testing.assert_array_equal(value, kept)


@pytest.mark.parametrize("by_name", [True, False])
def test_a_model_of_two_outputs(tmp_path: Path, by_name: bool) -> None:
    """Trained as Keras itself trains it on the same batches."""
    layers = tf.keras.layers
    labels = np.concatenate([Y, -2 * Y], axis=1).astype(np.float32)

    def model():
        x = layers.Input(shape=(3,), name="x")
        sum_of = layers.Dense(1, kernel_initializer="ones", name="sum", kernel_regularizer="l2")(x)
        pair = layers.Dense(2, kernel_initializer="zeros", name="pair")(x)
        made = tf.keras.models.Model(x, [sum_of, pair])
        losses, shares, metrics = {"sum": "mse", "pair": "mae"}, {"sum": 0.5}, {"pair": ["mse"]}
        if by_name:
            made.compile(tf.keras.optimizers.legacy.SGD(0.05), losses, metrics, shares)
        else:
            made.compile(tf.keras.optimizers.legacy.SGD(0.05), ["mse", "mae"], ["mae", "mse"], [0.5, 1.0])
        return made

    def input_fn():
        def named(features, label):
            first, pair = label[:, :1], label[:, 1:]
            return features, ({"sum": first, "pair": pair} if by_name else (first, pair))

        both = np.concatenate([Y, labels], axis=1)
        return tf2.data.Dataset.from_tensor_slices(({"x": X}, both)).batch(8).map(named)

    estimator = tf.keras.estimator.model_to_estimator(model(), model_dir=str(tmp_path)).train(input_fn)
    found = estimator.evaluate(input_fn)
    twin = model()
    for start in range(0, 40, 8):
        twin.train_on_batch(X[start : start + 8], [Y[start : start + 8], labels[start : start + 8]])
    expected = twin.evaluate(X, [Y, labels], batch_size=8, verbose=0, return_dict=True)
    assert set(found) == {*expected, "global_step"}
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, err_msg=name)
    predicted = np.stack([p["pair"] for p in estimator.predict(input_fn)])
    np.testing.assert_allclose(predicted, twin.predict(X, verbose=0)[1], rtol=1e-4)


def test_training_begins_with_the_weights_of_the_model(tmp_path: Path) -> None:
    model = tf.keras.models.Sequential([tf.keras.layers.Dense(1, input_shape=(3,), use_bias=False)])
    model.compile(tf.keras.optimizers.SGD(0.0), "mse")
    model.set_weights([np.array([[1.0], [-2.0], [0.5]], np.float32)])
    estimator = tf.keras.estimator.model_to_estimator(model, model_dir=str(tmp_path))
    estimator.train(lambda: dataset_input().map(lambda x, y: (x["x"], y)), steps=1)
    assert estimator.evaluate(lambda: dataset_input().map(lambda x, y: (x["x"], y)))["loss"] < 1e-10


def test_an_input_function_by_itself() -> None:
    for input_fn in (queue_input, dataset_input):
        batches = list(run_input_fn(input_fn))
        np.testing.assert_array_equal(np.concatenate([features["x"] for features, _ in batches]), X)
        np.testing.assert_array_equal(np.concatenate([labels for _, labels in batches]), Y)
        assert len(list(run_input_fn(input_fn, steps=2))) == 2

    def with_params(params, mode):
        return tf1.data.make_one_shot_iterator(tf1.data.Dataset.range(params["n"])).get_next()

    assert [int(n) for n in run_input_fn(with_params, params={"n": 3}, mode="train")] == [0, 1, 2]


def test_what_cannot_work_is_said(tmp_path: Path) -> None:
    estimator = Estimator(model_fn, str(tmp_path / "a"), params={"rate": 0.1})
    with pytest.raises(PipelineError, match="train first"):
        estimator.evaluate(dataset_input)
    with pytest.raises(InvalidArgument, match="exclude each other"):
        estimator.train(dataset_input, steps=1, max_steps=1)
    with pytest.raises(InvalidArgument, match="at least 1"):
        estimator.train(dataset_input, steps=0)
    with pytest.raises(InvalidArgument, match="steps must be at least 1, or None; got 0"):
        next(run_input_fn(lambda: dataset_input(None), steps=0))
    with pytest.raises(InvalidArgument, match="steps must be at least 1, or None; got 0"):
        estimator.evaluate(lambda: dataset_input(None), steps=0)
    with pytest.raises(InvalidArgument, match="must return an EstimatorSpec"):
        Estimator(lambda features: 3, str(tmp_path / "b")).train(dataset_input, steps=1)
    with pytest.raises(InvalidArgument, match="lacks loss, train_op"):
        Estimator(lambda features, mode: EstimatorSpec(mode), str(tmp_path / "b")).train(dataset_input, steps=1)
    with pytest.raises(InvalidArgument, match="takes a TrainSpec"):
        run_both(estimator, None, None)
    with pytest.raises(InvalidArgument, match="not compiled"):
        tf.keras.estimator.model_to_estimator(tf.keras.models.Sequential([tf.keras.layers.Dense(1, input_shape=(3,))]))
    two = tf.keras.models.Model(x := tf.keras.layers.Input((3,)), [tf.keras.layers.Dense(1)(x) for _ in range(2)])
    two.compile("sgd", "mse")
    estimator = tf.keras.estimator.model_to_estimator(two, str(tmp_path / "two"))
    with pytest.raises(InvalidArgument, match="must give labels for the model's outputs"):
        estimator.train(lambda: dataset_input().map(lambda x, y: (x["x"], y)), steps=1)
    with pytest.raises(InvalidArgument, match="must be a model of tf_keras"):
        tf.keras.estimator.model_to_estimator(object())
    with pytest.raises(InvalidArgument, match="does not know"):
        tf.keras.estimator.model_to_estimator(object(), checkpoint_format="saver")


def test_arguments_as_programs_of_the_time_gave_them(tmp_path: Path) -> None:
    """By position and with None, a summary, an exporter, hyperparameters as an object."""
    folder = str(tmp_path / "model")
    config = tf.estimator.RunConfig(
        folder, 2, save_summary_steps=1, save_checkpoints_steps=4, session_config=tf.ConfigProto(),
        keep_checkpoint_max=2, keep_checkpoint_every_n_hours=1, log_step_count_steps=2,
    )  # fmt: skip
    assert config.replace(tf_random_seed=5).tf_random_seed == 5
    calls = []

    class Export(tf.estimator.Exporter):
        name = "mine"

        def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
            calls.append((export_path, checkpoint_path, eval_result["global_step"], is_the_final_export))
            return len(calls)

    def with_all(features, labels, mode, params):
        spec = model_fn(features, labels, mode, {"rate": params.rate})
        tf1.summary.scalar("mine", spec.loss)
        return tf.estimator.EstimatorSpec(
            mode, spec.predictions, spec.loss, spec.train_op, spec.eval_metric_ops, {"y": 1}, None, [], None, None
        )

    estimator = tf.estimator.Estimator(with_all, None, config, tf.contrib.training.HParams(rate=0.1))
    estimator.train(lambda: dataset_input(None), None, 2, None, None)
    assert estimator.model_fn is with_all
    result, exported = tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(lambda: dataset_input(None), 8, None, None),
        tf.estimator.EvalSpec(dataset_input, None, "part", None, Export(), 0, 0),
    )
    assert exported == [len(calls)]
    path, checkpoint, step, final = calls[-1]
    assert (path, Path(checkpoint).name, step, final) == (
        str(Path(folder) / "export" / "mine"),
        "model.ckpt-8",
        8,
        True,
    )
    assert not any(final for *_, final in calls[:-1])

    def written(where: str) -> dict[str, list[tuple[int, float]]]:
        found: dict[str, list[tuple[int, float]]] = {}
        for file in sorted(Path(where).glob("events*")):
            for event in tf1.train.summary_iterator(str(file)):
                for value in event.summary.value:
                    found.setdefault(value.tag, []).append((event.step, value.simple_value))
        return found

    assert estimator.eval_dir("part") == str(Path(folder) / "eval_part")
    evaluated = written(estimator.eval_dir("part"))
    np.testing.assert_allclose(evaluated["loss"][-1], (8, result["loss"]), rtol=1e-6)
    tf1.summary.FileWriterCache.clear()
    training = written(folder)
    assert [step for step, _ in sorted(training["loss"])] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert training["mine"] == training["loss"]


def test_what_the_subset_lacks_is_said(tmp_path: Path) -> None:
    estimator = Estimator(model_fn, str(tmp_path), params={"rate": 0.1})
    with pytest.raises(CannotRestore, match=r"restore estimator\.latest_checkpoint"):
        estimator.export_savedmodel("folder", None)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        estimator.nothing  # noqa: B018
    with pytest.raises(InvalidArgument, match=r"features or a Dataset; this one returned 3"):
        estimator.train(lambda: 3, steps=1)
    with pytest.raises(InvalidArgument, match="exclude each other"):
        RunConfig(save_checkpoints_steps=1, save_checkpoints_secs=2)
    with pytest.raises(InvalidArgument, match="save_summary_steps must be positive"):
        RunConfig(save_summary_steps=0)
    estimator.train(dataset_input, steps=1)
    with pytest.raises(InvalidArgument, match=r"predicts no \['z'\]"):
        next(estimator.predict(dataset_input, "z"))
    assert set(next(estimator.predict(dataset_input, "twice"))) == {"twice"}
