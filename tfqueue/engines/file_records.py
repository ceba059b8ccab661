"""The records that a stage takes from a reader, alone or among several readers of one queue of file names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfqueue.engines.elements import Inputs, assigned_names, words_of
from tfqueue.engines.plain import plain
from tfqueue.engines.reading import read_records, read_values
from tfqueue.errors import CannotLower
from tfqueue.topology.model import Producer, Queue, Read, Transform

if TYPE_CHECKING:
    from tfqueue.engines.lowering import Lowering


def records_of(lowering: Lowering, read: Read, consumers: Sequence[Transform], siblings: Sequence[Transform]) -> Inputs:
    """The records of one read.

    Args:
        lowering: The lowering.
        read: The read op.
        consumers: The stages that share it.
        siblings: The stages whose readers may share its queue of file names.
    """
    reader = lowering.reader_of[read.name]
    lowering.only_these(reader.name, [other.name for other in reader.reads], consumers)
    if read.queue is None or (read.many and read.up_to is None):
        raise CannotLower(
            f"where {read.name} ({read.source}) reads from, or how many records, is decided while running",
            op=read.name,
            source=read.source,
            advice="read from one queue, with a constant number",
        )
    queue = lowering.topology.queue(read.queue)
    stages = siblings or consumers
    lowering.only_these(queue.name, [*queue.dequeues, *queue.reads], stages)
    readers = [
        lowering.reader_of[cut]
        for stage in stages
        for cut in stage.inputs
        if cut in lowering.reader_of and lowering.cuts[cut].queue == queue.name
    ]
    readers = list({id(other): other for other in readers}.values())
    if len(readers) == 1:
        names = lowering.single_elements(queue.name)
    else:
        # Each reader has a copy of the stream of file names and takes its own out of it.
        index = readers.index(reader)
        if queue.name not in lowering.assigned:
            lowering.assigned[queue.name] = assigned_names(_repeatable(lowering, queue), readers)
        ours = lowering.assigned[queue.name].filter(plain(lambda owner, _: tf.equal(owner, index)))
        names = ours.map(plain(lambda _, name: name))
    with_keys = keys_needed(lowering, read)
    alone = len(reader.reads) == 1 and len(read.consumers) == 1
    if alone and not with_keys:
        values = read_values(names, reader, up_to=read.up_to)
        return Inputs(lowering.names_of(read.name)[1:], values, frozenset())
    dataset = read_records(names, reader, up_to=read.up_to, with_keys=with_keys)
    return Inputs(lowering.names_of(read.name), dataset, frozenset())


def keys_needed(lowering: Lowering, read: Read) -> bool:
    """Whether anything looks at the keys of a read."""
    return bool(lowering.view.by_name[read.name].outputs[0].consumers()) or any(
        element.name == f"{read.name}:0" for element in lowering.elements
    )


def _repeatable(lowering: Lowering, queue: Queue) -> Any:
    """The elements of a queue as a dataset that gives the same in every copy of it."""
    for node in lowering.topology.ancestors(queue):
        stage = lowering.topology.stage_of(node.name) if isinstance(node, (Producer, Transform)) else None
        if stage is None:
            continue
        draws = [name for name in stage.random if lowering.view.by_name[name].type != "RandomShuffle"]
        if stage.python or draws:
            op = [*stage.python, *draws][0]
            raise CannotLower(
                f"several readers take file names from {words_of(queue)}, which {op} computes anew each time it "
                f"is asked; each reader would see other names",
                op=op,
                source=stage.source,
                advice="list the file names before the graph is built",
            )
    before, lowering.repeated = lowering.repeated, True
    try:
        return lowering.single_elements(queue.name)
    finally:
        lowering.repeated = before
