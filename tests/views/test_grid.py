"""show_batch: the right pixels under the right words, for every form of batch."""

from __future__ import annotations

import collections
import os

import cv2
import matplotlib
import matplotlib.style
import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.views import pictures
from tests.views.gallery import strings
from tfqueue import errors, views
from tfqueue.views import style
from tfqueue.views.pixels import ValueRange, to_pixels

Batch = collections.namedtuple("Batch", "image label")


def titles(figure: Figure) -> list[str]:
    return [str(axes.get_label()) for axes in figure.axes]


def facts(figure: Figure) -> str:
    """What stands under the heading."""
    return " ".join(pictures.words(figure)[1:5])


@pytest.mark.parametrize(
    ("values", "range_words"),
    [
        (lambda tiles: tiles, "0..255"),
        (lambda tiles: tiles.astype(np.float32) / 255, "0..1"),
        (lambda tiles: tiles.astype(np.float16) / np.float16(255), "0..1"),
        (lambda tiles: tiles.astype(np.float64) / 127.5 - 1, "-1..1"),
        (lambda tiles: tiles.astype(np.float32), "0..255"),
        (lambda tiles: tiles.astype(np.int32), "0..255"),
        (lambda tiles: tiles.astype(np.int64), "0..255"),
        (lambda tiles: tiles.astype(np.uint16) * 257, "0..65535 (16 bits)"),
    ],
    ids=["uint8", "float32-1", "float16-1", "float64-sym", "float32-255", "int32", "int64", "uint16"],
)
def test_shows_each_record_as_it_is(values, range_words):
    tiles = pictures.tiles(6)
    figure = views.show_batch((values(tiles), np.arange(6)))
    assert f"Range assumed: {range_words}." in facts(figure)
    for number, tile in enumerate(tiles):
        np.testing.assert_allclose(pictures.drawn_image(figure, number, 32, 32), tile, atol=1)


def test_a_swapped_channel_and_a_shifted_label_are_noticed():
    """The readings that the other tests rest on can fail."""
    tiles = pictures.tiles(4)
    swapped = views.show_batch((tiles[..., ::-1], np.arange(4)))
    assert np.abs(pictures.drawn_image(swapped, 3, 32, 32).astype(int) - tiles[3]).max() > 50
    shifted = views.show_batch((tiles, np.roll(np.arange(4), 1)))
    assert titles(shifted) == ["3", "0", "1", "2"]


def test_standardised_images_share_one_range():
    tiles = pictures.tiles(6).astype(np.float32)
    standardised = (tiles - tiles.mean((1, 2, 3), keepdims=True)) / tiles.std((1, 2, 3), keepdims=True)
    figure = views.show_batch(standardised)
    assert "standardised values" in facts(figure)
    low, high = standardised.min(), standardised.max()
    for number in range(6):
        expected = (standardised[number] - low) / (high - low) * 255
        np.testing.assert_allclose(pictures.drawn_image(figure, number, 32, 32), expected, atol=1)


def test_a_dark_image_stays_dark_beside_a_bright_one():
    batch = np.stack([np.full((8, 8, 3), 0.1), np.full((8, 8, 3), 1.0)])
    figure = views.show_batch(batch)
    assert pictures.drawn_image(figure, 0, 8, 8).max() <= 26
    assert pictures.drawn_image(figure, 1, 8, 8).min() == 255


def test_overshoot_of_a_resize_is_clipped_and_said():
    batch = np.linspace(-0.05, 1.08, 2 * 8 * 8 * 3).reshape(2, 8, 8, 3)
    assert "0..1, clipped from -0.05..1.08" in facts(views.show_batch(batch))


def test_a_given_range_is_taken():
    figure = views.show_batch(np.full((1, 4, 4, 1), 30.0), value_range=(0, 60))
    assert "0..60 as given" in facts(figure)
    assert (pictures.drawn_image(figure, 0, 4, 4) == 128).all()


def test_grey_without_and_with_channel_axis():
    grey = pictures.tiles(3)[..., 0]
    for batch in (grey, grey[..., np.newaxis]):
        figure = views.show_batch(batch)
        for number in range(3):
            drawn = pictures.drawn_image(figure, number, 32, 32)
            np.testing.assert_allclose(drawn, np.repeat(grey[number][..., np.newaxis], 3, axis=-1), atol=1)


def test_transparency_lies_on_a_chequered_ground():
    image = pictures.transparent()
    drawn = pictures.drawn_image(views.show_batch(image[np.newaxis]), 0, 128, 128)
    clear, solid = image[..., 3] == 0, image[..., 3] == 255
    assert set(np.unique(drawn[clear])) <= {235, 255}
    np.testing.assert_allclose(drawn[solid], image[solid][:, :3], atol=1)


