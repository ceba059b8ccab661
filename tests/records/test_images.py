"""Image files are stored as they lie on disk, each under its class."""

from __future__ import annotations

import os
from pathlib import Path

import cv2
import numpy as np
import pytest

from tfqueue import records
from tfqueue.errors import InvalidArgument, InvalidImage, RecordError


def make_image(path: Path, height: int = 6, width: int = 8, channels: int = 3) -> bytes:
    shape = (height, width) if channels == 1 else (height, width, channels)
    pixels = np.random.default_rng(height * width).integers(0, 256, shape, dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), pixels)
    return path.read_bytes()


def test_a_folder_per_class(tmp_path: Path) -> None:
    expected = [
        ("cat/1.jpg", make_image(tmp_path / "in/cat/1.jpg", 6, 8), "jpeg", 6, 8, 3, 0),
        ("cat/2.PNG", make_image(tmp_path / "in/cat/2.PNG", 5, 4, 4), "png", 5, 4, 4, 0),
        ("dog é/1.jpeg", make_image(tmp_path / "in/dog é/1.jpeg", 3, 9, 1), "jpeg", 3, 9, 1, 1),
        ("dog é/2.bmp", make_image(tmp_path / "in/dog é/2.bmp", 2, 2), "bmp", 2, 2, 3, 1),
    ]
    (tmp_path / "in/dog é/notes.txt").write_text("not an image, and not meant as one")
    paths = records.write_images(tmp_path / "out.tfrecord", tmp_path / "in")
    found = [
        (
            features["filename"][0].decode(),
            features["image"][0],
            features["format"][0].decode(),
            *(int(features[name][0]) for name in ("height", "width", "channels", "label")),
        )
        for features in records.read(paths)
    ]
    assert found == expected


def test_pairs(tmp_path: Path) -> None:
    data = make_image(tmp_path / "a.jpg")
    pairs = [(tmp_path / "a.jpg", np.int64(3)), (str(tmp_path / "a.jpg"), 1)]
    rows = list(records.read(records.write_images(tmp_path / "out", iter(pairs), shards=2)))
    assert [(row["image"][0], int(row["label"][0])) for row in rows] == [(data, 3), (data, 1)]


def test_a_file_that_is_no_image_is_named(tmp_path: Path) -> None:
    data = make_image(tmp_path / "cat/1.jpg")
    cases = {
        b"hello, this is text": "it is a text file",
        b"": "is empty",
        data[: len(data) // 2]: "jpeg image that is cut or damaged",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:1": "never downloaded",
    }
    for content, words in cases.items():
        (tmp_path / "cat/2.jpg").write_bytes(content)
        with pytest.raises(InvalidImage, match=rf"cat/2.jpg' .*{words}"):
            records.write_images(tmp_path / "out", tmp_path, overwrite=True)
        assert not (tmp_path / "out").exists()


def test_bad_sources(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(RecordError, match=r"missing' cannot be read: No such file"):
        records.write_images(out, tmp_path / "missing")
    with pytest.raises(InvalidArgument, match="has no sub-folder"):
        records.write_images(out, tmp_path)
    (tmp_path / "cat").mkdir()
    with pytest.raises(InvalidArgument, match=r"no sub-folder of .* holds an image file"):
        records.write_images(out, tmp_path)
    with pytest.raises(InvalidArgument, match="the list of images is empty"):
        records.write_images(out, [])
    with pytest.raises(RecordError, match=r"missing.jpg' cannot be read"):
        records.write_images(out, [(tmp_path / "missing.jpg", 0)])
    with pytest.raises(InvalidArgument, match=r"the label of 'a.jpg' \(item 0\) is 'cat'; expected an int"):
        records.write_images(out, [("a.jpg", "cat")])  # type: ignore[list-item]
    with pytest.raises(InvalidArgument, match=r"item 0 of the images is 'a.jpg'; expected \(path, label\)"):
        records.write_images(out, ["a.jpg"])  # type: ignore[list-item]
    with pytest.raises(InvalidArgument, match="source is int"):
        records.write_images(out, 3)  # type: ignore[arg-type]
    assert os.listdir(tmp_path) == ["cat"]
