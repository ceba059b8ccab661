"""The command ``tfqueue run``."""

from __future__ import annotations

from argparse import REMAINDER, Namespace
from typing import Any

from tfqueue.errors import InvalidArgument


def add_parser(subparsers: Any) -> None:
    """Add ``run`` to the sub-parsers of the command line."""
    parser = subparsers.add_parser(
        "run",
        help="run a whole TF1 program unmodified, its queues on the engine of your choice",
        description="Executes a TF1 program as plain python would, with the names and the behaviour of TF1, and with "
        "tfqueue's life cycle for its queue runners. Python 2 is translated in memory; no file is changed. At the end "
        "it tells what pipelines it found, what they delivered, what was restored and what to change.",
        usage="tfqueue run [-h] [--engine NAME] [--steps N] [--report DIR] [--stall-timeout SECONDS] "
        "(script.py | -m module) [arguments ...]",
        epilog="exit code: that of the program; 2 where it could not be run",
    )
    parser.add_argument(
        "--engine",
        choices=("threads", "lockstep", "tfdata"),
        default="threads",
        help="threads: the queue runners, made safe (default); lockstep: the same batches on every run; tfdata: "
        "tf.data iterators in the place of the queues",
    )
    parser.add_argument("--report", metavar="DIR", help="write report.json, report.txt and report.html there")
    parser.add_argument("--steps", type=int, metavar="N", help="end the program after N steps that read from a queue")
    parser.add_argument(
        "--stall-timeout",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="how long nothing may move before a step that waits is given up (default: 60)",
    )
    parser.add_argument(
        "-m", dest="module", nargs=REMAINDER, metavar="MODULE", help="run a module, as python -m does, with arguments"
    )
    parser.add_argument("program", nargs=REMAINDER, help="the script and its arguments")
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    """Run ``run``; returns the program's exit code."""
    from tfqueue.compat.script import run_script

    arguments = list(options.module if options.module is not None else options.program)
    if arguments[:1] == ["--"]:
        del arguments[0]
    if not arguments:
        raise InvalidArgument("tfqueue run needs a program: tfqueue run script.py [arguments ...], or -m module")
    program = arguments.pop(0)
    return run_script(
        program,
        arguments,
        module=options.module is not None,
        engine=options.engine,
        steps=options.steps,
        stall_timeout=options.stall_timeout,
        report_folder=options.report,
    ).exit_code