@pytest.mark.parametrize(
    "build",
    [
        lambda images, labels: (images, labels),
        lambda images, labels: Batch(images, labels),
        lambda images, labels: [images, labels],
        lambda images, labels: {"image": images, "label": labels},
        lambda images, labels: {"features": {"image/encoded": images}, "image/class/label": labels},
        lambda images, labels: ({"pixels": images, "weight": np.ones(4)}, {"y": labels}),
        lambda images, labels: (images, np.eye(10, dtype=np.float32)[labels]),
        lambda images, labels: (images, labels[:, np.newaxis]),
        lambda images, labels: (images, list(map(int, labels))),
    ],
)
def test_finds_image_and_label_in_any_structure(build):
    tiles = pictures.tiles(4)
    figure = views.show_batch(build(tiles, np.array([7, 1, 0, 3])))
    assert titles(figure) == ["7", "1", "0", "3"]
    np.testing.assert_allclose(pictures.drawn_image(figure, 2, 32, 32), tiles[2], atol=1)


def test_class_names_from_a_list_or_a_mapping():
    batch = (pictures.tiles(3), np.array([0, 1, 9]))
    assert titles(views.show_batch(batch, class_names=["cat", "dog"])) == [
        "0 cat",
        "1 dog",
        "9 no such class",
    ]
    assert titles(views.show_batch(batch, class_names={0: "cat", 9: "lorry"})) == [
        "0 cat",
        "1 no such class",
        "9 lorry",
    ]


def test_labels_given_beside_the_batch_or_by_name():
    tiles = pictures.tiles(3)
    assert titles(views.show_batch(tiles, labels=["a", "b", "c"])) == ["a", "b", "c"]
    batch = {"image": tiles, "label": np.arange(3), "grade": np.array([5, 6, 7])}
    assert titles(views.show_batch(batch, labels="grade")) == ["5", "6", "7"]


def test_other_features_are_short_text():
    batch = {
        "image": pictures.tiles(2),
        "label": np.array([1, 2]),
        "file": np.array([b"a.jpg", b"b.jpg"], dtype=object),
        "quad": np.array([[0.0, 0.25, 1.0, 0.5]] * 2),
        "vector": np.ones((2, 100), np.float32),
        "raw": np.array([bytes(range(8)) * 100] * 2, dtype=object),
    }
    shown = " ".join(pictures.words(views.show_batch(batch)))
    assert "file a.jpg" in shown
    assert "file b.jpg" in shown
    assert "quad [0, 0.25, 1, 0.5]" in shown


def test_hostile_words_are_drawn_as_they_are():
    words = [b"$x^{2}$", b"<script>", b"\xff\xfe", "\u202eabc".encode(), b"two\nlines", b"a" * 10_000]
    figure = views.show_batch({"image": pictures.tiles(6), "label": np.array(words, dtype=object)})
    shown = pictures.words(figure)
    pictures.rendered(figure)
    assert "$x^{2}$" in shown
    assert "<script>" in shown
    assert r"\xff\xfe" in shown
    assert r"\u202eabc" in shown
    assert "two lines" in shown
    assert any(text.endswith("…") and set(text) == {"a", "…"} for text in shown)


def test_characters_that_no_installed_font_has_are_escaped():
    figure = views.show_batch(pictures.tiles(1), labels=["\U0001f9ff"])
    pictures.rendered(figure)
    assert any("1f9ff" in text or "\U0001f9ff" in text for text in pictures.words(figure))


def test_values_that_are_not_finite_are_painted_and_counted():
    batch = pictures.tiles(3).astype(np.float32) / 255
    batch[1, 4:6, 4:8] = np.nan
    batch[2, 0, 0, 1] = -np.inf
    figure = views.show_batch(batch)
    assert "24 NaN and 1 infinite values in 2 records, painted magenta." in pictures.words(figure)
    assert "Range assumed: 0..1." in facts(figure)
    drawn = pictures.drawn_image(figure, 1, 32, 32)
    magenta = (drawn == (255, 0, 200)).all(axis=-1)
    expected = np.zeros((32, 32), bool)
    expected[4:6, 4:8] = True
    np.testing.assert_array_equal(magenta, expected)


def test_nothing_finite_at_all():
    figure = views.show_batch(np.full((2, 4, 4, 3), np.nan, np.float32))
    assert "No value is finite." in facts(figure)
    assert (pictures.drawn_image(figure, 0, 4, 4) == (255, 0, 200)).all()


