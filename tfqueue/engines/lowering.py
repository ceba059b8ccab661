"""Lowering one graph: each queue becomes the dataset of its elements, each stage a map over what it takes.

``enqueue_many`` becomes unbatch, ``dequeue_many`` becomes batch, a conditional enqueue becomes filter, an epoch
counter becomes range, a reader becomes the dataset of its kind. What has no exact counterpart raises CannotLower;
nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import tensorflow as tf

from tfqueue.engines.branches import in_turns
from tfqueue.engines.conditional import Enqueued, enqueued
from tfqueue.engines.elements import (
    Elements,
    Inputs,
    batched,
    shaped,
    split_batches,
    words_of,
)
from tfqueue.engines.file_records import records_of
from tfqueue.engines.fixed_values import FixedValues
from tfqueue.engines.late import late_stage, taken_late
from tfqueue.engines.passes import AppliedPass, chosen
from tfqueue.engines.philox import shuffled_indices
from tfqueue.engines.plain import plain
from tfqueue.engines.shuffling import is_seeded, shuffled, source_shuffle
from tfqueue.engines.sources import constant_elements
from tfqueue.engines.sparse import TakenSparse, serialize, stored_sparse
from tfqueue.engines.stage import RUN, StageFunction, extract
from tfqueue.engines.stage_call import Call, Run
from tfqueue.errors import CannotLower
from tfqueue.topology.model import Dequeue, Enqueue, Queue, Read, Topology, Transform
from tfqueue.topology.subgraph import GraphView
from tfqueue.topology.trace import fetch_elements, trace

_ENDLESS = 2**63 - 1


class Lowering:
    """Lowers one graph.

    Attributes:
        applied: The speed passes that were applied so far, from the last stage to the source.
    """

    def __init__(
        self,
        graph: tf.Graph,
        fetches: Any,
        shuffle: str,
        session: Any | None,
        optimize: bool | Collection[str],
    ) -> None:
        self.shuffle = shuffle
        self.passes = chosen(optimize)
        self.applied: list[AppliedPass] = []
        # Whether what is being lowered will be run in several copies, which must then give the same.
        self.repeated = False
        # Whether a map must not be made parallel by tf.data, which does not see that it draws random numbers.
        self.keep_order = False
        self.drawn_seeds: dict[str, int] = {}
        self.assigned: dict[str, Any] = {}
        self.view = GraphView(graph)
        self.fetches = fetches
        self.elements = fetch_elements(graph, fetches)
        self.topology: Topology = trace(graph, fetches)
        self.fixed = FixedValues(self.view, session)
        self.live = set(self.topology.live_queues())
        self.cuts: dict[str, Dequeue | Read] = {cut.name: cut for cut in self.topology.dequeues}
        self.cuts.update({read.name: read for read in self.topology.reads})
        self.reader_of = {read.name: reader for reader in self.topology.readers for read in reader.reads}

    # -- the fetches ------------------------------------------------------------------------------------

    def dataset(self) -> Any:
        """The whole pipeline."""
        stage = self.topology.fetch_stage
        if stage is None or not stage.inputs:
            raise CannotLower(
                "no fetch depends on a queue or a reader, so there is no stream of data",
                advice="return the tensors that the queues deliver",
            )
        for element in self.elements:
            if not isinstance(element, tf.Tensor):
                raise CannotLower(
                    f"the fetch {element.name} is an op without a value; a dataset delivers tensors only",
                    op=element.name,
                    advice="fetch the tensors of the batch, and run the op in the training step",
                )
        inputs = self.inputs(stage)
        run = Run(tuple((element, None) for element in self.elements), (), None)
        call = self.function(stage, inputs, run)

        def pack(*values: Any) -> Any:
            return _without_lists(tf.nest.pack_sequence_as(self.fetches, values, expand_composites=True))

        def pack_shaped(*values: Any) -> Any:
            return pack(*(shaped(value, element.shape) for value, element in zip(values, self.elements, strict=True)))

        dataset = self._merged(inputs, call, pack, pack_shaped)
        if dataset is None and stage.python:
            dataset = self.map(inputs.dataset, call).map(pack_shaped)
        elif dataset is None:
            dataset = self.map(inputs.dataset, call.then(pack_shaped))
        if "prefetch" in self.passes:
            self.applied.insert(0, AppliedPass("prefetch", "the batches"))
            dataset = dataset.prefetch(tf.data.AUTOTUNE)
        if self.keep_order:
            options = tf.data.Options()
            options.experimental_optimization.map_parallelization = False
            dataset = dataset.with_options(options)
        # What the functions use without owning it: lookup tables, and the graph, which keeps py_funcs alive.
        dataset._tfqueue_resources = (self.view.graph, self.fixed.resources)
        return dataset

    def _merged(self, inputs: Inputs, call: Call, pack: Callable[..., Any], shaped: Callable[..., Any]) -> Any | None:
        """What the fetches give, put together by the stage before them; None unless they compute nothing."""
        steps = inputs.steps
        if steps is None or steps.call is None or call.computes or "merge" not in self.passes:
            return None
        # Packed before it is batched, where it is batched after the stage.
        finish = shaped if steps.batch is None else pack
        merged = steps.call.then(lambda *values: finish(*call.call(*values)))
        dataset = replace(steps, call=merged).dataset()
        for spec, element in zip(tf.nest.flatten(dataset.element_spec), self.elements, strict=True):
            if not spec.shape.is_subtype_of(element.shape):
                return None
        self.applied.insert(0, AppliedPass("merge", "the step that packs the fetches"))
        return dataset

    # -- queues -----------------------------------------------------------------------------------------

    def _queue(self, name: str) -> Elements:
        """The elements of a queue in the order in which they are enqueued."""
        queue = self.topology.queue(name)
        self._check_queue(queue)
        return self._enqueued(queue)

    def _check_queue(self, queue: Queue) -> None:
        """Refuse a queue whose elements or order do not come from the graph."""
        if queue.kind == "Priority":
            raise CannotLower(
                f"{words_of(queue)} gives the smallest priority of what is in it at that moment, which depends on "
                f"the timing of threads",
                op=queue.name,
                source=queue.source,
                advice="sort the records before they are written, or bucket them with Dataset.group_by_window",
            )
        if not queue.enqueues or any(not enqueue.copies for enqueue in queue.enqueues):
            outside = [e.name for e in queue.enqueues if not e.copies]
            by = f"by Python code that runs {', '.join(outside)}" if outside else "from outside"
            element = ", ".join(str(component) for component in queue.components)
            raise CannotLower(
                f"{words_of(queue)} is filled {by}, not by a queue runner of the graph",
                op=queue.name,
                source=queue.source,
                advice=f"write the feeding loop as a generator of ({element}) and use Dataset.from_generator",
            )

    def single_elements(self, name: str) -> Any:
        """The elements of a queue of single tensors (file names), shuffled if it shuffles."""
        queue = self.topology.queue(name)
        constant = constant_elements(self.view, self.topology, queue) if "merge" in self.passes else None
        if constant is not None:
            return constant
        return shuffled(self, queue, self._queue(name).dataset, None, keep=False).map(plain(lambda value: value))

    def _enqueued(self, queue: Queue) -> Elements:
        """The elements of a queue in the order in which they are enqueued."""
        runs = [self.component_outputs(enqueue) for enqueue in queue.enqueues]
        sparse = tuple(wrap is not None for _, wrap in runs[0].outputs[: len(queue.components)])
        if any(len(run.outputs) != len(runs[0].outputs) for run in runs):
            raise CannotLower(
                f"some enqueue ops of {words_of(queue)} are conditional and others are not",
                op=queue.name,
                source=queue.source,
                advice="give every branch a keep_input",
            )
        stages = [self.topology.transform(enqueue.transform) for enqueue in queue.enqueues]
        dataset, passed = in_turns(self, queue, stages, runs)
        sparse = tuple(own or through for own, through in zip(sparse, passed, strict=True))
        count = len(queue.components)
        if runs[0].keeps is not None:
            keeps = runs[0].keeps
            dataset = dataset.filter(plain(lambda *values: keeps(values[count]))).map(
                plain(lambda *values: values[:count])
            )
        if len({enqueue.many for enqueue in queue.enqueues}) > 1:
            raise CannotLower(
                f"{words_of(queue)} is filled by both enqueue and enqueue_many",
                op=queue.name,
                source=queue.source,
                advice="use enqueue_many in every branch",
            )
        if queue.enqueues[0].many:
            dataset = dataset.unbatch()
        if runs[0].keeps is not None or queue.enqueues[0].many:
            dataset = dataset.map(plain(lambda *values: tuple(self.as_component(queue, sparse, values))))
        return Elements(dataset, sparse)

    def as_component(self, queue: Queue, sparse: Sequence[bool], values: Sequence[Any]) -> list[Any]:
        return [
            value if is_sparse or component.shape is None else shaped(value, component.shape)
            for value, component, is_sparse in zip(values, queue.components, sparse, strict=True)
        ]

    def component_outputs(self, enqueue: Enqueue) -> Run:
        """What a run of an enqueue has to compute: its components, and the condition if there is one."""
        what: Enqueued = enqueued(self.view, enqueue)
        outputs: list[tuple[Any, Any]] = [(tensor, stored_sparse(self.view, tensor)) for tensor in what.tensors]
        if what.condition is not None:
            outputs.append((what.condition, None))
        return Run(tuple(outputs), what.also, None if what.condition is None else what.keeps)

    # -- stages -----------------------------------------------------------------------------------------

    def run_with_flags(self, stage: Transform, inputs: Inputs, run: Run, queue: Queue) -> tuple[Any, tuple[bool, ...]]:
        call = self.function(stage, inputs, run)
        sparse = self.passed_through(inputs, run, queue)
        if run.keeps is None and not queue.enqueues[0].many:
            flags = [own is not None or passed for (_, own), passed in zip(run.outputs, sparse, strict=True)]
            call = call.then(lambda *values: tuple(self.as_component(queue, flags, values)))
        return self.map(inputs.dataset, call), sparse

    def passed_through(self, inputs: Inputs, run: Run, queue: Queue) -> tuple[bool, ...]:
        """Which components are serialized SparseTensors of an earlier queue, handed on as they are."""
        return tuple(tensor.name in inputs.sparse for tensor, _ in run.outputs[: len(queue.components)])

    def run(self, stage: Transform, inputs: Inputs, outputs: Sequence[tuple[Any, Any]], also: Sequence[Any]) -> Any:
        """A dataset with the outputs of one run of a stage for each element of its inputs."""
        return self.map(inputs.dataset, self.function(stage, inputs, Run(tuple(outputs), tuple(also), None)))

    def function(self, stage: Transform, inputs: Inputs, run: Run, *, number_runs: bool = True) -> Call:
        """A stage as a function of what it takes.

        Args:
            stage: The stage.
            inputs: The names of what it takes.
            run: What it computes.
            number_runs: Whether the number of its run can be given to it, which makes its random ops repeatable.
        """
        # An op that several stages run has no number of its own run.
        number_runs = number_runs and all(len(self.topology.stages_of(name)) == 1 for name in stage.random)
        threads = sum(enqueue.copies for enqueue in self.topology.enqueues if enqueue.transform == stage.name)
        words = "the stage of the fetches" if stage.target is None else f"the stage that fills {stage.target}"
        cut_ops = [self.view.by_name[name] for name in stage.inputs]
        taken = TakenSparse(self.view, stage, frozenset(inputs.names))
        wanted: list[Any] = []
        places: list[tuple[int, int, bool | None]] = []
        for tensor, stored in run.outputs:
            tensors, many = ([tensor], None) if stored is None else stored
            places.append((len(wanted), len(tensors), many))
            wanted.extend(tensors)
        shuffle = source_shuffle(self, stage)
        replaced = [*taken.tensors, *([] if shuffle is None else [shuffle.op.outputs[0]])]
        function = extract(
            self.view, wanted, cuts=cut_ops, also=run.also, replaced=replaced, number_runs=number_runs, words=words
        )
        unshuffled = None if shuffle is None else extract(self.view, [shuffle.op.inputs[0]], cuts=(), words=words)
        misused = sorted(name for name in function.inputs if name in inputs.sparse and name not in taken.sources)
        if any(name not in {tensor.name for tensor in wanted} for name in misused):
            raise CannotLower(
                f"{words} computes with {misused[0]}, the number under which a queue keeps a SparseTensor",
                op=misused[0].partition(":")[0],
                advice="turn it back into a SparseTensor first",
            )
        fixed = self.fixed.of([*function.fixed, *(() if unshuffled is None else unshuffled.fixed)])
        for op_name, value in list(fixed.items()):
            if not tf.is_tensor(value):
                fixed[op_name] = tf.constant(value)

        def call(*values: Any, vector: StageFunction | None = None) -> tuple[Any, ...]:
            number, values = (values[0], values[1:]) if function.counters or function.numbered else (None, values)
            given = dict(zip(inputs.names, values, strict=True))
            if number is not None:
                given[RUN] = number
            given.update(taken.restore(given))
            given.update(fixed)
            given.update(dict.fromkeys(function.counters, number))
            if shuffle is not None and unshuffled is not None:
                (rows,) = unshuffled(given)
                order = shuffled_indices(tf.shape(rows)[0], shuffle.seed, shuffle.seed2, given[RUN])
                given[shuffle.op.outputs[0].name] = tf.gather(rows, order)
            results = (vector or function)(given)
            return tuple(
                results[start] if many is None else serialize(*results[start : start + count], many=many)
                for start, count, many in places
            )

        # Where threads ran the stage, it was never said which record gets which random numbers.
        free = not function.stateful or (
            self.shuffle == "native"
            and not stage.python
            and all(op.name in stage.random and (threads > 1 or not is_seeded(op)) for op in function.stateful)
        )
        in_order = not (free and "parallel" in self.passes)
        self.keep_order |= in_order and function.hides_state
        return Call(call, function, bool(stage.python), in_order=in_order, words=words)

    def map(self, dataset: Any, call: Call) -> Any:
        limit = min((int(self.view.by_name[name].get_attr("limit")) for name in call.function.counters), default=None)
        if limit is not None or call.function.numbered:
            dataset = dataset.enumerate()
            if limit is not None:
                dataset = dataset.take(limit)
            dataset = dataset.map(plain(lambda index, values: (index, *tf.nest.flatten(values))))
        if call.runs_parallel:
            self.applied.append(AppliedPass("parallel", call.words))
        return call.map(dataset)

    # -- what a stage takes -----------------------------------------------------------------------------

    def inputs(
        self,
        stage: Transform,
        *,
        consumers: Sequence[Transform] = (),
        siblings: Sequence[Transform] = (),
    ) -> Inputs:
        """What the runs of a stage take from its cuts.

        Args:
            stage: The stage.
            consumers: All stages that share its one stream in turns.
            siblings: The stages of the same queue, whose readers may share a queue of file names with it.
        """
        if not stage.inputs:
            # A source: it runs without end, or until its epoch counter ends it.
            runs = tf.data.Dataset.range(_ENDLESS).map(plain(lambda number: (number,)))
            return Inputs((RUN,), runs, frozenset())
        groups: dict[str, list[str]] = {}
        for cut in stage.inputs:
            groups.setdefault(self.stream(cut), []).append(cut)
        parts = [self._take(cuts, consumers or (stage,), siblings) for cuts in groups.values()]
        names = tuple(name for part in parts for name in part.names)
        sparse = frozenset().union(*(part.sparse for part in parts))
        if len(parts) == 1:
            return parts[0]
        dataset = tf.data.Dataset.zip(tuple(part.dataset for part in parts))
        return Inputs(names, dataset.map(plain(lambda *values: tuple(tf.nest.flatten(values)))), sparse)

    def stream(self, cut: str) -> str:
        """What a cut takes from: a queue or a reader, by name."""
        node = self.cuts[cut]
        if isinstance(node, Read):
            return self.reader_of[cut].name
        if node.queue is None or node.conditional:
            raise CannotLower(
                f"{node.name} ({node.source}) takes from one of several queues, chosen while running: "
                f"{', '.join(node.candidates)}",
                op=node.name,
                source=node.source,
                advice="make a dataset of each, and choose with Dataset.choose_from_datasets, or in Python",
            )
        return node.queue

    def names_of(self, cut: str) -> tuple[str, ...]:
        return tuple(tensor.name for tensor in self.view.by_name[cut].outputs)

    def take_of(self, cut: Dequeue | Read) -> tuple[str, int | None]:
        return (cut.kind, cut.batch_size) if isinstance(cut, Dequeue) else ("read", cut.up_to)

    def _take(self, cuts: Sequence[str], consumers: Sequence[Transform], siblings: Sequence[Transform]) -> Inputs:
        """What one run takes from one queue or reader, through one cut or several."""
        node = self.cuts[cuts[0]]
        if isinstance(node, Read):
            if len(cuts) > 1:
                raise CannotLower(
                    f"one stage reads twice from the reader {self.reader_of[cuts[0]].name}: {', '.join(cuts)}",
                    op=cuts[1],
                    source=node.source,
                    advice="read records in pairs with Dataset.batch(2)",
                )
            return records_of(self, node, consumers, siblings)
        queue = self.topology.queue(str(node.queue))
        self.only_these(queue.name, [*queue.dequeues, *queue.reads], consumers)
        self._check_queue(queue)
        dequeues = [self.cuts[cut] for cut in cuts]
        parts = []
        for dequeue in dequeues:
            assert isinstance(dequeue, Dequeue)
            if dequeue.batch_size is None:
                raise CannotLower(
                    f"the batch size of {dequeue.name} ({dequeue.source}) is decided while running",
                    op=dequeue.name,
                    source=dequeue.source,
                    advice="make it a constant, or unbatch and batch in Python",
                )
            parts.append((dequeue.kind, dequeue.batch_size))
        names = tuple(name for cut in cuts for name in self.names_of(cut))
        late = late_stage(self, queue) if len(parts) == 1 and "decode-late" in self.passes else None
        if late is not None:
            steps = taken_late(self, queue, parts[0], *late)
            return Inputs(names, steps.dataset(), frozenset(), steps)
        elements = self._enqueued(queue)
        sparse = frozenset(
            name for cut in cuts for name, flag in zip(self.names_of(cut), elements.sparse, strict=True) if flag
        )
        replayed = queue.kind == "RandomShuffle" and self.shuffle == "replay"
        if len(parts) == 1:
            kind, size = parts[0]
            keep = kind == "dequeue_up_to"
            batch = None if kind == "dequeue" else size
            dataset = shuffled(self, queue, elements.dataset, batch, keep=keep)
            if batch is not None and not replayed:
                dataset = batched(dataset, queue, elements.sparse, batch, keep=keep)
            return Inputs(names, dataset, sparse)
        if any(kind == "dequeue_up_to" for kind, _ in parts):
            raise CannotLower(
                f"a step takes several times from {words_of(queue)}, once with dequeue_up_to",
                op=queue.name,
                source=queue.source,
                advice="drop allow_smaller_final_batch, or take once and split",
            )
        total = sum(size for _, size in parts)
        dataset = shuffled(self, queue, elements.dataset, total, keep=False)
        if not replayed:
            dataset = batched(dataset, queue, elements.sparse, total, keep=False)
        return Inputs(names, split_batches(dataset, queue, parts), sparse)

    def only_these(self, stream: str, cuts: Sequence[str], consumers: Sequence[Transform]) -> None:
        """Refuse a queue that also feeds somebody else: who gets which element depends on timing."""
        ours = {stage.name for stage in consumers}
        for cut in cuts:
            others = [name for name in self.cuts[cut].consumers if name not in ours]
            if others:
                other = self.topology.transform(others[0])
                target = "the fetches" if other.target is None else f"queue {other.target}"
                dead = "" if other.target is None or other.target in self.live else ", which no fetch depends on,"
                raise CannotLower(
                    f"{stream} also feeds {target}{dead} through {cut}; who gets which of its elements depends "
                    f"on the timing of threads",
                    op=cut,
                    source=self.cuts[cut].source,
                    advice="remove the other consumer, or give each its own producer",
                )


def _without_lists(structure: Any) -> Any:
    """Lists as tuples: a dataset would stack the tensors of a list into one."""
    if isinstance(structure, dict):
        return type(structure)((key, _without_lists(value)) for key, value in structure.items())
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*(_without_lists(value) for value in structure))
    if isinstance(structure, (list, tuple)):
        return tuple(_without_lists(value) for value in structure)
    return structure
