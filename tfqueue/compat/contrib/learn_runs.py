"""tf.contrib.learn.run_n and run_feeds: a few steps of a graph with its queue runners."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

from tfqueue.pipeline import queue_runners

tf1 = tf.compat.v1


class ModeKeys:
    """The names of what a model function is built for."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"


def run_n(
    output_dict: Mapping[str, Any], feed_dict: Any = None, restore_checkpoint_path: str | None = None, n: int = 1
) -> list[Any]:
    """Run a dictionary of tensors ``n`` times, with the same ``feed_dict``; the results in a list.

    Variables are initialised, or restored from ``restore_checkpoint_path``; queue runners are started and stopped. The
    end of the data ends the list early.
    """
    return run_feeds(output_dict, [feed_dict] * n, restore_checkpoint_path)


def run_feeds(
    output_dict: Mapping[str, Any], feed_dicts: Iterable[Any], restore_checkpoint_path: str | None = None
) -> list[Any]:
    """As `run_n`, once for each of ``feed_dicts``."""
    graph = next(iter(tf.nest.flatten(dict(output_dict)))).graph
    results: list[Any] = []
    with graph.as_default(), tf1.Session(graph=graph) as session:
        if restore_checkpoint_path is not None:
            tf1.train.Saver().restore(session, restore_checkpoint_path)
        with queue_runners(session):
            for feed_dict in feed_dicts:
                results.append(session.run(dict(output_dict), feed_dict))
    return results
