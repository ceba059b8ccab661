"""Image files -> TFRecord files, the images as they lie on disk."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from typing import Any

from tfqueue.errors import InvalidArgument, RecordError
from tfqueue.records import imagefile
from tfqueue.records.paths import Path, fspath
from tfqueue.records.writer import RecordWriter

_EXTENSIONS = (".jpg", ".jpeg", ".jpe", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff")


@dataclass(frozen=True, slots=True)
class ImageItem:
    """An image file and its class.

    Attributes:
        path: Where the file is.
        label: The number of its class.
        filename: What is stored as its name.
    """

    path: str
    label: int
    filename: str


def write_images(
    path: Path,
    source: Path | Iterable[tuple[Path, int]],
    *,
    shards: int | None = None,
    records_per_shard: int | None = None,
    bytes_per_shard: int | None = None,
    compression: str | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
) -> list[str]:
    """Writes image files, one record a file. Each image is decoded once, to be sure that it is one.

    The features of a record:

    ===========  ==========  ===========================================================================
    image        bytes       the file as it lies on disk (not decoded, not compressed again)
    format       bytes       "jpeg", "png", "gif", "bmp", "webp" or "tiff"
    height       int64       in pixels, as stored (an EXIF orientation is not applied)
    width        int64       in pixels, as stored
    channels     int64       as stored: 1 grey, 3 colour, 4 colour and alpha
    label        int64       the number of the class
    filename     bytes       relative to the folder given, or the path as given; UTF-8
    ===========  ==========  ===========================================================================

    Args:
        path: As for ``RecordWriter``.
        source: A folder with one sub-folder a class (the classes are numbered in sorted order of their
            names), or an iterable of (path of the image, label).
        shards: As for ``RecordWriter``, and so all that follow.
        records_per_shard: See above.
        bytes_per_shard: See above.
        compression: See above.
        overwrite: See above.
        progress: See above.

    Returns:
        The paths of the files, in order.

    Raises:
        InvalidArgument: The source is of another kind, or holds no image.
        InvalidImage: A file that is no image, or a damaged one; it is named.
        RecordError: A file cannot be read, or the files cannot be written.
    """
    items = list(_items(source))
    if not items:
        raise InvalidArgument("the list of images is empty: there is nothing to write")
    with RecordWriter(
        path,
        shards=shards,
        records_per_shard=records_per_shard,
        bytes_per_shard=bytes_per_shard,
        expected_records=len(items),
        compression=compression,
        overwrite=overwrite,
        progress=progress,
    ) as writer:
        for item in items:
            writer.write(_features(item))
    return writer.paths


def class_folders(folder: Path) -> list[str]:
    """Returns the names of the classes of a folder, in the order of their labels.

    Raises:
        RecordError: The folder does not exist or cannot be read.
        InvalidArgument: It has no sub-folder.
    """
    name = fspath(folder)
    try:
        with os.scandir(name) as entries:
            classes = sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
    except OSError as error:
        raise RecordError(f"the image folder {name!r} cannot be read: {error.strerror}", file=name) from error
    if not classes:
        raise InvalidArgument(f"{name!r} has no sub-folder; expected one for each class, with its images in it")
    return classes


def _items(source: Path | Iterable[tuple[Path, int]]) -> Iterator[ImageItem]:
    if isinstance(source, (str, PathLike)):
        yield from _folder_items(fspath(source))
        return
    if not isinstance(source, Iterable):
        raise InvalidArgument(
            f"source is {type(source).__name__}; expected a folder with one sub-folder a class, or "
            "an iterable of (path, label)"
        )
    for position, pair in enumerate(source):
        yield _pair_item(position, pair)


def _pair_item(position: int, pair: Any) -> ImageItem:
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise InvalidArgument(f"item {position} of the images is {pair!r}; expected (path, label)")
    name = fspath(pair[0])
    try:
        label = int(pair[1].__index__())
    except AttributeError:
        raise InvalidArgument(f"the label of {name!r} (item {position}) is {pair[1]!r}; expected an int") from None
    return ImageItem(name, label, name)


def _folder_items(folder: str) -> Iterator[ImageItem]:
    found = False
    for label, name in enumerate(class_folders(folder)):
        root = os.path.join(folder, name)
        for base in sorted(os.listdir(root)):
            path = os.path.join(root, base)
            if base.lower().endswith(_EXTENSIONS) and os.path.isfile(path):
                found = True
                yield ImageItem(path, label, os.path.join(name, base))
    if not found:
        raise InvalidArgument(
            f"no sub-folder of {folder!r} holds an image file ({', '.join(_EXTENSIONS)}): nothing to write"
        )


def _features(item: ImageItem) -> dict[str, Any]:
    try:
        with open(item.path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise RecordError(f"the image {item.path!r} cannot be read: {error.strerror}", file=item.path) from error
    image = imagefile.inspect(data, name=item.path)
    return {
        "image": data,
        "format": image.format,
        "height": image.height,
        "width": image.width,
        "channels": image.channels,
        "label": item.label,
        # A name that is not UTF-8 is kept byte for byte.
        "filename": os.fsencode(item.filename),
    }
