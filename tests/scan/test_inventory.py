"""The inventory of sources: what is found, where, and what is said about it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import ROOT
from tfqueue.cli import main
from tfqueue.errors import InvalidArgument
from tfqueue.scan import Inventory, scan


def inventory_of(tmp_path: Path, text: str, name: str = "train.py") -> Inventory:
    (tmp_path / name).write_text(text)
    return scan(tmp_path)


def found(inventory: Inventory) -> list[tuple[int, str, str]]:
    return [(use.line, use.kind, use.name) for use in inventory.uses]


WHOLE = """\
import tensorflow as tf
from tensorflow import train
import tensorflow.contrib.slim as slim
layers = tf.contrib.layers

def read(queue):
    reader = tf.TFRecordReader()
    _, serialized = reader.read(queue)
    features = tf.parse_single_example(serialized, {})
    return tf.image.resize_images(tf.decode_raw(features["x"], tf.uint8), [2, 2])

def inputs(names, unused_train=None):
    a = train.string_input_producer(names, num_epochs=2)
    b = tf.train.string_input_producer(names)
    return _make(read(a), read(b))

def _make(x, y):
    return tf.train.shuffle_batch(
        [x, y], 3, capacity=3, min_after_dequeue=2, num_threads=4)

class Model(object):
    def __init__(self):
        self.queue = tf.FIFOQueue(3, tf.int32)

    def go(self, train):
        train.batch([1], 2)  # the argument, not tf.train
        return self.queue.dequeue_many(3)

with tf.Session() as sess:
    tf.train.start_queue_runners(sess)
    slim.conv2d(layers.flatten(tf.pack([1])), 3)
