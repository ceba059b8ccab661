"""Records come back as dicts of numpy; what cannot be read is named."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tfqueue import records
from tfqueue.errors import DamagedRecord, InvalidArgument, RecordError, TFQueueWarning


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with records.RecordWriter(tmp_path / "a.tfrecord") as writer:
        for number in range(5):
            writer.write({"n": number})
    return tmp_path / "a.tfrecord"


def test_what_is_no_file_is_named(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        RecordError,
        match=r"b.tfrecord' does not exist \(nearest existing folder "
        ".*'a.tfrecord'",
    ):
        records.read(tmp_path / "b.tfrecord")
    with pytest.raises(RecordError, match=r"does not exist \(nearest existing folder .* has 1 entries"):
        records.read(tmp_path / "x" / "y" / "b.tfrecord")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        RecordError,
        match=r"no file matches 'b\*' \(working folder '.*', nearest existing "
        "folder '.'",
    ):
        records.read("b*")
    with pytest.raises(InvalidArgument, match="paths is an empty list"):
        records.read([])
    with pytest.raises(RecordError, match=r"is a folder with 1 files; name the files in it"):
        records.read(tmp_path)
    with pytest.raises(InvalidArgument, match="paths is 3; expected a path"):
        records.read(3)  # type: ignore[arg-type]
    with pytest.raises(RecordError, match=r"cannot be read"):
        list(records.read([path, _dangling(tmp_path)]))


def _dangling(folder: Path) -> Path:
    (folder / "dangling").symlink_to("nowhere")
    return folder / "dangling"


def test_one_path_a_pattern_or_a_list(path: Path, tmp_path: Path) -> None:
    bracket = tmp_path / "b[1]*.tfrecord"
    os.link(path, bracket)
    assert len(list(records.read(path))) == 5
    assert len(list(records.read(str(bracket)))) == 5
    assert len(list(records.read(tmp_path / "*.tfrecord"))) == 10
    assert len(list(records.read([path, str(bracket), tmp_path / "?.tfrecord"]))) == 15


def test_missing_shards_are_warned_of(tmp_path: Path) -> None:
    paths = records.write_arrays(tmp_path / "a", {"x": np.zeros(6)}, shards=3)
    os.unlink(paths[1])
    with pytest.warns(TFQueueWarning, match=r"matches 2 of 3 shards of .*; missing: 1") as caught:
        records.read(tmp_path / "a-*")
    assert caught[0].filename == __file__
    assert len(list(records.read([paths[0], paths[2]]))) == 4


def test_damage_is_named_after_all_records_before_it(path: Path) -> None:
    data = bytearray(path.read_bytes())
    frame = len(data) // 5
    data[3 * frame + 14] ^= 1
    path.write_bytes(data)
    reader = records.read(path)
    assert [int(next(reader)["n"][0]) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(
        DamagedRecord, match=rf"a.tfrecord', record 3, byte {3 * frame}: the payload does not"
    ) as caught:
        next(reader)
    assert (caught.value.file, caught.value.record, caught.value.offset) == (str(path), 3, 3 * frame)
    assert caught.value.exit_code == 1


def test_damage_can_be_skipped_but_not_silently(path: Path) -> None:
    whole = path.read_bytes()
    frame = len(whole) // 5
    data = bytearray(whole)
    data[frame + 14] ^= 1
    data[3 * frame + 14] ^= 1
    path.write_bytes(data)
    reader = records.read(path, damaged="skip")
    assert [int(next(reader)["n"][0]) for _ in range(3)] == [0, 2, 4]
    with pytest.warns(
        TFQueueWarning, match=rf"2 damaged places \({2 * frame} bytes\) were skipped, the first at record 1"
    ):
        assert list(reader) == []
    data = bytearray(whole)
    data[2 * frame] ^= 1
    path.write_bytes(data)
    assert len(list(records.read(path, damaged="skip"))) == 5  # only the frame is damaged: nothing is lost
    with pytest.raises(InvalidArgument, match="damaged is 'ignore'"):
        records.read(path, damaged="ignore")  # type: ignore[arg-type]


def test_what_is_no_regular_file() -> None:
    with pytest.raises(RecordError, match="is no regular file"):
        list(records.read("/dev/null"))


def test_a_record_that_is_no_example_is_named(tmp_path: Path) -> None:
    with records.RecordWriter(tmp_path / "a") as writer:
        writer.write({"n": 1})
        writer.write_serialized(b"just text")
    reader = records.read(tmp_path / "a")
    next(reader)
    with pytest.raises(RecordError, match=r"record 1, byte \d+: the record is no tf.train.Example"):
        next(reader)


def test_a_file_of_another_kind_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("<html>not found</html>")
    with pytest.raises(DamagedRecord, match="no TFRecord file; it is an HTML page"):
        next(records.read(tmp_path / "a"))


COMPRESSIONS = ["", "GZIP", "ZLIB"]


@pytest.fixture(params=COMPRESSIONS)
def shards(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    x = np.arange(120.0).reshape(30, 4)
    return records.write_arrays(tmp_path / "s", {"x": x, "y": np.arange(30)}, shards=4, compression=request.param)


def test_by_number(shards: list[str]) -> None:
    with records.RecordReader(shards) as reader:
        assert len(reader) == 30
        assert [int(reader[number]["y"]) for number in range(30)] == list(range(30))
        assert [int(reader[-number]["y"]) for number in range(1, 31)] == list(range(29, -1, -1))
        assert [int(row["y"]) for row in reader[3:20:4]] == list(range(30))[3:20:4]
        assert [int(row["y"]) for row in reader[::-1]] == list(range(30))[::-1]
        assert reader[5:2] == []
        assert [int(row["y"]) for row in reader] == list(range(30))
        assert reader[np.int64(7)]["x"].tolist() == [28, 29, 30, 31]
        for number in (30, -31, 2**40):
            with pytest.raises(IndexError, match="of 30 records"):
                reader[number]
        assert reader.locate(8)[:2] == (shards[1], 0)
        assert records.RecordReader(shards[1], raw=True)[0]["x/dtype"].tolist() == [b"float64"]
        assert reader.payload(8) == records.RecordReader(shards[1]).payload(0)
    assert records.count(shards) == 30


def test_what_is_no_number(shards: list[str]) -> None:
    reader = records.RecordReader(shards)
    assert reader[np.int64(3)].keys() == reader[3].keys()
    for key in (1.5, "x", [1, 2], None):
        with pytest.raises(TypeError):
            reader[key]  # type: ignore[call-overload]


def test_a_manifest_that_cannot_be_read_does_not_stop_a_reader(tmp_path: Path) -> None:
    (path,) = records.write_arrays(tmp_path / "a.tfrecord", {"x": np.arange(3)})
    (tmp_path / "a.manifest.json").write_text('{"of": "another program"}')
    assert len(list(records.read(path))) == len(records.RecordReader(path)) == records.count(path) == 3


def test_empty_shards_between_others(tmp_path: Path) -> None:
    empty = records.write_examples(tmp_path / "empty", [])
    one = records.write_examples(tmp_path / "one", [{"n": 1}])
    reader = records.RecordReader([*empty, *one, *empty, *empty, *one, *empty])
    assert len(reader) == 2
    assert [int(row["n"][0]) for row in reader[:]] == [1, 1]
    assert len(records.RecordReader(empty)) == 0
    with pytest.raises(IndexError, match="record 0 of 0 records"):
        records.RecordReader(empty)[0]


def test_the_index_is_kept_and_made_anew_when_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.tfrecord"
    records.write_examples(path, ({"n": number} for number in range(10)))
    index = tmp_path / ".a.tfrecord.tfqindex"
    assert len(records.RecordReader(path)) == 10
    assert index.exists()

    made: list[str] = []
    from tfqueue.records import index as module

    original = module._plain_offsets
    monkeypatch.setattr(module, "_plain_offsets", lambda file, name: made.append(name) or original(file, name))
    assert len(records.RecordReader(path)) == 10
    assert made == []

    data = path.read_bytes()
    path.write_bytes(data + data)  # by another program
    assert len(records.RecordReader(path)) == 20
    assert made == [str(path)]

    for broken in (b"", b"junk", index.read_bytes()[:-8], index.read_bytes()[:-1] + b"\xff"):
        index.write_bytes(broken)
        assert records.RecordReader(path)[19]["n"].tolist() == [9]
    assert len(made) == 5

    records.write_examples(path, [{"n": 1}], overwrite=True)
    assert not index.exists()
    assert len(records.RecordReader(path, keep_index=False)) == 1
    assert not index.exists()


def test_an_index_that_cannot_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    records.write_examples(path, [{"n": 1}])

    def refuse(*_: object, **__: object) -> None:
        raise RecordError("no permission")

    monkeypatch.setattr("tfqueue.records.index.write_whole", refuse)
    assert len(records.RecordReader(path)) == 1
    assert os.listdir(tmp_path) == ["a"]


def test_a_file_that_changes_while_it_is_open(tmp_path: Path) -> None:
    path = tmp_path / "a"
    records.write_examples(path, ({"n": number} for number in range(10)))
    reader = records.RecordReader(path)
    assert len(reader) == 10
    data = bytearray(path.read_bytes())
    offset = reader.locate(4)[2]
    data[offset + 13] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedRecord, match=rf"record 4, byte {offset}: the payload does not match"):
        reader[4]
    assert reader[5]["n"].tolist() == [5]
    path.write_bytes(data[:offset])
    with pytest.raises(DamagedRecord, match=r"record 5, .*has changed since the index .* was made"):
        reader[5]


def test_damaged_headers_stop_the_index(tmp_path: Path) -> None:
    path = tmp_path / "a"
    records.write_examples(path, ({"n": number, "x": b"a" * 100} for number in range(10)))
    offset = records.RecordReader(path, keep_index=False).locate(7)[2]
    data = path.read_bytes()
    for broken, words in (
        (data[: offset + 5], "ends 5 bytes into a header"),
        (data[: offset + 50], "ends inside the payload"),
        (data[:-2], "ends inside the checksum of the payload"),
        (data[:offset] + b"\xff" + data[offset + 1 :], "the length does not match its checksum"),
    ):
        path.write_bytes(broken)
        with pytest.raises(DamagedRecord, match=words) as caught:
            len(records.RecordReader(path))
        assert caught.value.record == (9 if broken == data[:-2] else 7)
        with pytest.raises(DamagedRecord, match=words):
            records.count(path)


def test_records_larger_than_a_block(tmp_path: Path) -> None:
    sizes = [3_000_000, 10, 2**20 - 16, 2**20 - 15, 2**20 - 12, 2**20, 5]
    payloads = [bytes([number]) * size for number, size in enumerate(sizes)]
    records.write_examples(tmp_path / "a", payloads)
    reader = records.RecordReader(tmp_path / "a")
    assert [reader.payload(number) for number in range(len(sizes))] == payloads


def test_threads_and_pickle(shards: list[str]) -> None:
    import pickle
    from concurrent.futures import ThreadPoolExecutor

    reader = records.RecordReader(shards)
    with ThreadPoolExecutor(8) as executor:
        found = list(executor.map(lambda number: int(reader[number]["y"]), list(range(30)) * 5))
    assert found == list(range(30)) * 5
    copy = pickle.loads(pickle.dumps(reader))
    assert int(copy[17]["y"]) == 17


def test_table(tmp_path: Path) -> None:
    rows = [
        {"x": np.full((2, 3), number, np.uint8), "n": number, "s": f"s{number}", "v": [1] * number}
        | ({"m": number} if number % 2 else {})
        for number in range(4)
    ]
    reader = records.RecordReader(records.write_examples(tmp_path / "a", rows))
    table = reader.table()
    assert (table["x"].shape, table["x"].dtype) == ((4, 2, 3), np.uint8)
    assert table["n"].tolist() == [0, 1, 2, 3]
    assert table["s"].tolist() == [b"s0", b"s1", b"s2", b"s3"]
    assert [len(value) for value in table["v"]] == [0, 1, 2, 3]
    assert [None if value is None else value.tolist() for value in table["m"]] == [None, [1], None, [3]]
    assert reader.table(["n"]).keys() == {"n"}
    with pytest.raises(InvalidArgument, match=r"no record of .* has the feature 'q'"):
        reader.table(["q"])


def test_dataset(shards: list[str]) -> None:
    dataset = records.RecordReader(shards).dataset()
    assert len(dataset) == 30
    assert dataset.element_spec["x"].shape == [4]
    for number, features in enumerate(dataset.as_numpy_iterator()):
        assert features.keys() == {"x", "y"}
        assert (features["x"].dtype, features["x"].tolist()) == (np.float64, [4.0 * number + step for step in range(4)])
        assert features["y"] == number


def test_dataset_of_a_known_schema(shards: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    schema = records.describe(shards, records=1)
    monkeypatch.setattr("tfqueue.records.reader.describe", None)
    dataset = records.RecordReader(shards).dataset(schema=schema)
    assert [int(features["y"]) for features in dataset] == list(range(30))


def test_dataset_of_every_kind_of_feature(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {
        dtype: rng.integers(0, 2, (3, 2)).astype(dtype)
        for dtype in ("bool", "uint8", "int16", "uint32", "uint64", "int64", "float16", "float32", "complex64")
    }
    rows = [
        {
            **{f"array_{name}": array for name, array in arrays.items()},
            **{f"scalar_{name}": array[0, 0] for name, array in arrays.items()},
            "varying": np.ones((number + 1, 2), np.float32),
            "date": np.array(["2020-01-01"], "M8[D]"),
            "texts": np.array(["a", "bc"]),
            "text": "é",
            "list": [1, 2, 3],
            "lengths": [1.5] * number,
            "ragged": [[1], [2] * number],
        }
        for number in range(3)
    ]
    paths = records.write_examples(tmp_path / "a", rows) + records.write_examples(tmp_path / "b.gz", rows)
    elements = list(records.RecordReader(paths).dataset())
    assert len(elements) == 6
    for element, row in zip(elements, rows * 2, strict=True):
        assert element.keys() == row.keys()
        for name, array in arrays.items():
            for kind, value in (("array", array), ("scalar", array[0, 0])):
                found = element[f"{kind}_{name}"].numpy()
                assert (found.dtype, found.shape) == (value.dtype, value.shape)
                assert np.array_equal(found, value)
        assert np.array_equal(element["varying"], row["varying"])
        assert element["date"].numpy().tolist() == [18262]
        assert element["texts"].numpy().tolist() == [b"a", b"bc"]
        assert element["text"].numpy().decode() == "é"
        assert element["list"].numpy().tolist() == [1, 2, 3]
        assert element["lengths"].values.numpy().tolist() == row["lengths"]
        assert element["ragged"].to_list() == row["ragged"]


def test_dataset_of_what_tensorflow_has_no_form_for(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    (path,) = records.write_arrays(tmp_path / "a", {"x": np.zeros((2, 3), ml_dtypes.float8_e4m3fn)})
    reader = records.RecordReader(path)
    with pytest.raises(RecordError, match="feature 'x' is an array of float8_e4m3fn, which TensorFlow cannot decode"):
        reader.dataset()
    assert reader[0]["x"].dtype == ml_dtypes.float8_e4m3fn


def test_dataset_of_sequences(tmp_path: Path) -> None:
    with records.RecordWriter(tmp_path / "a") as writer:
        for number in range(3):
            steps = [[step, step] for step in range(number + 1)]
            writer.write({"n": number}, sequences={"s": steps, "t": [[1.5] * step for step in range(number)]})
    for number, element in enumerate(records.RecordReader(tmp_path / "a").dataset()):
        assert int(element["n"]) == number
        assert element["s"].numpy().tolist() == [[step, step] for step in range(number + 1)]
        assert element["t"].dense_shape.numpy().tolist()[0] == number


def test_the_dataset_notices_what_tensorflow_does_not(tmp_path: Path) -> None:
    import tensorflow as tf

    path = tmp_path / "a"
    records.write_examples(path, ({"n": number} for number in range(10)))
    reader = records.RecordReader(path)
    offset = reader.locate(5)[2]
    dataset = reader.dataset()
    os.truncate(path, offset + 5)
    assert len(list(tf.data.TFRecordDataset(str(path)))) == 5  # no error
    with pytest.raises(tf.errors.FailedPreconditionError, match="10"):
        list(dataset)
