"""The Python sources of a folder: files and notebooks, Python 3 and 2, parsed."""

from __future__ import annotations

import ast
import json
import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tfqueue.compat import python2

# A file that mentions none of these uses no TensorFlow, and is not parsed.
_MENTIONS = re.compile(rb"tensorflow|tf_slim|\btf\.|enqueue|dequeue")
_SKIPPED = frozenset(("__pycache__", "node_modules", "site-packages", "dist-packages"))
_MAGIC = re.compile(r"^\s*(?:[%!?]|.*\?\s*$)")
_WORD_OF_CONDA = re.compile(r"^(?:pip|conda)\s+\w+")


@dataclass(frozen=True, slots=True)
class Source:
    """One source, parsed.

    Attributes:
        path: The file.
        tree: Its syntax tree; None where it could not be parsed.
        problem: (line, words) of why not.
        python2: What in it is Python 2.
        lines: Of a notebook: (number of the code cell, line in it) of each line, from 1; empty for a file.
    """

    path: Path
    tree: ast.Module | None
    problem: tuple[int, str] | None = None
    python2: tuple[python2.Python2Line, ...] = ()
    lines: tuple[tuple[int, int], ...] = field(default=(), repr=False)

    def place(self, line: int) -> tuple[int, int | None]:
        """The line to tell, and the cell of a notebook."""
        if self.lines and 0 < line <= len(self.lines):
            cell, inner = self.lines[line - 1]
            return inner, cell
        return line, None


def find(path: Path) -> Iterator[Path]:
    """The sources in a folder, in the order of their names; or the one file itself.

    Hidden folders, virtual environments and installed packages are left out.
    """
    if path.is_file():
        yield path
        return
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in _SKIPPED
            and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
        )
        for name in sorted(files):
            if name.endswith((".py", ".ipynb")):
                yield Path(folder, name)


def read(path: Path) -> Source | None:
    """Parse one source; None where it does not mention TensorFlow."""
    try:
        data = path.read_bytes()
    except OSError as error:
        return Source(path, None, (0, f"cannot be read: {error.strerror}"))
    if not _MENTIONS.search(data):
        return None
    if path.suffix == ".ipynb":
        return _notebook(path, data)
    return _parse(path, python2.decode(data), ())


def _notebook(path: Path, data: bytes) -> Source:
    try:
        cells = json.loads(data)["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell.get("cell_type") == "code"]
    except (ValueError, KeyError, TypeError, AttributeError):
        try:  # the format before 2015
            sheets = json.loads(data)["worksheets"]
            cells = [cell for sheet in sheets for cell in sheet["cells"] if cell.get("cell_type") == "code"]
            sources = ["".join(cell["input"]) for cell in cells]
        except (ValueError, KeyError, TypeError, AttributeError):
            return Source(path, None, (0, "is no notebook: there is no list of cells in it"))
    text: list[str] = []
    places: list[tuple[int, int]] = []
    for number, source in enumerate(sources, 1):
        if source.lstrip().startswith("%%") and not source.lstrip().startswith(("%%time", "%%capture")):
            continue  # another language
        for line_number, line in enumerate(source.split("\n"), 1):
            if (_MAGIC.match(line) and not line.lstrip().startswith("#")) or _WORD_OF_CONDA.match(line):
                line = f"{line[: len(line) - len(line.lstrip())]}pass"
            text.append(line)
            places.append((number, line_number))
    return _parse(path, "\n".join(text), tuple(places))


def _parse(path: Path, text: str, places: tuple[tuple[int, int], ...]) -> Source:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "invalid escape sequence" of somebody else's code
            try:
                tree = ast.parse(text)
                return Source(path, tree, None, python2.names(tree, text), places)
            except SyntaxError as error:
                mended = python2.mend(text)
                if not mended.lines:
                    return Source(path, None, _problem(error, places), lines=places)
                try:
                    tree = ast.parse(mended.text)
                except SyntaxError as left:
                    return Source(path, None, _problem(left, places), mended.lines, places)
                return Source(path, tree, None, (*mended.lines, *python2.names(tree, mended.text)), places)
    except (ValueError, RecursionError, MemoryError) as error:  # zero bytes; nested too deeply
        return Source(path, None, (0, f"cannot be parsed: {error}"), lines=places)


def _problem(error: SyntaxError, places: tuple[tuple[int, int], ...]) -> tuple[int, str]:
    return (error.lineno or 0, f"is neither Python 3 nor Python 2: {error.msg}")
