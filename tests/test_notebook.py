"""A pipeline in the kernel of a notebook, run and interrupted as a notebook does it."""

from __future__ import annotations

import os
import time

import pytest

from tests.programs import ROOT

manager = pytest.importorskip("jupyter_client.manager", reason="the test extra installs ipykernel")
pytest.importorskip("ipykernel", reason="the test extra installs ipykernel")

PRELUDE = """
import signal, threading
import tensorflow as tf
import tfqueue
tf1 = tf.compat.v1
before = {thread for thread in threading.enumerate()}, signal.getsignal(signal.SIGINT)

def numbers():
    rows = tf1.train.slice_input_producer([list(range(6))], num_epochs=1, shuffle=False)
    return tf1.train.batch(rows, 2)

def starved():
    queue = tf1.FIFOQueue(3, tf.int32, [[]], name="mine")
    return queue.dequeue()
"""

BLOCKED = """
with tfqueue.QueuePipeline(starved, check=False, stall_timeout=600) as pipeline:
    print("ready", flush=True)
    next(pipeline)
"""

MISSING = """
def missing():
    return tf1.TextLineReader().read(tf1.train.string_input_producer(["missing.txt"]))
with tfqueue.QueuePipeline(missing, check=False) as pipeline:
    next(pipeline)
"""

AFTERWARDS = """
left = {thread for thread in threading.enumerate() if thread.is_alive()} - before[0]
print([thread.name for thread in left if thread.name.startswith(("tfqueue", "QueueRunner"))],
      signal.getsignal(signal.SIGINT) is before[1], tf.executing_eagerly())
"""


@pytest.fixture
def kernel():
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    started, client = manager.start_new_kernel(env=environment)
    yield started, client
    client.stop_channels()
    started.shutdown_kernel(now=True)


def shown(client, code) -> str:
    """What a cell prints, and the name of what it raises."""
    printed: list[str] = []

    def take(message) -> None:
        content = message["content"]
        printed.append(content.get("text", content.get("ename", "")))

    # Else the kernel drops what comes in the moments after a cell that has failed.
    client.execute_interactive(code, output_hook=take, timeout=120, stop_on_error=False)
    return "".join(printed)


def test_cells_run_fail_and_are_interrupted(kernel) -> None:
    started, client = kernel
    assert shown(client, PRELUDE) == ""
    run = "with tfqueue.QueuePipeline(numbers) as pipeline: print([batch[0].tolist() for batch in pipeline])"
    assert shown(client, run).endswith("[0, 2, 4]\n")
    assert shown(client, MISSING).endswith("PipelineFailed")
    waiting = client.execute(BLOCKED, stop_on_error=False)
    deadline = time.monotonic() + 120
    while client.get_iopub_msg(timeout=120)["content"].get("text") != "ready\n":
        assert time.monotonic() < deadline
    started.interrupt_kernel()
    reply = client.get_shell_msg(timeout=120)
    assert reply["parent_header"]["msg_id"] == waiting
    assert reply["content"]["ename"] == "KeyboardInterrupt"
    assert shown(client, AFTERWARDS).splitlines()[-1] == "[] True True"
    assert shown(client, run).endswith("[0, 2, 4]\n")
