"""All start checks, in an order in which the first failure is the one that the user should mend first."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfqueue.startcheck.counting import buffer_findings, count_findings
from tfqueue.startcheck.files import Files
from tfqueue.startcheck.firstrecord import check_first_records
from tfqueue.startcheck.queues import check_queues, queue_findings
from tfqueue.topology.findings import Finding
from tfqueue.topology.model import Topology
from tfqueue.topology.trace import trace


def check_before_start(
    graph: tf.Graph, session: Any, *, fetches: Any = None, topology: Topology | None = None
) -> tuple[Finding, ...]:
    """Look at a pipeline whose variables are initialised and whose runners are not started yet.

    It takes milliseconds, whatever the size of the data: the search in files and the count of records stop when their
    time is up, and what was not looked at is not reported. No queue, reader, random op or Python function is run.

    Args:
        graph: The graph of the pipeline.
        session: A session of it, initialised.
        fetches: What a step fetches, if that is known.
        topology: The topology of graph and fetches, if it was traced already.

    Returns:
        What works, but probably not as it was meant; each has a stable ``kind``.

    Raises:
        InvalidArgument: ``fetches`` are not in the graph.
        PipelineFailed: What cannot work, with a stable ``cause_name``: ``"missing-file"``, ``"is-a-folder"``,
            ``"no-match"``, ``"damaged-file"``, ``"no-elements"``, ``"unequal-lengths"``, ``"capacity"``,
            ``"placeholder"``, or what the first record does at run time.
    """
    if topology is None:
        topology = trace(graph, fetches)
    check_queues(topology, graph)
    files = Files(topology, graph, session)
    files.check()
    values = check_first_records(topology, graph, session, files, fetches)
    counts = files.count()
    return (
        *files.findings,
        *queue_findings(topology, graph),
        *count_findings(topology, counts),
        *buffer_findings(topology, values),
    )
