"""The figures that belong into a report: the pipelines that were compared, and how they mix their records."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tfqueue.errors import PipelineError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figures_of(
    reference: Any, candidate: Any, *, key: str | None = None, max_records: int = 100_000
) -> dict[str, Figure]:
    """Figures for `tfqueue.Report.to_html`, by their heading.

    The topology of each side that is a build function or a QueuePipeline is drawn; with ``key`` both sides are read
    once more, to draw the order in which they deliver.

    Args:
        reference: The reference that was compared.
        candidate: The candidate that was compared.
        key: Name of a feature with one value a record that gives the order of the source, or None.
        max_records: Read at most so many records of a side.

    Raises:
        InvalidArgument: There is no feature ``key``, or it has more than one value a record.
    """
    from tfqueue.views import plot_mixing, plot_topology

    figures = {}
    for role, side in (("reference", reference), ("candidate", candidate)):
        topology = _topology(side, role)
        if topology is not None and topology.nodes:
            figures[f"The pipeline of the {role}"] = plot_topology(topology)
    if key is not None:
        figures["How the records are mixed"] = plot_mixing(reference, candidate, key=key, max_records=max_records)
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
