"""The figures that belong into a report: the pipelines that were compared, and how they mix their records."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tfqueue.errors import InvalidArgument, PipelineError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tfqueue.equivalence.report import Report


# The headings under which a page looks for them.
PIPELINE_OF = "The pipeline of the {role}"
MIXING = "How the records are mixed"


def figures_of(report: Report, reference: Any, candidate: Any) -> dict[str, Figure]:
    """Figures for `tfqueue.Report.to_html`, by their heading.

    Drawn are each side that is a build function, a QueuePipeline, a Dataset or a function that returns one (which is
    called once more), and the order in which both sides deliver, where the report knows the order of the source. Other
    sides do not tell how they were made.

    Args:
        report: What `tfqueue.compare` returned.
        reference: The reference that was compared.
        candidate: The candidate that was compared.
    """
    from tfqueue.views import plot_mixing, plot_topology

    figures = {}
    for role, side in (("reference", reference), ("candidate", candidate)):
        try:
            made = _made_of(side, role)
        except Exception:  # noqa: BLE001 - of the user's code; that it fails stands in the report
            continue
        try:
            if made is not None:
                figures[PIPELINE_OF.format(role=role)] = plot_topology(made)
        except InvalidArgument:
            continue  # nothing in it to draw, or a Dataset that does not tell
    if report.orders is not None and report.orders.source is not None:
        figures[MIXING] = plot_mixing(report)
    return figures


def _made_of(side: Any, role: str) -> Any:
    """The topology of a side, or its Dataset; None if it is neither."""
    from tfqueue.equivalence.streams import Returned
    from tfqueue.views.dataset import is_dataset

    module = sys.modules.get("tfqueue.pipeline")
    if module is not None and isinstance(side, module.QueuePipeline):
        try:
            return side.topology
        except PipelineError:  # it is not running now
            with side as pipeline:
                return pipeline.topology
    if is_dataset(side):
        return side
    function = side.function if isinstance(side, Returned) else side
    if not callable(function):
        return None
    # A function is a build function as the reference only; as the candidate it makes a Dataset.
    if role == "reference" and function is side:
        from tfqueue.topology.trace import trace

        return trace(function)
    return _returned(function)


def _returned(function: Callable[[], Any]) -> Any:
    """What a function returns when it is called eagerly, if that is a Dataset."""
    import tensorflow as tf

    from tfqueue.views.dataset import is_dataset

    with tf.init_scope():
        made = function()
    return made if is_dataset(made) else None
