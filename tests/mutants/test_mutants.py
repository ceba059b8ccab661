"""Every wrong twin is caught, and nearly all for the right reason."""

from __future__ import annotations

import os

import pytest

import tfqueue
from tests.mutants.catalogue import MUTANTS, Mutant
from tests.mutants.tiles import write
from tfqueue.equivalence.causes import NAMES

pytestmark = pytest.mark.filterwarnings("ignore::tfqueue.errors.TFQueueWarning")

# The wrong twins of shuffled pipelines repeat those in order; TFQUEUE_SLOW=1 runs them, too.
CHOSEN = [m for m in MUTANTS if not m.slow or os.environ.get("TFQUEUE_SLOW")]
_named: dict[str, bool] = {}


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write(tmp_path_factory.mktemp("tiles"))


@pytest.mark.parametrize("mutant", CHOSEN, ids=str)
def test_is_caught(mutant: Mutant, paths: list[str]) -> None:
    report = tfqueue.compare(*mutant.sides(paths), **mutant.options)
    assert not report.equivalent, str(report)
    _named[mutant.name] = any(cause.name in mutant.causes for cause in report.causes)


def test_the_right_cause_is_named() -> None:
    missed = [name for name, found in _named.items() if not found]
    assert len(missed) <= 0.05 * len(_named), missed


def test_there_are_enough_of_them_and_every_cause_has_one() -> None:
    assert len(CHOSEN) >= 80
    covered = {name for mutant in MUTANTS for name in mutant.causes}
    assert covered <= set(NAMES)
    missing = set(NAMES) - covered
    # These need a data set of their own: they are tested in test_other_mutants.py and beside the code that finds them.
    assert missing <= {
        "repeat-before-shuffle",
        "buffer-too-small",
        "buffer-too-large",
        "records-doubled",
        "consumers-race",
        "random-values",
        "batch-before-shuffle",
        "elements-reordered",
        "reshaped",
    }
