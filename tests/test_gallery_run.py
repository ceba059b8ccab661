"""Every program of the gallery behind QueuePipeline: the right records; with a fault the true cause, never a hang."""

from __future__ import annotations

import contextlib
import random
import re
import threading
import warnings

import pytest
import tensorflow as tf

import tfqueue
from tests import gallery
from tfqueue.errors import PipelineFailed, TFQueueWarning

TIMEOUT = 60.0


@pytest.fixture(autouse=True)
def no_thread_stays_behind():
    before = set(threading.enumerate())
    yield
    left = set(threading.enumerate()) - before
    for thread in left:  # the feeders of a program end by themselves once their queue is closed
        thread.join(30)
    assert not any(thread.is_alive() for thread in left)


def run(program):
    """The batches of a program; raises what the pipeline raises."""
    batches = []
    steps = None if program.finite else program.steps
    with tfqueue.QueuePipeline(program.build_fn, stall_timeout=TIMEOUT) as pipeline:
        for feeder in program.feeders:
            threading.Thread(target=feed, args=(feeder, pipeline.session, pipeline.coord)).start()
        while steps is None or len(batches) < steps:
            if program.before_step is not None:
                program.before_step(pipeline.session, len(batches))
            if program.feed is not None:
                fed = dict(program.feed(len(batches)))
                try:
                    batches.append(pipeline.session.run(pipeline.fetches, feed_dict=fed))
                except tf.errors.OutOfRangeError:
                    break
            else:
                try:
                    batches.append(next(pipeline))
                except StopIteration:
                    break
    return batches


def feed(feeder, session, coord) -> None:
    with coord.stop_on_exception(), contextlib.suppress(tf.errors.CancelledError):
        feeder(session, coord)


def runnable(entry):
    """The entry; expected to fail where today's TensorFlow or tf_slim cannot build it, and we cannot mend that."""
    if entry.needs is not None and entry.name != "T1-match-filenames-once":
        broken = pytest.mark.xfail(raises=(AttributeError, TypeError, ValueError), strict=True, reason=entry.needs)
        return pytest.param(entry, marks=broken, id=str(entry))
    return pytest.param(entry, id=str(entry))


@pytest.mark.parametrize("entry", [runnable(entry) for entry in gallery.entries()])
def test_delivers_its_records(entry, tmp_path) -> None:
    program = entry.program(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TFQueueWarning)  # what the start checks say is tested with them
        batches = run(program)
    assert gallery.problems(program, batches) == []


FAULTS = [
    pytest.param(entry, stage, id=f"{entry}-{stage.name}")
    for entry in gallery.entries()
    for stage in entry.stages
    if not stage.silent and (entry.needs is None or entry.name == "T1-match-filenames-once")
]


@pytest.mark.parametrize(("entry", "stage"), FAULTS)
def test_a_fault_anywhere_gives_the_true_cause(entry, stage, tmp_path) -> None:
    program = entry.program(tmp_path)
    place = random.Random(f"{entry}-{stage.name}").randrange(program.fault_places)
    broken = program.corrupt(stage.name, place)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TFQueueWarning)
        with pytest.raises(PipelineFailed) as caught:
            run(broken)
    failure = caught.value
    cause = failure.__cause__
    assert re.fullmatch(stage.error, type(cause).__name__), failure
    assert re.search(stage.match, str(cause)), failure
    assert failure.cause_name != "unknown", failure
    assert failure.source is not None, failure
