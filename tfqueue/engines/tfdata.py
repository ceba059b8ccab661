"""The engine "tfdata": a queue graph turned into one tf.data.Dataset that delivers the same batches."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import tensorflow as tf

from tfqueue.build import build
from tfqueue.engines.lowering import Lowering
from tfqueue.engines.passes import AppliedPass
from tfqueue.errors import InvalidArgument

SHUFFLES = ("native", "replay")


def to_dataset(
    target: Callable[[], Any] | tf.Graph,
    fetches: Any = None,
    *,
    shuffle: str = "native",
    session: Any | None = None,
    optimize: bool | Collection[str] = True,
) -> Any:
    """Turn a TF1 queue-runner pipeline into a tf.data.Dataset that delivers the same batches.

    The same records, batch sizes, remainder rule, epochs, padding and filters; where the order of the pipeline
    is defined (nothing shuffled, one thread) the same order, bit for bit. Stages run as written, so what they
    compute is bit-equal. Seeded random ops give the same values in every pass (those of unknown shapes, of rare
    distributions, inside a tf.cond or loop and behind buckets in the first pass only: their kernels go on where they
    were).

    An iterator over it can be saved and restored (`tf.train.Checkpoint`), unless a stage calls Python or has a random
    op that keeps its own place in the stream of numbers: an unseeded one, or one of those just named.

    As every tf.data call it makes ops where it is called: eagerly, or in the default graph.

    Args:
        target: A build function, or a graph (also one imported from a MetaGraph).
        fetches: With a graph: the tensors of a step, in any nest.
        shuffle: What stands for a shuffle queue: ``"native"``, Dataset.shuffle over as many elements as the
            queue promises to mix (min_after_dequeue and the one that is drawn); or ``"replay"``: every shuffle
            gives, element for element, what the engine "lockstep" gives. All shuffles must have seeds then.
        session: A session of ``target`` that holds trained or loaded values of the variables and tables that
            the pipeline reads; without it their initialisers are run.
        optimize: The speed passes to apply where they change no record, no batch and no order that is defined: True
            for all, False for none, or the names of some. ``explain(..., tfdata=True)`` says where each applies.

            - ``"decode-late"``: a stage that gives the same for the same record runs after the shuffle, which then
              holds undecoded records: usually far smaller ones; leave it out where a stage keeps little of a large
              record. (A record in a remainder that is dropped is then never decoded, and what is wrong with it never
              noticed.)
            - ``"decode-batches"``: such a stage, if it only parses and moves data, runs once for each batch (needs
              ``"decode-late"``).
            - ``"merge"``: steps that compute nothing, and lists of constants, are no datasets of their own.
            - ``"parallel"``: stages without a state run on several records at once, in their order.
            - ``"interleave"``: files that several readers share are read side by side (native shuffles only: in
              which order readers in threads of their own deliver is not defined).
            - ``"prefetch"``: batches are made ahead of the step that takes them.

    Returns:
        A ``tf.data.Dataset`` whose elements have the structure of the fetches, with tuples instead of lists.

    Raises:
        CannotLower: A part of the pipeline has no exact counterpart; names the op, its line and the reason.
        InvalidArgument: An argument that cannot work.
        InvalidBuildFunction: The build function returned no tensors of its graph.
    """
    return _lowering(target, fetches, shuffle, session, optimize).dataset()


def applied_passes(
    target: Callable[[], Any] | tf.Graph,
    fetches: Any = None,
    *,
    shuffle: str = "native",
    session: Any | None = None,
    optimize: bool | Collection[str] = True,
) -> tuple[AppliedPass, ...]:
    """The speed passes that `to_dataset` applies to a pipeline, and where; the arguments are those of to_dataset.

    Raises:
        CannotLower, InvalidArgument, InvalidBuildFunction: As `to_dataset`.
    """
    with tf.Graph().as_default():
        lowering = _lowering(target, fetches, shuffle, session, optimize)
        lowering.dataset()
    return tuple(dict.fromkeys(lowering.applied))


def _lowering(
    target: Callable[[], Any] | tf.Graph,
    fetches: Any,
    shuffle: str,
    session: Any | None,
    optimize: bool | Collection[str],
) -> Lowering:
    if shuffle not in SHUFFLES:
        raise InvalidArgument(f"shuffle is {shuffle!r}; known are {', '.join(map(repr, SHUFFLES))}")
    if isinstance(target, tf.Graph):
        if fetches is None:
            raise InvalidArgument("a graph does not say what a step fetches; pass fetches=, its tensors")
        graph = target
    else:
        if fetches is not None:
            raise InvalidArgument("fetches belong to a graph; a build function returns its own")
        graph = tf.Graph()
        fetches = build(target, graph)
    return Lowering(graph, fetches, shuffle, session, optimize)
