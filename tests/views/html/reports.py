"""Reports to look at: real comparisons, and one made of hostile strings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tests.views import pictures
from tests.views.gallery import strings
from tfqueue import compare
from tfqueue.equivalence.report import (
    Cause,
    CheckResult,
    Difference,
    FeatureReport,
    Location,
    Report,
    SideReport,
)

HOSTILE = [
    "<script>document.title = 'taken'; window.taken = 1</script>",
    '"><img src=x onerror="window.taken = 1">',
    "'; window.taken = 1; '",
    "</style></script></title><h1>Equivalent</h1>",
    "{{ 7 * 7 }} {% raw %}",
    "\u202egnp.exe",
    "\x00\x07\x1b[31m",
    "a" * 10_000,
    "\ud800 lone",
    "&lt;b&gt;",
]


def stream(images: np.ndarray, labels: np.ndarray, batch: int = 8) -> Iterator[dict[str, Any]]:
    for start in range(0, len(images), batch):
        numbers = range(start, min(start + batch, len(images)))
        yield {
            "image": images[start : start + batch],
            "label": labels[start : start + batch],
            "file": strings([b"tile %03d.jpg" % number for number in numbers]),
        }


def different(count: int = 40) -> Report:
    """22 of 40 records differ: one with swapped channels, 20 a little brighter, one with another label."""
    images, labels = pictures.tiles(count), np.arange(count)
    changed, relabelled = images.copy(), labels.copy()
    changed[3] = changed[3][..., ::-1]
    changed[10:30, 5:9] += 7
    relabelled[35] = 0
    sides = list(stream(images, labels)), list(stream(changed, relabelled))
    return compare(*sides, key="file", samples=50)


def equivalent() -> Report:
    batches = list(stream(pictures.tiles(16), np.arange(16)))
    return compare(batches, batches)


def photographs(count: int = 50) -> Report:
    """50 pieces of a photograph, 224 by 224, all changed by noise: the heaviest that a page must hold."""
    photo = pictures.photograph()
    rng = np.random.default_rng(0)
    differences = []
    for number in range(count):
        image = photo[7 * number : 7 * number + 224, 5 * number : 5 * number + 224]
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
    return replace(equivalent(), verdict="different", differences=tuple(differences))


def hostile() -> Report:
    """A report in which every text that can come from data or names is hostile."""
    record = {text: text.encode("utf-8", "surrogatepass") for text in HOSTILE}
    record["bytes"] = b"\xff\xfe\x00\x01 not UTF-8 \xc3("
    differences = [
        Difference(
            kind="changed",
            reference=Location(0, number, number),
            candidate=Location(0, number, number),
            feature=text,
            index=(),
            reference_value=text,
            candidate_value=text.encode("utf-8", "surrogatepass"),
            differing={text: 1},
            reference_record=record,
            candidate_record={**record, text: b"other"},
        )
        for number, text in enumerate(HOSTILE)
    ]
    joined = " ".join(HOSTILE)
    side = SideReport(
        role="reference",
        kind="iterable",
        name=joined,
        batches=1,
        records=len(HOSTILE),
        batch_sizes=((len(HOSTILE), 1),),
        ended="error",
        error=joined,
        order=joined,
        seconds=0.0,
        features=tuple(FeatureReport(text, "dense", "string", ()) for text in HOSTILE),
    )
    return Report(
        verdict="different",
        checks=(CheckResult("records", "different", joined, hint=joined),),
        differences=tuple(differences),
        causes=(Cause("label-shifted", "candidate", joined, joined, joined, HOSTILE[0]),),
        reference=side,
        candidate=side,
        options={"key": joined, "samples": 5},
    )
