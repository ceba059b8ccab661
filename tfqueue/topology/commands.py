"""The command ``tfqueue explain``."""

from __future__ import annotations

from argparse import Namespace
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add ``explain`` to the sub-parsers of the command line."""
    parser = subparsers.add_parser(
        "explain",
        help="show what a queue-runner pipeline does: stages, source lines, buffers, warnings",
        description="Builds the pipeline in a graph of its own and shows it. No data is read, but the code "
        "of the module is executed.",
    )
    parser.add_argument("build_fn", metavar="module:function", help="the build function (or file.py:function)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument("--dot", metavar="FILE", help="also write the picture as Graphviz text")
    parser.add_argument(
        "--tfdata", action="store_true", help="also say whether it can become a tf.data.Dataset, and how it gets fast"
    )
    parser.set_defaults(run=run)


def run(arguments: Namespace) -> int:
    """Run ``explain``; returns the exit code."""
    # Here, not above: the help of the command line must not wait for TensorFlow.
    from tfqueue.targets import load_function
    from tfqueue.topology.explain import explain

    explanation = explain(load_function(arguments.build_fn), tfdata=arguments.tfdata)
    print(explanation.to_json() if arguments.json else explanation)
    if arguments.dot:
        explanation.to_dot(arguments.dot)
    return 0
