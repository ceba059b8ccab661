"""show_pair names what was done to a batch, and names nothing that was not done."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from tests.views import pictures
from tfqueue import views
from tfqueue.views import recognise, style


def alarms(figure):
    """The words in red, joined where a line was broken."""
    return " ".join(text.get_text() for text in figure.texts if text.get_color() == style.ALARM)


def blurred(image):
    side = image.shape[0]
    return cv2.resize(cv2.resize(image, (side * 3 // 4, side * 3 // 4)), (side, side))


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda image: image[..., ::-1], "channels-swapped"),
        (lambda image: image[:, ::-1], "flipped"),
        (lambda image: image.transpose(1, 0, 2), "transposed"),
        (lambda image: image.astype(np.float32) / 255, "scale-255"),
        (lambda image: image.astype(np.float32) / 127.5 - 1, "scale-127"),
        (lambda image: image // 2 + 10, "scaled"),
        (blurred, "resize"),
    ],
    ids=["channels", "flip", "transpose", "scale 255", "scale 127", "contrast", "resize"],
)
@pytest.mark.parametrize("side", [32, 120])
def test_what_was_done_to_every_image_is_written_over_them(change, name, side):
    reference = {"image": pictures.tiles(6, side), "label": np.arange(6)}
    candidate = {"image": np.stack([change(image) for image in reference["image"]]), "label": np.arange(6)}
    found = alarms(views.show_pair(reference, candidate))
    assert "Likely cause in image: " in found
    assert f": {name}" in found


def test_what_was_done_to_single_images_is_written_under_those():
    reference = pictures.tiles(8)
    candidate = reference.copy()
    candidate[2] = candidate[2][..., ::-1]
    candidate[5] = candidate[5][:, ::-1]
    figure = views.show_pair(reference, candidate, n=3)
    under = {text.get_text().split(":")[0]: text.get_position() for text in figure.texts if "Likely" in text.get_text()}
    assert set(under) == {"Likely channels-swapped", "Likely flipped"}
    for name, number in (("Likely channels-swapped", 2), ("Likely flipped", 5)):
        picture = next(axes for axes in figure.axes if axes.get_label() == f"reference #{number}").get_position()
        assert under[name][0] == pytest.approx(picture.x0)
        assert picture.y0 - 0.02 < under[name][1] < picture.y0


def test_a_stain_is_no_resizing():
    reference = pictures.tiles(8)
    candidate = reference.copy()
    candidate[4, 3:6, 5:20] //= 2
    assert alarms(views.show_pair(reference, candidate)) == ""


def test_what_only_some_of_the_differing_images_show_is_not_said_of_all():
    reference = pictures.tiles(2)
    candidate = reference.copy()
    candidate[0, 4:8, 4:8, 1] ^= 64
    candidate[1] = candidate[1][..., ::-1]
    figure = views.show_pair(reference, candidate)
    assert pictures.words(figure)[0] == "Both images differ"
    assert alarms(figure) == "Likely channels-swapped: colour channels are exchanged (RGB against BGR)."


def test_shifted_labels_of_equal_images():
    reference = {"image": pictures.tiles(8), "label": np.arange(8)}
    found = alarms(views.show_pair(reference, {**reference, "label": np.roll(reference["label"], 1)}))
    assert "label-shifted" in found


def test_labels_counted_from_one():
    reference = {"image": pictures.tiles(8), "label": np.array([3, 1, 4, 1, 5, 2, 6, 0])}
    found = alarms(views.show_pair(reference, {**reference, "label": reference["label"] + 1}))
    assert "Likely cause in label: label-off-by-one" in found


def test_images_of_changing_shape_are_explained_one_by_one():
    images = [pictures.tiles(1)[0], pictures.tiles(2)[1][:20]]
    reference, candidate = np.empty(2, object), np.empty(2, object)
    reference[:] = images
    candidate[:] = [image[..., ::-1] for image in images]
    assert alarms(views.show_pair({"image": reference}, {"image": candidate})).count("Likely channels-swapped") == 2


def test_equal_batches_are_not_compared_again(monkeypatch):
    def never(*sides, **options):
        raise AssertionError("compared")

    monkeypatch.setattr(recognise, "compare", never)
    batch = {"image": pictures.tiles(3), "label": np.arange(3)}
    assert alarms(views.show_pair(batch, batch)) == ""


def test_little_of_large_images_is_compared(monkeypatch):
    sizes = []

    def counting(reference, candidate, **options):
        sizes.append(sum(part.size for part in reference[0].values()))
        return compare(reference, candidate, **options)

    compare = recognise.compare
    monkeypatch.setattr(recognise, "compare", counting)
    large = np.tile(pictures.photograph(), (1, 5, 6, 1))
    large = large.reshape(1, *large.shape[-3:])
    assert "channels-swapped" in alarms(views.show_pair(large, large[..., ::-1]))
    assert max(sizes) < 100_000


def test_what_cannot_be_compared_is_drawn_all_the_same(monkeypatch):
    def failing(*sides, **options):
        raise recognise.TFQueueError("no stream")

    monkeypatch.setattr(recognise, "compare", failing)
    reference = pictures.tiles(3)
    figure = views.show_pair(reference, reference[..., ::-1])
    assert pictures.words(figure)[0] == "All 3 images differ"
    assert alarms(figure) == ""


def test_values_of_many_magnitudes_are_compared_without_a_warning():
    nothing = np.empty(1, object)
    nothing[0] = b""
    reference = {"image": np.array([False]), "x": np.array([[[np.inf, -0.1321, 0.6406]]], np.float16)}
    views.show_pair(reference, {"image": nothing, "x": np.array([[[True, False, True]]])})
