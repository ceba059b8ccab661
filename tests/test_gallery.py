"""Plain TensorFlow is the oracle of the gallery: every program delivers, and breaks, as it says."""

from __future__ import annotations

import re

import pytest
import tensorflow as tf

from tests import gallery
from tests.gallery import oracle

ENTRIES = gallery.entries()
# What plain TensorFlow can run; the rest waits for a repair.
RUNNABLE = [e for e in ENTRIES if e.needs is None]


def as_numpy(tensor):
    return tensor if isinstance(tensor, tf.SparseTensor) else tensor.numpy()


def named(entries):
    return pytest.mark.parametrize("entry", entries, ids=str)


@named(RUNNABLE)
def test_delivers_its_records(entry, tmp_path):
    program = entry.program(tmp_path)
    run = oracle.run(program)
    assert run.error is None
    assert gallery.problems(program, run.batches) == []


@named([e for e in RUNNABLE if e.takes_epochs])
def test_three_epochs(entry, tmp_path):
    program = entry.program(tmp_path, epochs=3)
    run = oracle.run(program)
    assert run.error is None
    assert gallery.problems(program, run.batches) == []


@named([e for e in RUNNABLE if e.takes_epochs])
def test_endless(entry, tmp_path):
    program = entry.program(tmp_path, epochs=None)
    run = oracle.run(program)
    assert run.error is None
    assert gallery.problems(program, run.batches) == []


@pytest.mark.parametrize(
    ("entry", "stage"), [pytest.param(e, s, id=f"{e}-{s.name}") for e in RUNNABLE for s in e.stages]
)
def test_breaks_as_it_says(entry, stage, tmp_path):
    program = entry.program(tmp_path)
    broken = program.corrupt(stage, 2 * program.fault_places // 3)
    run = oracle.run(broken)
    if stage.silent:
        assert run.error is None
        assert gallery.problems(program, run.batches) != [], "nothing was lost: the fault was not injected"
        return
    assert run.error is not None, "no error: the fault was not injected"
    assert re.fullmatch(stage.error, type(run.error).__name__), repr(run.error)
    assert re.search(stage.match, str(run.error))
    # What came before the fault is right.
    assert len(run.batches) < max(1, len(program.expected_sizes))


@named(ENTRIES)
def test_twin_delivers_the_same(entry, tmp_path):
    program = entry.program(tmp_path)
    if program.hand_written_twin is None:
        pytest.skip("has no hand-written twin")
    dataset = program.hand_written_twin()
    if not program.finite:
        dataset = dataset.take(program.steps)
    # as_numpy_iterator would make SparseTensors dense.
    batches = [tf.nest.map_structure(as_numpy, b) for b in dataset]
    assert gallery.problems(program, batches) == []
