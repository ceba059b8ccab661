"""tf.flags.FLAGS as scripts of before TensorFlow 1.5 used it: ``FLAGS._parse_flags()`` and ``FLAGS.__flags``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import absl.flags
import tensorflow as tf

from tfqueue.compat import names

__all__ = ["FLAGS", "DEFINE_boolean", "absl_gives_way"]

absl.flags.disclaim_key_flags()  # a flag that is defined through this module is the caller's


class _Values(dict[str, Any]):
    """The values by name; what is set here is the flag's value from now on, as it was in the dict of TF1."""

    def __init__(self, flags: Any) -> None:
        super().__init__(flags.flag_values_dict())
        self._flags = flags

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self._flags, name, value)
        super().__setitem__(name, value)


class _Flags:
    """TensorFlow's own FLAGS, with the private names that old scripts went to."""

    __slots__ = ("_flags",)

    def __init__(self, flags: Any) -> None:
        object.__setattr__(self, "_flags", flags)

    def __getattr__(self, name: str) -> Any:
        if name == "__flags":
            if not self._flags.is_parsed():  # once: what the program has set since stays
                self._parse_flags()
            return _Values(self._flags)
        return getattr(self._flags, name)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        return {"__flags": getattr(self, "__flags"), "__parsed": True}

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._flags, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._flags, name)

    def __dir__(self) -> list[str]:
        return dir(self._flags)

    def __getitem__(self, name: str) -> Any:
        return self._flags[name]

    def __iter__(self) -> Any:
        return iter(self._flags)

    def __contains__(self, name: str) -> bool:
        return name in self._flags

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._flags(*arguments, **options)

    def __repr__(self) -> str:
        return repr(self._flags)

    def _parse_flags(self, args: list[str] | None = None) -> None:
        """Parse ``args`` (the command line without the program's name); what no flag claims is left alone."""
        names.touch("tf.flags.FLAGS")
        self._flags([sys.argv[0], *(sys.argv[1:] if args is None else args)], known_only=True)


FLAGS = _Flags(tf.compat.v1.flags.FLAGS)


def DEFINE_boolean(*arguments: Any, **options: Any) -> Any:  # noqa: N802 - the name of TF1
    """tf.flags.DEFINE_boolean; a number as default makes a flag of that number, as before 1.5."""
    default = arguments[1] if len(arguments) > 1 else options.get("default_value", options.get("default"))
    if isinstance(default, (int, float)) and default not in (0, 1):
        names.touch("tf.flags.DEFINE_boolean")
        define = tf.compat.v1.flags.DEFINE_integer if isinstance(default, int) else tf.compat.v1.flags.DEFINE_float
        return define(*arguments, **options)
    return tf.compat.v1.flags.DEFINE_boolean(*arguments, **options)


@contextmanager
def absl_gives_way() -> Iterator[None]:
    """Let a program define flags that absl has by now, such as ``log_dir``; TF1 had none before 1.5."""
    modules = absl.flags.FLAGS.flags_by_module_dict()
    own = [
        flag
        for name, flags in modules.items()
        for flag in flags
        if name.startswith("absl.") and not flag.allow_override
    ]
    before = {flag.name: flag for flag in own}
    for flag in own:
        flag.allow_override = True
    try:
        yield
    finally:
        for flag in own:
            flag.allow_override = False
        for name, flag in before.items():
            if absl.flags.FLAGS._flags().get(name) is not flag:
                absl.flags.FLAGS._flags()[name] = flag
