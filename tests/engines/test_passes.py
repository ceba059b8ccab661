"""The speed passes: each changes nothing but the speed, over the whole gallery."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import tensorflow as tf

from tests import gallery
from tests.engines import pipelines
from tests.engines.running import assert_same_batches, lockstep, numpy_batches
from tfqueue.engines.passes import PASSES, chosen
from tfqueue.engines.tfdata import applied_passes, to_dataset
from tfqueue.errors import CannotLower, InvalidArgument
from tfqueue.topology.explain import explain

tf1 = tf.compat.v1
SPEC = {"n": tf1.FixedLenFeature([], tf.int64)}


@pytest.mark.parametrize("entry", [e for e in gallery.entries() if e.lowerable and not e.needs], ids=str)
def test_the_gallery_with_each_pass_on_and_off(entry, tmp_path):
    program = entry.program(tmp_path)
    steps = None if program.finite else program.steps
    shuffle = "replay"
    try:
        applied = applied_passes(program.build_fn, shuffle=shuffle)
    except CannotLower:  # with native shuffles only
        shuffle = "native"
        try:
            applied = applied_passes(program.build_fn)
        except CannotLower:
            pytest.skip("cannot be lowered at all, which test_tfdata is about")
    names = {found.name for found in applied}
    assert "prefetch" in names
    everything = numpy_batches(to_dataset(program.build_fn, shuffle=shuffle), steps)
    for off in [{name} for name in sorted(names - {"prefetch"})] + [set(PASSES)]:
        without = numpy_batches(to_dataset(program.build_fn, shuffle=shuffle, optimize=set(PASSES) - off), steps)
        assert gallery.problems(program, without) == [], off
        if shuffle == "replay" or program.ordered:
            assert_same_batches(without, everything)


def places(build_fn, **options):
    found: dict[str, list[str]] = {}
    for applied in applied_passes(build_fn, **options):
        found.setdefault(applied.name, []).append(applied.where)
    return found


def parsed(names):
    return tf1.parse_single_example(tf1.TFRecordReader().read(names)[1], SPEC)["n"]


def joined_readers():
    names = tf1.train.string_input_producer(pipelines.files([5, 3, 4, 6]), num_epochs=2, shuffle=False)
    return tf1.train.batch_join([[parsed(names)] for _ in range(3)], 4, allow_smaller_final_batch=True)


def test_readers_of_one_queue_of_names_are_read_side_by_side():
    assert places(joined_readers)["interleave"] == places(joined_readers, optimize={"interleave"})["interleave"]
    assert "interleave" not in places(joined_readers, optimize=set(PASSES) - {"interleave"})
    expected = Counter([100 * file + n for file, count in enumerate([5, 3, 4, 6]) for n in range(count)] * 2)
    ours = numpy_batches(to_dataset(joined_readers))
    assert Counter(np.concatenate(ours).tolist()) == expected
    assert [len(batch) for batch in ours] == [4] * 9
    assert sorted(ours[0].tolist())[-1] >= 200  # a record of each of three files
    repeatable = numpy_batches(to_dataset(joined_readers))
    assert_same_batches(ours, repeatable)


def test_a_replayed_order_is_never_interleaved():
    assert "interleave" not in places(joined_readers, shuffle="replay")
    replayed = numpy_batches(to_dataset(joined_readers, shuffle="replay"))
    assert_same_batches(replayed, lockstep(joined_readers))


def unseeded_noise():
    names = tf1.train.string_input_producer(pipelines.files([9, 14]), num_epochs=1, shuffle=False)
    number = parsed(names)
    noise = tf1.random_uniform([])
    return tf1.train.shuffle_batch([number, noise], 4, 40, 20, allow_smaller_final_batch=True)


def seeded_noise():
    tf1.set_random_seed(3)
    return unseeded_noise()


def test_random_numbers_without_a_seed_are_drawn_behind_the_shuffle_and_seeded_ones_are_not():
    assert "decode-late" in places(unseeded_noise)
    assert not {"decode-late", "decode-batches"} & set(places(seeded_noise))
    batches = numpy_batches(to_dataset(unseeded_noise))
    assert Counter(n for numbers, _ in batches for n in numbers.tolist()) == Counter([*range(9), *range(100, 114)])
    assert len({float(value) for _, noise in batches for value in noise}) == 23


def branches_with_seeded_noise():
    tf1.set_random_seed(11)
    names = tf1.train.string_input_producer(pipelines.files([9, 14, 7]), num_epochs=2, shuffle=False)
    number = parsed(names)
    queue = tf1.FIFOQueue(8, [tf.int64], [[]])
    tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, [queue.enqueue([number])]))
    rows = []
    for _ in range(3):
        taken = queue.dequeue()
        rows.append([taken, tf1.random_uniform([2]) + tf.cast(taken, tf.float32)])
    return tf1.train.batch_join(rows, 4)


def test_random_numbers_of_branches_are_the_same_in_every_pass():
    dataset = to_dataset(branches_with_seeded_noise, shuffle="replay")
    expected = lockstep(branches_with_seeded_noise)
    assert len(expected) == 15
    for _ in range(2):
        assert_same_batches([list(batch) for batch in numpy_batches(dataset)], expected)


def test_the_names_of_passes():
    assert chosen(True) == frozenset(PASSES)
    assert chosen(False) == frozenset()
    assert chosen(["prefetch"]) == {"prefetch"}
    for wrong in ("prefetch", ["faster"], 3):
        with pytest.raises(InvalidArgument, match="decode-late"):
            chosen(wrong)
    assert places(unseeded_noise, optimize=False) == {}


def test_explain_says_which_passes_apply():
    told = explain(joined_readers, tfdata=True)
    assert str(told).startswith(str(explain(joined_readers)))
    lines = str(told).partition("tf.data: can be lowered; speed passes that apply\n")[2].splitlines()
    assert lines[0] == "  - prefetch: the batches are made ahead of the step that takes them"
    assert any(line.startswith("  - interleave: the files that the queue input_producer") for line in lines)
    assert any(line.startswith("  - decode-batches: the stage that fills batch_join/fifo_queue runs") for line in lines)
    assert told.to_dict()["tfdata"]["passes"] == [line[4:] for line in lines]


def test_explain_says_what_cannot_be_lowered():
    def fed():
        queue = tf1.FIFOQueue(4, [tf.float32], [[3]])
        queue.enqueue([tf1.placeholder(tf.float32, [3])], name="feed")
        return queue.dequeue_many(2)

    told = explain(fed, tfdata=True)
    assert "tf.data: the queue fifo_queue" in str(told)
    assert "from_generator" in told.to_dict()["tfdata"]["cannot_lower"]
    assert "tfdata" not in explain(fed).to_dict()
    with pytest.raises(InvalidArgument, match="build function"):
        explain(told.topology, tfdata=True)
