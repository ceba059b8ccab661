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

import numpy as np
import pytest

from tests.compat import program_data
from tests.compat.scripts import HELPER, RECORDS, SCRIPTS
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

    engines = {
        (name, engine): {pipeline["engine"] for pipeline in found[engine][name]["report"]["pipelines"]}
        for name in programs
        for engine in ENGINES
    }
    assert engines.pop(("single_examples", "tfdata")) == {"threads"}
    assert "not on tf.data: a step reads from ReaderReadV2" in found["tfdata"]["single_examples"]["err"]
    assert all(used == {engine} for (_, engine), used in engines.items()), engines

    wrong = {}
    for name in programs:
        reference = found["threads"][name]
        assert reference["exit_code"] == 0, reference
        assert reference["out"].strip()
        for engine in ENGINES[1:]:
            other = found[engine][name]
            if other["exit_code"] != 0 or other["out"] != reference["out"]:
                wrong[name, engine] = (reference["out"], other["out"], other["err"])
    assert wrong == {}
    assert len(programs) >= 16
    for name, expected in EXPECTED.items():
        assert expected in found["threads"][name]["out"], name
    delivered = found["threads"]["flowers_slim"]["report"]["pipelines"][0]["delivered"]
    assert [(given["steps"], given["records"]) for given in delivered] == [(12, 48)]
    restored = {item["name"] for item in found["tfdata"]["mnist_arrays"]["report"]["restored"]}
    numpys = {"np.fromstring"} | ({"np.ndarray.tostring"} if not hasattr(np.ndarray, "tostring") else set())
    assert {"tf.pack", "tf.sub", "tf.scalar_summary"} | numpys <= restored


EXPECTED = {
    "queue_tutorial": "step 20 [0.0, 10.0, 20.0, 30.0] 0\na=1 True 7 a [(0, 1)] True",
    "single_examples": "15: 14 114.000\nread 15",
    "two_domains": "step 15: ",
    "cifar_handmade": f"ids {list(range(24))}",
    "cifar_monitored": f"ids {sorted([*range(24)] * 2)}",
    "segmentation_slices": "masks [6, 7, 8]",
}
"""What some of them must print, worked out by hand."""

