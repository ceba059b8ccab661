"""The table of TF1 names: what it promises is there, and what is said of a name is true of TensorFlow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from tests.programs import ROOT
from tfqueue.compat import names
from tfqueue.errors import CannotRestore


def tensorflows(name: str) -> object | None:
    """What tf.compat.v1 has under a name, without tfqueue."""
    found: object = tf.compat.v1
    for part in name.split(".")[1:]:
        try:
            found = getattr(found, part)
        except (AttributeError, ModuleNotFoundError):
            return None
    return found


def rows(*kinds: names.Kind) -> list[names.OldName]:
    return [row for row in names.TABLE if row.kind in kinds and not row.name.endswith(".*")]


def test_a_name_stands_once() -> None:
    assert len({row.name for row in names.TABLE}) == len(names.TABLE)


def test_kept_names_are_tensorflows_own() -> None:
    missing = [row.name for row in rows("kept") if tensorflows(row.name) is None]
    assert missing == []


def test_restored_names_are_missing_from_tensorflow_or_replace_something() -> None:
    restored = [row for row in rows("alias", "rebuilt", "slim", "keras") if not row.replaces]
    still_there = [row.name for row in restored if tensorflows(row.name) is not None]
    if tf.__version__ >= "2.16":
        assert still_there == []


def test_every_restored_name_is_there() -> None:
    for row in (row for row in names.TABLE if row.kind in ("alias", "rebuilt", "slim", "keras")):
        assert names.load(row) is not None, row.name


def test_names_that_are_gone_say_what_to_do() -> None:
    for row in (row for row in names.TABLE if row.kind == "gone"):
        with pytest.raises(CannotRestore, match="cannot be restored") as raised:
            names.load(row)
        assert raised.value.name == row.name
        assert row.modern in str(raised.value)


def test_lookup_finds_the_row_that_speaks_for_a_name() -> None:
    assert names.lookup("tf.pack") is not None
    conv = names.lookup("tf.contrib.slim.conv2d")
    assert conv is not None
    assert conv.name == "tf.contrib.slim.*"
    vgg = names.lookup("tf.contrib.slim.nets.vgg.vgg_16")
    assert vgg is conv
    assert names.lookup("tf.reduce_sum") is None


def test_an_optional_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tf_keras", None)
    row = names.OldName("tf.x", "keras", "", "", home="tf_keras.nothing:x", removed="2.16")
    with pytest.raises(CannotRestore, match=r"pip install 'tfqueue\[keras\]'"):
        names.load(row)


def test_the_page_of_the_documentation_is_up_to_date() -> None:
    page = Path(ROOT / "tfqueue" / "compat" / "tf1-names.md").read_text(encoding="utf-8")
    assert page == names.table_as_markdown()


def test_the_table_needs_no_tensorflow() -> None:
    code = "import sys, tfqueue.compat.names as n; print(n.lookup('tf.pack').modern, 'tensorflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["tf.stack", "False"]
