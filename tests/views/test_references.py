"""Every kind of picture is still the picture that was looked at."""

from __future__ import annotations

import numpy as np
import pytest

from tests.views import gallery, pictures
from tfqueue import views


@pytest.mark.parametrize("name", gallery.FIGURES)
def test_is_the_picture_that_was_kept(name):
    assert pictures.compare(gallery.FIGURES[name](), name) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda batch: batch.update(image=batch["image"][..., ::-1]), "pixels"),
        (lambda batch: batch.update(image=np.roll(batch["image"], 1, axis=0)), "pixels"),
        (lambda batch: batch.update(label=np.roll(batch["label"], 1)), "words: '4 sky' instead of '0 flag'"),
        (lambda batch: batch["weight"].__setitem__(3, 0.9), "words: 'weight 0.9' instead of 'weight 0.2727'"),
        (lambda batch: batch.update(image=batch["image"][:9]), "size"),
    ],
    ids=["channels swapped", "records shifted", "labels shifted", "another value", "records missing"],
)
def test_the_comparison_can_fail(monkeypatch, change, problem):
    drawn = []

    def changed(batch, **options):
        change(batch)
        count = len(batch["image"])
        drawn.append(show({key: values[:count] for key, values in batch.items()}, **options))
        return drawn[0]

    show = views.show_batch
    monkeypatch.setattr(views, "show_batch", changed, raising=False)
    problems = pictures.compare(gallery.colour_batch(), "colour_batch")
    assert any(problem in found for found in problems)


def test_a_change_too_small_for_the_eye_is_let_pass():
    """The tolerance is for other releases of FreeType, and for the loss of the JPEG that the reference is."""
    figure = gallery.transparent()
    figure.axes[0].images[0].set_alpha(0.98)
    assert pictures.compare(figure, "transparent") == []
