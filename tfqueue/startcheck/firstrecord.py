"""Gives the first record of the first file to the graph's own ops, so that a wrong spec shows before the start.

Only ops that can be run out of turn are run (see `diagnosis.harmless`); reader, queues, random ops and the user's
Python functions are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from tfqueue.diagnosis.aboutvalues import about_element_shape
from tfqueue.diagnosis.evidence import gather
from tfqueue.diagnosis.failure import describe, failure
from tfqueue.diagnosis.harmless import harmless_ops, last_of
from tfqueue.diagnosis.locate import fed_read, fits, locate, repeated
from tfqueue.diagnosis.records import payloads
from tfqueue.errors import DamagedRecord, PipelineFailed, TFQueueError
from tfqueue.startcheck.counting import nbytes
from tfqueue.startcheck.files import Files, stages_that_run
from tfqueue.topology.model import FETCHES, Dequeue, Queue, Topology, Transform

_ALL_OPS = 1 << 18
"""Bytes of a record up to which all ops are run; on a larger one only those that parse it."""
_PAYLOAD = 1 << 24  # a larger record is not looked at
_BATCH = 1 << 20  # bytes of a batch that is made of one record
_DATA_ERRORS = (
    tf.errors.InvalidArgumentError,
    tf.errors.NotFoundError,
    tf.errors.DataLossError,
    tf.errors.ResourceExhaustedError,
)
# Missing state is not the record's fault, and may still be put right by who owns the session.
_STATE = ("epochs-not-initialised", "variable-not-initialised", "table-not-initialised", "unknown")

Element = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Given:
    """What a cut op delivers first: the values of its outputs, and the bytes of the record that they came from."""

    values: Element
    size: int


def check_first_records(topology: Topology, graph: Any, session: Any, files: Files, fetches: Any) -> dict[str, Element]:
    """Run each stage on the first record that it will get.

    Returns:
        The first element of each queue that could be computed.

    Raises:
        PipelineFailed: What the run will raise at its first record.
    """
    first = _FirstElements(topology, graph, session, files, fetches)
    for stage in stages_that_run(topology):
        first.run(stage)
    return first.elements


class _FirstElements:
    def __init__(self, topology: Topology, graph: Any, session: Any, files: Files, fetches: Any) -> None:
        self.topology, self.graph, self.session = topology, graph, session
        self.files, self.fetches = files, fetches
        self.elements: dict[str, Element] = {}
        self._done: set[str] = set()

    def run(self, stage: Transform) -> None:
        """Run a stage once, after those before it; its queue's first element is then known, if it can be."""
        if stage.name in self._done:
            return
        self._done.add(stage.name)
        given = {name: self._given(name) for name in stage.inputs}
        known = {name: found for name, found in given.items() if found is not None}
        if not known:
            return
        ops = [self.graph.get_operation_by_name(name) for name in stage.ops]
        harmless = harmless_ops(ops, known)
        outputs = self._outputs(stage, known, {op.name for op in harmless})
        size = max(found.size for found in known.values())
        batched = any(self._is_batch(name) for name in known)
        # After a batch of copies, and in a model, only what certainly is about one record.
        if size > _ALL_OPS or batched or (stage.name == FETCHES and stage.variables):
            reading = {spec.op for spec in stage.parses}
            if size <= _ALL_OPS:
                reading |= {decode.op for decode in stage.decodes}
            wanted = [op for op in harmless if op.name in reading]
            outputs = None if size > _ALL_OPS else outputs
        else:
            wanted = last_of(harmless, self.graph)
        computed = [tensor for tensor in outputs or () if tensor.op.name not in known]
        if not wanted and not computed and not outputs:
            return
        feed = {f"{name}:{n}": value for name, found in known.items() for n, value in enumerate(found.values)}
        results = self._run(stage, wanted, computed, feed)
        if results is None:
            return
        values = dict(zip([tensor.name for tensor in computed], results, strict=True))
        if outputs and stage.target is not None and stage.target not in self.elements:
            row = tuple(values[t.name] if t.name in values else feed[t.name] for t in outputs)
            self._keep(stage, row)

    def _run(self, stage: Transform, wanted: list[Any], computed: list[Any], feed: dict[str, Any]) -> list[Any] | None:
        if not wanted and not computed:
            return []
        try:
            _, values = self.session.run([wanted, computed], feed_dict=feed)
            return list(values)
        except _DATA_ERRORS as error:
            failed = failure(
                error,
                self.graph,
                session=self.session,
                enqueue_op=None if stage.name == FETCHES else stage.name,
                fetches=self.fetches,
            )
            if isinstance(failed, PipelineFailed) and failed.cause_name not in _STATE:
                raise failed from error
        except (tf.errors.OpError, ValueError, TypeError, RuntimeError):
            pass  # a record that could not be given as it should be says nothing about the pipeline
        return None

    def _outputs(self, stage: Transform, known: dict[str, _Given], harmless: set[str]) -> list[Any] | None:
        """The tensors that the stage enqueues, if all of them can be computed."""
        if stage.target is None or not stage.outputs:
            return None
        tensors = [self.graph.get_tensor_by_name(info.name) for info in stage.outputs]
        able = all(t.op.name in known or (t.op.name in harmless and self.graph.is_fetchable(t)) for t in tensors)
        return tensors if able else None

    def _keep(self, stage: Transform, row: Element) -> None:
        enqueue = next(e for e in self.topology.enqueues if e.transform == stage.name)
        if enqueue.many:
            if any(np.ndim(value) == 0 or len(value) == 0 for value in row):
                return
            row = tuple(value[0] for value in row)
        queue = self.topology.queue(enqueue.queue)
        for number, (value, wanted) in enumerate(zip(row, queue.shapes, strict=False)):
            if not fits(np.shape(value), wanted):
                raise self._misfit(stage, queue, number, np.shape(value))
        self.elements[enqueue.queue] = row

    def _misfit(self, stage: Transform, queue: Queue, number: int, shape: tuple[int, ...]) -> PipelineFailed:
        found, wanted = list(shape), list(queue.shapes[number] or ())
        error = ValueError(f"component {number} has shape {found}; queue {queue.name!r} was built for {wanted}")
        evidence = gather(error, self.graph, enqueue_op=stage.name, fetches=self.fetches)
        evidence.op = self.graph.get_operation_by_name(stage.name)
        evidence.place = locate(evidence, self.session)
        return describe(evidence, "element-shape", about_element_shape(str(wanted), str(found)))

    # -- what a read or a dequeue delivers first -----------------------------------------------------------------------

    def _given(self, cut: str) -> _Given | None:
        for reader in self.topology.readers:
            for read in reader.reads:
                names = self.files.of_read(cut) if read.name == cut else ()
                if names:
                    try:
                        found = next(payloads(reader, names[0], limit=_PAYLOAD), None)
                    except DamagedRecord as damage:
                        failed = self.files.damaged(cut, names[0], damage)
                        raise failed from failed.__cause__
                    except (OSError, TFQueueError):
                        found = None
                    if found is None:
                        return None
                    return _Given(tuple(fed_read(read, found).values()), len(found.data))
        dequeue = next((node for node in self.topology.dequeues if node.name == cut), None)
        if dequeue is None or dequeue.queue is None or dequeue.conditional:
            return None
        return self._dequeued(dequeue, self.topology.queue(dequeue.queue))

    def _dequeued(self, dequeue: Dequeue, queue: Queue) -> _Given | None:
        if queue.name not in self.elements:
            for enqueue in queue.enqueues:
                producer = next((p for p in self.topology.producers if p.name == enqueue.name), None)
                if producer is not None and producer.elements:
                    self.elements[queue.name] = (producer.elements[0],)
                elif producer is None and enqueue.copies:
                    self.run(self.topology.transform(enqueue.transform))
        row = self.elements.get(queue.name)
        if row is None or len(row) != len(dequeue.components):
            return None
        size = sum(nbytes(value) for value in row)
        if dequeue.kind == "dequeue":
            return _Given(row, size)
        if dequeue.batch_size is None or dequeue.batch_size * size > _BATCH:
            return None
        # The same record again and again: what parses one of them parses a batch.
        return _Given(tuple(repeated(value, dequeue.batch_size) for value in row), size)

    def _is_batch(self, cut: str) -> bool:
        return any(node.name == cut and node.kind != "dequeue" for node in self.topology.dequeues)
