"""What often goes wrong in the queue code that was found, each with its line and what to do."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from tfqueue.scan.inventory import Risk
from tfqueue.scan.kinds import kind_of
from tfqueue.scan.pipelines import scope_of
from tfqueue.scan.resolve import Reference, Resolved
from tfqueue.scan.sources import Source

_INITIALISERS = ("local_variables_initializer", "initialize_local_variables", "initialize_all_variables")
_MANAGED = (
    "Supervisor",
    "MonitoredTrainingSession",
    "MonitoredSession",
    "SingularMonitoredSession",
    "slim.learning.train",
    "contrib.training.train",
)
_STARTERS = (*_MANAGED, "start_queue_runners", "create_threads", "QueueRunners", "evaluate_once", "evaluation_loop")
_ESTIMATORS = ("tf.estimator.", "tf.contrib.learn.", "tf.contrib.estimator.", "tf.contrib.tpu.")
_RESIZES = ("resize_images", "resize_bilinear", "resize_bicubic", "resize_nearest_neighbor", "resize_area")
_Found = tuple[Reference, str, str]


def risks_of(sources: Sequence[tuple[Source, Resolved]]) -> Iterator[Risk]:
    """Everything that often goes wrong, by file and line."""
    everywhere = {reference.name for _, resolved in sources for reference in resolved.references}
    for source, resolved in sources:
        found: list[_Found] = []
        for rule in _RULES:
            found += rule(resolved, everywhere)
        for reference, code, message in sorted(found, key=lambda item: item[0].line):
            line, cell = source.place(reference.line)
            yield Risk(str(source.path), line, cell, code, message)


def _paired_producers(resolved: Resolved, everywhere: set[str]) -> Iterator[_Found]:
    every = [r for r in _calls(resolved, "producer") if "match" not in r.name]
    for reference in _calls(resolved, "batch"):
        threads = reference.argument("num_threads")
        if threads is None or (_number(threads) in (None, 1) and isinstance(threads, ast.Constant)):
            continue
        functions = scope_of(resolved, reference.function)
        producers = [r for r in every if r.function in functions]
        if len(producers) > 1:
            lines = ", ".join(str(producer.line) for producer in producers)
            yield (
                reference,
                "paired-producers",
                f"several threads take from {len(producers)} producers (lines {lines}) at different times: records get "
                f"mispaired; num_threads=1, or one producer of both (slice_input_producer, Dataset.zip)",
            )


def _epochs(resolved: Resolved, everywhere: set[str]) -> Iterator[_Found]:
    if _any_of(everywhere, (*_INITIALISERS, *_MANAGED)) or _is_run_by_estimator(everywhere):
        return
    for reference in resolved.references:
        epochs = reference.argument("num_epochs")
        if epochs is not None and _is_set(epochs) and kind_of(reference.name) in ("producer", "provider"):
            yield (
                reference,
                "epochs-without-local-init",
                "num_epochs counts in a local variable, and nothing here runs local_variables_initializer: the runner "
                "ends at once, and the step waits or finds a closed queue",
            )


def _resizes(resolved: Resolved, everywhere: set[str]) -> Iterator[_Found]:
    for reference in resolved.references:
        last = reference.name.rpartition(".")[2]
        if reference.call is not None and reference.name.startswith("tf.image.") and last in _RESIZES:
            yield (
                reference,
                "resize",
                f"tf_upgrade_v2 renames {last} to tf.image.resize, whose pixels differ; keep tf.compat.v1.image.{last} "
                f"until a comparison says that the difference does not matter",
            )


def _decode_raw(resolved: Resolved, everywhere: set[str]) -> Iterator[_Found]:
    for reference in resolved.references:
        if reference.call is not None and reference.name in ("tf.decode_raw", "tf.io.decode_raw"):
            yield (
                reference,
                "decode-raw",
                "decode_raw takes the bytes as they are: a dtype other than the one that was written gives other "
                "numbers without an error where the length still divides; `tfqueue records describe` tells the length",
            )


def _partial_batches(resolved: Resolved, everywhere: set[str]) -> Iterator[_Found]:
    every = [r for r in _calls(resolved, "producer") if (n := r.argument("num_epochs")) is not None and _is_set(n)]
    limited = {r.function for r in every}
    for reference in _calls(resolved, "batch"):
        if reference.argument("allow_smaller_final_batch") is not None or not reference.name.startswith("tf.train."):
            continue
        if limited & scope_of(resolved, reference.function):
            yield (
                reference,
                "partial-batch",
                "the records of the last, partial batch are dropped at the end of the epochs; the equal of it is "
                "repeat(epochs).batch(n, drop_remainder=True), not batch(n).repeat(epochs)",
            )


def _not_started(resolved: Resolved, everywhere: set[str]) -> Iterator[_Found]:
    if _any_of(everywhere, _STARTERS) or _is_run_by_estimator(everywhere):
        return
    if any(name.startswith("tfqueue.") for name in everywhere):
        return
    for reference in _calls(resolved, "batch"):
        yield (
            reference,
            "runners-not-started",
            "nothing here starts the queue runners (start_queue_runners, a Supervisor, a MonitoredSession): the first "
            "step that reads this waits for ever",
        )


def _without_coordinator(resolved: Resolved, everywhere: set[str]) -> Iterator[_Found]:
    for reference in resolved.references:
        started = reference.name == "tf.train.start_queue_runners" and reference.call is not None
        if started and reference.argument("coord", 1) is None:
            yield (
                reference,
                "no-coordinator",
                "without a Coordinator a runner that fails is not heard of, and the step waits for ever; "
                "coord=, or with tfqueue.queue_runners(sess)",
            )


def _filenames_once(resolved: Resolved, everywhere: set[str]) -> Iterator[_Found]:
    for reference in resolved.references:
        if reference.name == "tf.train.match_filenames_once" and reference.call is not None:
            yield (
                reference,
                "match-filenames-once",
                "today string_input_producer refuses what this returns (a resource variable) unless resource variables "
                "are off; `tfqueue run` and QueuePipeline mend that; else sorted(glob.glob(pattern))",
            )


def _python(resolved: Resolved, everywhere: set[str]) -> Iterator[_Found]:
    for reference in resolved.references:
        if reference.name == "tf.load_op_library" and reference.call is not None:
            yield (
                reference,
                "custom-ops",
                "a library of custom ops that was built for TensorFlow 1 does not load: build it anew for the "
                "installed version, or write the op with TensorFlow's own",
            )


def _threads_and_order(resolved: Resolved, everywhere: set[str]) -> Iterator[_Found]:
    for reference in _calls(resolved, "batch"):
        last = reference.name.rpartition(".")[2]
        threads = reference.argument("num_threads")
        if last == "batch" and threads is not None and (_number(threads) or 0) > 1:
            yield (
                reference,
                "order",
                f"{_number(threads)} threads fill the queue: the order of the records differs from run to run; compare "
                f"with order='any'",
            )
        elif "shuffle" in last and reference.argument("seed") is not None:
            yield (
                reference,
                "seed",
                "a seed does not make shuffle_batch repeatable: it draws among what is in the queue at that moment; "
                "tfqueue's engine 'lockstep' does",
            )


_RULES: tuple[Callable[[Resolved, set[str]], Iterator[_Found]], ...] = (
    _paired_producers,
    _epochs,
    _resizes,
    _decode_raw,
    _partial_batches,
    _not_started,
    _without_coordinator,
    _filenames_once,
    _python,
    _threads_and_order,
)


def _calls(resolved: Resolved, kind: str) -> list[Reference]:
    return [r for r in resolved.references if r.call is not None and kind_of(r.name) == kind]


def _any_of(names: set[str], endings: tuple[str, ...]) -> bool:
    return any(name.endswith(endings) for name in names)


def _is_run_by_estimator(names: set[str]) -> bool:
    """Whether an estimator is here, which calls input functions in a session with its runners started."""
    return any(name.startswith(_ESTIMATORS) and name.rpartition(".")[2][:1].isupper() for name in names)


def _number(node: ast.expr) -> int | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None


def _is_set(node: ast.expr) -> bool:
    """Whether an argument is something else than a plain None."""
    return not (isinstance(node, ast.Constant) and node.value is None)
