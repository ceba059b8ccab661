"""Sequences as lines, audio as waveforms, values as histograms."""

from __future__ import annotations

import numpy as np
import pytest

from tests.views import pictures
from tfqueue import errors, views
from tfqueue.views.features import Feature, boxed
from tfqueue.views.strips import as_strip, envelope


def strips_of(figure):
    return [axes for axes in figure.axes if not axes.images]


def test_the_line_of_a_record_holds_its_values():
    walk = np.random.default_rng(0).normal(size=(3, 40)).cumsum(axis=1)
    figure = views.show_batch({"image": pictures.tiles(3), "walk": walk})
    lines = strips_of(figure)
    assert [axes.get_label() for axes in lines] == ["walk #0", "walk #1", "walk #2"]
    for axes, row in zip(lines, walk, strict=True):
        np.testing.assert_array_equal(axes.lines[0].get_ydata(), row)
    # One vertical scale for all records, so that they can be compared.
    assert len({axes.get_ylim() for axes in lines}) == 1


def test_several_lines_of_one_sequence_and_unequal_lengths():
    rows = boxed([np.ones((20, 2)), np.zeros((30, 2))])
    figure = views.show_batch({"image": pictures.tiles(2), "path": rows})
    assert [len(axes.lines) for axes in strips_of(figure)] == [2, 2]
    assert len(strips_of(figure)[1].lines[0].get_ydata()) == 30


@pytest.mark.parametrize(
    "values",
    [np.zeros((3, 5)), np.eye(40)[:3], np.zeros((3, 40, 9)), np.arange(3), np.zeros((3, 40), complex)],
    ids=["short", "one-hot", "wide", "scalar", "complex"],
)
def test_what_is_no_sequence(values):
    assert as_strip(Feature("f", values), 3) is None


def test_audio_alone_is_the_picture():
    sound = np.sin(np.linspace(0, 90, 4000))[np.newaxis].repeat(2, 0)
    sound[1] *= 0.5
    figure = views.show_batch({"audio": sound, "label": np.array([3, 4])})
    assert [axes.get_label() for axes in figure.axes] == ["3", "4"]
    low, high = figure.axes[0].get_ylim()
    assert low == -high
    assert "audio: float64[4000]" in pictures.words(figure)[1]


def test_vectors_are_drawn_only_when_asked_for():
    batch = {"embedding": np.random.default_rng(0).normal(size=(2, 128)), "label": np.arange(2)}
    with pytest.raises(errors.InvalidImage, match=r"embedding: float64\[2, 128\].*; image='embedding' draws that"):
        views.show_batch(batch)
    with pytest.raises(errors.InvalidImage, match=r"no image found in feature 'label'.*int64\[2\]$"):
        views.show_batch(batch, image="label")
    figure = views.show_batch(batch, image="embedding")
    np.testing.assert_array_equal(figure.axes[1].lines[0].get_ydata(), batch["embedding"][1])


def test_envelope_keeps_every_extreme():
    line = np.zeros(10_000)
    line[1234], line[7777] = 5.0, -3.0
    low, high = envelope(line, 100)
    assert (low.min(), high.max()) == (-3.0, 5.0)
    assert (len(low), len(high)) == (100, 100)
    assert (high.argmax(), low.argmin()) == (12, 77)


def test_histograms_count_every_pixel():
    tiles = pictures.tiles(2)
    figure = views.show_batch(tiles, histograms=True)
    drawn = strips_of(figure)
    assert len(drawn) == 2
    words = f"Values {tiles[1].min()} to {tiles[1].max()}, mean {tiles[1].mean():.4g}."
    assert words in pictures.words(figure)
    for axes, tile in zip(drawn, tiles, strict=True):
        assert len(axes.patches) == 3
        for patch, channel in zip(axes.patches, range(3), strict=True):
            counts = patch.get_data().values
            assert counts.sum() == 32 * 32
            expected, _ = np.histogram(tile[..., channel], bins=48, range=(0, 255))
            np.testing.assert_array_equal(counts, expected)
