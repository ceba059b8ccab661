"""Finds the record at which an op failed, by giving it the records again, one at a time, in the same session.

TensorFlow does not say which record a failed step was working on. But every tensor of a graph can be fed: the failed
op is run with what the reader or the dequeue would have delivered, for each record of the files, until it fails again
in the same way. Neither reader nor queue is touched.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tfqueue.diagnosis.evidence import Evidence, Place, root_message
from tfqueue.errors import DamagedRecord, RecordError, TFQueueError
from tfqueue.records import scan
from tfqueue.topology.model import Dequeue, Producer, Queue, Read, Reader, Topology

SECONDS = 1.0
"""How long the search may take; a cause without a record number is better than a late one."""

_Feed = dict[str, Any]


def locate(evidence: Evidence, session: Any) -> Place:
    """The record at which ``evidence.op`` failed; an empty place when it cannot be found in `SECONDS`."""
    deadline = time.monotonic() + SECONDS
    topology, op = evidence.topology, evidence.op
    if topology is None or op is None:
        return Place()
    try:
        if op.type.startswith("ReaderRead"):
            return _damaged_file(topology, op.name, deadline)
        return _failing_record(evidence, topology, session, deadline)
    except (tf.errors.OpError, TFQueueError, OSError, ValueError, TypeError, RuntimeError, KeyError):
        return Place()  # a search that fails leaves the failure as it was


# -- files that a reader cannot read -----------------------------------------------------------------------------------


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
    return names


def reader_of(topology: Topology, read_name: str) -> tuple[Reader, Read] | None:
    """The reader and the read with this op name."""
    for reader in topology.readers:
        for read in reader.reads:
            if read.name == read_name:
                return reader, read
    return None


def _damaged_file(topology: Topology, read_name: str, deadline: float) -> Place:
    found = reader_of(topology, read_name)
    if found is None or found[0].kind != "TFRecord":
        return Place()
    reader, read = found
    for file in files_of(topology, read):
        try:
            sniffed = scan.sniff(file)
            if sniffed.kind not in ("tfrecord", "empty") or sniffed.compression != reader.compression:
                return Place(file=file, record=0)
            for _ in scan.frames(file, compression=reader.compression):
                if time.monotonic() > deadline:
                    return Place()
        except DamagedRecord as damage:
            return Place(file=file, record=damage.record)
        except (RecordError, OSError):
            return Place(file=file)
    return Place()


# -- records that a stage cannot digest --------------------------------------------------------------------------------


def _failing_record(evidence: Evidence, topology: Topology, session: Any, deadline: float) -> Place:
    op = evidence.op
    stage = evidence.stage or topology.stage_of(op.name)
    if stage is None or any(name in stage.python for name in (op.name, *_ancestors(op, evidence.graph))):
        return Place()  # the user's Python code is not run again: it may count, print or remember
    cuts = [name for name in _cut_ancestors(op) if name in stage.inputs]
    if len(cuts) != 1:
        return Place()
    target = op.outputs if op.outputs else op
    for place, feed in _elements(cuts[0], evidence, topology, session):
        if time.monotonic() > deadline:
            return Place()
        try:
            session.run(target, feed_dict=feed)
        except tf.errors.OpError as error:
            if type(error) is type(evidence.error) and _same_words(root_message(error), evidence.message):
                if place.file is None:
                    place.file = _file_read_by(op, feed, session)
                return place
    return Place()


def _same_words(left: str, right: str) -> bool:
    return left == right or left.split(" ")[:3] == right.split(" ")[:3]


def _is_cut(op: Any) -> bool:
    return bool(op.type.startswith(("ReaderRead", "QueueDequeue")))


def _cut_ancestors(op: Any) -> list[str]:
    return [found.name for found in _walk(op) if _is_cut(found)]


def _ancestors(op: Any, graph: Any) -> list[str]:
    return [found.name for found in _walk(op) if found.graph is graph]


def _walk(op: Any) -> Iterator[Any]:
    seen, waiting = {op.name}, [op]
    while waiting:
        here = waiting.pop()
        if here is not op:
            yield here
        if _is_cut(here) and here is not op:
            continue
        for tensor in here.inputs:
            if tensor.op.name not in seen:
                seen.add(tensor.op.name)
                waiting.append(tensor.op)


def _file_read_by(op: Any, feed: _Feed, session: Any) -> str | None:
    """The name of the file that a ReadFile before (or at) the failed op was reading."""
    for found in itertools.chain([op], _walk(op)):
        if found.type == "ReadFile":
            name = session.run(found.inputs[0], feed_dict=feed)
            return os.fsdecode(name) if isinstance(name, bytes) else None
    return None


def _elements(
    cut: str, evidence: Evidence, topology: Topology, session: Any, depth: int = 0
) -> Iterator[tuple[Place, _Feed]]:
    """What a read or dequeue op would deliver, record by record, as values to feed for its outputs."""
    read = reader_of(topology, cut)
    if read is not None:
        yield from _records(*read, topology)
        return
    dequeue = next((node for node in topology.dequeues if node.name == cut), None)
    if dequeue is None or dequeue.kind != "dequeue" or dequeue.queue is None or depth > 3:
        return
    yield from _dequeued(dequeue, topology.queue(dequeue.queue), evidence, topology, session, depth)


def _records(reader: Reader, read: Read, topology: Topology) -> Iterator[tuple[Place, _Feed]]:
    for file in files_of(topology, read):
        for record, payload in enumerate(_payloads(reader, file)):
            key: Any = file if reader.kind == "WholeFile" else f"{file}:{record}"
            value: Any = payload
            if read.many:
                key, value = [key], [value]
            yield Place(file, record, payload), {f"{read.name}:0": key, f"{read.name}:1": value}


def _payloads(reader: Reader, file: str) -> Iterator[bytes]:
    if reader.kind == "TFRecord":
        for _, _, payload in scan.frames(file, compression=reader.compression):
            yield payload
    elif reader.kind == "TextLine":
        with open(file, "rb") as stream:
            for number, line in enumerate(stream):
                if number >= (reader.skip_header_lines or 0):
                    yield line.rstrip(b"\n").removesuffix(b"\r")
    elif reader.kind == "FixedLengthRecord":
        size = reader.record_bytes or 0
        with open(file, "rb") as stream:
            stream.seek(reader.header_bytes or 0)
            while size and len(record := stream.read(size)) == size:
                yield record
                stream.seek((reader.hop_bytes or size) - size, os.SEEK_CUR)
    elif reader.kind == "WholeFile":
        with open(file, "rb") as stream:
            yield stream.read()


def _dequeued(
    dequeue: Dequeue, queue: Queue, evidence: Evidence, topology: Topology, session: Any, depth: int
) -> Iterator[tuple[Place, _Feed]]:
    for enqueue in queue.enqueues:
        producer = next((p for p in topology.producers if p.name == enqueue.name), None)
        names = [f"{dequeue.name}:{index}" for index in range(len(dequeue.components))]
        if producer is not None:
            for record, element in enumerate(_produced(producer, evidence, session)):
                yield Place(record=record), dict(zip(names, element, strict=True))
            continue
        stage = topology.transform(enqueue.transform)
        if len(stage.inputs) != 1 or stage.python:
            continue
        outputs = [evidence.graph.get_tensor_by_name(tensor.name) for tensor in enqueue.components]
        for place, feed in _elements(stage.inputs[0], evidence, topology, session, depth + 1):
            values = session.run(outputs, feed_dict=feed)
            rows = zip(*values, strict=True) if enqueue.many else [values]
            for row in rows:
                yield place, dict(zip(names, row, strict=True))


def _produced(producer: Producer, evidence: Evidence, session: Any) -> Iterator[tuple[Any, ...]]:
    if producer.elements is not None:
        for element in producer.elements:
            yield (element,)
    elif producer.kind == "range" and producer.count is not None:
        for number in range(producer.count):
            yield (number,)
