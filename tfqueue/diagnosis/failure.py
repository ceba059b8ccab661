"""Makes the one error that the user sees of what was raised first in a pipeline."""

from __future__ import annotations

from traceback import extract_tb
from typing import Any

import tensorflow as tf

from tfqueue.diagnosis.evidence import Evidence, gather
from tfqueue.diagnosis.locate import locate, locate_unread
from tfqueue.diagnosis.rules import RULES, UNKNOWN
from tfqueue.errors import PipelineError, PipelineFailed, TFQueueError
from tfqueue.topology.subgraph import user_line

_LINES, _CHARACTERS = 10, 1500  # of the kernel's own words that are repeated


def failure(
    error: BaseException,
    graph: tf.Graph,
    *,
    session: Any = None,
    enqueue_op: str | None = None,
    fetches: Any = None,
    enqueued: int | None = None,
    lowered: bool = False,
) -> PipelineError:
    """The PipelineFailed for an error that a runner or a step raised; the error is its ``__cause__``.

    Args:
        error: What was raised first.
        graph: The graph of the pipeline.
        session: The session, if it is still open: then the record that failed is looked for, for at most a second.
        enqueue_op: The op that the failed runner ran, if it was a runner.
        fetches: What the pipeline's user fetches.
        enqueued: How many steps the runner of that op had finished, in all its threads: where the search begins.
        lowered: Whether it was raised by the dataset that the graph was lowered to.
    """
    evidence = gather(error, graph, enqueue_op=enqueue_op, fetches=fetches, lowered=lowered)
    if session is not None and evidence.op is None and lowered and evidence.topology is not None:
        evidence.place = locate_unread(evidence, session)
    elif session is not None:
        evidence.place = locate(evidence, session, expected=enqueued)
    cause_name, advice = UNKNOWN, None
    for rule in RULES:
        match = rule.match(evidence)
        if match is not None:
            cause_name = rule.cause_name
            try:
                advice = rule.advise(match, evidence)
            except (TFQueueError, OSError, ValueError, LookupError):
                advice = None
            break
    if cause_name == UNKNOWN and not isinstance(error, tf.errors.OpError):
        cause_name = "python-thread"
        evidence.source = user_line(extract_tb(error.__traceback__))
        advice = f"{type(error).__name__} was raised by Python code of your own, in a thread that feeds the pipeline"
    return describe(evidence, cause_name, advice)


def describe(evidence: Evidence, cause_name: str, advice: str | None) -> PipelineFailed:
    """The PipelineFailed that says what is known; the error of the evidence is its ``__cause__``."""
    failed = PipelineFailed(
        _words(evidence, advice),
        cause_name=cause_name,
        stage=evidence.stage_words,
        source=evidence.source,
        file=evidence.place.file,
        record=evidence.place.record if evidence.place.file is not None else evidence.place.element,
        advice=advice,
    )
    failed.__cause__ = evidence.error
    return failed


def _words(evidence: Evidence, advice: str | None) -> str:
    words = [evidence.headline or f"{type(evidence.error).__name__}: {_shortened(evidence.message) or 'no message'}"]
    if evidence.stage_words is not None:
        words.append(f"  stage: {evidence.stage_words}")
    if evidence.source is not None:
        words.append(f"  built at: {evidence.source}")
    words.extend(f"  {line}" for line in evidence.details)
    place = evidence.place
    if place.file is not None:
        number = f", record {place.record}" if place.record is not None else ""
        words.append(f"  file: {place.file}{number}")
    if place.element is not None:
        words.append(f"  element: number {place.element} of the producer's")
    if advice is not None:
        words.append(f"  advice: {advice}")
    return "\n".join(words)


def _shortened(message: str) -> str:
    """Some kernels print whole records or tensors into their message."""
    lines = message.splitlines()
    text = "\n".join(lines[:_LINES])
    return text if len(lines) <= _LINES and len(text) <= _CHARACTERS else text[:_CHARACTERS].rstrip() + " ..."
