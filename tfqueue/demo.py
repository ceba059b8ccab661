"""The main job once, end to end, on a real photograph: what ``tfqueue demo`` does."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfqueue.errors import InvalidArgument

TILE = 32
"""Height and width of a tile, in pixels."""
SIZE = 64
"""Height and width of an image that the model is fed, in pixels."""
BATCH = 16
SEED = 7


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What the demo made.

    Attributes:
        equivalent: Whether the twin delivered the same data.
        report: The report of the comparison.
        files: What was written, by name.
    """

    equivalent: bool
    report: Any
    files: dict[str, Path]


def run_demo(out: str | os.PathLike[str], say: Callable[[str], None] = print) -> DemoResult:
    """Cut a photograph into labelled JPEG tiles, feed them through a TF1 pipeline and its tf.data twin, and compare.

    Args:
        out: The folder to write to; it is made if its parent exists. What an earlier demo wrote there is replaced.
        say: Told each step, in words.

    Raises:
        InvalidArgument: The folder cannot be written.
        tfqueue.errors.TFQueueError: What went wrong in a step.
    """
    folder = _writable(Path(out))
    say(f"1. cut a photograph into tiles      {folder / 'tiles'}")
    names = _cut_photograph(folder / "tiles")
    # Only now: TensorFlow takes seconds to import, and a folder that cannot be written is said at once.
    from tfqueue import QueuePipeline, compare, records, views

    paths = records.write_images(folder / "tiles.tfrecord", folder / "tiles", shards=2, overwrite=True)
    say(f"2. write them as TFRecords          {', '.join(os.path.relpath(path, folder) for path in paths)}")

    say("3. run the TF1 pipeline and its hand-written tf.data twin, both shuffled, and compare them")
    report = compare(legacy(paths, shuffle=True), modern(paths, shuffle=True))
    for line in str(report).splitlines():
        say(f"   {line}")

    say("4. draw a batch, and one batch of each side with the difference (both not shuffled)")
    files = {
        "batch": folder / "batch.png",
        "pair": folder / "pair.png",
        "report.json": folder / "report.json",
        "report.txt": folder / "report.txt",
        "report.html": folder / "report.html",
    }
    with QueuePipeline(legacy(paths, shuffle=True)) as pipeline:
        views.show_batch(next(pipeline), files["batch"], class_names=names)
    with QueuePipeline(legacy(paths, shuffle=False)) as pipeline:
        reference = next(pipeline)
    candidate = next(iter(modern(paths, shuffle=False)().as_numpy_iterator()))
    views.show_pair(reference, candidate, files["pair"], class_names=names)
    report.to_json(files["report.json"])
    report.to_html(files["report.html"])
    files["report.txt"].write_text(f"{report}\n", encoding="utf-8")
    for path in files.values():
        say(f"   {path}")
    verdict = "equivalent" if report.equivalent else "different"
    say(f"verdict: {verdict}")
    return DemoResult(report.equivalent, report, files)


def legacy(paths: list[str], *, shuffle: bool) -> Callable[[], Any]:
    """The build function of the pipeline as a TF1 program has it."""
    import tensorflow as tf

    tf1 = tf.compat.v1

    def build_fn() -> dict[str, Any]:
        names = tf1.train.string_input_producer(paths, num_epochs=1, shuffle=False)
        _, serialized = tf1.TFRecordReader().read(names)
        features = tf1.parse_single_example(
            serialized,
            {"image": tf1.FixedLenFeature([], tf.string), "label": tf1.FixedLenFeature([], tf.int64)},
        )
        image = tf.image.convert_image_dtype(tf.image.decode_jpeg(features["image"], channels=3), tf.float32)
        image = tf1.image.resize_images(image, [SIZE, SIZE])
        example = {"image": image, "label": features["label"]}
        if shuffle:
            return dict(tf1.train.shuffle_batch(example, BATCH, capacity=128, min_after_dequeue=64, seed=SEED))
        return dict(tf1.train.batch(example, BATCH))

    return build_fn


def modern(paths: list[str], *, shuffle: bool) -> Callable[[], Any]:
    """A function that makes the same pipeline in tf.data, written by hand."""
    import tensorflow as tf

    def parse(serialized: Any) -> dict[str, Any]:
        features = tf.io.parse_single_example(
            serialized,
            {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)},
        )
        image = tf.image.convert_image_dtype(tf.image.decode_jpeg(features["image"], channels=3), tf.float32)
        # The resize of TF1 puts pixel centres elsewhere than tf.image.resize: with that the pixels would differ.
        return {"image": tf.compat.v1.image.resize_images(image, [SIZE, SIZE]), "label": features["label"]}

    def dataset_fn() -> Any:
        dataset = tf.data.TFRecordDataset(paths).map(parse)
        if shuffle:
            dataset = dataset.shuffle(128, seed=SEED)
        # A batch queue never delivers a batch that is not full, unless allow_smaller_final_batch is set.
        return dataset.batch(BATCH, drop_remainder=True)

    return dataset_fn


def _writable(folder: Path) -> Path:
    try:
        folder.mkdir(exist_ok=True)
        probe = folder / ".tfqueue-probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InvalidArgument(
            f"the demo cannot write to {str(folder)!r}: {error.strerror or error}; give a folder that can be "
            f"written with --out"
        ) from error
    return folder


def _cut_photograph(folder: Path) -> list[str]:
    """Write the tiles of matplotlib's sample photograph, one folder (class) for each row; returns the class names."""
    import cv2
    import matplotlib

    photograph = Path(matplotlib.get_data_path()) / "sample_data" / "grace_hopper.jpg"
    pixels = cv2.imread(str(photograph), cv2.IMREAD_COLOR)
    if pixels is None:
        raise InvalidArgument(f"the photograph that matplotlib ships cannot be read: {photograph}")
    shutil.rmtree(folder, ignore_errors=True)
    rows, columns = pixels.shape[0] // TILE, pixels.shape[1] // TILE
    names = [f"row {row:02d}" for row in range(rows)]
    for row, name in enumerate(names):
        (folder / name).mkdir(parents=True)
        for column in range(columns):
            tile = pixels[row * TILE : (row + 1) * TILE, column * TILE : (column + 1) * TILE]
            cv2.imwrite(str(folder / name / f"column {column:02d}.jpg"), tile, [cv2.IMWRITE_JPEG_QUALITY, 95])
    return names
