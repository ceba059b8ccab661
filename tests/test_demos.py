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


def test_numpy_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = run_program(ROOT / "demos" / "numpy_arrays.py")
    assert printed.count("equivalent: 200 records in 7 batches") == 2
    assert "the arrays come back: (200, 64, 64, 3) float32 equal" in printed


def test_mixed_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = run_program(ROOT / "demos" / "mixed_features.py", "elsewhere")
    assert "'inputs_2': tf.io.FixedLenFeature([3], tf.float32)," in printed
    assert "equivalent: 2 records in 2 batches" in printed
    assert (tmp_path / "elsewhere" / "mixed.tfrecord").exists()


def test_image_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = run_program(ROOT / "demos" / "image_folder.py")
    assert "parts: {'train': 28, 'val': 8, 'test': 4}" in printed
    assert "equivalent: 28 records in 4 batches" in printed
    assert "each file is in exactly one part: True" in printed


def test_data_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = run_program(ROOT / "demos" / "data_service.py")
    assert "workers: 2, files: 6" in printed
    assert "a share of the files each: 1200 records; the same: True" in printed
    assert "all files each: 2400 records, each 4 times" in printed
    assert "equivalent: 1,200 records in 60 batches" in printed


def test_keras_feed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = run_program(ROOT / "demos" / "keras_feed.py")
    assert printed.count("equal: True") == 7
    assert "1. one pass of both generators gives the same pairs: True" in printed
    assert "5. the input function by itself gives the pictures of the test: True" in printed
    assert "the estimator after step 100: accuracy" in printed
