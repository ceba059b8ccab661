"""One small TF1 input pipeline of our own for each shape of real programs, with the records it must deliver.

    from tests import gallery

    @pytest.mark.parametrize("entry", gallery.entries(topology="T1"), ids=str)
    def test_everything(entry, tmp_path):
        program = entry.program(tmp_path)              # makes its data; epochs=3 where entry.takes_epochs
        batches = my_engine(program.build_fn)
        assert gallery.problems(program, batches) == []
        broken = program.corrupt("missing-file", 3)    # exactly that stage fails at that record

An entry whose `needs` is not None cannot be built by plain TensorFlow. `oracle.run` shows what a program may ask of
the one who runs it: `feeders` in threads of their own, `before_step`, `feed`, and for an endless one a number of steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from .check import fingerprint, problems, split
from .registry import NO_FAULT, DataFile, Entry, Fault, Program, Stage, registered

__all__ = [
    "NO_FAULT",
    "DataFile",
    "Entry",
    "Fault",
    "Program",
    "Stage",
    "entries",
    "fingerprint",
    "get",
    "problems",
    "programs",
    "split",
]

_FAMILIES = (
    "tfrecords",
    "fixed_length",
    "images",
    "slices",
    "text",
    "joins",
    "filters",
    "padding",
    "handmade",
    "python_sources",
    "feeding",
    "several",
    "slim",
    "variants",
    "sparse",
    "control_flow",
    "habits",
)
for _family in _FAMILIES:
    import_module(f"{__name__}.{_family}")  # Importing a family registers its programs.


def entries(
    *, topology: str | None = None, lowerable: bool | None = None, ordered: bool | None = None
) -> tuple[Entry, ...]:
    """The programs of the gallery, all or those that match; no file is made."""
    return tuple(
        e
        for e in registered()
        if (topology is None or topology in e.topologies)
        and (lowerable is None or e.lowerable == lowerable)
        and (ordered is None or e.ordered == ordered)
    )


def get(name: str) -> Entry:
    """The entry of that name."""
    return next(e for e in registered() if e.name == name)


def programs(folder: Path | str, **which: object) -> Iterator[Program]:
    """Makes each program's data in a folder of its own below `folder`; `which` as for `entries`."""
    for found in entries(**which):  # type: ignore[arg-type]
        yield found.program(folder)
