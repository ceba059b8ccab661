"""The one table of TF1 names: what each is here, what to write today, and what changes then.

`tfqueue.compat.v1` and `tfqueue.compat.contrib` take their names from it, the page tf1-names.md beside it is written
from it (``python -m tfqueue.compat.names``), and `tfqueue scan` looks names up in it. No TensorFlow is imported here
before `load` is called.
"""

from __future__ import annotations

import threading
from functools import cache
from importlib import import_module
from typing import Any

from tfqueue.compat import names_contrib, names_core, names_packages, names_page
from tfqueue.compat.names_row import Kind, OldName
from tfqueue.errors import CannotRestore

__all__ = [
    "TABLE",
    "Kind",
    "OldName",
    "below",
    "forget_restored",
    "load",
    "lookup",
    "parts_below",
    "restored_so_far",
    "table_as_markdown",
    "touch",
]

TABLE: tuple[OldName, ...] = (*names_core.ROWS, *names_contrib.ROWS, *names_packages.ROWS)

_BY_NAME = {row.name: row for row in TABLE}
_used: dict[str, OldName] = {}
_lock = threading.Lock()


def lookup(name: str) -> OldName | None:
    """The row of a full dotted name (``"tf.pack"``, ``"tf.contrib.slim.conv2d"``), or None where the table has none."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    while "." in name:
        name = name.rpartition(".")[0]
        if f"{name}.*" in _BY_NAME:
            return _BY_NAME[f"{name}.*"]
    return None


@cache
def below(prefix: str) -> tuple[OldName, ...]:
    """The rows of the names that lie below ``prefix`` (``"tf.contrib.data"``), at any depth."""
    return tuple(row for row in TABLE if row.name.startswith(f"{prefix}."))


@cache
def parts_below(prefix: str) -> frozenset[str]:
    """The next parts of all names below ``prefix`` that are not simply kept: of ``"tf.train"``, ``SummaryWriter``."""
    rest = (row.name[len(prefix) + 1 :] for row in below(prefix) if row.kind != "kept")
    return frozenset(part for part in (name.partition(".")[0] for name in rest) if part != "*")


def load(row: OldName) -> Any:
    """The object behind a restored name.

    Raises:
        CannotRestore: The name is truly gone, or an optional package that has it is not installed.
    """
    if row.home is None:
        raise CannotRestore(
            f"{row.name} was removed in TensorFlow {row.removed} and cannot be restored: it was {row.here}."
            + (f" Today: {row.modern}" if row.modern else ""),
            name=row.name,
            modern=row.modern or None,
        )
    module_name, _, path = row.home.partition(":")
    try:
        found: Any = import_module("tensorflow.compat.v1" if module_name == "tf1" else module_name)
        for part in path.split(".") if path else ():
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        extra = {"tf_slim": "slim", "tf_keras": "keras"}.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        raise CannotRestore(
            f"{row.name} is restored through {error.name}, which is not installed: pip install 'tfqueue[{extra}]'",
            name=row.name,
            modern=row.modern or None,
        ) from error
    except AttributeError as error:
        raise CannotRestore(
            f"{row.name} is restored through {row.home.replace(':', '.')}, which the installed version does not have",
            name=row.name,
            modern=row.modern or None,
        ) from error
    return found


def touch(row: OldName | str) -> None:
    """Remember that the program used a name, given as its row or in full."""
    found = _BY_NAME[row] if isinstance(row, str) else row
    with _lock:
        _used.setdefault(found.name, found)


def restored_so_far() -> tuple[OldName, ...]:
    """The names that this process took from here because TensorFlow lacks them, in the order of their first use."""
    with _lock:
        return tuple(_used.values())


def forget_restored() -> None:
    """Begin anew: the names that were taken so far are another program's."""
    with _lock:
        _used.clear()


def table_as_markdown() -> str:
    """The page of the documentation, tfqueue/compat/tf1-names.md."""
    return names_page.page(TABLE)


if __name__ == "__main__":
    print(table_as_markdown(), end="")
