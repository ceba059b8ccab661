"""How fast pictures and pages are made, and that memory does not grow with the streams.

Each time is the best of several runs in this process, after imports. Run it with

    python benchmarks/views.py [--quick]

It prints one line a claim, with its goal, and exits with 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import cv2
import matplotlib
import numpy as np

from tfqueue import compare, views
from tfqueue.equivalence.report import Difference, Location, Report


@dataclass(frozen=True)
class Result:
    """One line: what was measured, the goal, and whether it was reached."""

    claim: str
    measured: str
    goal: str
    reached: bool


def best(function: Callable[[], Any], repeat: int) -> float:
    """The seconds that one call takes at best."""
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def photographs(count: int, side: int = 224) -> np.ndarray:
    """Pieces of matplotlib's photograph, [count, side, side, 3] uint8."""
    path = Path(matplotlib.get_data_path()) / "sample_data" / "grace_hopper.jpg"
    photo = cv2.cvtColor(cv2.imread(str(path)), cv2.COLOR_BGR2RGB)
    rows, columns = photo.shape[0] - side, photo.shape[1] - side
    starts = [(n * 37 % rows, n * 61 % columns) for n in range(count)]
    return np.stack([photo[row : row + side, column : column + side] for row, column in starts])


def grid(folder: Path, form: str, repeat: int) -> Result:
    images: Any = photographs(64)
    if form == "float32":
        images = images.astype(np.float32) / 127.5 - 1
    elif form == "JPEG":
        encoded = [cv2.imencode(".jpg", image)[1].tobytes() for image in images]
        images = np.array(encoded, object)
    batch = {"image": images, "label": np.arange(64)}
    seconds = best(lambda: views.show_batch(batch, folder / "grid.png"), repeat)
    return Result(f"grid of 64 images 224x224, {form}, to PNG", f"{seconds:.2f} s", "under 1.5 s", seconds < 1.5)


def pair(folder: Path, repeat: int) -> Result:
    images = photographs(8)
    seconds = best(lambda: views.show_pair(images, images // 2, folder / "pair.png"), repeat)
    return Result("8 pairs of images 224x224 to PNG", f"{seconds:.2f} s", "under 1.5 s", seconds < 1.5)


def differing(count: int) -> Report:
    """A report of ``count`` images 224x224 that all differ by noise, the hardest to compress."""
    rng = np.random.default_rng(0)
    differences = []
    for number, image in enumerate(photographs(count)):
        noisy = np.clip(image + rng.integers(-9, 10, image.shape), 0, 255).astype(np.uint8)
        place = Location(0, number, number)
        differences.append(
            Difference(
                kind="changed",
                reference=place,
                candidate=place,
                feature="image",
                index=(0, 0, 0),
                reference_value=int(image[0, 0, 0]),
                candidate_value=int(noisy[0, 0, 0]),
                differing={"image": int((image != noisy).sum())},
                reference_record={"image": image, "label": number},
                candidate_record={"image": noisy, "label": number},
            )
        )
    few = [{"image": photographs(4), "label": np.arange(4)}]
    return dataclasses.replace(compare(few, few), verdict="different", differences=tuple(differences))


def page(folder: Path, repeat: int) -> list[Result]:
    report = differing(50)
    path = folder / "report.html"
    seconds = best(lambda: report.to_html(path), repeat)
    size = path.stat().st_size / 1e6
    return [
        Result("HTML report of 50 differing images 224x224", f"{seconds:.2f} s", "under 3 s", seconds < 3),
        Result("its size", f"{size:.2f} MB", "under 5 MB", size < 5),
    ]


def memory(quick: bool) -> list[Result]:
    """Peak memory of plot_mixing and show_batch on a short and on a ten times longer stream of images."""
    short, long = (20, 200) if quick else (100, 1000)

    def stream(batches: int) -> Iterator[dict[str, np.ndarray]]:
        images = photographs(16, 64)
        for number in range(batches):
            yield {"image": images, "index": np.arange(16) + 16 * number, "label": np.arange(16) % 4}

    def peak(function: Callable[[], Any]) -> float:
        tracemalloc.start()
        function()
        top = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        return top

    results = []
    for name, function in (
        ("plot_mixing", lambda batches: views.plot_mixing(stream(batches), key="index")),
        ("show_batch", lambda batches: views.show_batch(stream(batches))),
    ):
        function(2)
        before, after = (peak(partial(function, batches)) for batches in (short, long))
        records = 16 * (long - short)
        grown = (after - before) * 1e6 / records
        goal = 200.0
        words = f"{before:.1f} MB and {after:.1f} MB: {grown:.0f} bytes a record of {64 * 64 * 3:,}"
        results.append(
            Result(
                f"peak memory of {name}, {16 * short:,} and {16 * long:,} images",
                words,
                f"under {goal:.0f}",
                grown < goal,
            )
        )
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    quick = parser.parse_args().quick
    repeat = 2 if quick else 5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results = [grid(folder, form, repeat) for form in ("uint8", "float32", "JPEG")]
        results += [pair(folder, repeat), *page(folder, repeat), *memory(quick)]
    for result in results:
        mark = "ok  " if result.reached else "MISS"
        print(f"{mark}  {result.claim}: {result.measured} (goal: {result.goal})")
    return 0 if all(result.reached for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
