"""The chain of a Dataset, drawn from what TensorFlow tells in public."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from tests.views import pictures
from tests.views.pipelines import rewritten
from tfqueue import errors, views
from tfqueue.topology import dataset as module

Dataset = tf.data.Dataset


def boxes(figure):
    return [patch.get_label() for patch in figure.axes[0].patches if isinstance(patch, FancyBboxPatch)]


def arrows(figure):
    """Kinds of the steps at both ends of every arrow."""
    labels = [patch.get_label() for patch in figure.axes[0].patches if isinstance(patch, FancyArrowPatch)]
    return {tuple(part.split("Dataset")[0] for part in label.split(" -> ")) for label in labels}


def test_every_step_in_its_order():
    figure = views.plot_topology(Dataset.range(10).shuffle(4).repeat(2).batch(3, drop_remainder=True).prefetch(1))
    assert arrows(figure) == {
        ("Range", "Shuffle"),
        ("Shuffle", "Repeat"),
        ("Repeat", "Batch"),
        ("Batch", "Prefetch"),
        ("Prefetch", "delivers"),
    }
    words = pictures.words(figure)
    assert words[:2] == ["Dataset of 5 steps", "Delivers 6 elements."]
    for expected in (
        "start 0, stop 10, step 1",
        "buffer_size 4",
        "count 2",
        "batch_size 3, drop_remainder True",
        "int64[3]",
    ):
        assert expected in words


def test_options_that_stand_for_no_number():
    endless = Dataset.range(2**63 - 1).repeat()
    words = pictures.words(views.plot_topology(endless.map(abs, num_parallel_calls=-1).prefetch(-1)))
    for expected in (
        "start 0, without end, step 1",
        "without end",
        "num_parallel_calls AUTOTUNE",
        "buffer_size AUTOTUNE",
    ):
        assert expected in words


def test_branches():
    both = Dataset.zip((Dataset.range(3), Dataset.from_tensor_slices(np.zeros((4, 2))))).concatenate(
        Dataset.from_tensors((np.int64(1), np.zeros(2)))
    )
    figure = views.plot_topology(both)
    assert arrows(figure) == {
        ("Range", "Zip"),
        ("TensorSlice", "Zip"),
        ("Zip", "Concatenate"),
        ("Tensor", "Concatenate"),
        ("Concatenate", "delivers"),
    }
    assert "4 elements" in pictures.words(figure)


def test_functions_and_files_by_name():
    words = pictures.words(views.plot_topology(rewritten()))
    assert "train-00000.tfrecord, train-00001.tfrecord, train-00002.tfrecord and 2 more".startswith(
        next(part for part in words if part.startswith("train-")).rstrip("…")
    )
    assert "ParallelMap: parse" in words
    assert any(part.startswith("num_parallel_calls 4") for part in words)
    assert any("DecodeJpeg" in part and "ResizeBilinear" in part for part in words)
    assert any("cycle_length 2" in part for part in words)


def test_options_are_no_step():
    options = tf.data.Options()
    options.deterministic = False
    figure = views.plot_topology(Dataset.range(3).with_options(options))
    assert arrows(figure) == {("Range", "delivers")}


def test_python_functions_and_autotune():
    def load(number):
        return tf.numpy_function(lambda value: value, [number], tf.int64)

    words = pictures.words(views.plot_topology(Dataset.range(3).map(load, num_parallel_calls=tf.data.AUTOTUNE)))
    assert "ParallelMap: load" in words
    assert "num_parallel_calls AUTOTUNE" in words
    assert "PyFunc" in words


def test_elements_of_any_kind():
    ragged = tf.RaggedTensorSpec([None, None], tf.float32)
    sparse = tf.SparseTensorSpec([None, 3], tf.string)
    made = Dataset.from_generator(lambda: iter([]), output_signature={"a": ragged, "b": sparse})
    words = pictures.words(views.plot_topology(made))
    assert words[1] == "Number of elements not known before it runs."
    assert "float32[?, ?], string[?, 3]" in words
    assert pictures.words(views.plot_topology(Dataset.range(3).repeat()))[1] == "Delivers without end."


def test_only_the_end_of_a_very_long_chain_is_drawn():
    made = Dataset.range(3)
    for _ in range(60):
        made = made.skip(0)
    figure = views.plot_topology(made)
    assert len(boxes(figure)) == 41
    assert pictures.words(figure)[1] == "Delivers 3 elements; 21 more before them are not shown."


def test_a_dataset_that_does_not_tell(monkeypatch):
    with tf.Graph().as_default():
        made = Dataset.range(3)
    with pytest.raises(errors.InvalidArgument, match="does not tell how it was made"):
        views.plot_topology(made)


def test_hostile_names_are_text():
    made = Dataset.from_tensor_slices(["/data/<b>$x$\u202e.rec", "/data/\x1b[31m"]).take(1)
    words = pictures.words(views.plot_topology(made))
    assert r"<b>$x$\u202e.rec, \x1b[31m" in words


def test_no_other_value_is_a_dataset():
    assert not module.is_dataset([1])
    with pytest.raises(errors.InvalidArgument, match=r"topology is a list; expected .* or a Dataset"):
        views.plot_topology([1])
