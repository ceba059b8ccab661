"""Python 2 sources: what in them Python 3 does not read, line by line, and the same text mended.

The mended text has the same lines as the source, so that a line number in an error is one of the source. It is for
reading (`tfqueue scan`) and for running in memory (`tfqueue run`); no file is ever changed.
"""

from __future__ import annotations

import ast
import collections.abc
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<comment>\#[^\n]*)
  | (?P<string>(?:[rRbBuUfF]{0,2})(?:'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\"
                                    |'(?:\\.|[^\\'\n])*'|"(?:\\.|[^\\"\n])*"))
  | (?P<number>0[xX][0-9a-fA-F]+[lL]?|0[oObB]?[0-7]+[lL]?(?![\d.eE])|\d+[lL](?!\w)
             |(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[jJ]?)
  | (?P<name>[^\W\d]\w*)
  | (?P<continued>\\\n)
  | (?P<newline>\n)
  | (?P<space>[^\S\n]+)
  | (?P<op><>|>>=?|<<=?|\*\*=?|//=?|[=!<>+\-*/%&|^]=|->|.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Python2Line:
    """One place that Python 3 reads otherwise, or not at all.

    Attributes:
        line: The line, from 1.
        found: What stands there.
        write: What to write instead, which Python 2.7 reads as well wherever that is possible.
    """

    line: int
    found: str
    write: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.found} -> {self.write}"


@dataclass(slots=True)
class _Token:
    kind: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Mended:
    """A source that Python 3 may read.

    Attributes:
        text: The mended source, of as many lines.
        lines: What was mended.
    """

    text: str
    lines: tuple[Python2Line, ...]


# What Python 3 reads, but does not know, and where it has gone.
MODULES = {
    "cPickle": "pickle",
    "ConfigParser": "configparser",
    "Queue": "queue",
    "StringIO": "io",
    "cStringIO": "io",
    "urllib2": "urllib.request",
    "urlparse": "urllib.parse",
    "__builtin__": "builtins",
    "commands": "subprocess",
    "copy_reg": "copyreg",
    "httplib": "http.client",
    "SocketServer": "socketserver",
    "thread": "_thread",
    "Tkinter": "tkinter",
}
BUILTINS = {
    "xrange": "range",
    "unicode": "str",
    "basestring": "str",
    "raw_input": "input",
    "long": "int",
    "unichr": "chr",
    "reduce": "functools.reduce",
    "reload": "importlib.reload",
    "execfile": "exec(open(...).read())",
    "cmp": "(a > b) - (a < b)",
}
ATTRIBUTES = {
    "itertools.izip": "zip",
    "itertools.imap": "map",
    "itertools.ifilter": "filter",
    "itertools.izip_longest": "itertools.zip_longest",
    "os.getcwdu": "os.getcwd",
    "string.letters": "string.ascii_letters",
    "string.lowercase": "string.ascii_lowercase",
    "string.uppercase": "string.ascii_uppercase",
    "sys.maxint": "sys.maxsize",
    "urllib.quote": "urllib.parse.quote",
    "urllib.unquote": "urllib.parse.unquote",
    "urllib.urlencode": "urllib.parse.urlencode",
    "urllib.urlopen": "urllib.request.urlopen",
    "urllib.urlretrieve": "urllib.request.urlretrieve",
}
# What the Python 3 of TF1's time had, and has lost since; a source that uses it need not be Python 2.
LATER = {
    "time.clock": "time.perf_counter",
    "fractions.gcd": "math.gcd",
    **{f"collections.{name}": f"collections.abc.{name}" for name in collections.abc.__all__},
}
ATTRIBUTES |= LATER
METHODS = {
    "iteritems": "items",
    "itervalues": "values",
    "iterkeys": "keys",
    "has_key": "in",
}

_NAMES = re.compile(
    rf"\b(?:import|from|,)\s*(?:{'|'.join(MODULES)})\b"
    rf"|\b(?:{'|'.join(name for name in BUILTINS if name != 'long')}|long\s*\()"
    rf"|\.\s*(?:{'|'.join(METHODS)})\b"
    rf"|\b(?:{'|'.join(name.partition('.')[2] for name in ATTRIBUTES)})\b"
)


def mend(text: str) -> Mended:
    """The source with the syntax of Python 2 replaced by that of Python 3; the names that are gone are left."""
    tokens = list(_tokens(text))
    found: list[Python2Line] = []
    _numbers_and_strings(tokens, found)
    _backticks(tokens, found)
    for begin, end in list(_statements(tokens)):
        _mend_statement(tokens, begin, end, found)
    new = "".join(token.text for token in tokens)
    mixed = _mixed_indentation(new)
    if mixed:
        _expand_indentation(tokens)
        new = "".join(token.text for token in tokens)
        found.append(Python2Line(mixed, "tabs and spaces in one block", "spaces; a tab reached up to the next of 8"))
    return Mended(new, tuple(sorted(found, key=lambda item: item.line)))


def names(tree: ast.AST, text: str) -> tuple[Python2Line, ...]:
    """The names of Python 2 that a source uses without having made them itself."""
    if not _NAMES.search(text):  # a tree takes long to walk
        return ()
    nodes = list(ast.walk(tree))
    made = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    made |= {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    made |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    guarded: set[ast.AST] = set()
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            made |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        if isinstance(node, ast.Try):
            guarded.update(inner for statement in node.body for inner in ast.walk(statement))
    found = []
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in BUILTINS and node.id not in made and node not in guarded:
            found.append(Python2Line(node.lineno, node.id, BUILTINS[node.id]))
        elif isinstance(node, ast.Attribute) and node.attr in METHODS and isinstance(node.ctx, ast.Load):
            if not (isinstance(node.value, ast.Name) and node.value.id == "six"):
                found.append(Python2Line(node.lineno, f".{node.attr}()", _in_words(METHODS[node.attr])))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node not in guarded:
            name = f"{node.value.id}.{node.attr}"
            if name in ATTRIBUTES:
                found.append(Python2Line(node.lineno, name, ATTRIBUTES[name]))
        elif isinstance(node, ast.Import) and node not in guarded:
            found += [
                Python2Line(node.lineno, f"import {alias.name}", f"import {MODULES[alias.name]}")
                for alias in node.names
                if alias.name in MODULES
            ]
        elif isinstance(node, ast.ImportFrom) and node not in guarded and not node.level:
            if node.module in MODULES:
                found.append(Python2Line(node.lineno, f"from {node.module}", f"from {MODULES[node.module]}"))
            for name in (f"{node.module}.{alias.name}" for alias in node.names):
                if name in ATTRIBUTES:
                    found.append(Python2Line(node.lineno, f"from {name.replace('.', ' import ')}", ATTRIBUTES[name]))
    return tuple(sorted(found, key=lambda item: item.line))


def is_later(place: Python2Line) -> bool:
    """Whether this is of a Python 3 of the time, and says nothing of what the rest of the source means."""
    return place.found.removeprefix("from ").replace(" import ", ".") in LATER


def decode(data: bytes) -> str:
    """The text of a source file; Python 2 took bytes of any encoding where none was declared."""
    from importlib.util import decode_source

    try:
        return decode_source(data)
    except (UnicodeDecodeError, SyntaxError, LookupError):
        return data.decode("latin-1").replace("\r\n", "\n").replace("\r", "\n")


def _mixed_indentation(text: str) -> int:
    """The line at which Python 3 refuses tabs and spaces that Python 2 took for the same indentation; 0: none."""
    if "\t" not in text:
        return 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # told when the source is compiled to be run
            compile(text, "", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    except TabError as error:
        return error.lineno or 1
    except (SyntaxError, ValueError):
        pass
    return 0


def _expand_indentation(tokens: list[_Token]) -> None:
    for previous, token in zip([_Token("newline", "", 0), *tokens], tokens, strict=False):
        if token.kind == "space" and previous.kind == "newline":
            token.text = token.text.expandtabs(8)


def _in_words(method: str) -> str:
    return "key in mapping" if method == "in" else f".{method}()"


def _tokens(text: str) -> Iterator[_Token]:
    line = 1
    for match in _TOKEN.finditer(text):
        yield _Token(str(match.lastgroup), match.group(), line)
        line += match.group().count("\n")


def _numbers_and_strings(tokens: list[_Token], found: list[Python2Line]) -> None:
    for token in tokens:
        if token.kind == "number":
            number = token.text.rstrip("lL")
            octal = re.fullmatch(r"0[0-7]+", number)
            new = f"0o{number.lstrip('0') or '0'}" if octal and number.strip("0") else number
            if octal and not number.strip("0"):
                new = number  # 00 is zero in both
            if new != token.text:
                found.append(Python2Line(token.line, token.text, new))
                token.text = new
        elif token.kind == "string" and token.text[:2].lower() == "ur":
            found.append(Python2Line(token.line, f'{token.text[:2]}"..."', 'r"..."'))
            token.text = token.text[1:]
        elif token.kind == "op" and token.text == "<>":
            found.append(Python2Line(token.line, "<>", "!="))
            token.text = "!="


def _statements(tokens: list[_Token]) -> Iterator[tuple[int, int]]:
    """(first token, token after the last) of each simple statement and each head of a compound one."""
    depth = 0
    begin = 0
    head = True
    for index, token in enumerate(tokens):
        if token.kind == "op" and token.text in "([{":
            depth += 1
        elif token.kind == "op" and token.text in ")]}":
            depth = max(0, depth - 1)
        ends = token.kind == "newline" or (token.kind == "op" and token.text == ";")
        colon = token.kind == "op" and token.text == ":" and head
        if depth == 0 and (ends or colon):
            first = _first(tokens, begin, index)
            word = tokens[first].text if first is not None else ""
            if colon and word not in _COMPOUND:
                continue  # a slice, a dict, a lambda or an annotation
            if first is not None and word == "lambda":
                continue
            if (
                colon
                and any(t.text == "lambda" for t in tokens[begin:index])
                and not _closed_lambda(tokens, begin, index)
            ):
                continue
            if first is not None:
                yield first, index
            begin = index + 1
            head = True
    first = _first(tokens, begin, len(tokens))
    if first is not None:
        yield first, len(tokens)


_COMPOUND = frozenset(("if", "elif", "else", "for", "while", "try", "except", "finally", "with", "def", "class"))


def _closed_lambda(tokens: list[_Token], begin: int, end: int) -> bool:
    """Whether each lambda of the head has had its own colon already."""
    words = [t.text for t in tokens[begin:end]]
    return words.count(":") >= words.count("lambda")


def _first(tokens: list[_Token], begin: int, end: int) -> int | None:
    return next((i for i in range(begin, end) if tokens[i].kind not in _BLANK), None)


_BLANK = ("space", "newline", "comment", "continued")


def _mend_statement(tokens: list[_Token], begin: int, end: int, found: list[Python2Line]) -> None:
    end = next((i + 1 for i in range(end - 1, begin - 1, -1) if tokens[i].kind not in _BLANK), end)
    word, line = tokens[begin].text, tokens[begin].line
    rest = _first(tokens, begin + 1, end)
    said = "".join(t.text for t in tokens[begin : min(end, begin + 12)]).split("\n")[0]
    if tokens[begin].kind != "name":
        return
    if word == "print" and (rest is None or not _is_call(tokens, rest, end)):
        follows = tokens[rest].text if rest is not None and tokens[rest].kind == "op" else ""
        if follows in ("=", ".", ",", "==", ")") or (follows == "[" and tokens[begin + 1].kind != "space"):
            return  # a name `print` of the program's own
        _mend_print(tokens, begin, rest, end)
        found.append(Python2Line(line, said, "print(...)"))
    elif word == "exec" and rest is not None and tokens[rest].text != "(":
        parts = [i for i in range(rest, end) if tokens[i].text == "in" and tokens[i].kind == "name"]
        if parts:
            tokens[parts[0]].text = ","
        _wrap(tokens, begin, rest, end)
        found.append(Python2Line(line, said, "exec(code, namespace)"))
    elif word == "except" and rest is not None:
        comma = _top_level(tokens, rest, end, ",")
        if comma is not None:
            tokens[comma].text = " as"
            found.append(Python2Line(line, said, "except Error as name:"))
    elif word == "raise" and rest is not None:
        comma = _top_level(tokens, rest, end, ",")
        if comma is not None:
            second = _top_level(tokens, comma + 1, end, ",")
            tokens[comma].text = "("
            stop = end if second is None else second
            tokens[stop - 1].text += ")"
            if second is not None:
                tokens[second].text = ".with_traceback("
                tokens[end - 1].text += ")"
            found.append(Python2Line(line, said, "raise Error(message)"))
    elif word == "def":
        _tuple_parameters(tokens, begin, end, found)


def _is_call(tokens: list[_Token], rest: int, end: int) -> bool:
    """Whether ``print (...)`` is the whole statement, which both read, if it prints no tuple."""
    if tokens[rest].text != "(":
        return False
    depth = 0
    for index in range(rest, end):
        depth += {"(": 1, ")": -1}.get(tokens[index].text, 0) if tokens[index].kind == "op" else 0
        if depth == 0:
            return _first(tokens, index + 1, end) is None
    return True


def _mend_print(tokens: list[_Token], begin: int, rest: int | None, end: int) -> None:
    if rest is None:
        tokens[begin].text = "print()"
        return
    options = ""
    if tokens[rest].text == ">>":
        comma = _top_level(tokens, rest + 1, end, ",")
        target = "".join(t.text for t in tokens[rest + 1 : end if comma is None else comma]).strip()
        options = f", file={target}"
        for index in range(rest, end if comma is None else comma + 1):
            tokens[index].text = ""
        if comma is None:
            tokens[begin].text = f"print(file={target})"
            return
        rest = _first(tokens, comma + 1, end) or end - 1
    if tokens[end - 1].kind == "op" and tokens[end - 1].text == ",":
        tokens[end - 1].text = ""
        options += ", end=' '"
    _wrap(tokens, begin, rest, end, options)


def _wrap(tokens: list[_Token], begin: int, rest: int, end: int, more: str = "") -> None:
    for index in range(begin + 1, rest):
        if tokens[index].kind == "space":
            tokens[index].text = ""
    tokens[begin].text += "("
    tokens[end - 1].text += f"{more})"


def _top_level(tokens: list[_Token], begin: int, end: int, text: str) -> int | None:
    depth = 0
    for index in range(begin, end):
        token = tokens[index]
        if token.kind != "op":
            continue
        if token.text in "([{":
            depth += 1
        elif token.text in ")]}":
            depth -= 1
        elif token.text == text and depth == 0:
            return index
    return None


def _tuple_parameters(tokens: list[_Token], begin: int, end: int, found: list[Python2Line]) -> None:
    """``def f(a, (b, c)):`` cannot be mended in its line; it is told, and left."""
    opened = next((i for i in range(begin, end) if tokens[i].text == "("), None)
    if opened is None:
        return
    previous = tokens[opened]
    for index in range(opened + 1, end):
        token = tokens[index]
        if token.kind in _BLANK:
            continue
        if token.text == "(" and previous.text in "(,":
            found.append(
                Python2Line(token.line, "a tuple in the parameters of a function", "one name, unpacked inside")
            )
        previous = token


def _backticks(tokens: list[_Token], found: list[Python2Line]) -> None:
    opened = None
    for token in tokens:
        if token.kind == "op" and token.text == "`":
            if opened is None:
                opened, token.text = token, "repr("
                found.append(Python2Line(token.line, "`...`", "repr(...)"))
            else:
                opened, token.text = None, ")"