def test_one_pixel():
    figure = views.show_batch(np.array([[[[10, 200, 30]]]], np.uint8))
    assert pictures.drawn_image(figure, 0, 1, 1).tolist() == [[[10, 200, 30]]]


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.int32])
def test_very_large_image(dtype):
    large = np.zeros((1, 8000, 8000, 1), dtype)
    large[:, :4000] = 200
    figure = views.show_batch(large)
    axes = figure.axes[0]
    # The picture that is drawn is no larger than the screen needs.
    assert max(axes.images[0].get_array().shape) <= 1200
    drawn = pictures.drawn_image(figure, 0, 10, 1)[:, 0, 0]
    assert drawn[0] == 200
    assert pictures.rendered(figure).shape[0] < 1000


def test_flat_image_outside_every_range():
    figure = views.show_batch(np.full((1, 4, 4, 3), -700.0))
    assert "all -700" in facts(figure)


def test_at_most_n_are_shown_and_it_says_so():
    figure = views.show_batch((pictures.tiles(40), np.arange(40)), n=5)
    assert titles(figure) == ["0", "1", "2", "3", "4"]
    assert pictures.words(figure)[0] == "5 of 40 records"


def test_a_chosen_image_feature():
    batch = {"left": pictures.tiles(2), "right": pictures.tiles(4)[2:]}
    figure = views.show_batch(batch, image="right")
    np.testing.assert_allclose(pictures.drawn_image(figure, 0, 32, 32), batch["right"][0], atol=1)


