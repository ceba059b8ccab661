"""Records to look at, from whatever holds them: a batch, a pipeline, a Dataset, an iterable, a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfqueue.errors import InvalidArgument, InvalidStream, PipelineError, RecordError
from tfqueue.views.features import Feature, boxed, flatten, holds_bytes, short
from tfqueue.views.images import encoding

_DEFAULT_RECORDS = 25


@dataclass(frozen=True, slots=True)
class Taken:
    """Some records of a source.

    Attributes:
        features: Their features, as of one batch.
        source: Where they come from, in words, or "" for a batch in memory.
        numbers: For records of files the number of each in its file, else None.
        files: The name of each record's file where there are several, else None.
        class_names: Names of the classes as the files' manifest tells them, or None.
    """

    features: list[Feature]
    source: str = ""
    numbers: list[str] | None = None
    files: list[str] | None = None
    class_names: list[str] | None = None


def take(source: Any, n: int | None) -> Taken:
    """The first records of ``source``.

    Args:
        source: A batch or one record (arrays in any nesting, or serialized tf.train.Examples); an iterable of
            batches or records; a QueuePipeline, entered or not; a tf.data.Dataset; a function that returns one of
            these or builds a TF1 pipeline; or the path or pattern of TFRecord files.
        n: Take this many records of a stream; None takes its first batch, or 25 records. A batch is taken
            whole.

    Raises:
        InvalidArgument: The source is none of these, or has no record.
    """
    if isinstance(source, (str, os.PathLike)):
        return _from_files(source, n or _DEFAULT_RECORDS)
    if _is_batch_like(source):
        return _parsed(_batched(flatten(source)), "")
    words, opened = _stream(source)
    with opened as elements:
        features = _merge(elements, n)
    if features is None:
        raise InvalidArgument(f"{words} is empty: it ended before the first record")
    return _parsed(features, words)


def _parsed(features: list[Feature], source: str) -> Taken:
    """Records of serialized Examples alone, as a plain TFRecordDataset delivers them, are shown as what they hold."""
    from tfqueue.records.reader import decode

    values = features[0].values
    if len(features) > 1 or values.ndim != 1 or not holds_bytes(values) or encoding(values[0]) is not None:
        return Taken(features, source)
    try:
        rows = [decode(item) for item in values]
    except (RecordError, TypeError):  # TypeError: str, not bytes
        return Taken(features, source)
    if not all(rows):
        return Taken(features, source)
    held = [[Feature(key, np.asarray(value)) for key, value in row.items()] for row in rows]
    return Taken(_stack(held), f"{source}, parsed as tf.train.Example" if source else "serialized tf.train.Example")


def _is_batch_like(source: Any) -> bool:
    if isinstance(source, (Mapping, np.ndarray, np.generic)):
        return True
    if isinstance(source, (tuple, list)):
        return not _is_list_of_records(source)
    return _is_tensor(source)


def _is_list_of_records(source: Any) -> bool:
    """Whether a list holds records or batches (all built alike), and not the features of one batch."""
    if not isinstance(source, list) or not source:
        return False
    first = source[0]
    if isinstance(first, Mapping):
        return True
    return isinstance(first, tuple) and all(isinstance(part, tuple) and len(part) == len(first) for part in source)


def _is_tensor(value: Any) -> bool:
    tf = sys.modules.get("tensorflow")
    return tf is not None and isinstance(value, (tf.Tensor, tf.Variable, tf.SparseTensor, tf.RaggedTensor))


def _stream(source: Any) -> tuple[str, AbstractContextManager[Iterator[Any]]]:
    """The source in words, and a context that gives its batches or records."""
    from tfqueue.equivalence.streams import side_of

    if _is_entered_pipeline(source):
        return repr(source), nullcontext(iter(source))
    name = ""
    if callable(source) and not isinstance(source, Iterable):
        name = str(getattr(source, "__qualname__", ""))
        source = _from_function(source)
    try:
        side = side_of(source, "candidate")
    except InvalidStream as error:
        raise InvalidStream(
            f"source is of type {type(source).__name__}, which holds no records; expected a batch (arrays in any "
            "nesting), an iterable of batches, a QueuePipeline, a tf.data.Dataset, a function that returns one of "
            "these or builds a TF1 pipeline, or the path of TFRecord files"
        ) from error
    return name or side.name, _batches_of(side)


@contextmanager
def _batches_of(side: Any) -> Iterator[Iterator[Any]]:
    with side.open() as run:
        yield run.batches


def _is_entered_pipeline(source: Any) -> bool:
    module = sys.modules.get("tfqueue.pipeline")
    if module is None or not isinstance(source, module.QueuePipeline):
        return False
    try:
        return source.session is not None
    except PipelineError:
        return False


def _from_function(function: Callable[[], Any]) -> Any:
    """A pipeline for a function that builds graph tensors; the function itself if it returns something else."""
    import tensorflow as tf

    from tfqueue.pipeline import QueuePipeline

    with tf.Graph().as_default():
        made = function()
    tensors = (tf.Tensor, tf.SparseTensor, tf.RaggedTensor)
    built = any(isinstance(part, tensors) for part in tf.nest.flatten(made))
    return QueuePipeline(function) if built else function


def _from_files(paths: Any, n: int) -> Taken:
    from tfqueue.records import read
    from tfqueue.records.paths import expand

    rows: list[list[Feature]] = []
    numbers: list[str] = []
    files: list[str] = []
    names = expand(paths)
    for name in names:
        for number, record in enumerate(islice(read(name), n - len(rows))):
            rows.append([Feature(key, np.asarray(value)) for key, value in record.items()])
            numbers.append(f"#{number}")
            files.append(os.path.basename(name))
        if len(rows) == n:
            break
    if not rows:
        raise InvalidArgument(f"{os.fspath(paths)!r} holds no record: {len(names)} of {len(names)} files are empty")
    used = list(dict.fromkeys(files))
    words = used[0] if len(used) == 1 else f"{len(used)} files"
    return Taken(_stack(rows), words, numbers, files if len(set(files)) > 1 else None, _manifest_classes(names[0]))


def _manifest_classes(name: str) -> list[str] | None:
    """The class names in the manifest that `tfqueue.records.write_images` wrote beside a file, if there is one."""
    from tfqueue.records.manifest import find_manifest

    try:
        manifest = find_manifest(name)
    except RecordError:
        # A manifest that cannot be read is no reason not to show the records.
        return None
    names = manifest.info.get("classes") if manifest is not None else None
    return [str(part) for part in names] if isinstance(names, list) and names else None


def _merge(elements: Iterator[Any], n: int | None) -> list[Feature] | None:
    """The features of the first ``n`` records; of the first batch or 25 records for None."""
    parts: list[list[Feature]] = []
    records = 0
    singly: bool | None = None
    for element in elements:
        features = flatten(element)
        # A batch of one, or a record whose features are all lists of one value: the two cannot be told apart.
        one = all(feature.values.ndim and len(feature.values) == 1 for feature in features)
        if singly is None:
            singly = one or is_record(features)
        if singly and one:
            features = [Feature(f.name, f.values.reshape(f.values.shape[1:])) for f in features]
        parts.append(features)
        records += 1 if singly else max((len(f.values) for f in features if f.values.ndim), default=1)
        if records >= (n or (_DEFAULT_RECORDS if singly else 1)):
            break
    if not parts:
        return None
    return _stack(parts) if singly else _concatenate(parts)


def _batched(features: list[Feature]) -> list[Feature]:
    return _stack([features]) if is_record(features) else features


def is_record(features: list[Feature]) -> bool:
    """Whether a structure of arrays is one record, and not a batch of them."""
    if any(feature.values.ndim == 4 for feature in features):
        return False
    images = [f for f in features if f.values.ndim == 3 and f.values.dtype.kind in "biuf"]
    if any(f.values.shape[2] in (1, 3, 4) and min(f.values.shape[:2]) > 4 for f in images):
        return True
    if any(feature.values.ndim == 0 for feature in features):
        return not images
    if any(holds_bytes(f.values) and f.values.size > 1 and encoding(f.values.flat[0]) for f in features):
        return False
    return not images and len({len(feature.values) for feature in features}) > 1


def _stack(rows: list[list[Feature]]) -> list[Feature]:
    """Records as one batch. A list of one value becomes that value: records do not tell the two apart."""
    names = list(dict.fromkeys(feature.name for row in rows for feature in row))
    by_name = [{feature.name: feature.values for feature in row} for row in rows]
    return [Feature(name, _column([row.get(name) for row in by_name])) for name in names]


def _column(values: list[NDArray[Any] | None]) -> NDArray[Any]:
    known = [value for value in values if value is not None]
    if len(known) == len(values) and len({(v.shape, v.dtype) for v in known}) == 1:
        if known[0].shape in ((), (1,)):
            return np.stack(known).reshape(len(known))
        return np.stack(known)
    if all(value.shape in ((), (1,)) for value in known):
        items = [None if value is None else value.reshape(-1)[0] for value in values]
        if holds_bytes(known[0]):
            return boxed([b"" if item is None else item for item in items])
        return boxed([b"missing" if item is None else short(item).encode() for item in items])
    missing = np.empty(0, known[0].dtype)
    return boxed([missing if value is None else value for value in values])


def _concatenate(parts: list[list[Feature]]) -> list[Feature]:
    """Batches as one."""
    if len(parts) == 1:
        return parts[0]
    first = [feature.name for feature in parts[0]]
    alike = [part for part in parts if [feature.name for feature in part] == first]
    merged = []
    for position, name in enumerate(first):
        columns = [part[position].values for part in alike]
        if len({(c.shape[1:], c.dtype) for c in columns}) == 1 and columns[0].ndim:
            merged.append(Feature(name, np.concatenate(columns)))
        else:
            merged.append(Feature(name, boxed([row for column in columns for row in column])))
    return merged
