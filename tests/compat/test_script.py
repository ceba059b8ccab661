"""Whole TF1 programs, unmodified: the same results on every engine, and what happens when something is wrong.

The programs run in processes of their own, many in each, since TensorFlow is switched to its TF1 behaviour there.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compat import program_data
from tests.programs import ROOT

LIMIT = 400  # seconds; a hang is a failure, a slow machine is not
ENGINES = ("threads", "lockstep", "tfdata")


def start(jobs: list[dict], folder: Path) -> subprocess.Popen:
    (folder / "jobs.json").write_text(json.dumps(jobs))
    return subprocess.Popen(
        [sys.executable, "-m", "tests.compat.run_child", str(folder / "jobs.json"), str(folder / "results.json")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def results(child: subprocess.Popen, folder: Path) -> dict[str, dict]:
    try:
        printed, _ = child.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        child.kill()
        printed, _ = child.communicate()
        raise AssertionError(f"no end within {LIMIT} s:\n{printed}") from None
    assert child.returncode == 0, printed
    return json.loads((folder / "results.json").read_text())


def test_programs_give_the_same_on_every_engine(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    program_data.make(data)
    programs = {**program_data.ORDERED, **program_data.SHUFFLED}
    children = {}
    for engine in ENGINES:
        folder = tmp_path / engine
        jobs = []
        for name, arguments in programs.items():
            (folder / name).mkdir(parents=True)
            filled = [argument.format(data=data, out=folder / name) for argument in arguments]
            path = str(ROOT / "tests" / "programs" / f"{name}.py")
            jobs.append({"key": name, "program": path, "arguments": filled, "options": {"engine": engine}})
        children[engine] = start(jobs, folder)
    found = {engine: results(child, tmp_path / engine) for engine, child in children.items()}

    refused = found["tfdata"].pop("single_examples")
    assert refused["exit_code"] == 2
    assert "a step reads from ReaderReadV2 itself, without a queue behind it (single_examples.py:9" in refused["err"]

    wrong = {}
    for name in programs:
        reference = found["threads"][name]
        assert reference["exit_code"] == 0, reference
        assert reference["out"].strip()
        for engine in ENGINES[1:]:
            other = found[engine].get(name, reference)
            if other["exit_code"] != 0 or other["out"] != reference["out"]:
                wrong[name, engine] = (reference["out"], other["out"], other["err"])
    assert wrong == {}
    assert len(programs) >= 16
    for name, expected in EXPECTED.items():
        assert expected in found["threads"][name]["out"], name
    delivered = found["threads"]["flowers_slim"]["report"]["pipelines"][0]["delivered"]
    assert [(given["steps"], given["records"]) for given in delivered] == [(12, 48)]
    restored = {item["name"] for item in found["tfdata"]["mnist_arrays"]["report"]["restored"]}
    assert {"tf.pack", "tf.sub", "tf.scalar_summary", "np.fromstring", "np.ndarray.tostring"} <= restored


EXPECTED = {
    "queue_tutorial": "step 20 [0.0, 10.0, 20.0, 30.0] 0\na=1 True 7 a [(0, 1)] True",
    "single_examples": "15: 14 114.000\nread 15",
    "two_domains": "step 15: ",
    "cifar_handmade": f"ids {list(range(24))}",
    "cifar_monitored": f"ids {sorted([*range(24)] * 2)}",
    "segmentation_slices": "masks [6, 7, 8]",
}
"""What some of them must print, worked out by hand."""

RECORDS = """
import os, sys
import tensorflow as tf
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "numbers.csv")
with open(path, "w") as f:
    f.write("".join("%d\\n" % n for n in range(20)))

def inputs(paths, epochs=1):
    queue = tf.train.string_input_producer(paths, num_epochs=epochs, shuffle=False)
    _, line = tf.TextLineReader().read(queue)
    return tf.train.batch(tf.decode_csv(line, [[0]]), 4)

def loop(batch, init=True):
    with tf.Session() as sess:
        if init:
            sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        steps = 0
        try:
            while not coord.should_stop():
                sess.run(batch)
                steps += 1
        except tf.errors.OutOfRangeError:
            print("the end")
        finally:
            coord.request_stop()
        coord.join(threads)
    return steps
