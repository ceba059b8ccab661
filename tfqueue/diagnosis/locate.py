"""Finds the record at which an op failed, by giving it the records again, one at a time, in the same session.

TensorFlow does not say which record a failed step was working on. But every tensor of a graph can be fed: the failed
op is run with what the reader or the dequeue would have delivered, for each record of the files, until it fails again
in the same way. Neither reader nor queue is touched, and no Python function is called.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tfqueue.diagnosis.evidence import Evidence, Place, root_message
from tfqueue.diagnosis.harmless import harmless_ops
from tfqueue.diagnosis.records import Payload, payloads
from tfqueue.engines.queue_ops import IN_THIS_THREAD
from tfqueue.errors import DamagedRecord, RecordError
from tfqueue.records import scan
from tfqueue.topology.model import Dequeue, Producer, Queue, Read, Reader, Topology
from tfqueue.topology.subgraph import CUT_TYPES, ENQUEUE_TYPES, QUEUE_KINDS, READER_KINDS, GraphView

SECONDS = 1.0
"""How long the search may take; a cause without a record number is better than a late one."""
_NEAR = 100  # records around the expected one that are tried first
_REPEATED = 1 << 22  # bytes of a batch that is made of one record

_Feed = dict[str, Any]
_Element = tuple[Place, _Feed]


def locate(evidence: Evidence, session: Any, *, expected: int | None = None) -> Place:
    """The record at which ``evidence.op`` failed; an empty place when it cannot be found in `SECONDS`.

    Args:
        evidence: What is known of the failure.
        session: The session, open.
        expected: The number of records that the failed thread, or all threads together, had got through: the search
            begins there.
    """
    topology, op = evidence.topology, evidence.op
    if topology is None or op is None or isinstance(evidence.error, tf.errors.ResourceExhaustedError):
        return Place()  # (TensorFlow waits ten seconds for memory each time before it gives up)
    search = _Search(evidence, topology, session, time.monotonic() + SECONDS)
    try:
        if op.type.startswith("ReaderRead"):
            return search.damaged_file(op.name)
        return search.failing_record(op, expected)
    except Exception:  # noqa: BLE001 - a search that fails, however, leaves the failure as it was
        return Place()


def locate_unread(evidence: Evidence, session: Any) -> Place:
    """The file that a dataset could not read, among those of all readers; sets the op of the evidence to its read."""
    assert evidence.topology is not None
    for read in evidence.topology.reads:
        evidence.op = evidence.graph.get_operation_by_name(read.name)
        place = locate(evidence, session)
        if place.file is not None:
            evidence.stage = next((t for t in evidence.topology.transforms if read.name in t.inputs), evidence.stage)
            evidence.source = read.source or evidence.source
            return place
    evidence.op = None
    return Place()


def files_of(topology: Topology, read: Read) -> list[str]:
    """The files that a read takes its records from, as far as the graph tells, in one epoch's unshuffled order."""
    names: list[str] = []
    for producer in topology.producers:
        if producer.queue == read.queue:
            if producer.elements is not None and producer.kind == "files":
                names.extend(str(name) for name in producer.elements)
            elif producer.pattern is not None:
                for pattern in producer.pattern.split("\n"):
                    names.extend(sorted(tf.io.gfile.glob(pattern)))
    return [name.removeprefix("file://") for name in dict.fromkeys(names)]


def reader_of(topology: Topology, read_name: str) -> tuple[Reader, Read] | None:
    """The reader and the read with this op name."""
    for reader in topology.readers:
        for read in reader.reads:
            if read.name == read_name:
                return reader, read
    return None


def repeated(value: Any, count: int) -> Any:
    """A batch of one value, again and again: what fails on one of them fails on the batch."""
    # Strings as objects: numpy's own strings drop zero bytes at their end.
    array = np.asarray(value, dtype=object if isinstance(value, (bytes, str)) else None)
    return np.stack([array] * count)


