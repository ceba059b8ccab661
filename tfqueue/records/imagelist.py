"""Which image files there are, and the class of each: from folders, pairs, a CSV file or a pattern."""

from __future__ import annotations

import csv
import glob
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from os import PathLike
from typing import Any, Final, TypeAlias

from tfqueue.errors import InvalidArgument, RecordError
from tfqueue.records.paths import Path, expand, fspath

EXTENSIONS: Final = (".jpg", ".jpeg", ".jpe", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff")
Label: TypeAlias = "int | str"
Labeller: TypeAlias = Callable[[str], Label]
Images: TypeAlias = "Path | Iterable[tuple[Path, Label]]"

_PATH_COLUMNS: Final = ("path", "file", "filename", "file_name", "image", "image_path")
_LABEL_COLUMNS: Final = ("label", "class", "category", "target", "y")


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


@dataclass(frozen=True, slots=True)
class ImageList:
    """Image files and what their labels mean.

    Attributes:
        items: The files, in order.
        classes: The name of each class, by its number; None if the labels were given as numbers.
    """

    items: tuple[ImageItem, ...]
    classes: tuple[str, ...] | None


def list_images(source: Images, *, label: Labeller | None = None) -> ImageList:
    """Returns the image files that ``source`` names.

    Args:
        source: One of

            - a folder with one sub-folder a class;
            - a pattern such as ``data/*/*.jpg``: the class is the name of the folder that a file is in;
            - a file ``*.csv`` with a row an image: the columns are found by a header (path, file, filename or image;
              label, class, category or target), else they are the first two; paths are relative to the CSV file;
            - an iterable of (path, label).

            Labels that are all numbers are taken as they are. Others are names of classes, which are numbered in
            their sorted order.
        label: What gives the label of a path, in the place of the folder it is in.

    Raises:
        InvalidArgument: ``source`` is of another kind, or there is no image.
        RecordError: A folder or file does not exist or cannot be read.
    """
    if isinstance(source, (str, PathLike)):
        name = fspath(source)
        if os.path.isdir(name):
            found = _of_folder(name) if label is None else _of_tree(name)
        elif name.lower().endswith(".csv"):
            found = _of_csv(name)
        elif glob.has_magic(name) and not os.path.exists(name):
            found = [(path, os.path.basename(os.path.dirname(os.path.abspath(path))), path) for path in expand(name)]
        else:
            what = "is no folder and no CSV file" if os.path.lexists(name) else "does not exist"
            raise RecordError(
                f"{name!r} {what}; expected a folder with one "
                "sub-folder a class, a pattern, a CSV file, or a list of (path, label)",
                file=name,
            )
    elif isinstance(source, Iterable):
        found = [_pair(position, pair) for position, pair in enumerate(source)]
    else:
        raise InvalidArgument(
            f"source is {type(source).__name__}; expected a folder, a pattern, a CSV file, or a list of (path, label)"
        )
    if not found:
        raise InvalidArgument("the list of images is empty: there is nothing to write")
    if label is not None:
        found = [(path, _checked_label(label(path), path), filename) for path, _, filename in found]
    return _numbered(found)


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


_Found: TypeAlias = "tuple[str, Label, str]"


def _of_folder(folder: str) -> list[_Found]:
    found: list[_Found] = []
    for name in class_folders(folder):
        root = os.path.join(folder, name)
        found += [(os.path.join(root, base), name, os.path.join(name, base)) for base in _image_names(root)]
    if not found:
        raise InvalidArgument(
            f"no sub-folder of {folder!r} holds an image file ({', '.join(EXTENSIONS)}): nothing to write"
        )
    return found


def _of_tree(folder: str) -> list[_Found]:
    return [
        (os.path.join(root, base), "", os.path.relpath(os.path.join(root, base), folder))
        for root in sorted(root for root, _, _ in os.walk(folder))
        for base in _image_names(root)
    ]


def _image_names(folder: str) -> list[str]:
    return sorted(
        base
        for base in os.listdir(folder)
        if base.lower().endswith(EXTENSIONS) and os.path.isfile(os.path.join(folder, base))
    )


def _of_csv(name: str) -> list[_Found]:
    try:
        with open(name, encoding="utf-8-sig", newline="") as file:
            rows = [(number, row) for number, row in enumerate(csv.reader(file), 1) if any(row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RecordError(f"the CSV file {name!r} cannot be read: {error}", file=name) from error
    if not rows:
        return []
    header = [cell.strip().lower() for cell in rows[0][1]]
    path_column = next((header.index(word) for word in _PATH_COLUMNS if word in header), None)
    label_column = next((header.index(word) for word in _LABEL_COLUMNS if word in header), None)
    if path_column is None or label_column is None:
        path_column, label_column = 0, 1
    else:
        rows = rows[1:]
    found: list[_Found] = []
    folder = os.path.dirname(name)
    for number, row in rows:
        if max(path_column, label_column) >= len(row) or not row[path_column].strip():
            raise InvalidArgument(f"line {number} of {name!r} is {row!r}; expected a path and a label")
        path = row[path_column].strip()
        found.append((os.path.join(folder, path), row[label_column].strip(), path))
    numbers = [_number(label) for _, label, _ in found]
    if None in numbers:
        return found
    return [(path, int(label), base) for path, label, base in found]


def _number(label: Label) -> int | None:
    try:
        return int(label)
    except ValueError:
        return None


def _pair(position: int, pair: Any) -> _Found:
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise InvalidArgument(f"item {position} of the images is {pair!r}; expected (path, label)")
    name = fspath(pair[0])
    return name, _checked_label(pair[1], f"{name!r} (item {position})"), name


def _checked_label(label: Any, where: str) -> Label:
    if isinstance(label, str):
        return str(label)
    try:
        return int(label.__index__())
    except AttributeError:
        raise InvalidArgument(f"the label of {where} is {label!r}; expected an int or the name of a class") from None


def _numbered(found: list[_Found]) -> ImageList:
    kinds = {type(label) for _, label, _ in found}
    if kinds == {int}:
        return ImageList(tuple(ImageItem(path, int(label), base) for path, label, base in found), None)
    if kinds != {str}:
        number = next(label for _, label, _ in found if isinstance(label, int))
        name = next(label for _, label, _ in found if isinstance(label, str))
        raise InvalidArgument(f"some labels are numbers ({number}) and some are names ({name!r}); expected one of both")
    classes = sorted({str(label) for _, label, _ in found})
    numbers = {name: number for number, name in enumerate(classes)}
    items = tuple(ImageItem(path, numbers[str(label)], base) for path, label, base in found)
    return ImageList(items, tuple(classes))
