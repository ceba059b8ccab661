"""The data that the programs of tests/programs read, and the arguments that they are called with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf

ORDERED = {
    "captions_slim": ["--records", "{data}/captions.tfrecord", "--train_dir", "{out}"],
    "ptb_supervisor": [],
    "segmentation_slices": ["--data-list", "{data}/pairs.txt", "--data-dir", "{data}"],
    "flowers_slim": ["--dataset_dir", "{data}", "--train_dir", "{out}"],
    "padding_codes": ["{data}/captions.tfrecord"],
    "queue_tutorial": [],
    "csv_fed": ["{data}/scores.csv"],
    "single_examples": ["{data}/numbers-0"],
    "two_domains": ["--X", "{data}/flowers_train_0", "--Y", "{data}/flowers_train_1"],
}
"""The programs whose order is defined, with their arguments: every engine prints the same, losses included."""

SHUFFLED = {
    "cifar_monitored": ["--data_dir", "{data}"],
    "inception_branches": ["--data", "{data}"],
    "cifar_handmade": ["{data}"],
    "stereo_lines": ["--list_file", "{data}/stereo.txt", "--root", "{data}"],
    "census_up_to": ["--train-files", "{data}/census.csv", "--num-epochs", "2"],
    "sequence_buckets": ["{data}/captions.tfrecord"],
    "mnist_arrays": [],
}
"""The programs that shuffle: each prints the sorted records that it got, which every engine gives alike."""


def make(folder: Path) -> None:
    """Write all files into a folder."""
    rng = np.random.default_rng(7)
    for part in (1, 2):
        records = [bytes([part * 12 - 12 + n]) + rng.integers(0, 256, 108, np.uint8).tobytes() for n in range(12)]
        (folder / f"data_batch_{part}.bin").write_bytes(b"".join(records))
    for part in range(2):
        _records(folder / f"numbers-{part}", [_example(id=part * 100 + n, x=[n + 0.25] * 4) for n in range(15)])
    captions = [_caption(n, list(range(1, 3 + n % 7))) for n in range(20)]
    _records(folder / "captions.tfrecord", captions)
    for part in range(2):
        pictures = [(n, _picture(rng, n)) for n in range(part * 12, part * 12 + 12)]
        examples = [_example(**{"image/encoded": png, "image/class/label": n}) for n, png in pictures]
        _records(folder / f"flowers_train_{part}", examples)
    lines, stereo = [], []
    for n in range(9):
        picture = rng.integers(0, 256, (10, 10, 3), np.uint8)
        (folder / f"image{n}.jpg").write_bytes(tf.io.encode_jpeg(picture).numpy())
        (folder / f"mask{n}.png").write_bytes(tf.io.encode_png(np.full((10, 10, 1), n, np.uint8)).numpy())
        lines.append(f"image{n}.jpg mask{n}.png")
        for side in ("left", "right"):
            (folder / f"{side}{n}.png").write_bytes(_picture(rng, n))
        stereo.append(f"left{n}.png right{n}.png {n}")
    (folder / "pairs.txt").write_text("".join(f"{line}\n" for line in lines))
    (folder / "stereo.txt").write_text("".join(f"{line}\n" for line in stereo[:8]))
    rows = "".join(f"{n % 50 + 18},job{n % 3},{n / 4},{n}\n" for n in range(23))
    (folder / "census.csv").write_text(f"age,workclass,hours,number\n{rows}")
    scores = "".join(",".join(str(v) for v in rng.integers(50, 100, 4)) + "\n" for _ in range(25))
    (folder / "scores.csv").write_text(scores)


def _picture(rng: np.random.Generator, number: int) -> bytes:
    pixels = rng.integers(0, 256, (8, 8, 3), np.uint8)
    pixels[0, 0] = number
    return bytes(tf.io.encode_png(pixels).numpy())


def _records(path: Path, payloads: list[bytes]) -> None:
    with tf.io.TFRecordWriter(str(path)) as writer:
        for payload in payloads:
            writer.write(payload)


def _example(**features) -> bytes:
    message = tf.train.Example()
    for name, value in features.items():
        feature = message.features.feature[name]
        if isinstance(value, bytes):
            feature.bytes_list.value.append(value)
        elif isinstance(value, list):
            feature.float_list.value.extend(value)
        else:
            feature.int64_list.value.append(value)
    return message.SerializeToString()


def _caption(number: int, tokens: list[int]) -> bytes:
    message = tf.train.SequenceExample()
    message.context.feature["id"].int64_list.value.append(number)
    for token in tokens:
        message.feature_lists.feature_list["caption"].feature.add().int64_list.value.append(token)
    return message.SerializeToString()
