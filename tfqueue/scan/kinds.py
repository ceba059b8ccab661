"""What kind of queue code each TensorFlow name is, and what to do about it."""

from __future__ import annotations

from functools import cache

from tfqueue.compat import names

QUEUE_CODE = frozenset(("producer", "reader", "batch", "queue", "runner", "provider", "coordinator"))
"""The kinds that are queue-runner code: while one is left, a migration is not done."""

_TRAIN = {
    **dict.fromkeys(
        ("string_input_producer", "slice_input_producer", "range_input_producer", "input_producer", "limit_epochs"),
        "producer",
    ),
    "match_filenames_once": "producer",
    **dict.fromkeys(
        (
            f"{maybe}{batch}"
            for maybe in ("", "maybe_")
            for batch in ("batch", "batch_join", "shuffle_batch", "shuffle_batch_join")
        ),
        "batch",
    ),
    **dict.fromkeys(("QueueRunner", "add_queue_runner", "start_queue_runners", "LooperThread"), "runner"),
    "Coordinator": "coordinator",
    **dict.fromkeys(
        ("Supervisor", "MonitoredTrainingSession", "MonitoredSession", "SingularMonitoredSession", "SessionManager"),
        "session",
    ),
}
_TOP = {
    **dict.fromkeys(
        (
            "TFRecordReader",
            "TextLineReader",
            "WholeFileReader",
            "FixedLengthRecordReader",
            "IdentityReader",
            "LMDBReader",
        ),
        "reader",
    ),
    **dict.fromkeys(("FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue", "PriorityQueue", "QueueBase"), "queue"),
    **dict.fromkeys(("parse_example", "parse_single_example", "parse_single_sequence_example"), "parse"),
    **dict.fromkeys(("decode_csv", "decode_raw"), "parse"),
    **dict.fromkeys(("Session", "InteractiveSession"), "session"),
    "read_file": "decode",
    "py_func": "python",
    "load_op_library": "library",
}
_CONTRIB = {
    **dict.fromkeys(
        (
            "training.bucket",
            "training.bucket_by_sequence_length",
            "training.stratified_sample",
            "training.rejection_sample",
            "training.batch_sequences_with_states",
            "learn.read_batch_examples",
            "learn.read_batch_features",
            "learn.read_batch_record_features",
            "learn.read_keyed_batch_examples",
            "learn.read_keyed_batch_features",
        ),
        "batch",
    ),
    **dict.fromkeys(
        (
            "slim.dataset_data_provider.DatasetDataProvider",
            "slim.parallel_reader.parallel_read",
            "slim.parallel_reader.single_pass_read",
            "slim.parallel_reader.ParallelReader",
            "slim.prefetch_queue.prefetch_queue",
        ),
        "provider",
    ),
    "slim.queues.QueueRunners": "runner",
    "slim.queues.start_queue_runners": "runner",
    "slim.queues.NestedQueueRunnerError": "runner",
    **dict.fromkeys(
        (
            "slim.learning.train",
            "slim.evaluation.evaluate_once",
            "slim.evaluation.evaluation_loop",
            "slim.evaluation.wait_for_new_checkpoint",
        ),
        "session",
    ),
    "staging.StagingArea": "queue",
    "slim.tfexample_decoder.TFExampleDecoder": "parse",
}
_KINDS = {
    **{f"tf.train.{name}": kind for name, kind in _TRAIN.items()},
    **{f"tf.train.queue_runner.{name}": kind for name, kind in _TRAIN.items()},
    **{f"tf.train.input.{name}": kind for name, kind in _TRAIN.items()},
    **{f"tf.{name}": kind for name, kind in _TOP.items()},
    **{f"tf.io.{name}": kind for name, kind in _TOP.items() if kind in ("parse", "decode")},
    **{f"tf.queue.{name}": kind for name, kind in _TOP.items() if kind == "queue"},
    **{f"tf.contrib.{name}": kind for name, kind in _CONTRIB.items()},
}
_METHODS = {
    **dict.fromkeys(("read", "read_up_to"), "reader"),
    **dict.fromkeys(("dequeue", "dequeue_many", "dequeue_up_to", "enqueue", "enqueue_many"), "queue"),
    "create_threads": "runner",
    "start_queue_runners": "runner",
}

_STEPS = {
    "provider": "tf.data.TFRecordDataset(files).interleave(...).map(decode).shuffle(n).batch(n, drop_remainder=True)",
    "runner": "delete it: a tf.data.Dataset runs its own threads",
    "coordinator": "for batch in dataset; to go on with the queues: with tfqueue.queue_runners(sess) as coord",
    "library": "rebuild the op library against the installed TensorFlow (tf.sysconfig.get_compile_flags())",
}
_METHOD_STEPS = {
    "dequeue": "next(iterator)",
    "dequeue_many": "Dataset.batch(n, drop_remainder=True)",
    "dequeue_up_to": "Dataset.batch(n)",
    "enqueue": "tf.data.Dataset.from_generator, or the dataset that the stage reads from",
    "enqueue_many": "tf.data.Dataset.from_tensor_slices",
    "read": "the dataset itself",
    "read_up_to": "Dataset.batch(n)",
}


@cache
def kind_of(name: str) -> str | None:
    """The kind of a name, ``"producer"``, ``"reader"``, ``"batch"`` ...; None where it has to do with no pipeline."""
    if name in _KINDS:
        return _KINDS[name]
    if name.startswith("tf.contrib.slim."):  # also by way of slim.python.slim.data and of tf_slim.data
        module, _, last = name.rpartition(".")
        return _KINDS.get(f"tf.contrib.slim.{module.rpartition('.')[2]}.{last}")
    owner, separator, method = name.rpartition("().")
    if separator and kind_of(owner) in ("reader", "queue", "runner", "session"):
        return _METHODS.get(method)
    last = name.rpartition(".")[2]
    if last.startswith("decode_") and name.startswith(("tf.image.", "tf.io.")):
        return "decode"
    if name.startswith("tf.image."):
        return "image"
    return None


def next_step(name: str, kind: str) -> str:
    """What to do about one use."""
    row = names.lookup(name)
    method = name.rpartition("().")[2]
    if method in _METHOD_STEPS and "()." in name:
        return _METHOD_STEPS[method]
    if kind in _STEPS:
        return _STEPS[kind]
    if row is None or not row.modern:
        return ""
    return f"{row.modern}  ({row.change})" if row.change and kind in ("missing", "gone") else row.modern


@cache
def missing(name: str) -> names.OldName | None:
    """The row of a name that today's tf.compat.v1 or NumPy lacks; None for one that is there, or not known."""
    if name in ("tf.contrib", "np") or name.startswith("tf.keras"):
        return None
    if names.below(name):  # a module of which something is restored; what is used of it is listed by itself
        return names.lookup(f"{name}.*") if name.startswith("tf.contrib.") else None
    row = names.lookup(name)
    if row is None or row.kind == "kept" or (row.kind == "rebuilt" and row.replaces):
        return None
    return row
