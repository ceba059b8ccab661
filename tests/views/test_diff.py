"""show_pair: the difference that is there, where it is, and nothing else."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from matplotlib.figure import Figure

from tests.views import pictures
from tfqueue import errors, views
from tfqueue.views.pairs import LIMIT, Pair, Sheet, absolute_difference, difference_pixels, image_difference
from tfqueue.views.pixels import ValueRange


def order(figure: Figure) -> list[int]:
    """The numbers of the records in the order in which they are shown."""
    names = [str(axes.get_label()) for axes in figure.axes]
    return [int(name.split("#")[1]) for name in names if name.startswith("reference #")]


def test_three_pictures_a_record():
    reference = pictures.tiles(2)
    candidate = reference.copy()
    candidate[0, 3:5, 7:9] = 0
    figure = views.show_pair((reference, np.arange(2)), (candidate, np.arange(2)))
    assert [str(axes.get_label()) for axes in figure.axes[:6]] == [
        "reference #0",
        "candidate #0",
        "difference #0",
        "reference #1",
        "candidate #1",
        "difference #1",
    ]
    np.testing.assert_allclose(pictures.drawn_image(figure, 0, 32, 32), reference[0], atol=1)
    np.testing.assert_allclose(pictures.drawn_image(figure, 1, 32, 32), candidate[0], atol=1)
    changed = (pictures.drawn_image(figure, 2, 32, 32) != 255).any(axis=-1)
    np.testing.assert_array_equal(changed, (reference[0] != candidate[0]).any(axis=-1))
    assert (pictures.drawn_image(figure, 5, 32, 32) == 255).all()


def test_words_give_max_and_mean():
    reference = np.zeros((1, 4, 4, 1), np.uint8)
    candidate = reference.copy()
    candidate[0, 0, 0] = 8
    shown = pictures.words(views.show_pair(reference, candidate))
    assert shown[0] == "The image differs"
    assert "max 8, mean 0.5" in shown


def test_equal_batches_are_said_to_be_equal():
    tiles = pictures.tiles(3)
    figure = views.show_pair({"image": tiles}, {"image": tiles.copy()})
    assert pictures.words(figure)[0] == "All 3 images are equal"
    assert pictures.words(figure).count("equal") == 3


def test_worst_records_first():
    reference = pictures.tiles(6).astype(np.int32)
    candidate = reference.copy()
    candidate[4] += 3
    candidate[2] += 50
    candidate[5, 0, 0, 0] += 1
    figure = views.show_pair(reference, candidate, n=4)
    assert order(figure) == [2, 4, 5, 0]
    assert pictures.words(figure)[0] == "3 of 6 images differ; 4 shown"
    assert pictures.words(views.show_pair(reference, candidate, n=2))[0] == "3 of 6 images differ; the worst 2 shown"


def test_another_label_counts_as_worse_than_another_pixel():
    tiles = pictures.tiles(3)
    changed = tiles.copy()
    changed[1] = 255 - changed[1]
    figure = views.show_pair((tiles, np.array([4, 5, 6])), (changed, np.array([4, 5, 9])))
    assert order(figure) == [2, 1, 0]
    assert pictures.words(figure)[0] == "1 of 3 images differ, 1 label differs"
    bold = [text.get_text() for text in figure.texts if text.get_weight() == "bold" and text.get_color() == "#b3261e"]
    assert bold == ["9"]


def test_swapped_channels_are_seen():
    tiles = pictures.tiles(1)
    figure = views.show_pair(tiles, tiles[..., ::-1])
    grey = tiles[0, ..., 0] == tiles[0, ..., 2]
    changed = (pictures.drawn_image(figure, 2, 32, 32) != 255).any(axis=-1)
    # A difference of one grey level in a hundred is still told from white.
    np.testing.assert_array_equal(changed, ~grey)


def test_unequal_sizes_shapes_types_and_structures_are_said():
    reference = {"image": pictures.tiles(4), "label": np.arange(4)}
    candidate = {"image": pictures.tiles(3)[:, :30].astype(np.float32) / 255, "extra": np.arange(3)}
    figure = views.show_pair(reference, candidate)
    said = " ".join(pictures.words(figure))
    assert "Reference images are uint8 32×32×3, candidate images are float32 30×32×3." in said
    assert "Reference holds 4 records, candidate 3: the first 3 of each are compared." in said
    assert "only in the reference: label; only in the candidate: extra" in said
    assert "Range assumed: reference 0..255, candidate 0..1; both drawn as the reference." in said
    assert "shape 32×32×3 became 30×32×3" in said


def test_the_heading_does_not_call_all_equal_what_is_only_the_beginning():
    tiles = pictures.tiles(4)
    heading = pictures.words(views.show_pair(tiles, tiles[:3]))[0]
    assert heading == "The first 3 images are equal, the numbers of records differ"
    assert pictures.words(views.show_pair(tiles[:1], 255 - tiles))[0].startswith("The first image differs, the numbers")


def test_the_other_side_may_be_built_otherwise():
    tiles = pictures.tiles(2)
    figure = views.show_pair((tiles, np.arange(2)), {"image": tiles, "label": np.arange(2)})
    assert pictures.words(figure)[0] == "Both images are equal"


def test_a_scale_error_is_seen_as_such():
    tiles = pictures.tiles(2)
    figure = views.show_pair(tiles.astype(np.float32), tiles.astype(np.float32) / 255)
    assert pictures.drawn_image(figure, 1, 32, 32).max() <= 1
    assert order(figure) == sorted((0, 1), key=lambda number: -tiles[number].mean())


def test_not_finite_on_one_side_only():
    reference = np.full((2, 4, 4, 3), 0.5, np.float32)
    candidate = reference.copy()
    reference[1, 0] = candidate[1, 0] = np.nan
    candidate[1, 2, :, 0] = np.inf
    figure = views.show_pair(reference, candidate)
    assert order(figure) == [1, 0]
    assert "4 NaN or infinite on one side" in pictures.words(figure)
    drawn = pictures.drawn_image(figure, 2, 4, 4)
    assert (drawn[2] == (255, 0, 200)).all()
    assert (drawn[[0, 1, 3]] == 255).all()


def test_the_scale_is_common_when_given():
    reference = np.zeros((2, 4, 4, 1), np.uint8)
    candidate = np.stack([np.full((4, 4, 1), 10, np.uint8), np.full((4, 4, 1), 200, np.uint8)])
    own = views.show_pair(reference, candidate)
    assert (pictures.drawn_image(own, 2, 4, 4) == 0).all()
    assert (pictures.drawn_image(own, 5, 4, 4) == 0).all()
    common = views.show_pair(reference, candidate, scale=200)
    assert (pictures.drawn_image(common, 2, 4, 4) == 0).all()
    assert (pictures.drawn_image(common, 5, 4, 4) > 200).any()


def test_a_single_changed_pixel_of_a_large_image_is_still_seen():
    reference = np.zeros((1, 3000, 3000, 1), np.uint8)
    candidate = reference.copy()
    candidate[0, 1234, 2345] = 255
    figure = views.show_pair(reference, candidate)
    drawn = pictures.rendered(figure)
    box = figure.axes[2].get_window_extent()
    inside = drawn[
        int(drawn.shape[0] - box.y1) + 2 : int(drawn.shape[0] - box.y0) - 2, int(box.x0) + 2 : int(box.x1) - 2
    ]
    row, column = np.unravel_index(inside.min(axis=-1).argmin(), inside.shape[:2])
    assert inside.min() < 200
    assert row / inside.shape[0] == pytest.approx(1234 / 3000, abs=0.02)
    assert column / inside.shape[1] == pytest.approx(2345 / 3000, abs=0.02)


numbers = hnp.arrays(
    st.sampled_from([np.uint8, np.int8, np.uint16, np.int32, np.float32, np.float64, np.bool_]),
    (3, 2, 1),
)


@settings(max_examples=60, deadline=None)
@given(numbers, numbers)
def test_difference_agrees_with_python_numbers(reference, candidate):
    change = absolute_difference(reference, candidate)
    for place in np.ndindex(reference.shape):
        one, other = float(reference[place]), float(candidate[place])
        if math.isfinite(one) and math.isfinite(other):
            expected = abs(one - other)
        else:
            expected = 0.0 if one == other or (math.isnan(one) and math.isnan(other)) else math.inf
        assert change[place] == pytest.approx(expected, rel=1e-6, abs=0)
    found = image_difference(reference, candidate)
    assert found.differs == bool(change.any())
    if found.differs:
        pixels = difference_pixels(reference, candidate, found.largest)
        assert ((pixels != 255).any(axis=-1) <= change.max(axis=-1).astype(bool)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n=0"),
        ({"scale": 0}, "scale=0"),
        ({"labels": "grade"}, "labels='grade': no such feature"),
        ({"image": "photo"}, "image='photo': no such feature"),
    ],
)
def test_bad_options(options, message):
    batch = {"image": pictures.tiles(3), "label": np.arange(3)}
    with pytest.raises(errors.InvalidArgument, match=message):
        views.show_pair(batch, batch, **options)


def test_a_side_without_image_or_without_record():
    tiles = pictures.tiles(2)
    with pytest.raises(errors.InvalidImage, match=r"candidate: no image found.*x: float64\[2, 5\]"):
        views.show_pair({"x": tiles}, {"x": np.zeros((2, 5))})
    with pytest.raises(errors.InvalidArgument, match="reference: the batch is empty"):
        views.show_pair({"x": tiles[:0]}, {"x": tiles})


def test_writes_a_png(tmp_path):
    path = tmp_path / "pair.png"
    views.show_pair(pictures.tiles(2), pictures.tiles(2), path)
    assert path.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(errors.InvalidArgument, match="does not exist"):
        views.show_pair(pictures.tiles(2), pictures.tiles(2), tmp_path / "no" / "pair.png")


def test_channel_by_channel():
    reference = pictures.tiles(2)
    candidate = reference.copy()
    candidate[0, 4:8, 4:8, 1] ^= 64
    figure = views.show_pair(reference, candidate, channels=True)
    names = [str(axes.get_label()) for axes in figure.axes[:5]]
    assert names[2:] == ["difference in red #0", "difference in green #0", "difference in blue #0"]
    for number, changed in ((2, False), (3, True), (4, False)):
        drawn = (pictures.drawn_image(figure, number, 32, 32) != 255).any(axis=-1)
        expected = np.zeros((32, 32), bool)
        expected[4:8, 4:8] = changed
        np.testing.assert_array_equal(drawn, expected)


def test_what_compare_found_is_written_over_the_pictures():
    from tfqueue import compare

    reference = {"image": pictures.tiles(8), "label": np.arange(8)}
    candidate = {**reference, "image": reference["image"][..., ::-1]}
    report = compare([reference], [candidate])
    figure = views.show_pair(reference, candidate, report=report)
    assert "channels-swapped" in " ".join(pictures.words(figure))
    with pytest.raises(errors.InvalidArgument, match="report is a str"):
        views.show_pair(reference, candidate, report="equal")


def test_sides_may_be_streams():
    tiles = pictures.tiles(6)
    figure = views.show_pair(iter([(tiles[:4], np.arange(4)), (tiles[4:], np.arange(2))]), (tiles[:4], np.arange(4)))
    assert pictures.words(figure)[0] == "All 4 images are equal"


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(1, 30), st.integers(1, 12), st.integers(20, 200), st.integers(0, 99))
def test_blocks_and_shrinking_lose_no_difference(height, width, most, block, seed):
    rng = np.random.default_rng(seed)
    reference = rng.integers(0, 256, (height, width, 3)).astype(np.uint8)
    candidate = reference.copy()
    row, column = rng.integers(height), rng.integers(width)
    candidate[row, column, 1] ^= 128
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tfqueue.views.pairs._BLOCK_VALUES", block)
        found = image_difference(reference, candidate)
        pixels = difference_pixels(reference, candidate, 128, most=most)
    assert found.largest == 128
    assert found.mean == pytest.approx(128 / reference.size)
    assert max(pixels.shape[:2]) <= max(most, 1) or max(height, width) <= most
    step = -(-max(height, width) // most) if max(height, width) > most else 1
    dark = np.argwhere((pixels != 255).any(axis=-1)).tolist()
    assert dark == [[row // step, column // step]]


def test_bfloat16_is_shown():
    import tensorflow as tf

    values = tf.cast(pictures.tiles(2).astype(np.float32) / 255, tf.bfloat16)
    figure = views.show_batch((values, np.arange(2)))
    np.testing.assert_allclose(pictures.drawn_image(figure, 1, 32, 32), pictures.tiles(2)[1], atol=2)


@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("shape", [(4, 4, 4), (40, 4, 4), (4, 60, 4)])
def test_the_largest_sheet_can_be_drawn(shape, channels):
    image = np.zeros(shape, np.uint8)
    pair = Pair("#0", image, image ^ 1, image_difference(image, image ^ 1))
    sheet = Sheet([pair] * LIMIT, ValueRange(0, 255, "0..255"), channels=channels)
    assert max(sheet.width, sheet.height + 3) * 100 < 2**16
    batch = np.zeros((2, *shape), np.uint8)
    with pytest.raises(errors.InvalidArgument, match="n=101: expected 1 to 100"):
        views.show_pair(batch, batch, n=101)
