"""Plain TensorFlow is the oracle of the gallery: every program delivers, and breaks, as it says."""

from __future__ import annotations

import re
import threading
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from tests import gallery
from tests.gallery import oracle

ENTRIES = gallery.entries()
# What plain TensorFlow can run; the rest waits for a repair.
RUNNABLE = [e for e in ENTRIES if e.needs is None]


def named(entries):
    return pytest.mark.parametrize("entry", entries, ids=str)


def check_run(program, **options):
    run = oracle.run(program, **options)
    assert run.error is None
    assert gallery.problems(program, run.batches) == []


def check_twin(program):
    if program.hand_written_twin is None:
        return
    dataset = program.hand_written_twin()
    if not program.finite:
        dataset = dataset.take(program.steps)
    # as_numpy_iterator would make SparseTensors dense.
    batches = [tf.nest.map_structure(as_numpy, batch) for batch in dataset]
    assert gallery.problems(program, batches) == []


def as_numpy(tensor):
    return tensor if isinstance(tensor, tf.SparseTensor) else tensor.numpy()


@named(RUNNABLE)
def test_delivers_its_records(entry, tmp_path):
    program = entry.program(tmp_path)
    check_run(program)
    if not entry.takes_epochs:
        check_twin(program)


@named([e for e in RUNNABLE if e.takes_epochs])
def test_other_numbers_of_epochs(entry, tmp_path):
    program = entry.program(tmp_path, epochs=3)
    check_run(program, graph_optimizer=False)
    check_twin(program)
    if not entry.ordered:
        check_run(entry.program(tmp_path, epochs=None), graph_optimizer=False)


def faults():
    """One stage of every program, and every stage of each family once: all of them would take a minute more.

    Every stage of every program is broken where the gallery runs behind a QueuePipeline.
    """
    seen = set()
    for number, entry in enumerate(RUNNABLE):
        for place, stage in enumerate(entry.stages):
            kind = (entry.builder.__module__, stage.name)
            if kind not in seen or place == number % len(entry.stages):
                seen.add(kind)
                yield pytest.param(entry, stage, id=f"{entry}-{stage.name}")


@pytest.mark.parametrize(("entry", "stage"), list(faults()))
def test_breaks_as_it_says(entry, stage, tmp_path):
    program = entry.program(tmp_path)
    record = 2 * program.fault_places // 3
    broken = program.corrupt(stage, record)
    run = oracle.run(broken, graph_optimizer=False)
    if stage.silent:
        assert run.error is None
        assert gallery.problems(broken, run.batches) != [], "nothing was lost: the fault was not injected"
    else:
        # What came before the fault, or from threads that it did not reach, is right.
        assert gallery.problems(broken, run.batches, complete=False) == []
        assert run.error is not None, "no error: the fault was not injected"
        assert re.fullmatch(stage.error, type(run.error).__name__), repr(run.error)
        assert re.search(stage.match, str(run.error))
        if stage.name == "missing-file":
            assert f"{broken.where(record)[0]};" in str(run.error)


def test_many_programs_have_a_twin(tmp_path):
    assert sum(p.hand_written_twin is not None for p in gallery.programs(tmp_path)) >= 80


@named([e for e in ENTRIES if e.needs is not None])
def test_plain_tensorflow_still_cannot_build_it(entry, tmp_path):
    # Once this fails, TensorFlow or tf_slim has been repaired, and the entry is an ordinary one.
    program = entry.program(tmp_path)
    with tf.Graph().as_default(), pytest.raises((TypeError, AttributeError)):
        program.build_fn()


@named([e for e in ENTRIES if e.random_ops and e.ordered])
def test_random_ops_change_something_and_repeat(entry, tmp_path):
    program = entry.program(tmp_path)
    first, second = oracle.run(program), oracle.run(program)
    assert gallery.fingerprint(first.batches) == gallery.fingerprint(second.batches)
    # Without the invariant the random ops would be seen.
    delivered = [r for batch in first.batches for r in gallery.split(program, batch)]
    looks = {gallery.fingerprint(r) == gallery.fingerprint(program.invariant(r)) for r in delivered}
    assert False in looks