@pytest.mark.parametrize(
    ("batch", "kind", "message"),
    [
        (
            {"x": np.zeros((4, 10)), "y": np.arange(4)},
            errors.InvalidImage,
            r"x: float64\[4, 10\]; y: int64\[4\]",
        ),
        ((np.zeros((4, 8, 8, 7)),), errors.InvalidImage, r"\[0\]: float64\[4, 8, 8, 7\]"),
        ({"name": np.array([b"ab"], object)}, errors.InvalidImage, r"name: bytes\[1\]"),
        ({}, errors.InvalidArgument, "empty"),
        ((), errors.InvalidArgument, "empty"),
        (np.zeros((0, 8, 8, 3)), errors.InvalidArgument, r"empty.*\[0, 8, 8, 3\]"),
        (np.zeros((2, 0, 8, 3)), errors.InvalidImage, "no pixels"),
        ({"image": object()}, errors.InvalidArgument, "feature image is an object, not a tensor"),
    ],
)
def test_bad_batches(batch, kind, message):
    with pytest.raises(kind, match=message):
        views.show_batch(batch)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n=0"),
        ({"labels": [1, 2]}, "one label for each of 3 images"),
        ({"labels": "grade"}, "labels='grade': no such feature; there are 'label'"),
        ({"image": "photo"}, "image='photo': no such feature; there are image: uint8"),
        ({"value_range": (1, 1)}, "expected \\(low, high\\) with low < high"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(errors.InvalidArgument, match=message):
        views.show_batch({"image": pictures.tiles(3), "label": np.arange(3)}, **options)


def test_a_feature_of_another_length_is_said_not_hidden():
    figure = views.show_batch({"image": pictures.tiles(3), "label": np.arange(3), "extra": np.arange(5)})
    assert "not one value a record: extra: int64[5]" in pictures.words(figure)


def test_writes_a_png_with_words_in_it(tmp_path):
    path = tmp_path / "grid.png"
    figure = views.show_batch((pictures.tiles(4), np.arange(4)), path)
    written = cv2.cvtColor(cv2.imread(str(path)), cv2.COLOR_BGR2RGB)
    np.testing.assert_array_equal(written, pictures.rendered(figure))
    content = path.read_bytes()
    assert b"Title\x004 records" in content
    assert b"tfqueue" in content


def test_path_that_cannot_be_written(tmp_path):
    batch = pictures.tiles(1)
    with pytest.raises(errors.InvalidArgument, match=r"folder '.*absent' does not exist; create it first"):
        views.show_batch(batch, tmp_path / "absent" / "grid.png")
    with pytest.raises(errors.InvalidArgument, match=r"ends in \.png"):
        views.show_batch(batch, tmp_path / "grid.jpeg")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(errors.InvalidArgument, match=r"is a folder"):
        views.show_batch(batch, tmp_path / "folder.png")
    with pytest.raises(errors.InvalidArgument, match="cannot be written") as caught:
        views.show_batch(batch, tmp_path / ("long" * 80 + ".png"))
    assert isinstance(caught.value.__cause__, OSError)
    assert os.listdir(tmp_path) == ["folder.png"]


def test_no_setting_of_matplotlib_is_changed_or_obeyed():
    """The same picture under any style, and the style as it was."""
    batch = {"image": pictures.tiles(4), "label": np.arange(4), "note": np.array([b"a"] * 4, object)}
    plain = pictures.rendered(views.show_batch(batch))
    strange = {
        "figure.dpi": 50,
        "savefig.bbox": "tight",
        "image.origin": "lower",
        "image.interpolation": "bicubic",
        "axes.grid": True,
        "text.color": "red",
        "font.size": 30,
        "font.family": "serif",
        "figure.constrained_layout.use": True,
    }
    with matplotlib.style.context(["dark_background", strange]):
        before = dict(matplotlib.rcParams)
        styled = pictures.rendered(views.show_batch(batch))
        assert dict(matplotlib.rcParams) == before
    np.testing.assert_array_equal(styled, plain)


def test_pyplot_is_never_loaded(run_python):
    """pyplot would choose a backend and hold on to every figure."""
    run_python(
        "import sys, numpy as np\n"
        "from tfqueue import views\n"
        "assert 'matplotlib' not in sys.modules, 'tfqueue.views must load matplotlib on use only'\n"
        "views.show_batch(np.zeros((2, 4, 4, 3), np.uint8))\n"
        "views.show_pair(np.zeros((2, 4, 4, 3), np.uint8), np.ones((2, 4, 4, 3), np.uint8))\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "assert 'tensorflow' not in sys.modules\n"
    )


@pytest.mark.parametrize("reach", [1.0e3, 3.0e38, 1.7e308])
def test_values_at_the_end_of_a_type_are_stretched_evenly(reach):
    dtype = np.float32 if reach < 1e300 else np.float64
    ramp = (np.linspace(-1, 1, 16) * reach).astype(dtype)
    figure = views.show_batch(ramp.reshape(1, 4, 4, 1))
    drawn = pictures.drawn_image(figure, 0, 4, 4)[..., 0].reshape(-1)
    np.testing.assert_allclose(drawn, np.linspace(0, 255, 16), atol=1)


@pytest.mark.parametrize("value", [1e306, -1e306])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_far_outside_of_the_range_are_black_or_white(value, dtype):
    image = np.full((2, 2, 1), np.clip(value, np.finfo(dtype).min, np.finfo(dtype).max), dtype)
    assert np.unique(to_pixels(image, ValueRange(0, 1, "0..1"))).tolist() == [255 if value > 0 else 0]


@pytest.mark.parametrize("value", [-700.0, 1e300, -1.7e308])
def test_a_flat_image_is_grey(value):
    figure = views.show_batch(np.full((1, 4, 4, 3), value))
    assert set(np.unique(pictures.drawn_image(figure, 0, 4, 4))) <= {127, 128}


def test_the_highest_picture_can_be_drawn(monkeypatch):
    made = style.picture_axes

    def one_for_all(figure, *place):
        # A thousand axes take long to make, and only the size of the figure is looked at.
        return figure.axes[0] if figure.axes else made(figure, *place)

    monkeypatch.setattr(style, "picture_axes", one_for_all)
    figure = views.show_batch(np.zeros((1000, 40, 4, 3), np.uint8), n=1000)
    assert 2**14 < max(figure.get_size_inches()) * 100 < 2**16
    with pytest.raises(errors.InvalidArgument, match="n=1001: expected 1 to 1000"):
        views.show_batch(np.zeros((2, 40, 4, 3), np.uint8), n=1001)


def test_the_name_of_a_class_beside_its_number_is_part_of_the_title():
    tiles = pictures.tiles(2)
    batch = {"image": tiles, "image/class/label": np.array([7, 2]), "image/class/text": strings([b"hat", b"<b>cord"])}
    words = pictures.words(views.show_batch(batch))
    assert {"7 hat", "2 <b>cord"} <= set(words)
    assert not any("class/text" in part for part in words)
    # Names that are given, and labels that are named, come first.
    assert "7 badge" in pictures.words(views.show_batch(batch, class_names={7: "badge", 2: "sky"}))
    assert "hat" in pictures.words(views.show_batch(batch, labels="image/class/text"))


def test_titles_leave_room_for_the_number_of_the_record():
    labels = strings([b"a very long label that goes on and on %d" % number for number in range(6)])
    figure = views.show_batch({"image": pictures.tiles(6), "label": labels})
    figure.canvas.draw()
    boxes = [(text, text.get_window_extent()) for text in figure.texts]
    for text, box in boxes:
        for other, there in boxes:
            assert text is other or not box.overlaps(there), (text.get_text(), other.get_text())


def test_whole_numbers_are_written_in_full():
    deep = pictures.tiles(2)[..., 0].astype(np.uint16) * 257
    assert "Values 0 to 65535, mean" in pictures.words(views.show_batch(deep))[1]