ALL_ENGINES = {
    "looks_up": "[[0, 1], [2, 3], [0, 1]]\n",
    "grows": "[0, 3] [[6, 9], [2, 3]] [4, 5] [0, 1] 3 [0, 1]\n",
    "callables": "[0, 1] [20, 30] None\n[6, 7] [80, 0] None\n",
    "dequeues_in_the_loop": "b'a'\nb'b'\nb'c'\nb'a'\n",
    "two_phases": "[[0, 1, 2], [3, 4, 5]]\n[[100, 101, 102], [103, 104, 105]]\n",
    "later_pipeline": "[0, 1, 2]\n[100, 101, 102] [3, 4, 5]\n",
    "chooses_queues": "[[0, 1, 2], [100, 101, 102], [3, 4, 5], [103, 104, 105]]\n",
    "fed_by_threads": "[0.0, 1.0, 2.0]\n[3.0, 4.0, 5.0]\n[6.0, 7.0, 8.0]\nend\n",
    "steps_beside": "done\n",
    "runner_of_its_own": "[0.0, 1.0]\n[4.0, 9.0]\n[16.0, 25.0]\n[0.0, 1.0]\n",
    "trains_in_threads": "True\n",
    "idles_in_threads": "7\n3.0\n",
    "left_behind": "left\n",
    "lets_go": "gone on\n",
    "feeds_for_ever": "[3.0, 12.0, 21.0, 30.0, 39.0]\n",
}
OPTIONS = ("not_started", "endless", "endless_for", "main", *ALL_ENGINES)


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
    jobs += [job(name, f"{e} {name}", engine=e) for name in ("in_parts", "other_size_later") for e in ENGINES[1:]]
    for engine in ENGINES:
        jobs.append(job("endless", f"{engine} endless", engine=engine, steps=7))
        jobs.append(job("endless_for", f"{engine} endless_for", engine=engine, steps=3))
        jobs += [job(name, f"{engine} {name}", engine=engine) for name in ALL_ENGINES]
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
    assert found["mixed_tabs"]["out"] == "3 3\n", found["mixed_tabs"]
    assert found["divides_a_dimension"]["out"] == "3 3 3.5\n", found["divides_a_dimension"]
    assert found["moved_names"]["out"] == "True 3\n", found["moved_names"]
    layers = ("hidden1", "hidden2", "softmax_linear")
    variables = [f"{layer}/{part}" for layer in layers for part in ("weights", "biases")]
    assert found["model_of_the_how_tos"]["out"] == f"True 10\n{[*variables, 'global_step']}\nTrue 3 20\n", found
    assert found["flags_of_1_4"]["out"] == "./log 128 3 5\n(4, 5, 3)\n", found["flags_of_1_4"]
    assert found["library_of_3_6"]["out"] == "True True 3.5 {3} OrderedDict\n", found["library_of_3_6"]
    ends("old_by_hand", 2, "is Python 2, and could not be translated", "old_by_hand.py:4: print a -> print(...)")
    ends("no_such", 2, "there is no script", raised="InvalidArgument")
    ends("folder", 2, "is a folder without a __main__.py", raised="InvalidArgument")
    ends("no module", 2, "no module 'a_package.nothing' can be run", raised="InvalidArgument")

    for name in ("missing_file", "lockstep missing_file", "tfdata missing_file", "without_coordinator"):
        text = ends(name, 1, "PipelineFailed: NotFoundError: /no/such.csv; No such file", "file: /no/such.csv")
        # A runner may fail before the program first asks whether to stop, which then never takes a step.
        assert "sess.run(batch)" in text or (name == "missing_file" and "coord.join(threads)" in text), text
    ends("not_started", 1, "PipelineStalled", "none of its runner threads is alive", "start_queue_runners")
    never = ends(
        "never_read", 0, "3\n", "never read: no step of the program takes anything from queue batch/fifo_queue"
    )
    assert "delivered by" not in never
    ends("forgets_locals", 0, "the end\n5\n", "initialised for the program, which forgot it: ")

    text = ends("joins_in_finally", 1, "PipelineFailed: NotFoundError: /no/such.csv", "coord.join(threads)")
    assert "OutOfRangeError" not in text
    text = ends("tf2_in_part", 1, "RuntimeError", "uses no session, placeholder or queue of TensorFlow 1")
    assert found["never_read"]["report"]["restored"] == []  # what other programs used is not this one's

    for engine in ENGINES:
        ends(f"{engine} endless", 0, "after 7", "stopped after 7 steps")
        for name, printed in ALL_ENGINES.items():
            result = found[f"{engine} {name}"]
            if (engine, name) == ("lockstep", "later_pipeline"):
                ends(f"{engine} {name}", 2, "batch_1 takes from (later_pipeline.py:4 in numbers), was built after")
                continue
            assert (result["exit_code"], result["out"]) == (0, printed), (engine, name, result)
            assert "Exception in thread" not in result["err"], (engine, name, result)
        counted = found[f"{engine} endless_for"]
        assert counted["out"] == "0 [0, 1, 2, 3]\n1 [4, 5, 6, 7]\n2 [8, 9, 10, 11]\n", counted
        assert (counted["exit_code"], counted["report"]["stopped_after"]) == (0, 3)

    delivered = {
        key: [(d["steps"], d["records"], d["ops"]) for p in result["report"]["pipelines"] for d in p["delivered"]]
        for key, result in found.items()
        if result["report"]
    }
    for engine in ENGINES:
        assert delivered[f"{engine} callables"] == [(6, 12, 1)]
        assert delivered[f"{engine} dequeues_in_the_loop"] == [(4, 4, 4)]
        assert delivered[f"{engine} two_phases"] == [(2, 6, 1), (2, 6, 1)]
        assert delivered[f"{engine} feeds_for_ever"] == [(5, 15, 1)]
        assert found[f"{engine} two_phases"]["report"]["pipelines"][0]["never_read"] == []
    assert sorted(delivered["tfdata later_pipeline"]) == [(1, 3, 1), (2, 6, 1)]
    for name in ("chooses_queues", "fed_by_threads"):
        report = found[f"tfdata {name}"]["report"]
        assert [pipeline["engine"] for pipeline in report["pipelines"]] == ["threads"]
        ends(f"tfdata {name}", 0, "warning: not on tf.data: ", "run by the engine threads: ")
    ends("other_size_later", 0, "[0, 1]\n[2, 3, 4]\n")
    ends("lockstep other_size_later", 0, "[0, 1]\n[2, 3, 4]\n")
    ends("tfdata other_size_later", 2, "[0, 1]\n", "which tf.data has replaced in the steps before", "--engine threads")
    ends("in_parts", 0, "[0, 1] [0, 10]\n", "delivered by batch")
    for engine in ENGINES[1:]:
        ends(f"{engine} in_parts", 2, "partial_run takes from batch in several parts", "use --engine threads")

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
