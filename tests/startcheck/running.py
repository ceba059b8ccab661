"""Runs the start checks alone: graph, session, initialisers, checks; no runner is started."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tfqueue.build import build
from tfqueue.errors import PipelineFailed
from tfqueue.initialize import initialize_all
from tfqueue.startcheck import check_before_start

tf1 = tf.compat.v1


def check(build_fn, **options):
    """What the checks find in the pipeline of a build function."""
    graph = tf.Graph()
    fetches = build(build_fn, graph)
    with tf1.Session(graph=graph) as session:
        initialize_all(graph, session)
        before = graph.version
        try:
            return check_before_start(graph, session, fetches=fetches, **options)
        finally:
            assert graph.version == before, "a check added an op to the user's graph"


def kinds(build_fn):
    return [finding.kind for finding in check(build_fn)]


def the_finding(build_fn):
    """The only finding, as its kind and its text."""
    (found,) = check(build_fn)
    assert found.source is not None
    assert found.source.startswith("test_")
    return found.kind, str(found)


def refused(build_fn) -> PipelineFailed:
    """The failure that the checks raise."""
    with pytest.raises(PipelineFailed) as caught:
        check(build_fn)
    failed = caught.value
    assert failed.advice
    assert failed.advice in str(failed)
    return failed
