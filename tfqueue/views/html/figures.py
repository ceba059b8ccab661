"""The figures that belong into a report: the pipelines that were compared, and how they mix their records."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tfqueue.errors import PipelineError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tfqueue.equivalence.report import Report


def figures_of(report: Report, reference: Any, candidate: Any) -> dict[str, Figure]:
    """Figures for `tfqueue.Report.to_html`, by their heading.

    The topology of each side that is a build function or a QueuePipeline is drawn, and the order in which both sides
    deliver, where the report knows the order of the source.

    Args:
        report: What `tfqueue.compare` returned.
        reference: The reference that was compared.
        candidate: The candidate that was compared.
    """
    from tfqueue.views import plot_mixing, plot_topology

    figures = {}
    for role, side in (("reference", reference), ("candidate", candidate)):
        topology = _topology(side, role)
        if topology is not None and topology.nodes:
            figures[f"The pipeline of the {role}"] = plot_topology(topology)
    if report.orders is not None and report.orders.source is not None:
        figures["How the records are mixed"] = plot_mixing(report)
    return figures


def _topology(side: Any, role: str) -> Any:
    """The topology of a side, or None if it is no queue-runner pipeline."""
    module = sys.modules.get("tfqueue.pipeline")
    if module is not None and isinstance(side, module.QueuePipeline):
        try:
            return side.topology
        except PipelineError:  # it is not running now
            with side as pipeline:
                return pipeline.topology
    # A function is a build function as the reference only; as the candidate it makes a Dataset.
    if role == "reference" and callable(side):
        from tfqueue.topology.trace import trace

        return trace(side)
    return None