"""

SCRIPTS = {
    "exits": "import sys\nimport tensorflow as tf\nprint('said')\nsys.exit(3)\n",
    "exits_with_words": "import sys\nimport tensorflow as tf\nsys.exit('not today')\n",
    "raises": "import tensorflow as tf\ndef deep():\n    raise KeyError('mine')\ndeep()\n",
    "raises_in_a_step": "import tensorflow as tf\nq = tf.placeholder(tf.float32, [2])\nx = q * tf.ones([2])\n"
    "with tf.Session() as sess:\n    sess.run(x)\n",
    "raises_in_a_thread": "import threading\nimport tensorflow as tf\nx = tf.placeholder(tf.int32, [])\n"
    "sess = tf.Session()\nthread = threading.Thread(target=lambda: sess.run(x + 1), name='Mine')\n"
    "thread.start()\nthread.join()\n",
    "interrupted": "import tensorflow as tf\nraise KeyboardInterrupt\n",
    "gone": "import tensorflow as tf\n\ndef load():\n    return tf.contrib.ffmpeg.decode_audio\n\nload()\n",
    "gone_import": "import tensorflow as tf\nfrom tensorflow.contrib.ffmpeg import decode_audio\n",
    "gone_is_asked": "import tensorflow as tf\nprint(hasattr(tf.contrib.ffmpeg, 'decode_audio'), hasattr(tf, 'pack'))\n"
    "try:\n    from tensorflow.contrib.ffmpeg import decode_audio\nexcept ImportError:\n    print('no')\n",
    "custom_op": "import tensorflow as tf\nmodule = tf.load_op_library('./zero_out.so')\n",
    "tf2": "import tensorflow as tf\n@tf.function\ndef f(x):\n    return x\nprint(f(1))\n",
    "syntax": "import tensorflow as tf\nx = = 3\n",
    "old_by_hand": "import tensorflow as tf\n\ndef f(a, (b, c)):\n    print a\n",
    "missing_file": RECORDS + "loop(inputs([path, '/no/such.csv']))\n",
    "never_read": RECORDS
    + "batch = inputs([path])\nx = tf.constant(3)\nwith tf.Session() as sess:\n"
    + "    sess.run(tf.local_variables_initializer())\n    coord = tf.train.Coordinator()\n"
    + "    threads = tf.train.start_queue_runners(sess, coord)\n    print(sess.run(x))\n"
    + "    coord.request_stop()\n    coord.join(threads)\n",
    "not_started": RECORDS
    + "batch = inputs([path])\nwith tf.Session() as sess:\n    sess.run(tf.local_variables_initializer())\n"
    + "    sess.run(batch)\n",
    "forgets_locals": RECORDS + "print(loop(inputs([path]), init=False))\n",
    "without_coordinator": RECORDS
    + "batch = inputs([path, '/no/such.csv'])\nwith tf.Session() as sess:\n"
    + "    sess.run(tf.local_variables_initializer())\n    threads = tf.train.start_queue_runners(sess)\n"
    + "    for _ in range(10):\n        sess.run(batch)\n",
    "endless": RECORDS + "print('after', loop(inputs([path], None)))\n",
    "endless_for": RECORDS
    + "batch = inputs([path], None)\nwith tf.Session() as sess:\n    tf.train.start_queue_runners(sess)\n"
    + "    for step in range(100000):\n        print(step, sess.run(batch).tolist())\n",
    "fed_by_threads": """
import threading
import tensorflow as tf
place = tf.placeholder(tf.float32, [])
queue = tf.FIFOQueue(10, tf.float32, [[]])
enqueue = queue.enqueue(place)
batch = queue.dequeue_many(3)

def feed(sess):
    try:
        for n in range(9):
            sess.run(enqueue, {place: n})
        sess.run(queue.close())
    except tf.errors.CancelledError:
        pass

with tf.Session() as sess:
    thread = threading.Thread(target=feed, args=(sess,))
    thread.start()
    try:
        while True:
            print(sess.run(batch).tolist())
    except tf.errors.OutOfRangeError:
        print('end')
    thread.join()
