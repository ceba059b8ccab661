"""Whatever is given, there is a picture or a clear error: never another exception, never a warning."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.views import gallery, pictures
from tfqueue import errors, views

DTYPES = [np.bool_, np.uint8, np.int8, np.uint16, np.int32, np.int64, np.float16, np.float32, np.float64, np.complex64]
JPEG = gallery.jpeg(pictures.tiles(1)[0])


@st.composite
def features(draw, count):
    """One feature of ``count`` records."""
    kind = draw(st.sampled_from(["array", "array", "array", "bytes", "encoded", "text", "scalar"]))
    if kind == "array":
        row = draw(st.lists(st.sampled_from([0, 1, 2, 3, 4, 5, 16, 33]), max_size=3))
        dtype = draw(st.sampled_from(DTYPES))
        scale = draw(st.sampled_from([0.0, 1.0, 3.0, 255.0, 65535.0, 1e30, 1e307]))
        rng = np.random.default_rng(draw(st.integers(0, 9)))
        values = rng.normal(size=(count, *row)) * scale
        with np.errstate(all="ignore"):
            array = values.astype(dtype) if np.dtype(dtype).kind in "fc" else values.clip(0, 127).astype(dtype)
        if array.dtype.kind == "f" and array.size and draw(st.booleans()):
            array.reshape(-1)[:: draw(st.integers(1, 5))] = draw(st.sampled_from([np.nan, np.inf, -np.inf]))
        return array
    if kind == "scalar":
        return draw(st.sampled_from([3, 2.5, b"one", "text", True]))
    items = {
        "bytes": st.binary(max_size=800),
        "encoded": st.sampled_from([JPEG, JPEG[:100], b"\x89PNG\r\n\x1a\n" + bytes(40), b""]),
        "text": st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass")),
    }[kind]
    return gallery.strings([draw(items) for _ in range(count)])


names = st.sampled_from(
    ["image", "x", "label", "y", "height", "width", "shape", "mask", "boxes", "bbox", "audio", "a b/c"]
)


@st.composite
def batches(draw):
    count = draw(st.sampled_from([0, 1, 2, 3, 7]))
    form = draw(st.sampled_from(["dict", "tuple", "nested"]))
    if form == "dict":
        return draw(st.dictionaries(names, features(count), max_size=5))
    if form == "tuple":
        return tuple(draw(st.lists(features(count), max_size=4)))
    return {"features": draw(st.dictionaries(names, features(count), max_size=3)), "label": draw(features(count))}


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(batches(), st.booleans())
def test_a_batch_is_drawn_or_refused(batch, histograms):
    try:
        figure = views.show_batch(batch, histograms=histograms)
    except errors.InvalidArgument:
        return
    assert pictures.rendered(figure).any()
    assert pictures.words(figure)[0]


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(batches(), batches())
def test_a_pair_is_drawn_or_refused(reference, candidate):
    try:
        figure = views.show_pair(reference, candidate)
    except errors.InvalidArgument:
        return
    assert pictures.rendered(figure).any()


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(hnp.arrays(np.int64, st.integers(2, 60), elements=st.integers(-3, 20)))
def test_any_order_is_plotted(order):
    figure = views.plot_mixing(order)
    assert pictures.rendered(figure).any()
