"""Modules that are TensorFlow's own with the restored names laid over them."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from importlib import import_module
from types import ModuleType
from typing import Any

from tfqueue.compat import names
from tfqueue.errors import CannotRestore

_MISSING = object()
_modules: dict[str, RestoredModule] = {}
_lock = threading.Lock()


class RestoredModule(ModuleType):
    """A module of TF1 under its TF1 name: restored names first, then what today's module has.

    What stands behind it is imported when the first attribute is asked for.
    """

    def __init__(self, name: str) -> None:
        super().__init__("tensorflow" + name[len("tf") :])
        self._name = name
        self._base_found: Any = _MISSING
        self._plain: set[str] = set()  # names that the table says nothing about
        self._kept: list[str] = []
        self.__path__: list[str] = []  # a package, for `import tensorflow.contrib.slim`

    def __getattr__(self, attribute: str) -> Any:
        if attribute in self._plain:
            return getattr(self._base_found, attribute)
        if attribute.startswith("__") and attribute not in ("__version__", "__git_version__", "__compiler_version__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {attribute!r}")
        found, own = _attribute(f"{self._name}.{attribute}", self._base, attribute)
        if own:  # not kept here: a program may put something else into TensorFlow's module
            self._plain.add(attribute)
        else:
            self.__dict__[attribute] = found
            self._kept.append(attribute)
        return found

    def forget(self) -> None:
        """Look every name up anew when it is used next, as in a process in which none was used before."""
        while self._kept:
            self.__dict__.pop(self._kept.pop(), None)

    def __dir__(self) -> Iterable[str]:
        gone = {row.name for row in names.below(self._name) if row.kind == "gone"}
        restored = {part for part in names.parts_below(self._name) if f"{self._name}.{part}" not in gone}
        return sorted({name for name in dir(self._base) if not name.startswith("_")} | restored)

    def __repr__(self) -> str:
        return f"<module {self.__name__!r}, restored by tfqueue>"

    @property
    def _base(self) -> Any:
        if self._base_found is _MISSING:
            self._base_found = _base_of(self._name)
        return self._base_found


class SourceFolder(ModuleType):
    """A folder of the sources of tf.contrib, ``tf.contrib.layers.python``: what lay there, or in its package."""

    def __init__(self, name: str) -> None:
        super().__init__("tensorflow" + name[len("tf") :])
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {attribute!r}")
        below = f"{self._name}.{attribute}"
        return SourceFolder(below) if _source(below) else getattr(module(f"tf.{_source(self._name)}"), attribute)


def _source(name: str) -> str | None:
    """What is there now for a folder or file of the sources of tf.contrib, without ``tf.``."""
    from tfqueue.compat.submodules import SOURCES

    return SOURCES.get(name[len("tf.") :])


def module(name: str) -> RestoredModule:
    """The one module of a TF1 name such as ``"tf"``, ``"tf.train"`` or ``"tf.contrib.slim"``."""
    with _lock:
        if name not in _modules:
            _modules[name] = RestoredModule(name)
        return _modules[name]


def forget() -> None:
    """Note names anew as they are used: another program begins."""
    names.forget_restored()
    for known in list(_modules.values()):
        known.forget()


def _base_of(name: str) -> Any:
    """What of today's packages stands behind a TF1 module, or None."""
    if name == "tf":
        return import_module("tensorflow.compat.v1")
    parent, _, part = name.rpartition(".")
    own = _own(module(parent)._base, part)
    row = names.lookup(f"{name}.*")
    if row is None or row.home is None or (own is not _MISSING and not row.replaces):
        return None if own is _MISSING else own
    try:
        found = names.load(row)
    except CannotRestore:
        if own is _MISSING:
            raise
        return own  # such as the Keras of TensorFlow, where tf_keras is not installed
    names.touch(row)
    if f"{name}.*" != row.name:  # a module below the one that the row speaks for
        for inner in name[len(row.name) - len("*") :].split("."):
            found = _own(found, inner)
    return None if found is _MISSING else found


def _attribute(name: str, base: Any, attribute: str) -> tuple[Any, bool]:
    """What a name is, and whether it is simply today's module's own."""
    row = names.lookup(name)
    exact = row is not None and row.name == name
    own = _MISSING if exact and row is not None and row.replaces else _own(base, attribute)
    if own is not _MISSING:
        laid_over = isinstance(own, ModuleType) and _laid_over(name)
        return (module(name), False) if laid_over else (own, True)
    if exact and row is not None:
        found = names.load(row)
        if row.removed:  # the others are noted when a program uses their old form
            names.touch(row)
        return found, False
    if names.below(name):
        return module(name), False
    if attribute == "python" and _source(name):
        return SourceFolder(name), False
    if row is not None and row.kind == "gone":
        raise CannotRestore(
            f"{name} was removed in TensorFlow {row.removed} and cannot be restored: {row.here}. Today: {row.modern}",
            name=name,
            modern=row.modern,
        )
    raise AttributeError(f"module 'tensorflow{name[2:].rpartition('.')[0]}' has no attribute {attribute!r}")


def _laid_over(name: str) -> bool:
    """Whether the table has something to say about names below a module that TensorFlow has."""
    row = names.lookup(f"{name}.*")
    return bool(names.parts_below(name)) or (row is not None and row.name == f"{name}.*" and row.replaces)


def _own(base: Any, attribute: str) -> Any:
    """The attribute of today's module, its submodule, or _MISSING."""
    if base is None:
        return _MISSING
    try:
        return getattr(base, attribute)
    except (AttributeError, ModuleNotFoundError):  # the second from the lazy loader of tf.layers under Keras 3
        pass
    if not hasattr(base, "__path__") or base.__name__.startswith("tensorflow."):
        return _MISSING
    try:
        return import_module(f"{base.__name__}.{attribute}")
    except ModuleNotFoundError as error:
        if error.name != f"{base.__name__}.{attribute}":
            raise
        return _MISSING
