"""``tfqueue show``."""

from __future__ import annotations

import argparse
import subprocess
import sys

import cv2
import pytest

from tests.views import gallery, pictures
from tfqueue import errors, records
from tfqueue.views.commands import add_parser


def show(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers(required=True))
    options = parser.parse_args(["show", *map(str, arguments)])
    return options.run(options)


@pytest.fixture
def tfrecord(tmp_path):
    path = tmp_path / "tiles.tfrecord"
    with records.RecordWriter(path) as writer:
        for number, tile in enumerate(pictures.tiles(12)):
            writer.write({"image": gallery.jpeg(tile), "label": number % 3, "grade": float(number)})
    return path


def test_writes_a_picture_and_says_where(tfrecord, tmp_path, capsys):
    out = tmp_path / "grid.png"
    assert show(tfrecord, "--out", out, "--n", 5) == 0
    assert capsys.readouterr().out == f"5 records of {tfrecord}: {out}\n"
    assert cv2.imread(str(out)) is not None


def test_without_out_the_picture_lies_in_the_current_folder(tfrecord, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert show(tfrecord) == 0
    assert (tmp_path / "tfqueue-show.png").exists()
    assert "12 records" in capsys.readouterr().out


def test_writes_a_page(tfrecord, tmp_path):
    out = tmp_path / "grid.html"
    assert show(tfrecord, "--out", out) == 0
    page = out.read_text(encoding="utf-8")
    assert page.count("<img") == 1
    assert 'alt="12 records. image: JPEG uint8 32×32×3.' in page
    assert "default-src &#39;none&#39;" in page


def test_class_names_labels_and_functions(tmp_path, monkeypatch):
    (tmp_path / "names.txt").write_text("flag\ncord\nhat\n", encoding="utf-8")
    (tmp_path / "pipelines_to_show.py").write_text(
        "import numpy as np\n"
        "import tensorflow as tf\n"
        "tf1 = tf.compat.v1\n"
        "IMAGES = np.zeros((9, 8, 8, 3), np.uint8)\n"
        "def build():\n"
        "    image, label = tf1.train.slice_input_producer([IMAGES, np.arange(9) % 3], shuffle=False, num_epochs=1)\n"
        "    return tf1.train.batch([image, label], batch_size=3)\n"
        "def dataset():\n"
        "    return tf.data.Dataset.from_tensor_slices((IMAGES, np.arange(9) % 3)).batch(3)\n",
        encoding="utf-8",
    )
    from tfqueue import views

    drawn = []

    def draw(*arguments, **options):
        drawn.append(real(*arguments, **options))
        return drawn[-1]

    real = views.show_batch
    monkeypatch.setattr(views, "show_batch", draw, raising=False)
    monkeypatch.chdir(tmp_path)
    names = ["0 flag", "1 cord", "2 hat"]
    for function in ("build", "dataset"):
        target = f"{tmp_path / 'pipelines_to_show.py'}:{function}"
        assert show(target, "--class-names", tmp_path / "names.txt", "--n", 3, "--out", "p.png") == 0
        assert [str(axes.get_label()) for axes in drawn[-1].axes] == names


def test_bad_input_is_refused_before_any_work(tfrecord, tmp_path, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    for arguments, message in (
        ((tfrecord, "--window"), "there is no display"),
        ((tfrecord, "--out", tmp_path / "no" / "a.png"), "does not exist; create it first"),
        ((tfrecord, "--out", tmp_path / "no" / "a.html"), "does not exist; create it first"),
        ((tfrecord, "--out", tmp_path / "a.gif"), "ends in .png"),
        ((tfrecord, "--class-names", tmp_path / "none.txt"), "cannot be read as UTF-8 text"),
        ((tfrecord, "--n", "0"), "n=0"),
        ((tfrecord, "--image", "photo"), "no such feature; there are image"),
        ((tmp_path / "none.tfrecord",), "does not exist"),
        (("no_such_module:build",), "no module"),
    ):
        with pytest.raises(errors.TFQueueError, match=message):
            show(*arguments)


def test_help_loads_neither_matplotlib_nor_tensorflow():
    program = (
        "import argparse, sys\n"
        "from tfqueue.views.commands import add_parser\n"
        "parser = argparse.ArgumentParser()\n"
        "add_parser(parser.add_subparsers())\n"
        "assert not {'matplotlib', 'tensorflow', 'cv2', 'numpy'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_window_shows_the_same_picture(tfrecord, monkeypatch, capsys):
    import matplotlib
    from matplotlib import pyplot

    seen = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(matplotlib, "get_backend", lambda: "tkagg")
    monkeypatch.setattr(pyplot, "show", lambda: seen.append(pyplot.gcf()))
    try:
        assert show(tfrecord, "--window") == 0
        assert len(seen) == 1
        pixels = seen[0].axes[0].images[0].get_array()
        assert pixels.shape[2] == 4
        size = seen[0].get_size_inches() * seen[0].dpi
        assert (pixels.shape[1], pixels.shape[0]) == pytest.approx(tuple(size), abs=1)
    finally:
        pyplot.close("all")
    assert capsys.readouterr().out == ""


def test_a_backend_without_windows_is_said(tfrecord, monkeypatch):
    import matplotlib

    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(matplotlib, "get_backend", lambda: "agg")
    with pytest.raises(errors.InvalidArgument, match="the backend 'agg', which has no window"):
        show(tfrecord, "--window")
