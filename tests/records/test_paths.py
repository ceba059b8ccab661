"""One path, a pattern, or a list; and the names of shards, manifests and indexes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfqueue.errors import InvalidArgument, RecordError
from tfqueue.records import paths


@pytest.mark.parametrize(
    ("name", "stem", "suffix"),
    [
        ("a/train.tfrecord", "a/train", ".tfrecord"),
        ("train.TFRecords", "train", ".TFRecords"),
        ("train.tfrecord.gz", "train", ".tfrecord.gz"),
        ("train.v2.tfrec", "train.v2", ".tfrec"),
        ("train", "train", ""),
        ("a.b/train", "a.b/train", ""),
        ("train.data", "train", ".data"),
        (".tfrecord", ".tfrecord", ""),
        ("a/.gz", "a/.gz", ""),
    ],
)
def test_suffixes(name: str, stem: str, suffix: str) -> None:
    assert paths.split_suffix(name) == (stem, suffix)
    shard = paths.shard_name(name, 3, 12)
    assert shard == f"{stem}-00003-of-00012{suffix}"
    assert paths.set_name(shard) == name
    assert paths.set_name(name) == name
    assert paths.manifest_name(name) == f"{stem}.manifest.json"


@given(
    st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1),
    st.integers(0, 10**6),
    st.integers(1, 10**6),
)
def test_the_name_of_a_set_comes_back(name: str, shard: int, shards: int) -> None:
    assert paths.set_name(paths.shard_name(name, shard, shards)) == name


def test_existing_shards_are_those_of_this_name_only(tmp_path: Path) -> None:
    names = ["t-00000-of-00002", "t-00001-of-00002", "t-00000-of-00001", "t-x-00000-of-00001", "t-00000-of-00001.bak"]
    for name in names:
        (tmp_path / name).touch()
    found = [os.path.basename(name) for name in paths.existing_shards(str(tmp_path / "t"))]
    assert sorted(found) == ["t-00000-of-00001", "t-00000-of-00002", "t-00001-of-00002"]


def test_patterns_never_match_what_is_no_data(tmp_path: Path) -> None:
    for name in ("b", "a", ".hidden", "c.manifest.json", ".a.tfqindex"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    assert paths.expand(tmp_path / "*") == [str(tmp_path / "a"), str(tmp_path / "b")]
    assert paths.expand(str(tmp_path / "**")) == paths.expand(tmp_path / "*")
    # What is named is taken, whatever it is.
    assert paths.expand(tmp_path / "c.manifest.json") == [str(tmp_path / "c.manifest.json")]
    assert paths.expand(iter([tmp_path / "b", tmp_path / "[a]"])) == [str(tmp_path / "b"), str(tmp_path / "a")]


def test_what_is_no_path() -> None:
    for bad, words in (
        (3, "paths is 3"),
        (None, "paths is None"),
        ([3], "not int"),
        ("", "empty string"),
        ("a\0", "NUL"),
    ):
        with pytest.raises(InvalidArgument, match=words):
            paths.expand(bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"not bytes|not int"):
        paths.expand(b"a")  # type: ignore[arg-type]


def test_the_nearest_folder_is_named_with_what_is_in_it(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"f{number}").touch()
    with pytest.raises(RecordError, match=r"has 5 entries: 'f0', 'f1', 'f2', \.\.\.\)") as caught:
        paths.expand(tmp_path / "x" / "y" / "*.tfrecord")
    assert caught.value.file == str(tmp_path / "x" / "y" / "*.tfrecord")
    (tmp_path / "empty").mkdir()
    with pytest.raises(RecordError, match="empty' has nothing"):
        paths.expand(tmp_path / "empty" / "a")


def test_the_name_of_a_set_leads_to_its_shards(tmp_path: Path) -> None:
    for shard in range(2):
        (tmp_path / f"a[1]-0000{shard}-of-00002.tfrecord").touch()
    with pytest.raises(RecordError, match=r"not exist, but 2 shards of it do, such as '.*00000-of-00002") as caught:
        paths.expand(tmp_path / "a[1].tfrecord")
    pattern = str(caught.value).split("the pattern '")[1].split("'")[0]
    assert len(paths.expand(pattern)) == 2