""",
    "spawns": "import multiprocessing, sys\nimport tensorflow as tf\nfrom helper_of_main import double\n"
    "def work(n):\n    return tf.contrib.slim.__name__, double(n), sys.argv[1:], tf.executing_eagerly()\n"
    "if __name__ == '__main__':\n    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
    "        print(pool.map(work, [3]))\n",
    "imports": """
import importlib, importlib.util
import tensorflow as tf
import tensorflow.compat.v1 as migrated
from tensorflow.compat import v1
import tensorflow.python.framework.ops as private
from tensorflow.python.platform import gfile
from tensorflow.contrib.layers import xavier_initializer
from tensorflow.core.framework import graph_pb2
assert importlib.import_module('tensorflow').Session is tf.Session is migrated.Session is v1.Session
assert importlib.import_module('json').dumps(1) == '1' and importlib.util.find_spec('json')
assert private.Graph is tf.Graph and __import__('tensorflow') is tf
import tensorflow.models.rnn
""",
    "methods_only": "import tensorflow as tf\nx = {1: 2}\nprint(list(x.iteritems()), 3 / 2)\n",
    "looks_up": """
import tensorflow as tf
words = tf.constant(["a", "b", "c", "d"])
table = tf.contrib.lookup.index_table_from_tensor(words, default_value=-1)
word = tf.train.slice_input_producer([words], shuffle=False)[0]
batch = tf.train.batch([table.lookup(word)], 2)
init = tf.group(tf.global_variables_initializer(), tf.tables_initializer())
with tf.Session() as sess:
    sess.run(init)
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess, coord)
    print([sess.run(batch).tolist() for _ in range(3)])
    coord.request_stop()
    coord.join(threads)
""",
    "grows": """
import tensorflow as tf
queue = tf.train.range_input_producer(6, shuffle=False)
batch = tf.train.batch([queue.dequeue()], 2)
sess = tf.InteractiveSession()
x = tf.Variable(3)
sess.run(x.initializer)  # before the rest of the graph is there
rows = batch * x
both = tf.stack([rows, batch])
coord = tf.train.Coordinator()
threads = tf.train.start_queue_runners(coord=coord)
print(rows.eval().tolist(), both.eval().tolist(), batch.eval().tolist(), end=' ')
got = sess.run({'a': [batch, x], 'b': 'batch:0'})
print(got['a'][0].tolist(), got['a'][1], got['b'].tolist())
coord.request_stop()
coord.join(threads)
""",
    "main": """
import os, pickle, sys, warnings
from helper_of_main import double, shape
import tensorflow as tf
from tensorflow import flags
from tensorflow.python.framework import ops
import tensorflow.contrib.slim as slim

class Thing(object):
    pass

