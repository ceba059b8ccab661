"""What one row of the table of TF1 names says, and short ways to write rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["kept", "alias", "rebuilt", "slim", "keras", "numpy", "gone"]


@dataclass(frozen=True, slots=True)
class OldName:
    """One name that TF1 programs use.

    Attributes:
        name: The full dotted name as a program writes it, ``"tf.train.SummaryWriter"``, ``"np.bool"``. A name that
            ends in ``.*`` speaks for all names below it that have no row of their own.
        kind: ``"kept"``: TensorFlow still has it as tf.compat.v1; ``"alias"``: another name of today's TensorFlow that
            does the same; ``"rebuilt"``: code of tfqueue; ``"slim"``: tf_slim, an optional package; ``"keras"``:
            tf_keras, an optional package; ``"numpy"``: a name of NumPy that `tfqueue run` gives back to the program;
            ``"gone"``: cannot be restored, and raises `CannotRestore`.
        here: What stands behind the name in `tfqueue.compat.v1`, in words.
        modern: What to write today (tf.data, TF2); empty where there is nothing to change to.
        change: What changes in behaviour for who moves to ``modern``; empty where nothing does.
        home: Where it is taken from: ``"tf1:stack"`` is tf.compat.v1.stack, ``"package.module:name"`` any other
            object; None where nothing is restored.
        removed: The TensorFlow (or NumPy) version that first lacked the name; empty for a name that is there.
        replaces: TensorFlow has something of this name, which does not do what TF1 programs expect.
    """

    name: str
    kind: Kind
    here: str
    modern: str
    change: str = ""
    home: str | None = None
    removed: str = ""
    replaces: bool = False

    @property
    def restored(self) -> bool:
        """Whether tfqueue, and not TensorFlow, gives this name."""
        return self.kind not in ("kept", "gone")


def kept(name: str, modern: str, change: str = "") -> OldName:
    """A name that tf.compat.v1 still has."""
    return OldName(f"tf.{name}", "kept", f"tf.compat.v1.{name}", modern, change)


def alias(name: str, target: str, modern: str, change: str = "", *, removed: str = "1.0") -> OldName:
    """A name for what tf.compat.v1 has under another name (``target``, without ``tf.``)."""
    return OldName(f"tf.{name}", "alias", f"tf.compat.v1.{target}", modern, change, f"tf1:{target}", removed)


def rebuilt(
    name: str,
    home: str,
    modern: str,
    change: str = "",
    *,
    here: str = "rebuilt by tfqueue",
    removed: str = "2.0",
    replaces: bool = False,
) -> OldName:
    """A name whose code is tfqueue's; ``home`` is relative to `tfqueue.compat`."""
    return OldName(f"tf.{name}", "rebuilt", here, modern, change, f"tfqueue.compat.{home}", removed, replaces)


def slim(name: str, target: str, modern: str, change: str = "", *, removed: str = "2.0") -> OldName:
    """A name that tf_slim has (``target``: ``"module:name"`` below tf_slim)."""
    module, _, attribute = target.rpartition(":")
    home = f"tf_slim.{module}:{attribute}" if module else f"tf_slim:{attribute}"
    return OldName(f"tf.{name}", "slim", home.replace(":", "."), modern, change, home, removed)


def gone(name: str, what: str, modern: str, *, removed: str = "2.0", replaces: bool = False) -> OldName:
    """A name that raises CannotRestore; ``what`` says what it was."""
    return OldName(f"tf.{name}", "gone", what, modern, removed=removed, replaces=replaces)
