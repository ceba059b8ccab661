"""show_batch takes whatever holds records."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tensorflow as tf

import tfqueue
from tests.views import gallery, pictures
from tfqueue import errors, records, views
from tfqueue.views.inputs import take

tf1 = tf.compat.v1


def titles(figure):
    return [str(axes.get_label()) for axes in figure.axes]


@pytest.fixture(scope="module")
def tfrecords(tmp_path_factory):
    """Two files: 6 and 4 records of JPEG tiles, labels 0 to 9."""
    folder = tmp_path_factory.mktemp("records")
    tiles = pictures.tiles(10)
    for name, numbers in (("a.tfrecord", range(6)), ("b.tfrecord", range(6, 10))):
        with records.RecordWriter(folder / name) as writer:
            for number in numbers:
                writer.write({"image": gallery.jpeg(tiles[number]), "label": number, "note": f"tile {number}"})
    return folder


def build_from(folder):
    def build():
        names = sorted(str(path) for path in folder.glob("*.tfrecord"))
        queue = tf1.train.string_input_producer(names, num_epochs=1, shuffle=False)
        _, serialized = tf1.TFRecordReader().read(queue)
        spec = {"image": tf1.FixedLenFeature([], tf.string), "label": tf1.FixedLenFeature([], tf.int64)}
        parsed = tf1.parse_single_example(serialized, spec)
        image = tf.reshape(tf.image.decode_jpeg(parsed["image"], dct_method="INTEGER_ACCURATE"), [32, 32, 3])
        return tf1.train.batch([image, parsed["label"]], batch_size=4, allow_smaller_final_batch=True)

    return build


def dataset_from(batch):
    tiles = pictures.tiles(10)

    def dataset():
        made = tf.data.Dataset.from_tensor_slices({"image": tiles, "label": np.arange(10)})
        return made.batch(batch) if batch else made

    return dataset


def test_path_names_file_and_record(tfrecords):
    figure = views.show_batch(tfrecords / "a.tfrecord")
    assert titles(figure) == [str(number) for number in range(6)]
    words = pictures.words(figure)
    assert words[1].endswith("From a.tfrecord.")
    assert "#5" in words
    assert "note tile 3" in words
    drawn = pictures.drawn_image(figure, 4, 32, 32)
    assert np.abs(drawn.astype(int) - pictures.tiles(5)[4]).mean() < 6


def test_pattern_goes_on_into_the_next_file(tfrecords):
    figure = views.show_batch(str(tfrecords / "*.tfrecord"), n=8)
    assert titles(figure) == [str(number) for number in range(8)]
    words = pictures.words(figure)
    assert words.count("a.tfrecord") == 6
    assert words.count("b.tfrecord") == 2
    assert words.count("#1") == 2


def test_iterator_of_records(tfrecords):
    figure = views.show_batch(records.read(tfrecords / "b.tfrecord"))
    assert titles(figure) == ["6", "7", "8", "9"]


def test_pipeline_not_entered_entered_and_build_function(tfrecords):
    build = build_from(tfrecords)
    assert take(build, 4).source == build.__qualname__
    for source in (tfqueue.QueuePipeline(build), build):
        figure = views.show_batch(source)
        assert titles(figure) == ["0", "1", "2", "3"]
    assert np.abs(pictures.drawn_image(figure, 2, 32, 32).astype(int) - pictures.tiles(3)[2]).mean() < 6
    with tfqueue.QueuePipeline(build) as pipeline:
        assert titles(views.show_batch(pipeline)) == ["0", "1", "2", "3"]
        assert titles(views.show_batch(pipeline, n=6)) == ["4", "5", "6", "7", "8", "9"]
        with pytest.raises(errors.InvalidArgument, match="empty: it ended before the first record"):
            views.show_batch(pipeline)


@pytest.mark.parametrize("batch", [None, 4])
def test_dataset_and_function_returning_one(batch):
    make = dataset_from(batch)
    for source in (make(), make):
        figure = views.show_batch(source, n=6)
        assert titles(figure)[:6] == [str(number) for number in range(6)]
        np.testing.assert_allclose(pictures.drawn_image(figure, 5, 32, 32), pictures.tiles(6)[5], atol=1)


def test_only_what_is_shown_is_read():
    drawn = itertools.count()

    def endless():
        tile = pictures.tiles(1)
        while True:
            next(drawn)
            yield {"image": tile, "label": np.array([1])}

    views.show_batch(endless(), n=7)
    assert next(drawn) <= 8


def test_tensors_sparse_and_ragged_features():
    batch = {
        "image": tf.constant(pictures.tiles(3)),
        "label": tf.constant([5, 6, 7]),
        "tags": tf.ragged.constant([[1, 2], [], [3]]),
        "sparse": tf.sparse.from_dense([[0, 1], [2, 0], [0, 0]]),
    }
    figure = views.show_batch(batch)
    assert titles(figure) == ["5", "6", "7"]
    assert "tags [1, 2]" in pictures.words(figure)
    assert "sparse [2, 0]" in pictures.words(figure)


def test_one_record_is_a_batch_of_one():
    figure = views.show_batch({"image": pictures.photograph(), "label": 3, "file": b"a.jpg"})
    assert titles(figure) == ["3"]
    assert titles(views.show_batch((pictures.photograph(), np.int64(4)))) == ["4"]


def test_list_of_records_with_missing_features():
    rows = [{"image": tile, "label": n} for n, tile in enumerate(pictures.tiles(3))]
    del rows[1]["label"]
    assert titles(views.show_batch(rows)) == ["0", "missing", "2"]


def test_batches_are_joined():
    tiles = pictures.tiles(7)
    stream = [(tiles[:3], np.arange(3)), (tiles[3:6], np.arange(3, 6)), (tiles[6:], np.arange(6, 7))]
    assert titles(views.show_batch(iter(stream), n=7)) == ["0", "1", "2", "3", "4", "5", "6"]
    assert titles(views.show_batch(iter(stream))) == ["0", "1", "2"]


def test_more_than_n_of_a_batch_are_said():
    taken = take([(pictures.tiles(5), np.arange(5))], 2)
    assert len(taken.features[0].values) == 5
    figure = views.show_batch([(pictures.tiles(5), np.arange(5))], n=2)
    assert pictures.words(figure)[0] == "2 of 5 records"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (42, "source is of type int, which holds no records"),
        (object(), "source is of type object, which holds no records"),
        (None, "source is of type NoneType, which holds no records"),
        (iter([]), "empty: it ended before the first record"),
        (lambda: None, "returned None|no tensor"),
        ("/no/such/file.tfrecord", "does not exist"),
    ],
)
def test_what_holds_no_records(source, message):
    with pytest.raises(errors.TFQueueError, match=message):
        views.show_batch(source)


def test_class_names_of_the_manifest(tmp_path):
    import cv2

    for name, tile in zip(["cord", "flag", "hat"], pictures.tiles(3), strict=True):
        (tmp_path / "tiles" / name).mkdir(parents=True)
        cv2.imwrite(str(tmp_path / "tiles" / name / "0.png"), tile[..., ::-1])
    records.write_images(tmp_path / "tiles.tfrecord", tmp_path / "tiles")
    assert titles(views.show_batch(tmp_path / "tiles*.tfrecord")) == ["0 cord", "1 flag", "2 hat"]
    named = views.show_batch(tmp_path / "tiles*.tfrecord", class_names=["a", "b", "c"])
    assert titles(named) == ["0 a", "1 b", "2 c"]


def test_what_is_the_same_in_all_records_is_said_once():
    batch = {"image": pictures.tiles(3), "label": np.arange(3), "kind": np.full(3, 7), "size": np.array([1, 2, 3])}
    words = pictures.words(views.show_batch(batch))
    assert "In all: kind 7." in words[1]
    assert [word for word in words if word.startswith(("kind", "size"))] == ["size 1", "size 2", "size 3"]


def test_files_without_a_record(tmp_path):
    with records.RecordWriter(tmp_path / "empty.tfrecord"):
        pass
    with pytest.raises(errors.InvalidArgument, match="holds no record: 1 of 1 files are empty"):
        views.show_batch(tmp_path / "empty.tfrecord")


def test_functions_that_return_batches():
    tiles = pictures.tiles(4)
    for function in (
        lambda: [{"image": tiles, "label": np.arange(4)}],
        lambda: iter([(tiles, np.arange(4))]),
    ):
        assert titles(views.show_batch(function)) == ["0", "1", "2", "3"]


def test_serialized_examples_are_shown_as_what_they_hold(tmp_path):
    path = tmp_path / "tiles.tfrecord"
    tiles = pictures.tiles(6)
    with records.RecordWriter(path) as writer:
        for number, tile in enumerate(tiles):
            writer.write({"image": tile, "label": number})
    taken = take(tf.data.TFRecordDataset(str(path)), None)
    assert taken.source.endswith(", parsed as tf.train.Example")
    assert sorted(feature.name for feature in taken.features) == ["image", "label"]
    figure = views.show_batch(tf.data.TFRecordDataset(str(path)).batch(4))
    assert figure.get_label() == "4 records"
    np.testing.assert_allclose(pictures.drawn_image(figure, 3, 32, 32), tiles[3], atol=1)


@pytest.mark.parametrize("items", [[b"words", b"more"], [b"", b""], ["text", "more"], [b"\x0a\x02\xff\xff"]])
def test_other_bytes_are_left_alone(items):
    values = np.empty(len(items), object)
    values[:] = items
    assert [feature.name for feature in take({"name": values}, None).features] == ["name"]