assert sys.modules['__main__'].Thing is Thing and pickle.loads(pickle.dumps(Thing())).__class__ is Thing
assert __name__ == '__main__' and sys.path[0] == os.path.dirname(os.path.abspath(__file__))
flags.DEFINE_integer('number', 1, 'A number.')
warnings.warn('of the program')
print(sys.argv[1:], flags.FLAGS.number if flags.FLAGS(sys.argv) else None, double(4), shape, slim.__name__)
assert ops.Graph is tf.Graph
""",
}
OPTIONS = ("not_started", "endless", "endless_for", "main", "looks_up", "grows")
HELPER = "import tensorflow as tf\nshape = tf.zeros([2, 3]).shape[1].value\ndef double(x):\n    return 2 * x\n"


def test_what_goes_wrong_is_told_as_plain_python_tells_it(tmp_path: Path) -> None:
    for name, text in SCRIPTS.items():
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "helper_of_main.py").write_text(HELPER)
    package = tmp_path / "a_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text("import sys\nfrom . import part\nprint(__name__, part.x, sys.argv[1:])\n")
    (package / "part.py").write_text("import tensorflow as tf\nx = tf.VERSION[:2]\n")

    def job(name: str, key: str | None = None, arguments: tuple[str, ...] = (), **options) -> dict:
        path = str(tmp_path / f"{name}.py")
        return {"key": key or name, "program": path, "arguments": arguments, "options": options, "cwd": str(tmp_path)}

    jobs = [job(name) for name in SCRIPTS if name not in OPTIONS]
    jobs += [job("main", key, ("--number=7",)) for key in ("main", "main again")]
    jobs += [job("not_started", stall_timeout=1.0), job("missing_file", "lockstep missing_file", engine="lockstep")]
    jobs += [job("missing_file", "tfdata missing_file", engine="tfdata")]
    jobs += [job("never_read", "tfdata never_read", engine="tfdata")]
    jobs += [job("fed_by_threads", f"{engine} fed", engine=engine) for engine in ENGINES[1:]]
    for engine in ENGINES:
        jobs.append(job("endless", f"{engine} endless", engine=engine, steps=7))
        jobs.append(job("endless_for", f"{engine} endless_for", engine=engine, steps=3))
        jobs += [job(name, f"{engine} {name}", engine=engine) for name in ("looks_up", "grows")]
    jobs.append(job("forgets_locals", "reported", report_folder=str(tmp_path / "report")))
    jobs.append({**job("x", "module"), "program": "a_package.train", "options": {"module": True}})
    jobs.append({**job("x", "no module"), "program": "a_package.nothing", "options": {"module": True}})
    jobs.append({**job("x", "folder"), "program": str(tmp_path)})
    jobs.append(job("no_such"))
    found = results(start(jobs, tmp_path), tmp_path)

    def ends(name: str, code: int, *words: str, raised: str | None = None) -> str:
        result = found[name]
        assert (result["exit_code"], result["raised"]) == (code, raised), (name, result)
        text = result["out"] + result["err"] + result.get("words", "")
        for word in words:
            assert word in text, (name, word, text)
        assert f"tfqueue{os.sep}compat" not in text, text  # no frame of ours
        return text

    ends("exits", 3, "said")
    ends("exits_with_words", 1, "not today")
    text = ends("raises", 1, "in <module>", "in deep", "KeyError: 'mine'")
    first = text.index("Traceback (most recent call last):\n")
    assert text[first:].splitlines()[1] == f'  File "{tmp_path / "raises.py"}", line 4, in <module>'
    ends("raises_in_a_step", 1, "InvalidArgumentError", "raises_in_a_step.py", "You must feed a value for placeholder")
    ends("raises_in_a_thread", 0, "Exception in thread Mine:", "raises_in_a_thread.py", "You must feed a value")
    ends("interrupted", 130, "KeyboardInterrupt")
    ends("gone", 1, "gone.py:4 in load uses tf.contrib.ffmpeg", "which is gone. Today: ")
    ends("gone_import", 1, "ImportError", "gone_import.py:2 in <module> uses tf.contrib.ffmpeg")
    assert found["spawns"]["out"] == "[('tensorflow.contrib.slim', 6, [], False)]\n", found["spawns"]
    text = ends("imports", 1, "imports.py:13 in <module> uses tf.models.rnn, which is gone")
    assert text.count("Traceback") == 1
    assert found["methods_only"]["out"] == "[(1, 2)] 1.5\n"
    assert found["gone_is_asked"]["out"] == "False True\nno\n"
    ends("custom_op", 1, "custom_op.py:2 in <module> loads a library of custom ops", "get_compile_flags")
    ends("tf2", 2, "is written for TensorFlow 2 (line 2: tf.function)", "plain python", raised="InvalidArgument")
    assert f'  File "{tmp_path / "syntax.py"}", line 2\n    x = = 3\n        ^\nSyntaxError' in ends("syntax", 1)
    assert found["syntax"]["err"].startswith("  File")
    ends("old_by_hand", 2, "is Python 2, and could not be translated", "old_by_hand.py:4: print a -> print(...)")
    ends("no_such", 2, "there is no script", raised="InvalidArgument")
    ends("folder", 2, "is a folder without a __main__.py", raised="InvalidArgument")
    ends("no module", 2, "no module 'a_package.nothing' can be run", raised="InvalidArgument")

    for name in ("missing_file", "lockstep missing_file", "tfdata missing_file", "without_coordinator"):
        ends(
            name,
            1,
            "PipelineFailed: NotFoundError: /no/such.csv; No such file",
            "file: /no/such.csv",
            "sess.run(batch)",
        )
    ends("not_started", 1, "PipelineStalled", "none of its runner threads is alive", "start_queue_runners")
    never = ends(
        "never_read", 0, "3\n", "never read: no step of the program takes anything from queue batch/fifo_queue"
    )
    assert "delivered by" not in never
    ends("forgets_locals", 0, "the end\n5\n", "initialised for the program, which forgot it: ")

    assert found["fed_by_threads"]["out"] == "[0.0, 1.0, 2.0]\n[3.0, 4.0, 5.0]\n[6.0, 7.0, 8.0]\nend\n"
    assert found["lockstep fed"]["out"] == found["fed_by_threads"]["out"]
    ends("tfdata fed", 2, "tfqueue: this program cannot run with --engine tfdata: ")
    for engine in ENGINES:
        ends(f"{engine} endless", 0, "after 7", "stopped after 7 steps")
        ends(f"{engine} looks_up", 0, "[[0, 1], [2, 3], [0, 1]]\n")
        ends(f"{engine} grows", 0, "[0, 3] [[6, 9], [2, 3]] [4, 5] [0, 1] 3 [0, 1]\n")
        counted = found[f"{engine} endless_for"]
        assert counted["out"] == "0 [0, 1, 2, 3]\n1 [4, 5, 6, 7]\n2 [8, 9, 10, 11]\n", counted
        assert (counted["exit_code"], counted["report"]["stopped_after"]) == (0, 3)

    for name in ("main", "main again"):
        ends(name, 0, "['--number=7'] 7 8 3 tensorflow.contrib.slim", "UserWarning: of the program")
    ends("module", 0, "__main__ 2. []\n")

    report = json.loads((tmp_path / "report" / "report.json").read_text())
    assert report == found["reported"]["report"]
    assert report["schema"] == 1
    assert [(d["op"], d["steps"], d["records"]) for d in report["pipelines"][0]["delivered"]] == [("batch", 5, 20)]
    assert "FIFO queue batch/fifo_queue" in (tmp_path / "report" / "report.txt").read_text()
    page = (tmp_path / "report" / "report.html").read_text()
    assert "-&gt;" in page
    assert not re.search(r"<script(?![^>]*>\s*</script>)", page)


def command(*arguments: str, cwd: Path) -> subprocess.Popen:
    # A shell lets what it starts in the background ignore SIGINT, and children inherit that.
    text = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    text += "from tfqueue.cli import main; sys.exit(main())"
    return subprocess.Popen(
        [sys.executable, "-c", text, "run", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_program_that_leaves_at_once_is_reported_first(tmp_path: Path) -> None:
    text = RECORDS + "loop(inputs([path]))\nprint(sys.argv[1:])\nsys.stdout.flush()\nos._exit(7)\n"
    (tmp_path / "leaves.py").write_text(text)
    child = command("--engine", "lockstep", "--report", "told", "leaves.py", "--engine", "mine", cwd=tmp_path)
    out, err = child.communicate(timeout=LIMIT)
    assert child.returncode == 7, err
    assert out == "the end\n['--engine', 'mine']\n"
    assert json.loads((tmp_path / "told" / "report.json").read_text())["exit_code"] == 7
    assert "delivered by batch (leaves.py:11 in inputs): 5 steps, 20 records, to the end of the data" in err


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or os.name == "nt", reason="signals as POSIX has them")
def test_ctrl_c_ends_a_step_that_waits(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(
        "import sys, threading\n"
        "import tensorflow as tf\n"
        "def tell(main):\n"
        "    while sys._current_frames()[main].f_code.co_name != '_call_tf_sessionrun':\n"
        "        pass\n"
        "    print('ready', flush=True)\n"
        "queue = tf.FIFOQueue(3, tf.int32)\n"
        "source = tf.FIFOQueue(3, tf.int32)\n"
        "tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(source.dequeue())]))\n"
        "got = queue.dequeue()\n"
        "with tf.Session() as sess:\n"
        "    tf.train.start_queue_runners(sess)\n"
        "    threading.Thread(target=tell, args=[threading.get_ident()]).start()\n"
        "    try:\n"
        "        sess.run(got)\n"
        "    finally:\n"
        "        print('cleaned up', flush=True)\n"
    )
    child = command("waits.py", cwd=tmp_path)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=LIMIT)
    finally:
        child.kill()
    assert out == "cleaned up\n"
    assert child.returncode == 130, err
    assert "KeyboardInterrupt" in err
    assert "sess.run(got)" in err
