"""Python 2 mended: what Python 3 would not read is found, the lines stay, and Python 3 is left alone."""

from __future__ import annotations

import ast
import sysconfig
from pathlib import Path

import pytest

from tfqueue.compat import python2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("print", "print()"),
        ("print 1, 2", "print(1, 2)"),
        ("print 'a' % x,", "print('a' % x, end=' ')"),
        ("print >>f, x", "print(x, file=f)"),
        ("print >>f", "print(file=f)"),
        ("print (1), 2", "print((1), 2)"),
        ("print -x", "print(-x)"),
        ("if x: print x; y = 1", "if x: print(x); y = 1"),
        ("for k in {1: 2}: print k", "for k in {1: 2}: print(k)"),
        ("print [1][0]", "print([1][0])"),
        ("print '''a\nb''' # c", "print('''a\nb''') # c"),
        ("print x[1:2], lambda: 3", "print(x[1:2], lambda: 3)"),
        ("exec code", "exec(code)"),
        ("exec code in scope", "exec(code , scope)"),
        ("try: pass\nexcept E, e: pass", "try: pass\nexcept E as e: pass"),
        ("try: pass\nexcept (E, F), e: pass", "try: pass\nexcept (E, F) as e: pass"),
        ("raise E, 'x'", "raise E( 'x')"),
        ("raise E, 'x', tb", "raise E( 'x').with_traceback( tb)"),
        ("x = `a` + `b`", "x = repr(a) + repr(b)"),
        ("x <> y", "x != y"),
        ("x = 0777 + 0xFFL + 10L", "x = 0o777 + 0xFF + 10"),
        ("x = ur'a'", "x = r'a'"),
    ],
)
def test_syntax_is_mended_in_its_line(old: str, new: str) -> None:
    mended = python2.mend(f"{old}\n")
    assert "".join(mended.text.split()) == "".join(new.split())
    assert mended.text.count("\n") == old.count("\n") + 1
    assert mended.lines
    ast.parse(mended.text)


@pytest.mark.parametrize(
    "text",
    [
        "print('a', file=f)\n",
        "print ('a')\n",
        "x = {'print': 1}\nprint = 3\n",
        "# print 1\ns = 'print 1'\n'''print 2\n0777'''\n",
        "x = 00 + 0 + 0.5 + 1e5 + 0o17 + 0x1F + 1_000 + 07.5\n",
        "f = lambda a, b: a\nx = y if a else (b, c)\n",
        "def f(a: int, *, b=(1, 2)) -> int:\n    raise E(a, b)\n",
        "try:\n    pass\nexcept (A, B) as e:\n    raise\n",
        "x: dict = {1: 2}\nx[1:2], y = a >> 2, b << 3\n",
    ],
)
def test_python_3_stays_as_it_is(text: str) -> None:
    assert python2.mend(text) == python2.Mended(text, ())


def test_the_standard_library_stays_as_it_is() -> None:
    folder = Path(sysconfig.get_path("stdlib"))
    files = sorted(folder.glob("*.py"))[:60]
    assert len(files) == 60
    changed = []
    for file in files:
        text = file.read_text(encoding="utf-8")
        if python2.mend(text).text != text:
            changed.append(file.name)
    assert changed == []


def test_tabs_and_spaces_in_one_block_are_what_python_2_took_them_for() -> None:
    mended = python2.mend("if 1:\n\tx = 1\n        if x:\n\t    print x, '''\n\ty'''\n")
    assert mended.text == "if 1:\n        x = 1\n        if x:\n            print(x, '''\n\ty''')\n"
    assert next((place.line, place.found) for place in mended.lines) == (3, "tabs and spaces in one block")
    ast.parse(mended.text)
    consistent = "if 1:\n\tif 2:\n\t    print 1\n"  # read by both: a tab stays one
    assert python2.mend(consistent).text == "if 1:\n\tif 2:\n\t    print(1)\n"


def test_names_of_python_2_are_found_unless_they_are_the_programs_own() -> None:
    text = """
import cPickle
from Queue import Queue
try:
    import urllib2
except ImportError:
    pass
from six.moves import xrange
import six

def reduce(x):
    return x
for k in d.iteritems(): unicode(k)
six.iteritems(d); xrange(3); reduce(3)
raw_input()
from itertools import izip, chain
import sys; sys.maxint; sys.argv
"""
    found = [(place.line, place.found, place.write) for place in python2.names(ast.parse(text), text)]
    assert found == [
        (2, "import cPickle", "import pickle"),
        (3, "from Queue", "from queue"),
        (13, ".iteritems()", ".items()"),
        (13, "unicode", "str"),
        (15, "raw_input", "input"),
        (16, "from itertools import izip", "zip"),
        (17, "sys.maxint", "sys.maxsize"),
    ]
    assert str(python2.names(ast.parse(text), text)[0]) == "line 2: import cPickle -> import pickle"


def test_bytes_without_a_declared_encoding_are_read() -> None:
    assert python2.decode("x = 'é'\n".encode()) == "x = 'é'\n"
    assert python2.decode(b"# -*- coding: cp1251 -*-\nx = '\xe9'\n").endswith("x = '\u0439'\n")
    assert python2.decode(b"x = '\xe9'\r\n") == "x = '\xe9'\n"
