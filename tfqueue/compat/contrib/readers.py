"""tf.contrib.learn's readers: files of serialized examples, read by several threads, batched and parsed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any

import tensorflow as tf

from tfqueue.compat.contrib.tensors import element
from tfqueue.errors import InvalidArgument

tf1 = tf.compat.v1


def read_batch_examples(
    file_pattern: Any,
    batch_size: Any,
    reader: Callable[[], Any],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    num_threads: int = 1,
    read_batch_size: int = 1,
    parse_fn: Callable[[Any], Any] | None = None,
    name: str | None = None,
    seed: int | None = None,
) -> Any:
    """Batches of the records of files: a string vector, or what ``parse_fn`` makes of single records, batched.

    Args:
        file_pattern: A path or pattern, or a list of them; read in the order of the names unless ``randomize_input``.
        batch_size: Records of a batch. With ``num_epochs`` the last batch holds what is left.
        reader: A class or function that gives an object with ``read``, such as tf.TFRecordReader.
        randomize_input: Shuffle the files, and the records as far as the queue reaches.
        num_epochs: Passes over the files, kept in a local variable; None: without end.
        queue_capacity: Records in the batch queue.
        num_threads: Readers side by side.
        read_batch_size: Records that a reader takes at once (``read_up_to``).
        parse_fn: From one serialized record (a vector of them with ``read_batch_size`` above 1) to a tensor or a
            dictionary of tensors.
        name: A name for the ops.
        seed: Of both shuffles.

    Raises:
        InvalidArgument: No file matches, or the numbers do not fit each other.
    """
    _, examples = read_keyed_batch_examples(
        file_pattern,
        batch_size,
        reader,
        randomize_input,
        num_epochs,
        queue_capacity,
        num_threads,
        read_batch_size,
        parse_fn,
        name,
        seed,
    )
    return examples


def read_keyed_batch_examples(
    file_pattern: Any,
    batch_size: Any,
    reader: Callable[[], Any],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    num_threads: int = 1,
    read_batch_size: int = 1,
    parse_fn: Callable[[Any], Any] | None = None,
    name: str | None = None,
    seed: int | None = None,
) -> tuple[Any, Any]:
    """As `read_batch_examples`, and the readers' keys: a pair (keys, examples)."""
    files = _files(file_pattern)
    _check(batch_size, queue_capacity, num_threads, read_batch_size, num_epochs)
    if not callable(reader):
        raise InvalidArgument(f"reader must be a class or function, such as tf.TFRecordReader; got {reader!r}")
    if not randomize_input:
        files.sort()  # as TF1 did, also a list
    with tf1.name_scope(name, "read_batch_examples", [file_pattern]):
        queue = tf1.train.string_input_producer(
            files, num_epochs=num_epochs, shuffle=randomize_input, seed=seed, name="file_names"
        )
        branches = [_read(reader(), queue, read_batch_size, parse_fn) for _ in range(num_threads)]
        options: dict[str, Any] = {
            "batch_size": batch_size,
            "capacity": queue_capacity,
            "enqueue_many": read_batch_size > 1,
            "allow_smaller_final_batch": num_epochs is not None,
        }
        if randomize_input:
            least = (
                queue_capacity // 2 if tf.is_tensor(batch_size) else max(queue_capacity - 3 * batch_size, batch_size)
            )
            # A queue must have room beyond what it keeps back.
            least = min(least, queue_capacity - 1)
            batch = tf1.train.shuffle_batch_join(branches, min_after_dequeue=least, seed=seed, **options)
        else:
            batch = tf1.train.batch_join(branches, **options)
    if isinstance(batch, dict):
        return batch.pop(_KEY), batch
    keys, examples = batch
    return keys, examples


def read_batch_features(
    file_pattern: Any,
    batch_size: Any,
    features: Mapping[str, Any],
    reader: Callable[[], Any],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    feature_queue_capacity: int = 100,
    reader_num_threads: int = 1,
    num_enqueue_threads: int = 2,
    parse_fn: Callable[[Any], Any] | None = None,
    name: str | None = None,
    read_batch_size: int = 1,
) -> Any:
    """Batches of parsed examples: a dictionary of tensors and SparseTensors.

    Args:
        file_pattern: As of `read_batch_examples`, and so are the arguments that are not named here.
        features: What to parse: from names to tf.FixedLenFeature or tf.VarLenFeature.
        feature_queue_capacity: Parsed batches that wait.
        reader_num_threads: Readers side by side.
        num_enqueue_threads: Threads that parse; with more than one, batches may overtake each other.
        parse_fn: From one serialized record to one, applied before the batch is made.
    """
    _, parsed = read_keyed_batch_features(
        file_pattern,
        batch_size,
        features,
        reader,
        randomize_input,
        num_epochs,
        queue_capacity,
        reader_num_threads,
        feature_queue_capacity,
        num_enqueue_threads,
        parse_fn,
        name,
        read_batch_size,
    )
    return parsed


