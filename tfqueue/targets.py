"""Finding the function that a command line argument names. This executes the code of the module it is in."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module, util
from pathlib import Path
from typing import Any

from tfqueue.errors import InvalidArgument


def load_function(target: str) -> Callable[..., Any]:
    """The function that ``"module:function"`` or ``"path/to/file.py:function"`` names.

    The module is imported, which executes its code. Modules are looked for in the current folder too, as
    ``python -m`` does.

    Raises:
        InvalidArgument: The text has another form, or there is no such module, file or function.
    """
    place, separator, name = target.rpartition(":")
    if not separator or not place or not name:
        raise InvalidArgument(f"{target!r} is not of the form module:function or file.py:function")
    module = _load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        functions = sorted(key for key, value in vars(module).items() if callable(value) and key[0] != "_")
        raise InvalidArgument(f"{place} has no function {name!r}; it has {', '.join(functions) or 'none'}")
    return found  # type: ignore[no-any-return]


def _load_module(name: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the module is there; it is an import inside it that fails
        raise InvalidArgument(f"no module {name!r} can be imported from {here} or the installed packages") from error


def _load_file(path: Path) -> Any:
    if not path.is_file():
        raise InvalidArgument(f"there is no file {path} (current folder: {Path.cwd()})")
    spec = util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise InvalidArgument(f"{path} is not a Python file that can be loaded")
    module = util.module_from_spec(spec)
    # Code in the file may import its neighbours, or look itself up by name (dataclasses, pickle).
    sys.path.insert(0, str(path.parent.resolve()))
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
