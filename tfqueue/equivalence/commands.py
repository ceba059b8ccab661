"""The commands ``tfqueue check`` and ``tfqueue golden``."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from typing import Any

_FUNCTIONS = "module:function or file.py:function; the code of the module is executed"


def add_parser(subparsers: Any) -> None:
    """Add ``check`` and ``golden`` to the sub-parsers of the command line."""
    check = subparsers.add_parser(
        "check",
        help="compare a queue-runner pipeline with its tf.data twin",
        description="Reads both sides once, side by side, and says whether they deliver the same records, "
        "batches and "
        "order, and if not, what differs and why. Exit code 0: equivalent, 1: different, 2: could not be "
        "decided.",
    )
    check.add_argument(
        "reference", help=f"the build function of the legacy pipeline ({_FUNCTIONS}), or a golden's path"
    )
    check.add_argument("candidate", help="a function that returns a Dataset or an iterable, or a golden's path")
    check.add_argument("--queue", action="store_true", help="the candidate is a build function of TF1 queues, too")
    check.add_argument(
        "--order",
        choices=("auto", "strict", "any"),
        default="auto",
        help="whether the order of records matters (default: where the reference defines it)",
    )
    check.add_argument("--key", metavar="FEATURE", help="the feature that names a record")
    check.add_argument("--rtol", type=float, default=0.0, help="relative tolerance of numbers (default: 0)")
    check.add_argument("--atol", type=float, default=0.0, help="absolute tolerance of numbers (default: 0)")
    check.add_argument("--equal-nan", action="store_true", help="take NaN for equal to NaN")
    check.add_argument("--max-records", type=int, metavar="N", help="compare N records of each side only")
    check.add_argument("--samples", type=int, default=5, metavar="N", help="differing records to show (default: 5)")
    check.add_argument("--json", metavar="FILE", help="also write the report as JSON")
    check.add_argument("--html", metavar="FILE", help="also write the report as one HTML page, with pictures")
    check.set_defaults(run=run_check)
    golden = subparsers.add_parser(
        "golden",
        help="record the digests of a pipeline in a file, to check against later or elsewhere",
        description="Runs a pipeline once and writes the digests of its records.",
    )
    golden.add_argument("stream", metavar="module:function", help=f"the build function ({_FUNCTIONS})")
    golden.add_argument("path", metavar="FILE", help="the golden to write")
    golden.add_argument("--dataset", action="store_true", help="the function returns a Dataset or an iterable instead")
    golden.add_argument("--max-records", type=int, metavar="N", help="record N records only")
    golden.set_defaults(run=run_golden)


def run_check(arguments: Namespace) -> int:
    """Run ``check``; returns the exit code."""
    # Here, not above: the help of the command line must not wait for numpy and TensorFlow.
    from tfqueue.equivalence.comparison import compare
    from tfqueue.equivalence.report import UNDECIDED
    from tfqueue.errors import InvalidArgument

    if arguments.html:
        # Looked at first: a page that cannot be written is not found out after minutes of comparing.
        from tfqueue.views.html.gallery import check_html_path

        check_html_path(arguments.html)
    if arguments.json and not os.path.isdir(os.path.dirname(arguments.json) or "."):
        raise InvalidArgument(f"--json {arguments.json}: the folder does not exist; create it first")
    reference, candidate = _side(arguments.reference), _side(arguments.candidate, queue=arguments.queue)
    report = compare(
        reference,
        candidate,
        order=arguments.order,
        key=arguments.key,
        rtol=arguments.rtol,
        atol=arguments.atol,
        equal_nan=arguments.equal_nan,
        max_records=arguments.max_records,
        samples=arguments.samples,
        progress=sys.stderr.isatty(),
    )
    print(report)
    if arguments.json:
        report.to_json(arguments.json)
    if arguments.html:
        command = f"tfqueue check {arguments.reference} {arguments.candidate}"
        report.to_html(arguments.html, notes={"command": command})
    return 0 if report.equivalent else 2 if report.verdict == UNDECIDED else 1


def run_golden(arguments: Namespace) -> int:
    """Run ``golden``; returns the exit code."""
    from tfqueue.equivalence.golden import record_golden
    from tfqueue.equivalence.streams import Returned
    from tfqueue.targets import load_function

    function = load_function(arguments.stream)
    stream = Returned(function) if arguments.dataset else function
    golden = record_golden(stream, arguments.path, max_records=arguments.max_records)
    print(f"{golden.path}: {golden.records:,} records in {golden.batches:,} batches ({', '.join(golden.features)})")
    return 0


def _side(target: str, *, queue: bool = False) -> Any:
    from tfqueue.targets import load_function

    if ":" not in target or os.path.exists(target):
        return target
    function = load_function(target)
    if queue:
        from tfqueue.pipeline import QueuePipeline

        return QueuePipeline(function)
    return function
