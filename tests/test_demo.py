"""The demo: real tiles under their true labels, twice over, and a verdict that can be "different"."""

from __future__ import annotations

import json
import re

import cv2
import matplotlib
import numpy as np
import pytest

import tfqueue
from tfqueue import demo, records
from tfqueue.errors import InvalidArgument


def photograph() -> np.ndarray:
    return cv2.imread(matplotlib.get_data_path() + "/sample_data/grace_hopper.jpg", cv2.IMREAD_COLOR)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    for _ in range(2):  # run twice, it works twice
        said: list[str] = []
        assert demo.run_demo(folder, said.append).equivalent
    assert said[-1] == "verdict: equivalent"
    return folder


def test_every_record_is_the_part_of_the_photograph_that_its_label_says(folder) -> None:
    pixels = photograph()
    seen = set()
    for features in records.read(str(folder / "tiles-*.tfrecord")):
        row, column = int(features["label"].item()), int(features["filename"].item().decode()[-6:-4])
        tile = cv2.imdecode(np.frombuffer(features["image"].item(), np.uint8), cv2.IMREAD_COLOR)
        original = pixels[row * 32 : (row + 1) * 32, column * 32 : (column + 1) * 32]
        assert np.abs(tile.astype(int) - original).mean() < 8  # JPEG changes a little, another tile a lot
        seen.add((row, column))
    assert seen == {(row, column) for row in range(18) for column in range(16)}


def test_pictures_and_report_are_there(folder) -> None:
    for name in ("batch.png", "pair.png"):
        assert cv2.imread(str(folder / name)).shape[1] > 500
    assert json.loads((folder / "report.json").read_text())["verdict"] == "equivalent"
    assert "equivalent: 288 records in 18 batches" in (folder / "report.txt").read_text()
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Equivalent</h1>" in page
    assert "The pipeline of the reference</h2>" in page


def test_explain_names_the_lines_of_the_demo(folder, paths) -> None:
    assert "demo.py:" in str(tfqueue.explain(demo.legacy(paths, shuffle=True)))


@pytest.fixture(scope="module")
def paths(folder):
    return [str(path) for path in sorted(folder.glob("tiles-*.tfrecord"))]


def changed(paths, change):
    """The demo's twin, not shuffled, with one change to the dataset of batches."""
    return lambda: change(demo.modern(paths, shuffle=False)())


def at_batch(number, change):
    """Change the numpy arrays of one batch."""

    def generate(dataset):
        for index, batch in enumerate(dataset.as_numpy_iterator()):
            batch = {name: value.copy() for name, value in batch.items()}
            if index == number:
                change(batch)
            yield batch

    return generate


def one_pixel(batch) -> None:
    batch["image"][5, 10, 20, 1] += 0.25


def one_label(batch) -> None:
    batch["label"][5] += 1


@pytest.mark.parametrize(
    ("change", "feature", "words"),
    [
        (at_batch(3, one_pixel), "image", r"record 53 \(batch 3, row 5\).*image\[10, 20, 1\]"),
        (at_batch(3, one_label), "label", r"record 53 \(batch 3, row 5\).*label"),
    ],
    ids=["one pixel", "one label"],
)
def test_one_changed_value_is_named(paths, change, feature, words) -> None:
    report = tfqueue.compare(demo.legacy(paths, shuffle=False), changed(paths, change))
    assert not report.equivalent
    text = " ".join(str(report).split())
    assert re.search(words, text), text
    assert any(difference.feature == feature for difference in report.differences)


def test_one_lost_record_is_named(paths) -> None:
    candidate = changed(
        paths,
        lambda dataset: (
            dataset.unbatch().enumerate().filter(lambda n, _: n != 100).map(lambda _, record: record).batch(16)
        ),
    )
    report = tfqueue.compare(demo.legacy(paths, shuffle=False), candidate)
    assert not report.equivalent
    assert "record 100" in str(report)


def test_another_batch_size_is_named(paths) -> None:
    candidate = changed(paths, lambda dataset: dataset.unbatch().batch(8, drop_remainder=True))
    report = tfqueue.compare(demo.legacy(paths, shuffle=False), candidate)
    assert not report.equivalent
    assert "batches: different" in str(report)


def test_a_folder_that_cannot_be_written_is_named(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "no" / "such", "/proc/tfqueue"):
        with pytest.raises(InvalidArgument, match=str(out)):
            demo.run_demo(out)
