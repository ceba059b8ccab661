"""tf.contrib.training.HParams: named hyperparameters, changed by text such as ``"rate=0.1,layers=[8,4]"``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tfqueue.errors import InvalidArgument

_ASSIGNMENT = re.compile(
    r"\s*(?P<name>[A-Za-z][\w.]*)\s*(?:\[\s*(?P<index>\d+)\s*\])?\s*=\s*(?:\[(?P<list>[^\]]*)\]|(?P<value>[^,\[]*))\s*(?:,|$)"
)


class HParams:
    """Hyperparameters as attributes; a value that is assigned keeps the type that the first one had.

    hparams = HParams(rate=0.1, layers=[8, 4])
    hparams.parse("rate=0.2,layers[1]=16")
    """

    _types: dict[str, tuple[type, bool]]
    _model_structure: Any

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **values: Any) -> None:
        if hparam_def is not None:
            raise InvalidArgument("HParams from a HParamDef message is not restored; give the values by name")
        object.__setattr__(self, "_types", {})
        object.__setattr__(self, "_model_structure", model_structure)
        for name, value in values.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Add a new one: a number, text, bool or a non-empty list of one kind."""
        if hasattr(self, name):
            raise InvalidArgument(f"hyperparameter {name!r} is there already, or is a name of HParams itself")
        if isinstance(value, list | tuple):
            if not value:
                raise InvalidArgument(f"hyperparameter {name!r} is an empty list: the type of its values is unknown")
            self._types[name] = (type(value[0]), True)
        else:
            self._types[name] = (type(value), False)
        object.__setattr__(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Give one that exists another value of its type."""
        kind, many = self._type_of(name)
        if many != isinstance(value, list | tuple):
            raise InvalidArgument(f"hyperparameter {name!r} is {'a list' if many else 'one value'}; got {value!r}")
        cast = [_cast(name, kind, part) for part in value] if many else _cast(name, kind, value)
        object.__setattr__(self, name, cast)

    def del_hparam(self, name: str) -> None:
        """Take one away; no error where it is not there."""
        if self._types.pop(name, None) is not None:
            object.__delattr__(self, name)

    def parse(self, values: str) -> HParams:
        """Change values by text: ``name=value``, ``name=[a,b]`` or ``name[index]=value``, separated by commas.

        Raises:
            InvalidArgument: The text, a name or a value does not fit.
        """
        return self.override_from_dict(parse_values(values, {name: kind for name, (kind, _) in self._types.items()}))

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Change values by a dictionary; a dictionary as value changes single entries of a list."""
        for name, value in values_dict.items():
            if isinstance(value, Mapping):
                entries = list(getattr(self, name)) if self._type_of(name)[1] else None
                if entries is None:
                    raise InvalidArgument(f"hyperparameter {name!r} is no list: {name}[...] has no meaning")
                for index, entry in value.items():
                    if not 0 <= index < len(entries):
                        raise InvalidArgument(f"{name}[{index}] is outside of its {len(entries)} values")
                    entries[index] = entry
                value = entries
            self.set_hparam(name, value)
        return self

    def parse_json(self, values_json: str) -> HParams:
        """Change values by a JSON object."""
        return self.override_from_dict(json.loads(values_json))

    def to_json(self, indent: Any = None, separators: Any = None, sort_keys: bool = False) -> str:
        """The values as a JSON object."""
        return json.dumps(self.values(), indent=indent, separators=separators, sort_keys=sort_keys)

    def values(self) -> dict[str, Any]:
        """The values by name."""
        return {name: getattr(self, name) for name in self._types}

    def get(self, key: str, default: Any = None) -> Any:
        """One value, or ``default`` where there is none of that name."""
        return getattr(self, key) if key in self._types else default

    def get_model_structure(self) -> Any:
        return self._model_structure

    def set_model_structure(self, model_structure: Any) -> None:
        object.__setattr__(self, "_model_structure", model_structure)

    def __contains__(self, key: str) -> bool:
        return key in self._types

    def __repr__(self) -> str:
        return f"HParams({', '.join(f'{name}={value!r}' for name, value in sorted(self.values().items()))})"

    def _type_of(self, name: str) -> tuple[type, bool]:
        if name not in self._types:
            known = ", ".join(sorted(self._types)) or "none"
            raise InvalidArgument(f"there is no hyperparameter {name!r}; there are: {known}")
        return self._types[name]


def parse_values(values: str, type_map: Mapping[str, type]) -> dict[str, Any]:
    """Values from text such as ``"rate=0.1,layers=[8,4],sizes[1]=3"``.

    Returns:
        A value or list for each name; ``{index: value}`` where single entries of a list are given.

    Raises:
        InvalidArgument: The text does not follow the form, a name is unknown or given twice, a value has another type.
    """
    result: dict[str, Any] = {}
    position = 0
    while position < len(values):
        match = _ASSIGNMENT.match(values, position)
        if match is None or match.end() == position:
            raise InvalidArgument(
                f"cannot read {values[position:]!r} in {values!r}; expected name=value,name=[a,b],..."
            )
        position = match.end()
        name, index = match["name"], match["index"]
        if name not in type_map:
            raise InvalidArgument(f"there is no hyperparameter {name!r}; there are: {', '.join(sorted(type_map))}")
        if name in result and not (index is not None and isinstance(result[name], dict)):
            raise InvalidArgument(f"{name!r} is given twice in {values!r}")
        if match["list"] is not None:
            if index is not None:
                raise InvalidArgument(f"{name}[{index}] cannot be a list")
            result[name] = [_read(name, type_map[name], part) for part in match["list"].split(",") if part.strip()]
        elif index is not None:
            entries = result.setdefault(name, {})
            if int(index) in entries:
                raise InvalidArgument(f"{name}[{index}] is given twice in {values!r}")
            entries[int(index)] = _read(name, type_map[name], match["value"])
        else:
            result[name] = _read(name, type_map[name], match["value"])
    return result


def _read(name: str, kind: type, text: str) -> Any:
    text = text.strip()
    if kind is bool:
        if text.lower() not in ("true", "false", "1", "0"):
            raise InvalidArgument(f"{name} must be true or false; got {text!r}")
        return text.lower() in ("true", "1")
    if kind is type(None):
        raise InvalidArgument(f"{name} was None at first, so that the type of {text!r} is unknown: use set_hparam")
    try:
        return kind(text)
    except ValueError as error:
        raise InvalidArgument(f"{name} must be {kind.__name__}; got {text!r}") from error


def _cast(name: str, kind: type, value: Any) -> Any:
    if kind is type(None) or value is None:
        return value
    same = isinstance(value, bool) == (kind is bool) and isinstance(value, str | bytes) == issubclass(kind, str | bytes)
    if not same or (kind is int and isinstance(value, float) and not value.is_integer()):
        raise InvalidArgument(f"hyperparameter {name!r} is {kind.__name__}; got {value!r}")
    return kind(value)
