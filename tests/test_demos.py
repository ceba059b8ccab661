"""Every demo runs to its end, and says that old and new are equivalent where that is its point."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs import ROOT, run_program


def test_image_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = run_program(ROOT / "demos" / "image_queue.py")
    assert "equivalent: 30 records in 3 batches" in printed
    assert (tmp_path / "image-queue" / "batch.png").stat().st_size > 10_000
    assert (tmp_path / "image-queue" / "pair.png").stat().st_size > 10_000
