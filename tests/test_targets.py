"""Functions named on the command line."""

from __future__ import annotations

import sys

import pytest

from tfqueue.errors import InvalidArgument
from tfqueue.targets import load_function


@pytest.fixture
def _clean_imports(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))


@pytest.mark.usefixtures("_clean_imports")
class TestLoadFunction:
    def test_a_function_of_a_file(self, tmp_path):
        (tmp_path / "neighbour.py").write_text("VALUE = 7\n")
        (tmp_path / "inputs.py").write_text("import neighbour\ndef build():\n    return neighbour.VALUE\n")
        assert load_function(f"{tmp_path / 'inputs.py'}:build")() == 7

    def test_a_function_of_a_module_in_the_current_folder(self, tmp_path, monkeypatch):
        (tmp_path / "some_inputs.py").write_text(
            "class Inputs:\n    @staticmethod\n    def build():\n        return 3\n"
        )
        monkeypatch.chdir(tmp_path)
        assert load_function("some_inputs:Inputs.build")() == 3

    @pytest.mark.parametrize("text", ["build", "module:", ":build", ""])
    def test_other_forms(self, text):
        with pytest.raises(InvalidArgument, match="module:function"):
            load_function(text)

    def test_what_is_not_there(self, tmp_path):
        with pytest.raises(InvalidArgument, match="no module 'no_such_module'"):
            load_function("no_such_module:build")
        with pytest.raises(InvalidArgument, match="there is no file"):
            load_function(f"{tmp_path / 'nothing.py'}:build")
        (tmp_path / "inputs.py").write_text("def train(): pass\ndef test(): pass\n")
        with pytest.raises(InvalidArgument, match="it has test, train"):
            load_function(f"{tmp_path / 'inputs.py'}:build")

    def test_a_failing_import_inside_is_not_hidden(self, tmp_path, monkeypatch):
        (tmp_path / "broken_inputs.py").write_text("import no_such_package\n")
        monkeypatch.chdir(tmp_path)
        with pytest.raises(ModuleNotFoundError, match="no_such_package"):
            load_function("broken_inputs:build")
