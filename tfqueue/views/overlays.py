"""Boxes and masks that belong to the images of a batch, found by name and shape, and drawn over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from tfqueue.errors import InvalidArgument
from tfqueue.views import style
from tfqueue.views.features import Feature, holds_arrays

BOX_ORDERS = {
    "yxyx": "ymin, xmin, ymax, xmax",
    "xyxy": "xmin, ymin, xmax, ymax",
    "xywh": "x, y, width, height",
}
_BOX_WORDS = frozenset({"box", "boxes", "bbox", "bboxes", "bounding"})
_CORNERS = ("ymin", "xmin", "ymax", "xmax")
_MASK_WORDS = frozenset({"mask", "masks", "segmentation", "seg", "segments", "annotation"})
_MOST_BOXES = 50
_MOST_CLASSES = 64
_OPACITY = 0.45


@dataclass(frozen=True, slots=True)
class Overlays:
    """What lies over the images.

    Attributes:
        boxes: For each record [k, 4] as ymin, xmin, ymax, xmax in pixels; or None.
        masks: For each record [height, width] of class numbers, 0 is the ground; or None.
        used: Names of the features that these came from.
        notes: How they were taken.
    """

    boxes: Sequence[NDArray[Any]] | None = None
    masks: Sequence[NDArray[Any]] | None = None
    used: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


def find_overlays(features: Sequence[Feature], images: Sequence[NDArray[Any]], box_order: str) -> Overlays:
    """The boxes and masks among the features of a batch.

    Args:
        features: The features beside the image, one value a record.
        images: The images, [height, width, channels].
        box_order: One of BOX_ORDERS, for features with four numbers a box.

    Raises:
        InvalidArgument: ``box_order`` is unknown.
    """
    if box_order not in BOX_ORDERS:
        raise InvalidArgument(f"box_order={box_order!r}: expected one of {', '.join(map(repr, BOX_ORDERS))}")
    boxes, box_names, box_note = _boxes(features, images, box_order)
    mask = next((f for f in features if _is_mask(f, images)), None)
    names = set(box_names)
    notes = [box_note] if boxes is not None else []
    masks = None
    if mask is not None:
        masks = [_flat(row) for row in mask.values]
        names.add(mask.name)
        classes = np.unique(np.concatenate([np.unique(part) for part in masks[: len(images)]]))
        notes.append(f"Overlay {mask.name}: {_listed(classes)}.")
    return Overlays(boxes, masks, frozenset(names), tuple(notes))


def _listed(classes: NDArray[Any]) -> str:
    words = ", ".join(str(int(number)) for number in classes[:8])
    return f"classes {words}" + (f" and {len(classes) - 8} more" if len(classes) > 8 else "")


def _boxes(
    features: Sequence[Feature], images: Sequence[NDArray[Any]], order: str
) -> tuple[list[NDArray[Any]] | None, list[str], str]:
    corners = [next((f for f in features if corner in f.words), None) for corner in _CORNERS]
    known = [corner for corner in corners if corner is not None]
    if len(known) == 4:
        rows = [
            np.stack([np.asarray(c.values[i], np.float64).reshape(-1) for c in known], axis=1)
            if len({np.size(c.values[i]) for c in known}) == 1
            else np.empty((0, 4))
            for i in range(len(images))
        ]
        names, order = [c.name for c in known], "yxyx"
        words = "ymin, xmin, ymax, xmax"
    else:
        found = next((f for f in features if _BOX_WORDS & f.words and _has_fours(f)), None)
        if found is None:
            return None, [], ""
        rows = [np.asarray(found.values[i], np.float64).reshape(-1, 4) for i in range(len(images))]
        names, words = [found.name], f"{found.name} as {BOX_ORDERS[order]}"
    largest = max((float(np.abs(row).max()) for row in rows if row.size), default=0.0)
    relative = largest <= 2
    in_pixels = []
    odd = 0
    for row, image in zip(rows, images, strict=False):
        scale = np.array(image.shape[:2] * 2, np.float64) if relative else np.ones(4)
        box = np.stack(_corners(row, order), axis=1) * scale
        # Batches are padded with boxes of no size.
        drawn = (box[:, 2] > box[:, 0]) & (box[:, 3] > box[:, 1]) & np.isfinite(box).all(axis=1)
        in_pixels.append(box[drawn])
        odd += int((~((box[:, 2] >= box[:, 0]) & (box[:, 3] >= box[:, 1]) & np.isfinite(box).all(axis=1))).sum())
    note = f"Boxes: {words}, {'as parts of the image' if relative else 'in pixels'}."
    if odd:
        note += f" Not drawn: {odd} with corners the wrong way round or not finite (is this the box_order?)."
    return in_pixels, names, note


def _corners(row: NDArray[Any], order: str) -> tuple[NDArray[Any], ...]:
    first, second, third, fourth = row.T if len(row) else np.empty((4, 0))
    if order == "yxyx":
        return first, second, third, fourth
    if order == "xyxy":
        return second, first, fourth, third
    return second, first, second + fourth, first + third


def _has_fours(feature: Feature) -> bool:
    values = feature.values
    if holds_arrays(values):
        return all(row.dtype.kind in "iuf" and row.size % 4 == 0 for row in values)
    return values.dtype.kind in "iuf" and values.ndim in (2, 3) and values.shape[-1] == 4


def _is_mask(feature: Feature, images: Sequence[NDArray[Any]]) -> bool:
    if holds_arrays(feature.values) or feature.values.ndim in (3, 4):
        rows = list(feature.values[: len(images)])
    else:
        return False
    for row, image in zip(rows, images, strict=False):
        if row.dtype.kind not in "biuf" or row.shape not in (image.shape[:2], (*image.shape[:2], 1)):
            return False
    if _MASK_WORDS & feature.words:
        return True
    # Without a name that says so, only few classes of whole numbers make a mask.
    return all(row.dtype.kind in "bi" and len(np.unique(row)) <= _MOST_CLASSES for row in rows)


def _flat(mask: NDArray[Any]) -> NDArray[Any]:
    flat = mask.reshape(mask.shape[:2])
    if flat.dtype.kind == "f":
        flat = np.rint(np.nan_to_num(flat))
    return flat.astype(np.int64)


def tint(pixels: NDArray[np.uint8], mask: NDArray[Any]) -> NDArray[np.uint8]:
    """8-bit RGB pixels with the classes of a mask laid over them; 0 stays clear."""
    height, width = pixels.shape[:2]
    small = cv2.resize(mask.astype(np.int32), (width, height), interpolation=cv2.INTER_NEAREST)
    colours = (np.array([to_rgb(colour) for colour in style.PALETTE[:-1]]) * 255).astype(np.float32)
    chosen = colours[(small - 1) % len(colours)]
    mixed = np.rint(pixels * (1 - _OPACITY) + chosen * _OPACITY).astype(np.uint8)
    tinted: NDArray[np.uint8] = np.where((small != 0)[..., np.newaxis], mixed, pixels)
    return tinted


def draw_boxes(axes: Any, boxes: NDArray[Any], scale: tuple[float, float]) -> None:
    """Draw boxes (ymin, xmin, ymax, xmax in pixels) into axes that show the image shrunk by ``scale``."""
    for top, left, bottom, right in boxes[:_MOST_BOXES]:
        # Image coordinates count edges, imshow counts centres.
        corner = (left * scale[1] - 0.5, top * scale[0] - 0.5)
        size = ((right - left) * scale[1], (bottom - top) * scale[0])
        # A white line under the coloured one, so that it is seen on every ground.
        for colour, width in ((style.PAPER, 2.6), (style.CANDIDATE, 1.3)):
            axes.add_patch(Rectangle(corner, *size, fill=False, edgecolor=colour, linewidth=width))
