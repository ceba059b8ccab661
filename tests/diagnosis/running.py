"""Runs a pipeline to its failure."""

from __future__ import annotations

import pytest
import tensorflow as tf

import tfqueue
from tests.pipelines import write_records
from tfqueue.errors import PipelineFailed

tf1 = tf.compat.v1

BAD_RECORD = 7
"""The record of the second file that `two_files` replaces."""


def run_to_failure(build_fn, **options) -> PipelineFailed:
    """What a pipeline raises, in the end."""
    with pytest.raises(PipelineFailed) as caught, tfqueue.QueuePipeline(build_fn, **options) as pipeline:
        for _ in pipeline:
            pass
    failed = caught.value
    assert failed.advice
    assert f"advice: {failed.advice}" in str(failed)
    assert failed.source is None or failed.source in str(failed)
    return failed


def two_files(tmp_path, good, bad) -> list[str]:
    """Two files of ten records, all ``good(number)`` but one of the second, which is ``bad``."""
    payloads = [good(number) for number in range(20)]
    payloads[10 + BAD_RECORD] = bad
    return [
        write_records(tmp_path / "first.tfrecord", payloads[:10]),
        write_records(tmp_path / "second.tfrecord", payloads[10:]),
    ]