"""


def test_every_use_is_found_through_aliases_with_its_line(tmp_path: Path) -> None:
    inventory = inventory_of(tmp_path, WHOLE)
    assert found(inventory) == [
        (3, "missing", "tf.contrib.slim"),
        (4, "missing", "tf.contrib.layers"),
        (7, "reader", "tf.TFRecordReader"),
        (8, "reader", "tf.TFRecordReader().read"),
        (9, "parse", "tf.parse_single_example"),
        (10, "parse", "tf.decode_raw"),
        (13, "producer", "tf.train.string_input_producer"),
        (14, "producer", "tf.train.string_input_producer"),
        (18, "batch", "tf.train.shuffle_batch"),
        (23, "queue", "tf.FIFOQueue"),
        (27, "queue", "tf.FIFOQueue().dequeue_many"),
        (29, "session", "tf.Session"),
        (30, "runner", "tf.train.start_queue_runners"),
        (31, "missing", "tf.contrib.slim.conv2d"),
        (31, "missing", "tf.contrib.layers.flatten"),
        (31, "missing", "tf.pack"),
    ]
    uses = {use.name: use for use in inventory.uses}
    assert uses["tf.train.shuffle_batch"].next_step.startswith("Dataset.shuffle(min_after_dequeue + 1).batch(")
    assert uses["tf.train.shuffle_batch"].function == "_make"
    assert (uses["tf.pack"].missing, uses["tf.pack"].next_step) == ("restored", "tf.stack")
    assert uses["tf.Session"].missing is None
    assert inventory.exit_code == 1


def test_a_pipeline_is_put_together_over_functions(tmp_path: Path) -> None:
    first, second = inventory_of(tmp_path, WHOLE).pipelines
    assert (first.line, first.function, first.threads) == (18, "_make", 4)
    assert str(first) == (
        "string_input_producer -> TFRecordReader -> parse_single_example -> decode_raw -> image.resize_images -> "
        "shuffle_batch"
    )
    assert (second.line, second.function, str(second)) == (27, "Model.go", "FIFOQueue.dequeue_many")


def test_risks_are_told_with_their_lines(tmp_path: Path) -> None:
    risks = [(risk.line, risk.code) for risk in inventory_of(tmp_path, WHOLE).risks]
    assert risks == [
        (10, "resize"),
        (10, "decode-raw"),
        (13, "epochs-without-local-init"),
        (18, "paired-producers"),
        (18, "partial-batch"),
        (30, "no-coordinator"),
    ]


SOUND = """\
import tensorflow as tf
queue = tf.train.string_input_producer(["a"])
_, line = tf.TextLineReader().read(queue)
batch = tf.train.batch([line], 4)
with tf.Session() as sess:
    sess.run(tf.local_variables_initializer())
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess, coord)
"""


def test_a_sound_pipeline_has_no_risk(tmp_path: Path) -> None:
    assert inventory_of(tmp_path, SOUND).risks == ()


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('(["a"])', '(["a"], num_epochs=2)', "partial-batch"),
        ("batch([line], 4)", "batch([line], 4, num_threads=3)", "order"),
        ("batch([line], 4)", "shuffle_batch([line], 4, 9, 3, seed=1)", "seed"),
        ("(sess, coord)", "(sess=sess)", "no-coordinator"),
        ("    threads = tf.train.start_queue_runners(sess, coord)\n", "", "runners-not-started"),
        ('["a"]', 'tf.train.match_filenames_once("a*")', "match-filenames-once"),
        ("coord = tf.train.Coordinator()", "x = tf.load_op_library('x.so')", "custom-ops"),
        ("line = tf", "line = tf.image.resize_bilinear(1, 2), tf", "resize"),
        ("line = tf", "line = tf.io.decode_raw(1, 2), tf", "decode-raw"),
        (
            "batch([line], 4)",
            "batch([line, tf.train.range_input_producer(9).dequeue()], 4, num_threads=8)",
            "paired-producers",
        ),
    ],
)
def test_each_risk_appears_with_what_makes_it(tmp_path: Path, old: str, new: str, code: str) -> None:
    changed = SOUND.replace(old, new)
    assert changed != SOUND
    assert code in {risk.code for risk in inventory_of(tmp_path, changed).risks}


def test_epochs_are_a_risk_only_where_nothing_initialises_them(tmp_path: Path) -> None:
    epochs = SOUND.replace('(["a"])', '(["a"], num_epochs=1)')
    assert "epochs-without-local-init" not in {risk.code for risk in inventory_of(tmp_path, epochs).risks}
    forgotten = epochs.replace("local_variables_initializer", "global_variables_initializer")
    assert "epochs-without-local-init" in {risk.code for risk in inventory_of(tmp_path, forgotten).risks}
    managed = forgotten + "sv = tf.train.Supervisor()\n"
    assert "epochs-without-local-init" not in {risk.code for risk in inventory_of(tmp_path, managed).risks}


def test_python_2_is_read(tmp_path: Path) -> None:
    text = "import tensorflow as tf\nfor i in xrange(3): print i, `i`\ntry: pass\nexcept E, e: raise V, 'x'\n"
    inventory = inventory_of(tmp_path, text + "print 07, tf.train.batch([1], 2)\n")
    assert found(inventory) == [(5, "batch", "tf.train.batch")]
    assert inventory.python2 == ((str(tmp_path / "train.py"), 7),)
    assert inventory.problems == ()


def test_what_cannot_be_parsed_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import tensorflow as tf\nx = = 3\n")
    (tmp_path / "nul.py").write_bytes(b"import tensorflow\n\0\n")
    (tmp_path / "deep.py").write_text("import tensorflow\nx = " + "-" * 100_000 + "1\n")
    (tmp_path / "no.ipynb").write_text('{"tensorflow": 1}')
    inventory = inventory_of(tmp_path, "import tensorflow as tf\n", "fine.py")
    assert {Path(problem.path).name for problem in inventory.problems} >= {"broken.py", "nul.py", "no.ipynb"}
    assert [p.line for p in inventory.problems if p.path.endswith("broken.py")] == [2]
    assert inventory.exit_code == 2
    (tmp_path / "left.py").write_text(SOUND)
    assert scan(tmp_path).exit_code == 1


def test_code_of_today_is_clean(tmp_path: Path) -> None:
    text = "import tensorflow as tf\ndata = tf.data.Dataset.range(3).batch(2)\nmodel = tf.keras.Sequential()\n"
    inventory = inventory_of(tmp_path, text)
    assert (inventory.uses, inventory.pipelines, inventory.risks, inventory.exit_code) == ((), (), (), 0)
    assert str(inventory) == "no queue code left in 1 file"


def test_notebooks_tell_cell_and_line(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# tf.train.batch"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "!pip install x\n", "import tensorflow as tf"]},
        {"cell_type": "code", "source": ["%%bash\n", "ls tf.train.batch("]},
        {"cell_type": "code", "source": "x = 1\nif x:\n    tf.train.batch([x], 2)"},
    ]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    inventory = scan(tmp_path / "a.ipynb")
    assert [(use.cell, use.line, use.name) for use in inventory.uses] == [(3, 3, "tf.train.batch")]
    assert inventory.problems == ()
    assert "cell 3, line 3: tf.train.batch" in str(inventory)


def test_a_notebook_is_read_but_for_the_cells_that_cannot_be(tmp_path: Path) -> None:
    sources = [
        "import tensorflow as tf\nnames = !ls\nrows = %sql select 1\n%time a = tf.train.batch([1], 2)",
        "this is = = no Python",
        "%%writefile reader.py\nimport tensorflow as tf\nb = tf.train.shuffle_batch([1], 2, 4, 2)",
        "%%writefile notes.txt\ntf.train.batch( what",
        "%timeit -n 3 tf.train.batch_join([[a]], 2)",
    ]
    cells = [{"cell_type": "code", "source": source} for source in sources]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    inventory = scan(tmp_path / "a.ipynb")
    assert [(use.cell, use.line, use.name) for use in inventory.uses] == [
        (1, 4, "tf.train.batch"),
        (3, 3, "tf.train.shuffle_batch"),
        (5, 1, "tf.train.batch_join"),
    ]
    assert [(problem.cell, problem.line) for problem in inventory.problems] == [(2, 1)]


PRIVATE = """\
from tensorflow.python.ops import data_flow_ops, io_ops, parsing_ops
from tensorflow.python.training import input as input_lib
from tensorflow.python.training.queue_runner import QueueRunner, add_queue_runner
names = input_lib.string_input_producer(["a"])
_, record = io_ops.TFRecordReader().read(names)
queue = data_flow_ops.FIFOQueue(3, ["int32"])
add_queue_runner(QueueRunner(queue, [queue.enqueue(parsing_ops.decode_raw(record, "int32"))]))
"""


def test_names_from_the_files_of_tensorflow_itself_are_found(tmp_path: Path) -> None:
    assert found(inventory_of(tmp_path, PRIVATE)) == [
        (4, "producer", "tf.train.string_input_producer"),
        (5, "reader", "tf.TFRecordReader().read"),
        (5, "reader", "tf.TFRecordReader"),
        (6, "queue", "tf.FIFOQueue"),
        (7, "runner", "tf.train.add_queue_runner"),
        (7, "runner", "tf.train.QueueRunner"),
        (7, "queue", "tf.FIFOQueue().enqueue"),
        (7, "parse", "tf.decode_raw"),
    ]


def test_what_is_done_with_a_batch_is_no_stage_before_it(tmp_path: Path) -> None:
    text = SOUND + "image = tf.image.resize_bilinear(batch, [2, 2])\n"
    assert str(inventory_of(tmp_path, text).pipelines[0]) == "string_input_producer -> TextLineReader -> batch"


def test_an_estimator_starts_the_runners_of_its_input_function(tmp_path: Path) -> None:
    text = SOUND.partition("with tf.Session")[0].replace('(["a"])', '(["a"], num_epochs=1)')
    codes = {"runners-not-started", "epochs-without-local-init"}
    assert {risk.code for risk in inventory_of(tmp_path, text).risks} >= codes
    estimated = text + "tf.estimator.Estimator(None).train(None)\n"
    assert not {risk.code for risk in inventory_of(tmp_path, estimated).risks} & codes


def test_encodings_and_what_is_no_file(tmp_path: Path) -> None:
    text = "import tensorflow as tf\n# caf\xe9\ntf.train.batch([1], 2)\n"
    for name, data in {
        "bom": text.encode("utf-8-sig"),
        "latin": text.encode("latin-1"),
        "utf16": text.encode("utf-16"),
        "crlf": text.replace("\n", "\r\n").encode(),
    }.items():
        (tmp_path / f"{name}.py").write_bytes(data)
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere.py")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.py")  # reading it would wait for ever
        with pytest.raises(InvalidArgument, match="neither a Python source"):
            scan(tmp_path / "pipe.py")
    inventory = scan(tmp_path)
    assert [(Path(use.path).stem, use.line) for use in inventory.uses] == [
        ("bom", 3),
        ("crlf", 3),
        ("latin", 3),
        ("utf16", 3),
    ]
    assert [Path(problem.path).name for problem in inventory.problems] == ["gone.py"]
    assert "  cannot be read: No such file" in str(inventory)
    (tmp_path / "empty").mkdir()
    assert str(scan(tmp_path / "empty")) == "no Python source or notebook found"


def test_a_generated_file_is_read_in_one_pass(tmp_path: Path) -> None:
    """The work grows with the file, and not with its square: thousands of equal lines are looked at once each."""
    lines = [f"y{n} = tf.train.batch([tf.constant({n})], 2)" for n in range(3000)]
    inventory = inventory_of(tmp_path, "\n".join(["import tensorflow as tf", *lines]))
    assert len(inventory.pipelines) == 3000
    assert len(str(inventory).splitlines()) < 20


def test_installed_packages_and_hidden_folders_are_left_out(tmp_path: Path) -> None:
    for folder in (".git", "venv", "lib/site-packages", "__pycache__"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "x.py").write_text(SOUND)
    (tmp_path / "venv" / "pyvenv.cfg").write_text("")
    assert scan(tmp_path).files == 0


def test_the_command_prints_a_table_or_json_and_gives_the_exit_code(tmp_path: Path, capsys) -> None:
    (tmp_path / "train.py").write_text(WHOLE)
    assert main(["scan", str(tmp_path), "--width", "72", "--json", str(tmp_path / "out.json")]) == 1
    out = capsys.readouterr().out
    assert all(len(line) <= 72 or " " not in line.strip() for line in out.splitlines())
    assert "13, 14: tf.train.string_input_producer  [producer]" in out
    written = json.loads((tmp_path / "out.json").read_text())
    assert (written["schema"], written["queue_code"], written["exit_code"]) == (1, 8, 1)
    assert main(["scan", str(tmp_path / "train.py"), "--json", "-"]) == 1
    assert json.loads(capsys.readouterr().out)["pipelines"][0]["stages"][-1] == "tf.train.shuffle_batch"
    assert main(["scan", str(tmp_path / "nothing")]) == 2
    assert "there is no file or folder" in capsys.readouterr().err
    assert main(["scan", str(tmp_path / "train.py"), "--json", str(tmp_path / "no" / "x.json")]) == 2
    assert "x.json cannot be written: No such file" in capsys.readouterr().err
    with pytest.raises(InvalidArgument, match="neither a Python source"):
        scan(tmp_path / "out.json")


def test_the_gallery_is_found_whole() -> None:
    """Each TF1 program of the gallery that names a batch op is a pipeline of the inventory."""
    inventory = scan(ROOT / "tests" / "gallery")
    assert inventory.problems == ()
    assert len(inventory.pipelines) > 100
    kinds = {use.kind for use in inventory.queue_code}
    assert kinds >= {"producer", "reader", "batch", "queue", "runner", "provider"}


def test_nothing_is_imported_to_scan(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("raise SystemExit('executed')\n" + WHOLE)
    program = (
        "import sys; from tfqueue.cli import main; main(['scan', sys.argv[1]]); print('tensorflow' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.endswith("False\n")
