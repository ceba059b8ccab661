"""tensorflow.examples.tutorials.mnist.input_data over local files: the MNIST reader that TF1 tutorials use.

The files are the four of the data set, in the IDX format (a magic number, big-endian 32-bit sizes, then the bytes),
as they are or compressed with gzip. Nothing is downloaded.
"""

from __future__ import annotations

import gzip
import struct
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np

from tfqueue.errors import InvalidArgument, RecordError

__all__ = ["DataSet", "Datasets", "extract_images", "extract_labels", "load_mnist", "read_data_sets"]

SOURCE_URL = "https://storage.googleapis.com/cvdf-datasets/mnist/"
Datasets = namedtuple("Datasets", ["train", "validation", "test"])

_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


class DataSet:
    """Images and labels that are handed out in batches, shuffled anew in every epoch.

    Args:
        images: [count, height, width, channels] uint8.
        labels: [count] or [count, classes].
        fake_data: For tests: batches of ones.
        one_hot: Whether fake labels are vectors.
        dtype: ``uint8``: images as they are; ``float32``: scaled to [0, 1].
        reshape: Make each image one vector.
        seed: Of the shuffles.
    """

    def __init__(
        self,
        images: Any,
        labels: Any,
        fake_data: bool = False,
        one_hot: bool = False,
        dtype: Any = np.float32,
        reshape: bool = True,
        seed: int | None = None,
    ) -> None:
        kind = np.dtype(dtype.as_numpy_dtype if hasattr(dtype, "as_numpy_dtype") else dtype)
        if kind not in (np.dtype(np.uint8), np.dtype(np.float32)):
            raise InvalidArgument(f"dtype must be uint8 or float32; got {kind}")
        self.one_hot = one_hot
        self._fake = fake_data
        self._random = np.random.RandomState(seed)
        self._epochs_completed = 0
        self._index_in_epoch = 0
        if fake_data:
            self._num_examples = 10000
            self._images = self._labels = np.empty(0)
            return
        if images.shape[0] != labels.shape[0]:
            raise InvalidArgument(f"there are {images.shape[0]} images and {labels.shape[0]} labels")
        self._num_examples = int(images.shape[0])
        if reshape:
            images = images.reshape(images.shape[0], int(np.prod(images.shape[1:])))
        if kind == np.float32:
            images = np.multiply(images.astype(np.float32), 1.0 / 255.0)
        self._images = images
        self._labels = labels

    @property
    def images(self) -> Any:
        return self._images

    @property
    def labels(self) -> Any:
        return self._labels

    @property
    def num_examples(self) -> int:
        return self._num_examples

    @property
    def epochs_completed(self) -> int:
        return self._epochs_completed

    def next_batch(self, batch_size: int, fake_data: bool = False, shuffle: bool = True) -> tuple[Any, Any]:
        """The next ``batch_size`` images and labels; a batch may go over the end of an epoch."""
        if fake_data or self._fake:
            label = [1] + [0] * 9 if self.one_hot else 0
            return [[1] * 784 for _ in range(batch_size)], [label for _ in range(batch_size)]
        if batch_size > self._num_examples:
            raise InvalidArgument(f"a batch of {batch_size} is more than the {self._num_examples} examples there are")
        start = self._index_in_epoch
        if self._epochs_completed == 0 and start == 0 and shuffle:
            self._shuffle()
        end = start + batch_size
        if end <= self._num_examples:
            self._index_in_epoch = end
            return self._images[start:end], self._labels[start:end]
        images, labels = self._images[start:], self._labels[start:]
        self._epochs_completed += 1
        if shuffle:
            self._shuffle()
        rest = batch_size - len(images)
        self._index_in_epoch = rest
        return np.concatenate([images, self._images[:rest]]), np.concatenate([labels, self._labels[:rest]])

    def _shuffle(self) -> None:
        order = np.arange(self._num_examples)
        self._random.shuffle(order)
        self._images, self._labels = self._images[order], self._labels[order]


def read_data_sets(
    train_dir: Any,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = np.float32,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str | None = None,
) -> Datasets:
    """The train, validation and test sets of the four MNIST files in ``train_dir``.

    ``source_url`` is accepted and not used: nothing is downloaded.

    Raises:
        RecordError: A file is missing or is no file of that kind.
        InvalidArgument: ``validation_size`` is larger than the training set.
    """
    options: dict[str, Any] = {"dtype": dtype, "reshape": reshape, "seed": seed}
    if fake_data:
        empty = DataSet(np.empty(0), np.empty(0), fake_data=True, one_hot=one_hot, **options)
        return Datasets(empty, empty, empty)
    paths = [_find(Path(train_dir), name) for name in _FILES]
    images, test_images = (_idx(path, 3)[..., np.newaxis] for path in paths[::2])
    labels, test_labels = (_labels(_idx(path, 1), one_hot) for path in paths[1::2])
    if not 0 <= validation_size <= len(images):
        raise InvalidArgument(f"validation_size must be from 0 to {len(images)}; got {validation_size}")
    return Datasets(
        DataSet(images[validation_size:], labels[validation_size:], **options),
        DataSet(images[:validation_size], labels[:validation_size], **options),
        DataSet(test_images, test_labels, **options),
    )


def load_mnist(train_dir: Any = "MNIST-data") -> Datasets:
    """`read_data_sets` with its defaults."""
    return read_data_sets(train_dir)


def extract_images(f: Any) -> Any:
    """The images of an open gzip-compressed IDX file: [count, height, width, 1] uint8."""
    return _parse(gzip.decompress(f.read()), 3, getattr(f, "name", "the file"))[..., np.newaxis]


def extract_labels(f: Any, one_hot: bool = False, num_classes: int = 10) -> Any:
    """The labels of an open gzip-compressed IDX file: [count] uint8, or [count, num_classes]."""
    return _labels(_parse(gzip.decompress(f.read()), 1, getattr(f, "name", "the file")), one_hot, num_classes)


def _labels(labels: Any, one_hot: bool, num_classes: int = 10) -> Any:
    return np.eye(num_classes)[labels] if one_hot else labels


def _find(folder: Path, name: str) -> Path:
    for path in (folder / f"{name}.gz", folder / name):
        if path.is_file():
            return path
    raise RecordError(
        f"{folder / name}(.gz) does not exist: the MNIST reader reads local files only; put the files "
        f"{', '.join(f'{file}.gz' for file in _FILES)} there (they are at {SOURCE_URL})",
        file=folder / name,
    )


def _idx(path: Path, dimensions: int) -> Any:
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError) as error:
            raise RecordError(f"{path} is a damaged gzip file: {error}", file=path) from error
    return _parse(data, dimensions, path)


def _parse(data: bytes, dimensions: int, path: Any) -> Any:
    head = 4 + 4 * dimensions
    if len(data) < head or data[:4] != bytes((0, 0, 8, dimensions)):
        raise RecordError(f"{path} is no IDX file of bytes with {dimensions} dimensions", file=path)
    sizes = struct.unpack(f">{dimensions}I", data[4:head])
    if len(data) - head != int(np.prod(sizes, dtype=object)):
        raise RecordError(f"{path} should hold {sizes} bytes and holds {len(data) - head}", file=path)
    return np.frombuffer(data, np.uint8, offset=head).reshape(sizes)
