"""The figures that belong into a report: the pipelines that were compared, and how they mix their records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfqueue.topology.dataset import Unread
from tfqueue.topology.model import Topology
from tfqueue.views.mixing import plot_mixing
from tfqueue.views.topology import plot_topology

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tfqueue.equivalence.report import Report


# The headings under which a page looks for them.
PIPELINE_OF = "The pipeline of the {role}"
MIXING = "How the records are mixed"


def figures_of(report: Report) -> dict[str, Figure]:
    """The figures that a report can draw of itself, by their heading.

    Drawn are each side that was a queue-runner pipeline or a Dataset, and the order in which both sides deliver, where
    the report knows the order of the source. Other sides do not tell how they were made.

    Args:
        report: What `tfqueue.compare` returned.
    """
    figures = {}
    if report.orders is not None and report.orders.source is not None:
        figures[MIXING] = plot_mixing(report)
    for role, made in zip(("reference", "candidate"), report.pipelines, strict=True):
        drawn = made.chain() if isinstance(made, Unread) else made
        if drawn is not None and not (isinstance(drawn, Topology) and not drawn.nodes):
            figures[PIPELINE_OF.format(role=role)] = plot_topology(drawn)
    return figures
