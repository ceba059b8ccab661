"""Image files are stored as they lie on disk or as pixels, each under its class, each in one part."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tfqueue import records
from tfqueue.errors import InvalidArgument, InvalidImage, RecordError, TFQueueWarning
from tfqueue.records import imagefile
from tfqueue.records.imagelist import ImageItem
from tfqueue.records.split import divide


def make_image(path: Path, height: int = 6, width: int = 8, channels: int = 3, orientation: int = 0) -> bytes:
    """Writes a smooth image, so that JPEG keeps it, of which each turn differs."""
    rows, columns = np.mgrid[0:height, 0:width]
    pixels = np.stack([rows * 4, columns * 4, (rows + columns) * 2, rows * 0 + 255], -1).astype(np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), pixels[:, :, 0] if channels == 1 else pixels[:, :, :channels])
    data = path.read_bytes()
    if orientation:
        tiff = b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 0x0112, 3, 1, orientation, 0, 0)
        exif = b"Exif\0\0" + tiff
        data = data[:2] + b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif + data[2:]
        path.write_bytes(data)
    return data


def manifest(folder: Path, name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / f"{name}.manifest.json").read_text())
    return content


def names(paths: Any) -> list[str]:
    return [features["filename"][0].decode() for features in records.read(paths)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("cat", "dog", "owl"):
        for number in range(10):
            make_image(tmp_path / "in" / name / f"{number}.jpg")
    return tmp_path / "in"


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
    assert manifest(tmp_path, "out")["classes"] == ["cat", "dog é"]
    assert records.verify(paths).ok


def test_pairs(tmp_path: Path) -> None:
    data = make_image(tmp_path / "a.jpg")
    pairs = [(tmp_path / "a.jpg", np.int64(3)), (str(tmp_path / "a.jpg"), 1)]
    rows = list(records.read(records.write_images(tmp_path / "out", iter(pairs), shards=2)))
    assert [(row["image"][0], int(row["label"][0])) for row in rows] == [(data, 3), (data, 1)]
    assert manifest(tmp_path, "out")["classes"] is None


def by_pattern(folder: Path) -> Any:
    return folder / "*" / "*.jpg"


def by_pairs_of_names(folder: Path) -> Any:
    return [(path, path.parent.name) for path in sorted(folder.rglob("*.jpg"))]


def by_csv(folder: Path) -> Any:
    rows = [f"{path.parent.name},{path.relative_to(folder)}" for path in sorted(folder.rglob("*.jpg"))]
    (folder / "list.csv").write_text("\n".join(["Class,Path", *rows, ""]), "utf-8-sig")
    return folder / "list.csv"


def by_csv_without_header(folder: Path) -> Any:
    rows = [f"{path.relative_to(folder)},{path.parent.name}" for path in sorted(folder.rglob("*.jpg"))]
    (folder / "list.csv").write_text("\n".join(rows))
    return folder / "list.csv"


def by_csv_of_numbers(folder: Path) -> Any:
    numbers = {"cat": 0, "dog": 1, "owl": 2}
    rows = [f"{path.relative_to(folder)},{numbers[path.parent.name]}" for path in sorted(folder.rglob("*.jpg"))]
    (folder / "list.csv").write_text("\n".join(rows))
    return folder / "list.csv"


@pytest.mark.parametrize("source", [by_pattern, by_pairs_of_names, by_csv, by_csv_without_header, by_csv_of_numbers])
def test_every_source_gives_the_same_records(tmp_path: Path, folder: Path, source: Callable[[Path], Any]) -> None:
    def content(what: Any, out: str) -> list[tuple[bytes, int]]:
        paths = records.write_images(tmp_path / out, what)
        return [(row["image"][0], int(row["label"][0])) for row in records.read(paths)]

    assert content(source(folder), "b") == content(folder, "a")
    if source is not by_csv_of_numbers:
        assert manifest(tmp_path, "b")["classes"] == ["cat", "dog", "owl"]


def test_a_label_from_the_name(tmp_path: Path) -> None:
    for name in ("cat.0.jpg", "dog.0.jpg", "cat.1.jpg"):
        make_image(tmp_path / "all" / name)
    label = lambda path: os.path.basename(path).split(".")[0]  # noqa: E731
    for number, source in enumerate([tmp_path / "all", tmp_path / "all" / "*.jpg"]):
        paths = records.write_images(tmp_path / f"out{number}", source, label=label)
        assert [int(row["label"][0]) for row in records.read(paths)] == [0, 0, 1]
        assert manifest(tmp_path, f"out{number}")["classes"] == ["cat", "dog"]


def test_unreadable_images_are_listed(tmp_path: Path) -> None:
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
            records.write_images(tmp_path / "out", tmp_path, unreadable="raise")
        assert not (tmp_path / "out").exists()
        with pytest.warns(TFQueueWarning, match=rf"1 of 2 images cannot be read and are left out: .*{words}"):
            paths = records.write_images(tmp_path / "out", tmp_path, overwrite=True, shards=1)
        assert names(paths) == ["cat/1.jpg"]
        (listed,) = manifest(tmp_path, "out")["unreadable"]
        assert listed["file"] == str(tmp_path / "cat/2.jpg")
        assert words in listed["reason"]
    with pytest.raises(InvalidImage, match=r"cat/2.jpg'"):  # nothing else is left
        records.write_images(tmp_path / "out2", [(tmp_path / "cat/2.jpg", 0)])
    with pytest.raises(InvalidImage, match=r"missing.jpg' cannot be read: No such file"):
        records.write_images(tmp_path / "out2", [(tmp_path / "missing.jpg", 0)])


def test_an_image_that_changes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_image(tmp_path / "a.jpg")
    monkeypatch.setattr("tfqueue.records.images._read", _changing(tmp_path))
    with pytest.raises(RecordError, match=r"a.jpg' has changed since it was checked"):
        records.write_images(tmp_path / "out", [(tmp_path / "a.jpg", 0)])
    assert not (tmp_path / "out").exists()


def _changing(folder: Path) -> Callable[[str], bytes]:
    contents = [make_image(folder / "b.jpg"), make_image(folder / "c.jpg", 20, 20)]
    return lambda path: contents.pop(0)


def test_splits(tmp_path: Path, folder: Path) -> None:
    split = {"train": 0.7, "val": 0.2, "test": 0.1}
    parts = records.write_images(tmp_path / "data.tfrecord", folder, split=split, seed=3, shards=2)
    assert [os.path.basename(path) for path in parts["val"]] == [
        "data-val-00000-of-00002.tfrecord",
        "data-val-00001-of-00002.tfrecord",
    ]
    found = {part: names(paths) for part, paths in parts.items()}
    assert {part: len(files) for part, files in found.items()} == {"train": 21, "val": 6, "test": 3}
    everything = [name for files in found.values() for name in files]
    assert len(set(everything)) == len(everything) == 30
    assert manifest(tmp_path, "data-val")["split"] == {"fractions": split, "seed": 3, "stratified": False}

    again = records.write_images(tmp_path / "again", folder, split=(0.7, 0.2, 0.1), seed=3)
    assert {part: names(paths) for part, paths in again.items()} == found
    other = records.write_images(tmp_path / "other", folder, split=(0.7, 0.2, 0.1), seed=4)
    assert {part: names(paths) for part, paths in other.items()} != found


def test_stratified_splits(tmp_path: Path, folder: Path) -> None:
    parts = records.write_images(tmp_path / "data", folder, split=(0.7, 0.2, 0.1), stratified=True)
    for part, count in {"train": 7, "val": 2, "test": 1}.items():
        labels = [int(row["label"][0]) for row in records.read(parts[part])]
        assert sorted(labels) == [0] * count + [1] * count + [2] * count
        assert part == "test" or labels != sorted(labels)  # mixed, not class after class


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.integers(0, 3), min_size=12, max_size=80),
    st.lists(st.integers(1, 5), min_size=2, max_size=3),
    st.integers(0, 5),
    st.booleans(),
)
def test_each_file_is_in_one_part(labels: list[int], weights: list[int], seed: int, stratified: bool) -> None:
    items = [ImageItem(f"/no/{number}", label, str(number)) for number, label in enumerate(labels)]
    fractions = {str(part): weight / sum(weights) for part, weight in enumerate(weights)}
    try:
        parts = divide(items, fractions, seed=seed, stratified=stratified)
    except InvalidArgument:
        assert min(fractions.values()) * len(items) < 4  # a part that would be empty
        return
    assert sorted(item.path for part in parts.values() for item in part) == sorted(item.path for item in items)
    groups = {label: labels.count(label) for label in set(labels)} if stratified else {None: len(items)}
    for label, size in groups.items():
        for name, part in parts.items():
            count = sum(label is None or item.label == label for item in part)
            assert abs(count - fractions[name] * size) <= 1
    # The order of the list does not matter, only the names and the seed.
    assert divide(items[::-1], fractions, seed=seed, stratified=stratified) == parts


def test_bad_splits(tmp_path: Path, folder: Path) -> None:
    def write(split: Any, source: Any = folder, **options: Any) -> None:
        records.write_images(tmp_path / "out", source, split=split, **options)

    with pytest.raises(InvalidArgument, match=r"add up to 0.9; expected 1"):
        write((0.7, 0.2))
    with pytest.raises(InvalidArgument, match="the fraction of 'val' is 0"):
        write({"train": 1.0 - 0.5, "val": 0})
    with pytest.raises(InvalidArgument, match="expected a dict of part -> fraction"):
        write("train")
    with pytest.raises(InvalidArgument, match="the name of a part is 'a/b'"):
        write({"a/b": 0.5, "c": 0.5})
    with pytest.raises(InvalidArgument, match=r"the part 'test' \(0.001 of 30 images\) would be empty"):
        write((0.9, 0.099, 0.001))
    with pytest.raises(InvalidArgument, match=r"0.jpg' is listed twice"):
        write((0.5, 0.5), [(folder / "cat/0.jpg", 0)] * 2)
    with pytest.raises(InvalidArgument, match="stratified is given without split"):
        write(None, stratified=True)


def test_shuffling_depends_on_names_and_seed_only(tmp_path: Path, folder: Path) -> None:
    first = names(records.write_images(tmp_path / "a", folder, shuffle=True))
    assert first != sorted(first)
    assert sorted(first) == names(records.write_images(tmp_path / "b", folder))
    assert names(records.write_images(tmp_path / "c", folder, shuffle=True, seed=1)) != first


@pytest.mark.parametrize("colour", ["RGB", "BGR", "GRAY"])
@pytest.mark.parametrize("kernel", ["nearest", "linear", "cubic", "area", "lanczos4"])
def test_pixels(tmp_path: Path, colour: Any, kernel: str) -> None:
    make_image(tmp_path / "a.png", 30, 40)
    paths = records.write_images(
        tmp_path / "out", [(tmp_path / "a.png", 7)], size=(12, 10), colour=colour, kernel=kernel
    )
    (row,) = records.read(paths)
    bgr = cv2.imread(str(tmp_path / "a.png"))
    grey = cv2.imread(str(tmp_path / "a.png"), cv2.IMREAD_GRAYSCALE)
    source = {"BGR": bgr, "RGB": bgr[:, :, ::-1], "GRAY": grey}[colour]
    flag = getattr(cv2, f"INTER_{kernel.upper()}")
    expected = cv2.resize(np.ascontiguousarray(source), (10, 12), interpolation=flag).reshape(12, 10, -1)
    assert np.array_equal(row["image"], expected)
    assert (row["image"].dtype, row["colour"][0].decode(), row["format"][0]) == (np.uint8, colour, b"raw")
    assert [int(row[name][0]) for name in ("height", "width", "channels", "label")] == [12, 10, expected.shape[2], 7]
    assert manifest(tmp_path, "out")["images"]["kernel"] == kernel


def test_the_encoded_image_is_what_tensorflow_decodes(tmp_path: Path) -> None:
    make_image(tmp_path / "a.jpg", 30, 40)
    (row,) = records.read(records.write_images(tmp_path / "out", [(tmp_path / "a.jpg", 0)]))
    decoded = tf.io.decode_jpeg(row["image"][0], dct_method="INTEGER_ACCURATE").numpy()
    assert decoded.shape == tuple(int(row[name][0]) for name in ("height", "width", "channels"))
    assert np.array_equal(decoded, imagefile.decode_colour(row["image"][0], "RGB", name="a"))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_orientation_is_reported_and_applied_if_asked_for(tmp_path: Path, orientation: int) -> None:
    path = tmp_path / "a.jpg"
    data = make_image(path, 32, 48, orientation=orientation)
    upright = cv2.imread(str(path), cv2.IMREAD_COLOR)  # OpenCV turns it by itself here

    (row,) = records.read(records.write_images(tmp_path / "as_stored", [(path, 0)]))
    assert (row["image"][0], int(row["orientation"][0])) == (data, orientation)
    assert (int(row["height"][0]), int(row["width"][0])) == (32, 48)
    assert manifest(tmp_path, "as_stored")["images"]["turned_in_source"] == (orientation != 1)

    paths = records.write_images(tmp_path / "turned", [(path, 0)], apply_orientation=True)
    (row,) = records.read(paths)
    again = imagefile.decode(row["image"][0], name="again")
    assert again.shape == upright.shape == (int(row["height"][0]), int(row["width"][0]), 3)
    assert np.abs(again.astype(int) - upright).mean() < 2  # encoded once more
    assert int(row["orientation"][0]) == 1

    size = upright.shape[:2]
    paths = records.write_images(tmp_path / "pixels", [(path, 0)], apply_orientation=True, size=size, colour="BGR")
    (row,) = records.read(paths)
    assert np.array_equal(row["image"], upright)


def test_workers_give_the_same_files(tmp_path: Path, folder: Path) -> None:
    one = records.write_images(tmp_path / "one", folder, shards=5, size=(4, 4))
    three = records.write_images(tmp_path / "three", folder, shards=5, size=(4, 4), workers=3)
    assert [Path(path).read_bytes() for path in one] == [Path(path).read_bytes() for path in three]


def test_bad_sources(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(RecordError, match=r"missing' does not exist; expected a folder"):
        records.write_images(out, tmp_path / "missing")
    with pytest.raises(InvalidArgument, match="has no sub-folder"):
        records.write_images(out, tmp_path)
    (tmp_path / "cat").mkdir()
    with pytest.raises(InvalidArgument, match=r"no sub-folder of .* holds an image file"):
        records.write_images(out, tmp_path)
    with pytest.raises(InvalidArgument, match="the list of images is empty"):
        records.write_images(out, [])
    with pytest.raises(RecordError, match=r"no file matches"):
        records.write_images(out, tmp_path / "*.jpg")
    with pytest.raises(InvalidArgument, match=r"the label of 'a.jpg' \(item 0\) is 1.5; expected an int"):
        records.write_images(out, [("a.jpg", 1.5)])  # type: ignore[list-item]
    with pytest.raises(InvalidArgument, match=r"some labels are numbers \(3\) and some are names \('cat'\)"):
        records.write_images(out, [("a.jpg", 3), ("b.jpg", "cat")])
    with pytest.raises(InvalidArgument, match=r"item 0 of the images is 'a.jpg'; expected \(path, label\)"):
        records.write_images(out, ["a.jpg"])  # type: ignore[list-item]
    with pytest.raises(InvalidArgument, match="source is int"):
        records.write_images(out, 3)  # type: ignore[call-overload]
    (tmp_path / "a.csv").write_text("only one column\n")
    with pytest.raises(InvalidArgument, match=r"line 1 of .*a.csv' is \['only one column'\]; expected a path"):
        records.write_images(out, tmp_path / "a.csv")
    os.unlink(tmp_path / "a.csv")
    with pytest.raises(InvalidArgument, match="kernel is 'best'; expected one of nearest"):
        records.write_images(out, [], kernel="best")
    with pytest.raises(InvalidArgument, match=r"size is 3; expected \(height, width\)"):
        records.write_images(out, [], size=3)
    with pytest.raises(InvalidArgument, match="colour is 'HSV'"):
        records.write_images(out, [], colour="HSV")
    for option in ({"colour": "BGR"}, {"kernel": "cubic"}):
        with pytest.raises(InvalidArgument, match="kernel and colour say how pixels are stored; pass size"):
            records.write_images(out, [], **option)
    with pytest.raises(InvalidArgument, match="unreadable is 'ignore'"):
        records.write_images(out, [], unreadable="ignore")
    assert os.listdir(tmp_path) == ["cat"]