class _Search:
    def __init__(self, evidence: Evidence, topology: Topology, session: Any, deadline: float) -> None:
        self.evidence, self.topology, self.session, self.deadline = evidence, topology, session, deadline
        self.view = GraphView(evidence.graph)
        self._random = {name for stage in topology.transforms for name in stage.random}

    @property
    def late(self) -> bool:
        return time.monotonic() > self.deadline

    # -- files that a reader cannot read -------------------------------------------------------------------------------

    def damaged_file(self, read_name: str) -> Place:
        """The first file of a reader that is damaged, or is none of its kind."""
        found = reader_of(self.topology, read_name)
        if found is None or found[0].kind != "TFRecord":
            return Place()
        reader, read = found
        for file in files_of(self.topology, read):
            try:
                sniffed = scan.sniff(file)
                if sniffed.kind not in ("tfrecord", "empty") or sniffed.compression != reader.compression:
                    return Place(file=file, record=0)
                for _ in scan.frames(file, compression=reader.compression):
                    if self.late:
                        return Place()
            except DamagedRecord as damage:
                return Place(file=file, record=damage.record, damage=str(damage))
            except (RecordError, OSError):
                return Place(file=file)
        return Place()

    # -- records that a stage cannot digest ----------------------------------------------------------------------------

    def failing_record(self, op: Any, expected: int | None) -> Place:
        """The record that makes an op fail again."""
        fails = self._misfit(op) if op.type in ENQUEUE_TYPES else self._failing_again(op)
        if fails is None:
            return self._counted(expected) if expected is not None and self.evidence.by_runner else Place()
        cut, test = fails
        direct = reader_of(self.topology, cut)
        if expected is not None and direct is not None and not direct[1].many:
            near = self._near(op, cut, expected, test)
            if near is not None:
                return near
        for place, feed in self._elements(cut):
            if self.late:
                break
            if test(feed):
                return self._with_read_file(place, op, feed)
        return Place()

    def _with_read_file(self, place: Place, op: Any, feed: _Feed) -> Place:
        """The place, with the file that a ReadFile before (or at) the failed op was reading."""
        ops, _ = self.view.closure([op], stop=_is_cut_or_handle)
        reads = [found for found in ops if found.type == "ReadFile"]
        if len(reads) == 1:
            name = self.session.run(reads[0].inputs[0], feed_dict=feed, options=IN_THIS_THREAD)
            place.read_file = os.fsdecode(name) if isinstance(name, bytes) else None
        if place.file is None and place.read_file is not None:
            place.file, place.record = place.read_file, 0
        return place

    def _near(self, op: Any, cut: str, expected: int, test: Callable[[_Feed], bool]) -> Place | None:
        """The failing record among those around the expected one; the epochs before are taken off."""
        for _ in range(2):
            total = 0
            for place, feed in self._elements(cut):
                if self.late:
                    return None
                if abs(total - expected) <= _NEAR and test(feed):
                    return self._with_read_file(place, op, feed)
                total += 1
            if not total or expected < total:
                return None
            expected %= total
        return None

    def _counted(self, expected: int) -> Place:
        """The record that the failed thread had come to, where only it takes records, in the order of the list.

        For what is not run again, such as the user's Python functions.
        """
        stage, topology = self.evidence.stage, self.topology
        enqueues = [e for e in topology.enqueues if stage is not None and e.transform == stage.name]
        if stage is None or len(stage.inputs) != 1 or len(enqueues) != 1 or enqueues[0].copies != 1:
            return Place()
        cut = stage.inputs[0]
        direct = reader_of(topology, cut)
        dequeue = next((node for node in topology.dequeues if node.name == cut), None)
        name = direct[1].queue if direct is not None else dequeue.queue if dequeue is not None else None
        if (
            name is None
            or (direct is not None and direct[1].many)
            or (dequeue is not None and dequeue.kind != "dequeue")
        ):
            return Place()
        queue = topology.queue(name)
        producers = [p for p in topology.producers if p.queue == name]
        in_order = len(producers) == len(queue.enqueues) == 1 and not (producers[0].shuffle and producers[0].count != 1)
        if not in_order or len(queue.reads) + len(queue.dequeues) != 1:
            return Place()
        for _ in range(2):
            total = 0
            for place, _feed in self._elements(cut):
                if total == expected:
                    return place
                if self.late:
                    return Place()
                total += 1
            if not total:
                break
            expected %= total
        return Place()

    def _failing_again(self, op: Any) -> tuple[str, Callable[[_Feed], bool]] | None:
        if not self.evidence.graph.is_fetchable(op):  # a tf.cond: what it gives comes out of the op behind it
            users = [user for tensor in op.outputs for user in tensor.consumers()]
            op = next((user for user in users if self.evidence.graph.is_fetchable(user)), op)
        cut = self._cut_before([op])
        if cut is None:
            return None
        outputs = [tensor for tensor in op.outputs if self.evidence.graph.is_fetchable(tensor)]
        run = self._callable(outputs[0] if outputs else op, cut)

        def fails(feed: _Feed) -> bool:
            try:
                run(feed)
            except tf.errors.OpError as error:
                if not self.evidence.lowered:
                    return self._is_the_same(error)
                if type(error) is not type(self.evidence.error):
                    return False
                # The copy worked on a whole batch, and said so; this is what it says of the one record.
                self.evidence.message = root_message(error)
                return True
            return False

        return cut, fails

    def _misfit(self, enqueue: Any) -> tuple[str, Callable[[_Feed], bool]] | None:
        """An enqueue op that fails is not run again: it would put records in; the shapes are compared here."""
        components = list(enqueue.inputs)[1:]
        queues = self.view.queues_behind(enqueue.inputs[0])
        cut = self._cut_before([tensor.op for tensor in components])
        if cut is None or len(queues) != 1:
            return None
        wanted = self.topology.queue(queues[0].name).shapes
        many = ENQUEUE_TYPES[enqueue.type]
        run = self._callable(components, cut)

        def misfits(feed: _Feed) -> bool:
            try:
                values = run(feed)
            except tf.errors.OpError:
                return True  # the optimizer had taken this op out, and left it to the queue to find the misfit
            if many and len({np.shape(value)[:1] for value in values}) > 1:
                return True
            shapes = [np.shape(value)[1:] if many else np.shape(value) for value in values]
            return any(not fits(shape, want) for shape, want in zip(shapes, wanted, strict=True))

        return cut, misfits

    def _cut_before(self, ops: list[Any]) -> str | None:
        """The one read or dequeue that some ops get their data from, if all between can be run out of turn."""
        between, stops = self.view.closure([op for op in ops if op.type not in CUT_TYPES], stop=_is_cut_or_handle)
        cuts = list({op.name: op for op in (*ops, *stops) if op.type in CUT_TYPES})
        if len(cuts) != 1 or len(harmless_ops(between, cuts, also=self._random)) < len(between):
            return None
        return str(cuts[0])

    def _callable(self, target: Any, cut: str) -> Callable[[_Feed], Any]:
        outputs = list(self.view.by_name[cut].outputs)
        # One callable for all records costs a fraction of a session.run each.
        call = self.session.make_callable(target, feed_list=outputs, accept_options=True)
        return lambda feed: call(*(feed[tensor.name] for tensor in outputs), options=IN_THIS_THREAD)

    def _is_the_same(self, error: tf.errors.OpError) -> bool:
        return type(error) is type(self.evidence.error) and _same_words(root_message(error), self.evidence.message)

    # -- what a read or dequeue would deliver --------------------------------------------------------------------------

    def _elements(self, cut: str, depth: int = 0) -> Iterator[_Element]:
        """What a read or dequeue op would deliver, record by record, as values to feed for its outputs."""
        read = reader_of(self.topology, cut)
        if read is not None:
            yield from self._records(*read)
            return
        dequeue = next((node for node in self.topology.dequeues if node.name == cut), None)
        if dequeue is None or dequeue.queue is None or dequeue.conditional or depth > 3:
            return
        for place, row in self._dequeued(self.topology.queue(dequeue.queue), depth):
            values = row if dequeue.kind == "dequeue" else _batch(row, dequeue)
            if values is not None:
                yield place, {f"{dequeue.name}:{index}": value for index, value in enumerate(values)}

    def _records(self, reader: Reader, read: Read) -> Iterator[_Element]:
        for file in files_of(self.topology, read):
            for record, found in enumerate(payloads(reader, file)):
                yield Place(file, record, found.data), fed_read(read, found)

    def _dequeued(self, queue: Queue, depth: int) -> Iterator[tuple[Place, tuple[Any, ...]]]:
        for enqueue in queue.enqueues:
            producer = next((p for p in self.topology.producers if p.name == enqueue.name), None)
            if producer is not None:
                for record, element in enumerate(_produced(producer)):
                    yield Place(element=record), element
                continue
            outputs = [self.evidence.graph.get_tensor_by_name(tensor.name) for tensor in enqueue.components]
            cut = self._cut_before([tensor.op for tensor in outputs]) if outputs else None
            if cut is None:
                continue
            run = self._callable(outputs, cut)
            for place, feed in self._elements(cut, depth + 1):
                try:
                    values = run(feed)
                except tf.errors.OpError:
                    continue  # another fault than the one looked for
                for row in zip(*values, strict=True) if enqueue.many else [values]:
                    yield place, tuple(row)


