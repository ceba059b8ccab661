"""Equal pairs: not one false alarm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfqueue
from tests import gallery
from tests.equivalence.batches import cut, taken
from tests.mutants.tiles import BATCH, legacy, twin, write

# The pipelines of threads without shuffling warn about their order, which is what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::tfqueue.errors.TFQueueWarning")

DTYPES = ("uint8", "int32", "int64", "float16", "float32", "float64", "bool", "string")


def features(rng: np.random.Generator, count: int, kinds: list[tuple[str, tuple[int, ...]]]) -> dict[str, np.ndarray]:
    """Random data; a few values occur often, so that records may be equal."""
    data = {}
    for number, (dtype, shape) in enumerate(kinds):
        values = rng.integers(0, rng.choice([2, 5, 1000]), (count, *shape))
        if dtype == "string":
            array = np.empty(values.shape, dtype=object)
            array[...] = np.vectorize(lambda v: b"\xff" * (v % 3) + b"%d" % v, otypes=[object])(values)
        else:
            array = values.astype(dtype) if dtype in ("bool", "uint8") else (values - 3).astype(dtype)
        data[f"f{number}"] = array
    return data


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Any, Any, dict[str, Any]]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(1, 60))
    kinds = draw(
        st.lists(
            st.tuples(st.sampled_from(DTYPES), st.lists(st.integers(1, 3), max_size=3).map(tuple)),
            min_size=1,
            max_size=3,
        )
    )
    data = features(rng, count, kinds)
    size = draw(st.integers(1, 9))
    drop = draw(st.booleans()) and count >= size
    how = draw(st.sampled_from(["same", "shuffled", "lazy", "tuple"]))
    left = cut(data, size, drop=drop)
    if how == "shuffled":
        kept = taken(data, rng.permutation(count - count % size if drop else count))
        return left, cut(kept, size), {"order": "any"}
    if how == "lazy":
        return lambda_of(left), left, {}
    if how == "tuple":
        return [tuple(b.values()) for b in left], [list(b.values()) for b in left], {}
    return left, cut(data, size, drop=drop), {}


def lambda_of(batches: list[Any]) -> Iterator[Any]:
    yield from batches


@settings(deadline=None, max_examples=500)
@given(pairs())
def test_drawn_pairs(pair: tuple[Any, Any, dict[str, Any]]) -> None:
    left, right, options = pair
    report = tfqueue.compare(left, right, **options)
    assert report.equivalent, str(report)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write(tmp_path_factory.mktemp("tiles"))


@pytest.mark.parametrize("epochs", [1, 2])
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("keep", [False, True])
def test_tiles(paths: list[str], shuffle: bool, threads: int, keep: bool, epochs: int) -> None:
    reference = legacy(paths, shuffle=shuffle, threads=threads, keep_remainder=keep, epochs=epochs)
    batch = (lambda d: d.batch(BATCH)) if keep else (lambda d: d.batch(BATCH, drop_remainder=True))
    report = tfqueue.compare(reference, twin(paths, shuffle=shuffle, epochs=epochs, batch=batch))
    assert report.equivalent, str(report)


@pytest.mark.parametrize("engine", ["lockstep", "tfdata"])
@pytest.mark.parametrize(
    "settings",
    [{}, {"shuffle": True}, {"threads": 4}, {"shuffle": True, "epochs": 2, "keep_remainder": True}],
    ids=["plain", "shuffled", "threads", "epochs"],
)
def test_engines(paths: list[str], settings: dict[str, Any], engine: str) -> None:
    build = legacy(paths, **settings)
    report = tfqueue.compare(build, tfqueue.QueuePipeline(build, engine=engine))
    assert report.equivalent, str(report)


# Programs whose twin is not equal, as its note says, or whose own runs differ.
UNEQUAL = {
    "T1-tfrecord-jpeg-divided": "the last bit of a division depends on the graph optimiser",
    "T2-cifar-distorted": "random numbers",
    "T4-enet-joint-augmentation": "random numbers",
    "T27-two-independent": "two pipelines race",
    "T11-towers-one-queue": "two consumers of one queue race",
    "T11-provider-clones": "two consumers of one queue race",
    "T1-fewer-records-than-a-batch": "delivers nothing",
}
ENTRIES = [e for e in gallery.entries() if e.needs is None and not e.random_ops and e.name not in UNEQUAL]


@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_gallery(entry: gallery.Entry, tmp_path: Path) -> None:
    program = entry.program(tmp_path)
    if program.hand_written_twin is None or program.feed or program.before_step or program.feeders:
        pytest.skip("needs Python beside the graph, or has no twin")
    limit = None if program.finite else program.steps * (program.batch_size or 1)
    report = tfqueue.compare(program.build_fn, program.hand_written_twin, max_records=limit)
    assert report.equivalent, str(report)