def test_every_topology_and_variant_has_a_program():
    found = {t for e in ENTRIES for t in e.topologies}
    known = {f"T{i}" for i in (*range(1, 25), 26, 27, 29, 31, 32)}
    assert found == known
    variants = {v for e in ENTRIES for v in e.variants}
    for wanted in (
        "one dequeued tensor shared by M join branches",
        "one dequeue per join branch",
        "the branch number picks a different op",
        "dead queues in the graph",
        "shuffling serialized strings before parsing",
        "one record gives several examples (enqueue_many)",
        "a [1, ...] example with enqueue_many",
        "parse after the batch op",
        "crop or augment after the batch op",
        "a batch size left variable: short vectors at file ends",
        "code that relies on order",
        "state carried between steps",
        "implicit zip",
        "two producers dequeued by one enqueue, several threads: mispairs",
        "several consumers of one queue (one dequeue per tower)",
        "the queue is fed without pause over epoch ends",
        "source data in a Variable initialised later",
        "a pipeline that reads a training variable (global_step)",
        "a SparseTensor carried through a queue (serialize_sparse, deserialize_many_sparse)",
        "a SparseTensor carried through a queue (batch of SparseTensors)",
        "queues chosen per step (QueueBase.from_list with a placeholder index)",
        "a Python StopIteration inside py_func",
    ):
        assert wanted in variants


def test_what_cannot_be_one_dataset_says_why():
    reasons = {e.name: e.why_not for e in ENTRIES if not e.lowerable}
    assert {"T14-whole-batches", "T24-state-queue", "T27-queue-from-list", "T17-drop-when-full"} <= set(reasons)
    assert all(reasons.values())


ORDERED, SHUFFLED = gallery.get("T1-tfrecord-batch"), gallery.get("T1-tfrecord-shuffle")
ENDLESS = {"epochs": None}


def drop_last(batches):
    return batches[:-1]


def swap_first_two(batches):
    return [batches[1], batches[0], *batches[2:]]


def repeat_first(batches):
    return [batches[0], *batches]


def replace_second_by_first(batches):
    return [batches[0], batches[0], *batches[2:]]


def cut_first(batches):
    return [tuple(c[:-1] for c in batches[0]), *batches[1:]]


def shift_labels(batches):
    return [(images, np.roll(labels, 1)) for images, labels in batches]


def change_one_value(batches):
    images, labels = batches[-1]
    images = images.copy()
    images[0, 0, 0, 0] ^= 1
    return [*batches[:-1], (images, labels)]


def widen_labels(batches):
    return [(images, labels.astype(np.int64)) for images, labels in batches]


def lose_one_label(batches):
    return [(images, labels[:-1]) for images, labels in batches]


MUTANTS = (
    drop_last,
    repeat_first,
    replace_second_by_first,
    cut_first,
    shift_labels,
    change_one_value,
    widen_labels,
    lose_one_label,
)


@pytest.mark.parametrize("options", [{}, {"epochs": 3}, ENDLESS], ids=["one", "three", "endless"])
@pytest.mark.parametrize("entry", [ORDERED, SHUFFLED], ids=str)
def test_the_check_catches_mutants(entry, options, tmp_path):
    program = entry.program(tmp_path, **options)
    batches = [tuple(batch) for batch in oracle.run(program).batches]
    assert gallery.problems(program, batches) == []
    for mutate in (*MUTANTS, swap_first_two) if entry.ordered else MUTANTS:
        mutant = mutate(batches)
        if mutate is replace_second_by_first and not program.finite:
            mutant = [batches[0]] * len(batches)  # An endless program may repeat, but not only one batch.
        assert gallery.problems(program, mutant), f"{mutate.__name__} was not caught"


def test_a_fault_needs_a_stage_and_a_place_that_exist(tmp_path):
    program = ORDERED.program(tmp_path)
    with pytest.raises(ValueError, match="has no stage 'bad-field'"):
        program.corrupt("bad-field", 0)
    with pytest.raises(ValueError, match="it has 0 to 21"):
        program.corrupt("missing-file", 22)
    assert program.where(0) == (program.files[0].path, 0)
    assert program.where(21) == (program.files[2].path, 6)


def test_a_hung_program_is_an_error_and_not_a_hung_test(tmp_path):
    program = ORDERED.program(tmp_path)
    let_go = threading.Event()
    hung = replace(program, before_step=lambda *_: let_go.wait())
    with pytest.raises(TimeoutError, match=r"T1-tfrecord-batch did not end within 0\.5 s"):
        oracle.run(hung, timeout=0.5)
    let_go.set()  # what hangs would run beside the next tests
    for thread in threading.enumerate():
        if thread.name == f"gallery {program.name}":
            thread.join()
