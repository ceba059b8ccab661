"""All checks over the whole gallery: silent on what works, and the true cause for what does not."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tests import gallery
from tests.startcheck.running import check, kinds
from tfqueue.errors import PipelineFailed
from tfqueue.initialize import initialize_all
from tfqueue.startcheck import check_before_start

RUNNABLE = [entry for entry in gallery.entries() if entry.needs is None]
# The programs that really have a fault.
EXPECTED = {
    "T1-tfrecord-threads": ["order"],
    "T21-two-producers-threads": ["mispaired", "order"],
    "T1-fewer-records-than-a-batch": ["too-few-records"],
}
"""What each stage of the gallery's faults is called by the checks, at its first record."""
CAUSES = {
    "missing-file": "missing-file",
    "damaged-record": "damaged-file",
    "missing-feature": "missing-feature",
    "wrong-type": "feature-type",
    "wrong-length": "reshape",
    "not-an-image": "not-an-image",
    "bad-field": "csv-value",
    "few-fields": "csv-fields",
    "assertion": "assertion",
    "queue-shape": "element-shape",
    "not-a-number": "not-finite",
}
# Whose fault lies in Python code, which is not run, or behind a batch or a placeholder, which have no first record.
# Or behind a counter, or in an array that is shuffled.
NOT_SEEN = {"T26-filled-by-hand", "T26-facenet-refilled", "T17-counter", "T21-same-seed-shuffles"}
NOT_SEEN_STAGES = {("T1-parse-after-batch", "wrong-length")}


def named(entries):
    return pytest.mark.parametrize("entry", entries, ids=str)


@named(RUNNABLE)
def test_silent_on_what_works(entry, tmp_path) -> None:
    assert kinds(entry.program(tmp_path).build_fn) == EXPECTED.get(entry.name, [])


@named([entry for entry in RUNNABLE if entry.takes_epochs])
def test_silent_on_what_has_no_end(entry, tmp_path) -> None:
    expected = [kind for kind in EXPECTED.get(entry.name, []) if kind != "too-few-records"]
    assert kinds(entry.program(tmp_path, epochs=None).build_fn) == expected


FAULTS = [(entry, stage) for entry in RUNNABLE for stage in entry.stages]


@pytest.mark.parametrize(("entry", "stage"), [pytest.param(e, s, id=f"{e}-{s.name}") for e, s in FAULTS])
def test_the_cause_of_a_fault_in_the_first_record(entry, stage, tmp_path) -> None:
    program = entry.program(tmp_path).corrupt(stage, 0)
    if stage.silent:
        assert kinds(program.build_fn) == ["partial-record"]
    elif stage.name not in CAUSES or entry.name in NOT_SEEN or (entry.name, stage.name) in NOT_SEEN_STAGES:
        assert kinds(program.build_fn) == EXPECTED.get(entry.name, [])
    else:
        with pytest.raises(PipelineFailed) as caught:
            check(program.build_fn)
        assert caught.value.cause_name == CAUSES[stage.name]
        assert (caught.value.file is not None) == bool(program.files)
        assert caught.value.advice is not None


@named([entry for entry in RUNNABLE if entry.random_ops])
def test_no_random_sequence_is_shifted(entry, tmp_path) -> None:
    """The first values of the random ops are the same with and without the checks."""
    program = entry.program(tmp_path)
    drawn = []
    for checked in (False, True):
        with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
            fetches = program.build_fn()
            # Of those that need no record, so that they can be drawn at once.
            ops = [op for op in graph.get_operations() if op.type == "RandomUniform" and graph.is_fetchable(op)]
            initialize_all(graph, session)
            if checked:
                check_before_start(graph, session, fetches=fetches)
            drawn.append(session.run([op.outputs[0] for op in ops]))
    assert all((a == b).all() for a, b in zip(*drawn, strict=True))
