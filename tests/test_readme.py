"""The README's program is the demo file, and its output is what the program prints."""

from __future__ import annotations

import re

import pytest

from tests.programs import ROOT, run_program

README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(kind: str) -> str:
    return re.findall(rf"^```{kind}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)[0]


def without_seconds(text: str) -> str:
    return re.sub(r"\d+\.\d+ s\b", "N s", text)


def test_program_is_the_demo_file() -> None:
    assert block("python") == (ROOT / "demos" / "first_steps.py").read_text(encoding="utf-8")


def test_program_and_output_stand_within_forty_lines() -> None:
    assert len((block("python") + block("text")).splitlines()) <= 40


def test_output_is_what_the_program_prints(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = run_program(ROOT / "demos" / "first_steps.py")
    assert without_seconds(block("text")) == without_seconds(printed)


@pytest.mark.parametrize("section", ["Look", "Records"])
def test_the_program_of_a_section_runs(section: str, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = README.split(f"\n### {section}\n")[1].split("\n### ")[0]
    (program,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    printed = run_program(tmp_path / "program.py")
    if section == "Look":
        assert {"batch.png", "pair.png"} <= {path.name for path in tmp_path.iterdir()}
    else:
        assert printed.startswith("1000 float64 (28, 28)\n")
        assert "\n4 files, 1000 whole records, 0 problems\n" in printed
