"""The command ``tfqueue scan``."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add ``scan`` to the sub-parsers of the command line."""
    parser = subparsers.add_parser(
        "scan",
        help="list the queue-runner code in a folder, file or notebook, with risks and the next step for each",
        description="Reads Python sources (3 and 2) and notebooks; nothing is imported or executed. Lists every queue "
        "pipeline, reader, batch op, runner and session, every name that TensorFlow or NumPy no longer has, what often "
        "goes wrong with them, and what to write today.",
        epilog="exit codes: 0 no queue code left, 1 there is some, 2 could not be done (no such path; no queue code "
        "found, but a source could not be read)",
    )
    parser.add_argument("path", metavar="PATH", help="a folder, a .py file or an .ipynb file")
    parser.add_argument("--json", metavar="FILE", help="also write the inventory as JSON ('-': instead of the table)")
    parser.add_argument("--width", type=int, metavar="N", help="width of the table (default: that of the terminal)")
    parser.set_defaults(run=run)


def run(arguments: Namespace) -> int:
    """Run ``scan``; returns the exit code."""
    from tfqueue.errors import InvalidArgument
    from tfqueue.scan.scanning import scan
    from tfqueue.scan.text import table

    inventory = scan(arguments.path)
    text = json.dumps(inventory.to_dict(), indent=2, ensure_ascii=True)
    if arguments.json == "-":
        print(text)
        return inventory.exit_code
    if arguments.json:
        try:
            Path(arguments.json).write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise InvalidArgument(f"--json: {arguments.json} cannot be written: {error.strerror}") from error
    print(table(inventory, arguments.width))
    return inventory.exit_code
