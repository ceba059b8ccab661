"""The command ``tfqueue``: parse, call, print, exit code (0 done, 1 different or damaged, 2 could not be done)."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Sequence

from tfqueue import __version__
from tfqueue.compat import commands as compat
from tfqueue.equivalence import commands as equivalence
from tfqueue.errors import TFQueueError, TFQueueWarning
from tfqueue.records import commands as records
from tfqueue.scan import commands as scan
from tfqueue.topology import commands as topology
from tfqueue.views import commands as views

_EPILOG = "exit codes: 0 done or equivalent, 1 different or damaged, 2 could not be done"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    _quieten_tensorflow()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            return int(options.run(options))
    except TFQueueError as error:
        print(f"tfqueue: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # the reader of a pipe (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception:  # noqa: BLE001 - of code that the command was told to run; 1 would say "different or damaged"
        traceback.print_exc()
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tfqueue",
        description="Run TF1 queue-runner input pipelines on today's TensorFlow, and prove that their replacement "
        "delivers the same data.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"tfqueue {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="command", required=True)
    demo = commands.add_parser(
        "demo",
        help="run the main job on a photograph: records, TF1 pipeline, tf.data twin, comparison, pictures",
        description="Cuts a photograph that matplotlib ships into labelled JPEG tiles, writes TFRecords, runs a TF1 "
        "pipeline and its tf.data twin, compares them and draws what they deliver.",
        epilog=_EPILOG,
    )
    demo.add_argument("--out", metavar="DIR", default="tfqueue-demo", help="folder to write to (default: %(default)s)")
    demo.set_defaults(run=_demo)
    for module in (topology, equivalence, views, records, compat, scan):
        module.add_parser(commands)
    return parser


def _demo(options: argparse.Namespace) -> int:
    from tfqueue.demo import run_demo

    return 0 if run_demo(options.out).equivalent else 1


def _show_warning(message: Warning | str, category: type[Warning], *place: object, **more: object) -> None:
    """A warning as a line for a person, without the place in tfqueue's own code that Python would put before it."""
    kind = "" if issubclass(category, TFQueueWarning) else f"{category.__name__}: "
    print(f"tfqueue: warning: {kind}{message}", file=sys.stderr)


def _quieten_tensorflow() -> None:
    """For this process: no lines about CPU features, and not nine lines of deprecation for each TF1 pipeline."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    logging.getLogger("tensorflow").setLevel(logging.ERROR)


if __name__ == "__main__":
    sys.exit(main())