def read_keyed_batch_features(
    file_pattern: Any,
    batch_size: Any,
    features: Mapping[str, Any],
    reader: Callable[[], Any],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    reader_num_threads: int = 1,
    feature_queue_capacity: int = 100,
    num_enqueue_threads: int = 2,
    parse_fn: Callable[[Any], Any] | None = None,
    name: str | None = None,
    read_batch_size: int = 1,
) -> tuple[Any, Any]:
    """As `read_batch_features`, and the readers' keys: a pair (keys, features)."""
    with tf1.name_scope(name, "read_batch_features", [file_pattern]):
        keys, examples = read_keyed_batch_examples(
            file_pattern,
            batch_size,
            reader,
            randomize_input=randomize_input,
            num_epochs=num_epochs,
            queue_capacity=queue_capacity,
            num_threads=reader_num_threads,
            read_batch_size=read_batch_size,
            parse_fn=parse_fn,
        )
        parsed = tf1.parse_example(examples, dict(features))
        return _queued(keys, parsed, feature_queue_capacity, num_enqueue_threads)


def read_batch_record_features(
    file_pattern: Any,
    batch_size: Any,
    features: Mapping[str, Any],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    reader_num_threads: int = 1,
    name: str = "dequeue_record_examples",
) -> Any:
    """`read_batch_features` of TFRecord files."""
    return read_batch_features(
        file_pattern,
        batch_size,
        features,
        tf1.TFRecordReader,
        randomize_input=randomize_input,
        num_epochs=num_epochs,
        queue_capacity=queue_capacity,
        reader_num_threads=reader_num_threads,
        name=name,
    )


_KEY = "__key__"


def _read(reader: Any, queue: Any, read_batch_size: int, parse_fn: Callable[[Any], Any] | None) -> Any:
    key, value = reader.read_up_to(queue, read_batch_size) if read_batch_size > 1 else reader.read(queue)
    parsed = value if parse_fn is None else parse_fn(value)
    if isinstance(parsed, Mapping):
        return {**parsed, _KEY: key}
    return [key, parsed]


def _queued(keys: Any, parsed: Mapping[str, Any], capacity: int, threads: int) -> tuple[Any, Any]:
    """Parsed batches through a queue; a SparseTensor goes as its three tensors."""
    if threads < 1:
        raise InvalidArgument(f"num_enqueue_threads must be at least 1; got {threads}")
    flat: list[Any] = [keys]
    for name in sorted(parsed):
        value = parsed[name]
        flat += [value.indices, value.values, value.dense_shape] if isinstance(value, tf.SparseTensor) else [value]
    given = element(flat)
    queue = tf1.FIFOQueue(capacity, [tensor.dtype for tensor in given.components], name="parsed_features")
    enqueue = queue.enqueue(list(given.components))
    ends = (tf.errors.OutOfRangeError, tf.errors.CancelledError)
    runner = tf1.train.QueueRunner(queue, [enqueue] * threads, queue_closed_exception_types=ends)
    tf1.train.add_queue_runner(runner)
    taken = queue.dequeue(name="dequeue_features")
    for output, tensor in zip(taken, given.components, strict=True):
        output.set_shape(tensor.shape)
    rest = iter(taken[1:])
    result = {
        name: tf.SparseTensor(next(rest), next(rest), next(rest))
        if isinstance(parsed[name], tf.SparseTensor)
        else next(rest)
        for name in sorted(parsed)
    }
    return taken[0], result


def _files(file_pattern: Any) -> list[str]:
    patterns = (
        [file_pattern] if isinstance(file_pattern, str | bytes) or hasattr(file_pattern, "__fspath__") else file_pattern
    )
    if not patterns:
        raise InvalidArgument("file_pattern is empty: there is nothing to read")
    files: list[str] = []
    for pattern in patterns:
        path = pattern.decode() if isinstance(pattern, bytes) else str(pattern)
        # A file is taken as it is: its name may hold what a pattern would read otherwise.
        found = [path] if tf.io.gfile.exists(path) else sorted(tf.io.gfile.glob(path))
        if not found:
            raise InvalidArgument(f"no file matches {pattern!r}")
        files += found
    return files


def _check(batch_size: Any, capacity: int, threads: int, read_batch_size: int, num_epochs: int | None) -> None:
    if not tf.is_tensor(batch_size) and (not isinstance(batch_size, Integral) or not 0 < int(batch_size) <= capacity):
        raise InvalidArgument(f"batch_size must be from 1 to queue_capacity ({capacity}); got {batch_size!r}")
    if capacity < 2:
        raise InvalidArgument(f"queue_capacity must be at least 2; got {capacity}")
    if threads < 1:
        raise InvalidArgument(f"num_threads must be at least 1; got {threads}")
    if read_batch_size < 1:
        raise InvalidArgument(f"read_batch_size must be at least 1; got {read_batch_size}")
    if num_epochs is not None and num_epochs < 1:
        raise InvalidArgument(f"num_epochs must be at least 1, or None; got {num_epochs}")
