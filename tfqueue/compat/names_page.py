"""The table of TF1 names as a page of the documentation."""

from __future__ import annotations

from collections.abc import Sequence

from tfqueue.compat.names_row import OldName

_HEAD = """# TF1 names

What TF1 programs write, what it is in `tfqueue.compat.v1` (and under `tfqueue run`), what to write today, and what
changes in behaviour for who does. Written by `python -m tfqueue.compat.names` from the table that the code itself uses.

| word | meaning |
|---|---|
| kept | `tf.compat.v1` still has it; nothing is restored |
| alias | the same thing under another name of today's TensorFlow |
| rebuilt | code of tfqueue that does what the old name did |
| slim | taken from `tf_slim`: `pip install 'tfqueue[slim]'` |
| keras | taken from `tf_keras`: `pip install 'tfqueue[keras]'` |
| numpy | removed from NumPy; given back to the program by `tfqueue run` only |
| gone | raises `CannotRestore`, which says what it was and what to write |
"""


def page(table: Sequence[OldName]) -> str:
    """Markdown: one table for TensorFlow's own names and one for each package of tf.contrib."""
    groups: dict[str, list[OldName]] = {}
    for row in table:
        groups.setdefault(_group(row.name), []).append(row)
    lines = [_HEAD]
    for title, rows in groups.items():
        lines += [f"## {title}", "", "| TF1 name | | here | today | what changes |", "|---|---|---|---|---|"]
        for row in rows:
            gone = f"removed in {row.removed}" if row.removed else ""
            what = f"{row.kind}{'; ' + gone if gone else ''}"
            lines.append(
                "| " + " | ".join(map(_cell, (f"`{row.name}`", what, row.here, row.modern, row.change))) + " |"
            )
        lines.append("")
    return "\n".join(lines)


def _group(name: str) -> str:
    parts = name.split(".")
    if parts[0] != "tf":
        return "NumPy"
    if parts[1] == "contrib":
        return ".".join(parts[:3]) if len(parts) > 3 else "tf.contrib"
    return "tf"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
