"""The errors of tfqueue: one tree, each error saying what was found, what was expected and what to do.

TFQueueError                    everything tfqueue raises on purpose
├── InvalidArgument             a call that cannot work (also a ValueError); exit code 2
│   ├── InvalidBuildFunction    build_fn returned no tensor, or a tensor of another graph
│   ├── InvalidStream           an object that is not a stream of batches
│   └── InvalidImage            a file that is no image, a batch that shows none
├── PipelineError               a pipeline that did not run to its clean end; exit code 2
│   ├── PipelineFailed          what a runner or a step raised first, with stage, file, record and advice
│   └── PipelineStalled         nothing moves: the starved queue, its size, who is alive
├── CannotLower                 a graph that cannot become one tf.data.Dataset; exit code 2
├── CannotRestore               a TF1 name that is gone for good, or whose optional package is missing; exit code 2
├── RecordError                 records that cannot be written or read; exit code 2
│   └── DamagedRecord           a file whose bytes are damaged or cut; exit code 1
└── NotEquivalent               two streams differ (also an AssertionError); exit code 1

TFQueueWarning                  a UserWarning: it runs, but probably not as meant
"""

from __future__ import annotations

from os import PathLike
from typing import Any


class TFQueueError(Exception):
    """Base of all errors that tfqueue raises on purpose.

    Attributes:
        exit_code: What the command line returns for this error (1 different or damaged, 2 could not be done).
    """

    exit_code: int = 2


class InvalidArgument(TFQueueError, ValueError):
    """A call that cannot work as written; the message names the argument, its value and what would work."""


class InvalidBuildFunction(InvalidArgument):
    """A build function that did not return tensors of the graph it was called in."""


class InvalidStream(InvalidArgument):
    """An object given as a side of a comparison that is not a stream of batches."""


class InvalidImage(InvalidArgument):
    """A file that is no readable image, or a batch in which no image can be found."""


class PipelineError(TFQueueError, RuntimeError):
    """A pipeline that did not run to its clean end."""


class PipelineFailed(PipelineError):
    """The first thing that went wrong in a pipeline.

    The original exception is the ``__cause__``.

    Attributes:
        cause_name: A stable name of the kind of failure (for programs), such as ``"missing-file"``.
        stage: The stage of the pipeline, in words, or None where it is unknown.
        source: The line that built the stage, ``"file.py:87 in read_cifar10"``, or None.
        file: The data file that was being read, or None.
        record: The 0-based number of the record inside ``file``, or None.
        advice: One line on what to do, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        cause_name: str = "unknown",
        stage: str | None = None,
        source: str | None = None,
        file: str | None = None,
        record: int | None = None,
        advice: str | None = None,
    ) -> None:
        super().__init__(message)
        self.cause_name = cause_name
        self.stage = stage
        self.source = source
        self.file = file
        self.record = record
        self.advice = advice


class PipelineStalled(PipelineError):
    """Nothing has moved in a pipeline for the stall timeout.

    Attributes:
        cause_name: A stable name of the likely reason (for programs), such as ``"runners-not-started"``.
        queue: The name of the starved or full queue, or None.
        size: The number of elements in it when the stall was reported, or None.
        alive: The names of the runner threads that were alive.
        advice: One line on what to do, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        cause_name: str = "unknown",
        queue: str | None = None,
        size: int | None = None,
        alive: tuple[str, ...] = (),
        advice: str | None = None,
    ) -> None:
        super().__init__(message)
        self.cause_name = cause_name
        self.queue = queue
        self.size = size
        self.alive = alive
        self.advice = advice


class CannotLower(TFQueueError):
    """A graph, or a part of it, that cannot be turned into one tf.data.Dataset.

    Attributes:
        op: The name of the op that stands in the way, or None.
        source: The line that built it, or None.
        advice: What to write instead, or None.
    """

    def __init__(
        self, message: str, *, op: str | None = None, source: str | None = None, advice: str | None = None
    ) -> None:
        super().__init__(message)
        self.op = op
        self.source = source
        self.advice = advice


class CannotRestore(TFQueueError, AttributeError):
    """A TF1 name that no longer exists and cannot be given back; also an AttributeError, so that ``hasattr`` is False.

    Attributes:
        name: The name as TF1 programs write it, such as ``"tf.contrib.ffmpeg"``.
        modern: What to write instead, or None.
    """

    def __init__(self, message: str, *, name: str = "", modern: str | None = None) -> None:
        super().__init__(message)
        self.name = name
        self.modern = modern


class RecordError(TFQueueError):
    """Records that cannot be written or read.

    Attributes:
        file: The file concerned, or None.
        record: The 0-based number of the record in the file (reading) or in the input (writing), or None.
        offset: The byte offset of the record's frame in the (decompressed) file, or None.
        feature: The name of the feature concerned, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | PathLike[str] | None = None,
        record: int | None = None,
        offset: int | None = None,
        feature: str | None = None,
    ) -> None:
        super().__init__(message)
        self.file = file
        self.record = record
        self.offset = offset
        self.feature = feature


class DamagedRecord(RecordError):
    """A TFRecord file whose bytes are damaged, cut, or not a TFRecord at all."""

    exit_code = 1


class NotEquivalent(TFQueueError, AssertionError):
    """Two streams of batches differ.

    Attributes:
        report: The whole report of the comparison.
    """

    exit_code = 1

    def __init__(self, message: str, *, report: Any = None) -> None:
        super().__init__(message)
        self.report = report


class TFQueueWarning(UserWarning):
    """It runs, but probably not as it was meant; the message names the source line and what to do."""
