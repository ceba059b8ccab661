"""Runs many programs through `run_script`, one after the other, and writes what each printed to a JSON file.

    python -m tests.compat.run_child jobs.json results.json

A process of its own, since TensorFlow is switched to its TF1 behaviour in it; one for many programs, since importing
TensorFlow takes seconds. A job is ``{"key", "program", "arguments", "options", "cwd"}``.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import sys
import time
import traceback
from pathlib import Path

from tests.patience import give_time
from tfqueue.compat.script import run_script
from tfqueue.errors import TFQueueError


def main(jobs: str, results: str) -> None:
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    give_time()
    found = {}
    for job in json.loads(Path(jobs).read_text()):
        out, err = io.StringIO(), io.StringIO()
        began = time.monotonic()
        if job.get("cwd"):
            os.chdir(job["cwd"])
        result = {"raised": None, "exit_code": None, "report": None}
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                outcome = run_script(job["program"], job.get("arguments", ()), **job.get("options", {}))
                result |= {"exit_code": outcome.exit_code, "report": outcome.report and outcome.report.to_dict()}
            except TFQueueError as error:
                result |= {"raised": type(error).__name__, "words": str(error), "exit_code": error.exit_code}
            except BaseException:  # noqa: BLE001 - told to the test, which fails by it
                result["raised"] = traceback.format_exc()
        result |= {"out": out.getvalue(), "err": err.getvalue(), "seconds": time.monotonic() - began}
        found[job["key"]] = result
        Path(results).write_text(json.dumps(found))
    Path(results).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