def fed_read(read: Read, found: Payload) -> _Feed:
    """The values to feed for a read op that delivers one record."""
    key, value = found.key, found.data
    return {f"{read.name}:0": [key] if read.many else key, f"{read.name}:1": [value] if read.many else value}


def _is_cut_or_handle(op: Any) -> bool:
    return op.type in CUT_TYPES or op.type in QUEUE_KINDS or op.type in READER_KINDS


def _same_words(left: str, right: str) -> bool:
    return left == right or left.split(" ")[:3] == right.split(" ")[:3]


def fits(shape: tuple[int, ...], wanted: tuple[int | None, ...] | None) -> bool:
    """Whether a queue takes a component of this shape; None in ``wanted`` stands for any size, or any rank."""
    if wanted is None:
        return True
    return len(shape) == len(wanted) and all(w in (None, s) for s, w in zip(shape, wanted, strict=True))


def _batch(row: tuple[Any, ...], dequeue: Dequeue) -> tuple[Any, ...] | None:
    count = dequeue.batch_size if dequeue.kind == "dequeue_many" else 1
    size = sum(len(value) if isinstance(value, (bytes, str)) else np.asarray(value).nbytes for value in row)
    if not count or count * size > _REPEATED:
        return None
    return tuple(repeated(value, count) for value in row)


def _produced(producer: Producer) -> Iterator[tuple[Any, ...]]:
    if producer.elements is not None:
        for element in producer.elements:
            yield (element,)
    elif producer.kind == "range" and producer.count is not None:
        for number in range(producer.count):
            yield (number,)
