"""The Python sources of a folder: files and notebooks, Python 3 and 2, parsed."""

from __future__ import annotations

import ast
import codecs
import json
import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from tfqueue.compat import python2

# A file that mentions none of these uses no TensorFlow, and is not parsed.
_MENTIONS = re.compile(rb"tensorflow|tf_slim|\btf\.|enqueue|dequeue")
_SKIPPED = frozenset(("__pycache__", "node_modules", "site-packages", "dist-packages"))
_MAGIC = re.compile(r"^\s*(?:[%!?]|.*\?\s*$|[\w, ]+=\s*[%!])")
_TIMED = re.compile(r"^(\s*)%(?:time|timeit|prun|memit)\s+(?:-\w+\s*\d*\s+)*(?=\S)")  # what follows is Python
_PYTHON_CELLS = ("%%time", "%%capture", "%%prun", "%%writefile")
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
            if name.endswith((".py", ".ipynb")) and _can_be_read(os.path.join(folder, name)):
                yield Path(folder, name)


def _can_be_read(path: str) -> bool:
    """Whether it is a file, or a link to none, which is told; reading a pipe or device would wait for ever."""
    return os.path.isfile(path) or not os.path.exists(path)


def read(path: Path) -> Source | None:
    """Parse one source; None where it does not mention TensorFlow."""
    try:
        data = path.read_bytes()
    except OSError as error:
        return Source(path, None, (0, f"cannot be read: {error.strerror}"))
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # of some editors on Windows
        data = data.decode("utf-16", "replace").encode()
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
        first = source.lstrip().partition("\n")[0]
        if first.startswith("%%") and not first.startswith(_PYTHON_CELLS):
            continue  # another language
        if first.startswith("%%writefile") and not first.rstrip().endswith(".py"):
            continue
        for line_number, line in enumerate(source.split("\n"), 1):
            line = _TIMED.sub(r"\1", line)
            if (_MAGIC.match(line) and not line.lstrip().startswith("#")) or _WORD_OF_CONDA.match(line):
                line = f"{line[: len(line) - len(line.lstrip())]}pass"
            text.append(line)
            places.append((number, line_number))
    return _parse_cells(path, text, places)


def _parse_cells(path: Path, text: list[str], places: list[tuple[int, int]]) -> Source:
    """Parse a notebook; where that fails, without the cells that cannot be parsed by themselves."""
    whole = _parse(path, "\n".join(text), tuple(places))
    if whole.tree is not None:
        return whole
    problem = whole.problem
    for number in dict.fromkeys(cell for cell, _ in places):
        rows = [row for row, (cell, _) in enumerate(places) if cell == number]
        alone = _parse(path, "\n".join(text[row] for row in rows), ())
        if alone.tree is None:
            problem = problem if alone.problem is None else (rows[0] + alone.problem[0], alone.problem[1])
            for row in rows:
                text[row] = ""
    return replace(_parse(path, "\n".join(text), tuple(places)), problem=problem)


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
