"""Reading a figure back: which pixels and which words does it really show?

`drawn_image` samples the rendered figure at the centre of every source pixel: a test sees what a person sees.
`compare` holds a whole figure against a kept reference, words exactly and pixels block by block.
"""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import matplotlib
import numpy as np
from matplotlib.figure import Figure

REFERENCES = Path(__file__).parent / "references"
# Mean grey levels that a block of 24x24 pixels may be off. Between matplotlib 3.8 and 3.11 letters are drawn so
# differently that blocks are off by up to 16; a wrong picture is off by far more, and words are compared as words.
BLOCK, TOLERANCE = 24, 24.0
# Text of another width moves the edges of a figure by a pixel.
EDGE = 2


def photograph() -> np.ndarray:
    """Grace Hopper, [600, 512, 3] uint8 RGB, from matplotlib's sample data."""
    path = Path(matplotlib.get_data_path()) / "sample_data" / "grace_hopper.jpg"
    return cv2.cvtColor(cv2.imread(str(path)), cv2.COLOR_BGR2RGB)


def transparent() -> np.ndarray:
    """A parcel on no ground, [128, 128, 4] uint8 RGBA, from matplotlib's sample data."""
    path = Path(matplotlib.get_data_path()) / "sample_data" / "Minduka_Present_Blue_Pack.png"
    return cv2.cvtColor(cv2.imread(str(path), cv2.IMREAD_UNCHANGED), cv2.COLOR_BGRA2RGBA)


def tiles(count: int, side: int = 32) -> np.ndarray:
    """Square pieces of the photograph, [count, side, side, 3] uint8; no two are equal."""
    photo = photograph()[80:440, 100:420]
    rows, columns = photo.shape[0] // side, photo.shape[1] // side
    pieces = [
        photo[row * side : (row + 1) * side, column * side : (column + 1) * side]
        for row in range(rows)
        for column in range(columns)
    ]
    return np.stack(pieces[:count])


def rendered(figure: Figure) -> np.ndarray:
    """The whole figure as [height, width, 3] uint8."""
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3].copy()


def drawn_image(figure: Figure, number: int, height: int, width: int) -> np.ndarray:
    """The image that axes ``number`` show, read from the rendered figure, as [height, width, 3] uint8."""
    canvas = rendered(figure)
    axes = figure.axes[number]
    corners = axes.transData.transform([(column, row) for row in range(height) for column in range(width)])
    across = np.clip(np.floor(corners[:, 0]).astype(int), 0, canvas.shape[1] - 1)
    down = np.clip(np.floor(canvas.shape[0] - corners[:, 1]).astype(int), 0, canvas.shape[0] - 1)
    return canvas[down, across].reshape(height, width, 3)


def words(figure: Figure) -> list[str]:
    """All text of a figure, from top to bottom and left to right."""
    texts = [text for text in figure.texts if text.get_text()]
    texts.sort(key=lambda text: (-round(text.get_position()[1], 3), text.get_position()[0]))
    return [text.get_text() for text in texts]


def compare(figure: Figure, name: str) -> list[str]:
    """What differs between ``figure`` and the kept reference ``name``; empty if it is the same picture."""
    path = REFERENCES / f"{name}.jpg"
    if not path.exists():
        return [f"no reference {name}.jpg; look at the picture, then run python -m tests.views.keep"]
    problems = []
    expected = cv2.imread(str(path))
    expected_words = json.loads((REFERENCES / f"{name}.json").read_text(encoding="utf-8"))
    for there, here in zip(expected_words, words(figure), strict=False):
        if there != here:
            problems.append(f"words: {here!r} instead of {there!r}")
    if len(expected_words) != len(words(figure)):
        problems.append(f"{len(words(figure))} texts instead of {len(expected_words)}")
    actual = cv2.cvtColor(rendered(figure), cv2.COLOR_RGB2BGR)
    if max(abs(one - other) for one, other in zip(actual.shape, expected.shape, strict=True)) > EDGE:
        return [*problems, f"size {actual.shape} instead of {expected.shape}"]
    height, width = (min(one, other) for one, other in zip(actual.shape[:2], expected.shape[:2], strict=True))
    actual, expected = actual[:height, :width], expected[:height, :width]
    far = block_means(actual) - block_means(expected)
    worst = np.unravel_index(np.abs(far).max(axis=-1).argmax(), far.shape[:2])
    if np.abs(far).max() > TOLERANCE:
        row, column = (int(position) * BLOCK for position in worst)
        problems.append(f"pixels: off by {np.abs(far).max():.0f} grey levels around row {row}, column {column}")
    return problems


def block_means(image: np.ndarray) -> np.ndarray:
    rows, columns = image.shape[0] // BLOCK, image.shape[1] // BLOCK
    cut = image[: rows * BLOCK, : columns * BLOCK].astype(np.float64)
    return cut.reshape(rows, BLOCK, columns, BLOCK, 3).mean(axis=(1, 3))


def keep(figure: Figure, name: str) -> None:
    """Make ``figure`` the reference ``name``."""
    REFERENCES.mkdir(exist_ok=True)
    bgr = cv2.cvtColor(rendered(figure), cv2.COLOR_RGB2BGR)
    cv2.imwrite(str(REFERENCES / f"{name}.jpg"), bgr, [cv2.IMWRITE_JPEG_QUALITY, 85])
    (REFERENCES / f"{name}.json").write_text(
        json.dumps(words(figure), ensure_ascii=False, indent=0) + "\n", encoding="utf-8"
    )
