"""Image files -> TFRecord files, the images as they lie on disk or as pixels of one size."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, overload

from tfqueue.errors import InvalidArgument, InvalidImage, RecordError, TFQueueWarning
from tfqueue.records import imagefile
from tfqueue.records.framing import crc32c
from tfqueue.records.imagelist import ImageItem, ImageList, Images, Labeller, list_images
from tfqueue.records.paths import Path, fspath, split_suffix
from tfqueue.records.planned import WriteOptions, write_planned
from tfqueue.records.progress import bar
from tfqueue.records.split import checked_fractions, divide, shuffled

_TASKS = 4096
Colour: TypeAlias = Literal["RGB", "BGR", "GRAY"]


@dataclass(frozen=True, slots=True)
class PixelOptions:
    """How images are stored.

    Attributes:
        size: (height, width) of the stored pixels, or None: the encoded file is stored.
        kernel: How pixels are resized, one of ``imagefile.KERNELS``.
        colour: The order of the stored channels.
        apply_orientation: Whether an EXIF orientation is applied.
    """

    size: tuple[int, int] | None
    kernel: str
    colour: Colour
    apply_orientation: bool


# The options are spelled out once, in the implementation.
@overload
def write_images(path: Path, source: Images, *, split: None = None, **options: Any) -> list[str]: ...


@overload
def write_images(
    path: Path, source: Images, *, split: Mapping[str, float] | Sequence[float], **options: Any
) -> dict[str, list[str]]: ...


def write_images(  # type: ignore[misc]
    path: Path,
    source: Images,
    *,
    split: Mapping[str, float] | Sequence[float] | None = None,
    stratified: bool = False,
    shuffle: bool = False,
    seed: int = 0,
    label: Labeller | None = None,
    size: tuple[int, int] | None = None,
    kernel: str = "area",
    colour: Colour = "RGB",
    apply_orientation: bool = False,
    unreadable: Literal["skip", "raise"] = "skip",
    shards: int | None = None,
    records_per_shard: int | None = None,
    bytes_per_shard: int | None = None,
    compression: str | None = None,
    overwrite: bool = False,
    resume: bool = False,
    workers: int = 1,
    manifest: bool = True,
    progress: bool | None = None,
) -> list[str] | dict[str, list[str]]:
    """Writes image files, one record a file. Each is decoded once before, to be sure that it is an image.

    The features of a record:

    ===========  ==========  ===========================================================================
    image        bytes       the file as it lies on disk; with ``size`` its pixels, uint8, row by row (with
                             ``image/shape`` and ``image/dtype``, so that ``read`` gives an array)
    format       bytes       "jpeg", "png", "gif", "bmp", "webp" or "tiff"; "raw" for pixels
    height       int64       in pixels, of what is stored (an EXIF orientation only if it was applied)
    width        int64       in pixels, of what is stored
    channels     int64       1 grey, 3 colour, 4 colour and alpha
    colour       bytes       only with ``size``: "RGB", "BGR" or "GRAY"
    label        int64       the number of the class
    filename     bytes       relative to the folder given, or the path as given; UTF-8
    orientation  int64       the EXIF orientation of what is stored, 1 to 8; 1 is upright
    ===========  ==========  ===========================================================================

    The manifest beside the files keeps the names of the classes, the images that were left out and why, and how the
    images are stored.

    Args:
        path: As for ``RecordWriter``; with ``split`` the part is added: ``data.tfrecord`` gives
            ``data-train.tfrecord``.
        source: A folder with one sub-folder a class, a pattern, a CSV file, or an iterable of (path, label); see
            ``imagelist.list_images``.
        split: Part -> fraction, such as {"train": 0.7, "val": 0.2, "test": 0.1}, or two or three fractions. Each file
            comes into exactly one part; which one depends on its name and the seed only.
        stratified: Whether each class is divided in these fractions by itself.
        shuffle: Whether the files are put in an order that depends on their names and the seed. A split always is.
        seed: Another number gives another division and order.
        label: What gives the label (an int or the name of a class) of a path, in the place of its folder.
        size: (height, width): store pixels of this size, instead of the encoded file. The image is stretched to it.
        kernel: How OpenCV resizes pixels: "nearest", "linear", "cubic", "area" or "lanczos4". tf.image.resize gives the
            same as "area" and nearly the same as "linear"; see https://docs.opencv.org (InterpolationFlags).
        colour: The order of the stored channels of pixels.
        apply_orientation: Whether images are turned upright as their EXIF orientation says. An encoded image that must
            be turned is encoded again, as JPEG of quality 95. TensorFlow's decoders ignore the orientation.
        unreadable: "skip" leaves images out that cannot be read or decoded, with one warning that names them, and lists
            them in the manifest; "raise" raises at the first.
        shards: As for ``write_arrays``, and so all that follow. Workers are threads; OpenCV works well in them.
        records_per_shard: See above.
        bytes_per_shard: See above.
        compression: See above.
        overwrite: See above.
        resume: See above.
        workers: See above.
        manifest: Whether a manifest is written.
        progress: See above.

    Returns:
        The paths of the files, in order; with ``split`` a dict of part -> paths.

    Raises:
        InvalidArgument: The source is of another kind or names no image, or options that cannot be.
        InvalidImage: No image can be read, or one cannot and ``unreadable`` is "raise"; it is named.
        RecordError: The files cannot be written.
    """
    if unreadable not in ("skip", "raise"):
        raise InvalidArgument(f"unreadable is {unreadable!r}; expected 'skip' or 'raise'")
    fractions = None if split is None else checked_fractions(split)
    if fractions is None and stratified:
        raise InvalidArgument("stratified is given without split: there is nothing to divide")
    pixels = _checked_pixels(size, kernel, colour, apply_orientation)
    options = WriteOptions(
        shards=shards,
        records_per_shard=records_per_shard,
        bytes_per_shard=bytes_per_shard,
        compression=compression,
        overwrite=overwrite,
        resume=resume,
        workers=workers,
        manifest=manifest,
        progress=progress,
    )
    images = list_images(source, label=label)
    checked, problems = _check_all(images, unreadable=unreadable, workers=workers, progress=progress)
    info: dict[str, Any] = {
        "classes": images.classes,
        "images": {**asdict(pixels), "turned_in_source": sum(found.orientation != 1 for found in checked.values())},
        "unreadable": [{"file": name, "reason": reason} for name, reason in problems.items()],
    }
    items = [item for item in images.items if item.path in checked]
    if fractions is None:
        order = shuffled(items, seed) if shuffle else items
        return write_planned(path, ImageSource(tuple(order), checked, pixels), options, info=info)
    stem, suffix = split_suffix(fspath(path))
    info["split"] = {"fractions": fractions, "seed": seed, "stratified": stratified}
    return {
        part: write_planned(
            f"{stem}-{part}{suffix}",
            ImageSource(tuple(members), checked, pixels),
            options,
            info={**info, "part": part},
        )
        for part, members in divide(items, fractions, seed=seed, stratified=stratified).items()
    }


@dataclass(frozen=True, slots=True)
class CheckedImage:
    """What was found when an image was decoded.

    Attributes:
        format: As in ``imagefile.ImageFile``, and so are the next four.
        height: See there.
        width: See there.
        channels: See there.
        orientation: See there.
        crc: The CRC-32C of the file.
    """

    format: str
    height: int
    width: int
    channels: int
    orientation: int
    crc: int


def _check_all(
    images: ImageList, *, unreadable: str, workers: int, progress: bool | None
) -> tuple[dict[str, CheckedImage], dict[str, str]]:
    """Decodes all images; returns what was found by path, and why others cannot be read."""
    paths = list(dict.fromkeys(item.path for item in images.items))
    checked: dict[str, CheckedImage] = {}
    problems: dict[str, str] = {}
    first: InvalidImage | None = None
    with ThreadPoolExecutor(workers) as executor, bar("checking images", len(paths), progress=progress) as advance:
        # Not all at once: a million images would be a million tasks in memory.
        groups = (paths[start : start + _TASKS] for start in range(0, len(paths), _TASKS))
        results = (found for group in groups for found in executor.map(_check, group))
        for path, found in zip(paths, results, strict=True):
            advance(1)
            if isinstance(found, CheckedImage):
                checked[path] = found
                continue
            if unreadable == "raise":
                executor.shutdown(cancel_futures=True)
                raise found
            problems[path] = str(found)
            first = first or found
    if first is not None:
        if not checked:
            raise first
        listed = "; ".join(list(problems.values())[:5]) + ("; ..." if len(problems) > 5 else "")
        warnings.warn(
            f"{len(problems)} of {len(paths)} images cannot be read and are left out: {listed}",
            TFQueueWarning,
            stacklevel=3,
        )
    return checked, problems


def _check(path: str) -> CheckedImage | InvalidImage:
    try:
        data = _read(path)
        found = imagefile.inspect(data, name=path)
    except InvalidImage as error:
        return error
    except RecordError as error:
        problem = InvalidImage(str(error))
        problem.__cause__ = error
        return problem
    return CheckedImage(found.format, found.height, found.width, found.channels, found.orientation, crc32c(data))


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise RecordError(f"the image {path!r} cannot be read: {error.strerror}", file=path) from error


@dataclass(frozen=True, slots=True)
class ImageSource:
    """Images as a source of records.

    Attributes:
        items: The files.
        checked: What was found in each, by path.
        pixels: How they are stored.
    """

    items: tuple[ImageItem, ...]
    checked: Mapping[str, CheckedImage]
    pixels: PixelOptions

    def __len__(self) -> int:
        return len(self.items)

    def part(self, start: int, stop: int) -> ImageSource:
        return ImageSource(self.items[start:stop], self.checked, self.pixels)

    def fingerprint(self) -> str:
        digest = hashlib.sha256(repr(self.pixels).encode())
        for item in self.items:
            digest.update(os.fsencode(item.filename) + repr((item.label, self.checked[item.path].crc)).encode())
        return digest.hexdigest()

    def rows(self) -> Iterator[dict[str, Any]]:
        store: Callable[[bytes, ImageItem, CheckedImage], dict[str, Any]]
        store = self._encoded if self.pixels.size is None else self._pixels
        for item in self.items:
            data = _read(item.path)
            found = self.checked[item.path]
            if crc32c(data) != found.crc:
                raise RecordError(f"the image {item.path!r} has changed since it was checked", file=item.path)
            # A name that is not UTF-8 is kept byte for byte.
            common = {"label": item.label, "filename": os.fsencode(item.filename)}
            yield {**store(data, item, found), **common}

    def _encoded(self, data: bytes, item: ImageItem, found: CheckedImage) -> dict[str, Any]:
        turn = self.pixels.apply_orientation and found.orientation != 1
        if not turn:
            return {
                "image": data,
                "format": found.format,
                "height": found.height,
                "width": found.width,
                "channels": found.channels,
                "orientation": found.orientation,
            }
        upright = imagefile.turned(imagefile.decode(data, name=item.path), found.orientation)
        return {
            "image": imagefile.encode_jpeg(upright, name=item.path),
            "format": "jpeg",
            "height": upright.shape[0],
            "width": upright.shape[1],
            "channels": 1 if upright.ndim == 2 else 3,
            "orientation": 1,
        }

    def _pixels(self, data: bytes, item: ImageItem, found: CheckedImage) -> dict[str, Any]:
        options = self.pixels
        assert options.size is not None
        array = imagefile.decode_colour(data, options.colour, name=item.path)
        orientation = found.orientation
        if options.apply_orientation:
            array, orientation = imagefile.turned(array, orientation), 1
        array = imagefile.resized(array, options.size, options.kernel)
        height, width, channels = array.shape
        return {
            "image": array,
            "format": "raw",
            "height": height,
            "width": width,
            "channels": channels,
            "colour": options.colour,
            "orientation": orientation,
        }


def _checked_pixels(size: Any, kernel: str, colour: Any, apply_orientation: bool) -> PixelOptions:
    if size is not None:
        sides = tuple(size) if isinstance(size, (tuple, list)) else ()
        if len(sides) != 2 or not all(isinstance(side, int) and side > 0 for side in sides):
            raise InvalidArgument(f"size is {size!r}; expected (height, width) in pixels")
        size = sides
    if kernel not in imagefile.KERNELS:
        raise InvalidArgument(f"kernel is {kernel!r}; expected one of {', '.join(imagefile.KERNELS)}")
    if colour not in ("RGB", "BGR", "GRAY"):
        raise InvalidArgument(f"colour is {colour!r}; expected 'RGB', 'BGR' or 'GRAY'")
    if size is None and (kernel, colour) != ("area", "RGB"):
        raise InvalidArgument("kernel and colour say how pixels are stored; pass size, else the file stays as it is")
    return PixelOptions(size, kernel, colour, apply_orientation)
