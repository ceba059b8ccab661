"""One figure of every kind, each looked at by eye before it was kept as a reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import cv2
import numpy as np
from matplotlib.figure import Figure

from tests.views import pictures
from tfqueue import views

CLASSES = ["flag", "cord", "hat", "badge", "sky"]


def jpeg(image: np.ndarray) -> bytes:
    return cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 95])[1].tobytes()


def strings(items: list[bytes]) -> np.ndarray:
    array = np.empty(len(items), object)
    array[:] = items
    return array


def colour_batch() -> Figure:
    batch = {
        "image": pictures.tiles(12).astype(np.float32) / 127.5 - 1,
        "label": np.arange(12) % 5,
        "file": strings([b"grace_hopper_%02d.jpg" % number for number in range(12)]),
        "weight": np.linspace(0, 1, 12),
    }
    return views.show_batch(batch, class_names=CLASSES)


def grey_batch() -> Figure:
    return views.show_batch((pictures.tiles(30, 16)[..., 0], np.arange(30)))


def photograph_alone() -> Figure:
    return views.show_batch({"image": pictures.photograph(), "label": 7, "file": b"grace_hopper.jpg"}, histograms=True)


def transparent() -> Figure:
    return views.show_batch(pictures.transparent()[np.newaxis])


def not_finite() -> Figure:
    batch = pictures.tiles(4).astype(np.float32) / 255
    batch[1, 8:14, 8:20] = np.nan
    batch[2, :, 30:] = np.inf
    return views.show_batch((batch, np.arange(4)))


def channels_first() -> Figure:
    tiles = pictures.tiles(6).astype(np.float32)
    tiles = (tiles - tiles.mean((1, 2, 3), keepdims=True)) / tiles.std((1, 2, 3), keepdims=True)
    return views.show_batch((tiles.transpose(0, 3, 1, 2), np.eye(10)[np.arange(6)]))


def encoded() -> Figure:
    photo = pictures.photograph()
    cuts = [photo[20:200, 150:400], photo[150:330, 120:260], photo[400:520, 50:330], photo[0:150, 0:150]]
    items = [jpeg(cut) for cut in cuts]
    items[3] = items[3][:300]
    return views.show_batch({"image/encoded": strings(items), "image/class/label": np.arange(4)})


def raw_bytes() -> Figure:
    planes = pictures.tiles(8).transpose(0, 3, 1, 2)
    return views.show_batch({"image_raw": strings([plane.tobytes() for plane in planes]), "label": np.arange(8)})


def boxes_and_masks() -> Figure:
    photo = pictures.photograph()
    image = np.stack([photo, photo[:, ::-1]])
    mask = np.zeros((2, *photo.shape[:2]), np.int32)
    rows, columns = np.mgrid[: photo.shape[0], : photo.shape[1]]
    mask[0][((rows - 230) / 130) ** 2 + ((columns - 250) / 85) ** 2 < 1] = 1
    mask[1][rows > 370] = 2
    boxes = np.array(
        [[[0.03, 0.3, 0.23, 0.7], [0.25, 0.28, 0.36, 0.62]], [[0.8, 0.1, 0.95, 0.5], [0, 0, 0, 0]]],
        np.float32,
    )
    return views.show_batch({"image": image, "mask": mask, "boxes": boxes, "label": np.array([1, 2])})


def sequences() -> Figure:
    time = np.linspace(0, 6, 90)
    walks = np.stack([np.sin(time * (1 + number)) * (number + 1) for number in range(6)])
    paths = np.stack([np.cumsum(np.cos(time[:, None] * [1, 2, 3] + number), axis=0) for number in range(6)])
    return views.show_batch({"image": pictures.tiles(6), "label": np.arange(6), "speed": walks, "path": paths})


def audio() -> Figure:
    time = np.arange(8000) / 8000
    sounds = [np.sin(2 * np.pi * 5 * (n + 1) * time) * np.exp(-((time - 0.15 * (n + 1)) ** 2) * 40) for n in range(6)]
    batch = {
        "audio": (np.stack(sounds) * 20000).astype(np.int16),
        "label": strings([b"yes", b"no", b"up"] * 2),
    }
    return views.show_batch(batch)


def pair_of_changes() -> Figure:
    reference = pictures.tiles(8)
    candidate = reference.copy()
    candidate[2] = candidate[2][..., ::-1]
    candidate[4, 3:6, 5:20] //= 2
    candidate[6] = candidate[6][:, ::-1]
    labels = np.arange(8)
    wrong = labels.copy()
    wrong[7] = 0
    return views.show_pair({"image": reference, "label": labels}, {"image": candidate, "label": wrong}, n=4)


def pair_of_shapes() -> Figure:
    reference = pictures.tiles(3).astype(np.float32) / 255
    candidate = reference[:2, :28].copy()
    candidate[1, 5:9] = np.nan
    return views.show_pair((reference, np.arange(3)), (candidate, np.arange(2)))


def pair_by_channel() -> Figure:
    reference = pictures.tiles(2)
    candidate = reference.copy()
    candidate[0, 4:8, 4:8, 1] ^= 64
    candidate[1] = candidate[1][..., ::-1]
    return views.show_pair(reference, candidate, channels=True)


def buffered(size: int, buffer: int, epochs: int, seed: int, *, across: bool) -> np.ndarray:
    """The order that a shuffle buffer gives, refilled across the epochs or emptied at the end of each."""
    rng = np.random.default_rng(seed)
    out: list[int] = []
    waiting: list[int] = []
    for epoch in range(epochs):
        for number in range(size):
            waiting.append(number)
            if len(waiting) >= buffer:
                out.append(waiting.pop(int(rng.integers(len(waiting)))))
        while waiting and (not across or epoch == epochs - 1):
            out.append(waiting.pop(int(rng.integers(len(waiting)))))
    return np.array(out)


def mixing_of_two() -> Figure:
    labels = np.repeat(np.arange(8), 40)

    def stream(order: np.ndarray) -> Iterator[dict[str, np.ndarray]]:
        for part in np.split(order, 40):
            yield {"index": part, "label": labels[part]}

    reference = stream(buffered(320, 128, 2, 1, across=True))
    return views.plot_mixing(reference, stream(buffered(320, 16, 2, 2, across=False)), key="index")


def mixing_of_many() -> Figure:
    return views.plot_mixing(buffered(6000, 600, 3, 3, across=True))


def pipeline() -> Figure:
    from tests.views.pipelines import shuffled
    from tfqueue.topology.trace import trace

    return views.plot_topology(trace(shuffled))


def pipeline_of_many_readers() -> Figure:
    from tests.views.pipelines import joined
    from tfqueue.topology.trace import trace

    return views.plot_topology(trace(joined))


def dataset_chain() -> Figure:
    from tests.views.pipelines import rewritten

    return views.plot_topology(rewritten())


def accounts() -> Figure:
    from tfqueue.stats import PipelineStats, QueueStats, StageStats, StepsStats

    means = (30.0, 6.0)
    queues = (QueueStats("input", 32, 0, 32, 30.0), QueueStats("batch", 32, 0, 32, 6.0, min_after_dequeue=4))
    rng = np.random.default_rng(0)
    history = tuple((0.5 * n, tuple(int(mean + rng.integers(-2, 3)) for mean in means)) for n in range(60))
    stage = StageStats(
        name="batch/enqueue",
        queue="batch",
        threads=4,
        alive=4,
        runs=650,
        records=650,
        epochs=False,
        source="train.py:20 in build",
    )
    return views.plot_stats(
        PipelineStats(
            steps=20,
            delivered=640,
            ended=True,
            dropped=10,
            dropped_why="the last batch would not be full",
            fetched_elsewhere=0,
            step_seconds=2.0,
            longest_step_seconds=0.5,
            stages=(stage,),
            queues=queues,
            history=history,
            step_history=tuple(
                StepsStats(
                    1.45 * (n + 1), 1, 0.5 if not n else 0.08 + 0.04 * (n % 3), 0.6 if not n else 0.1 + 0.08 * (n % 3)
                )
                for n in range(20)
            ),
        )
    )


FIGURES: dict[str, Callable[[], Figure]] = {
    function.__name__: function
    for function in (
        colour_batch,
        grey_batch,
        photograph_alone,
        transparent,
        not_finite,
        channels_first,
        encoded,
        raw_bytes,
        boxes_and_masks,
        sequences,
        audio,
        pair_of_changes,
        pair_of_shapes,
        pair_by_channel,
        mixing_of_two,
        mixing_of_many,
        pipeline,
        pipeline_of_many_readers,
        dataset_chain,
        accounts,
    )
}
