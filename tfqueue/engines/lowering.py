"""Lowering one graph: each queue becomes the dataset of its elements, each stage a map over what it takes.

``enqueue_many`` becomes unbatch, ``dequeue_many`` becomes batch, a conditional enqueue becomes filter, an epoch
counter becomes range, a reader becomes the dataset of its kind. What has no exact counterpart raises CannotLower;
nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from random import SystemRandom
from typing import Any

import tensorflow as tf

from tfqueue.engines.branches import as_one_stage, in_turns
from tfqueue.engines.conditional import Enqueued, enqueued
from tfqueue.engines.elements import (
    Elements,
    Inputs,
    Steps,
    assigned_names,
    batched,
    shaped,
    split_batches,
    words_of,
)
from tfqueue.engines.fixed_values import FixedValues
from tfqueue.engines.passes import AppliedPass, chosen
from tfqueue.engines.philox import shuffled_indices
from tfqueue.engines.plain import plain
from tfqueue.engines.reading import read_records, read_values
from tfqueue.engines.replay import replay_shuffle
from tfqueue.engines.sources import constant_elements
from tfqueue.engines.sparse import TakenSparse, serialize, stored_sparse
from tfqueue.engines.stage import RUN, StageFunction, extract
from tfqueue.engines.stage_call import Call, Run, SourceShuffle
from tfqueue.errors import CannotLower
from tfqueue.topology.model import Dequeue, Enqueue, Producer, Queue, Read, TensorInfo, Topology, Transform
from tfqueue.topology.subgraph import FUNCTION_TYPES, GraphView, attribute
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
        return self._shuffled(queue, self._queue(name).dataset, None, keep=False).map(plain(lambda value: value))

    def _shuffled(self, queue: Queue, dataset: Any, batch: int | None, *, keep: bool) -> Any:
        """The elements of a queue in the order in which they leave it; in batches where replay needs the size."""
        if queue.kind != "RandomShuffle":
            return dataset
        if queue.capacity is None:
            raise CannotLower(
                f"{words_of(queue)} shuffles among as many elements as happen to be in it, without a bound",
                op=queue.name,
                source=queue.source,
                advice="give the queue a capacity",
            )
        if self.shuffle == "native":
            size = queue.min_after_dequeue + 1 if queue.min_after_dequeue else queue.capacity
            seed = self._seed_of(queue.name, queue.seed, queue.seed2)
            # Copies of one shuffle must agree, whenever each is iterated.
            return dataset.shuffle(size, seed=seed, reshuffle_each_iteration=not self.repeated)
        if not queue.seed and not queue.seed2:
            raise self._not_seeded(words_of(queue), queue.name, queue.source)
        capacity = queue.capacity
        if batch is not None and batch > capacity - queue.min_after_dequeue:
            raise CannotLower(
                f"{words_of(queue)} cannot give a batch of {batch} at once (capacity {capacity}, min_after_dequeue "
                f"{queue.min_after_dequeue}), so its order depends on each element that comes in meanwhile",
                op=queue.name,
                source=queue.source,
                advice=f"set capacity to at least {queue.min_after_dequeue + batch}, or use shuffle='native'",
            )
        return dataset.apply(
            replay_shuffle(
                capacity,
                queue.min_after_dequeue,
                queue.seed,
                queue.seed2,
                batch_size=batch,
                drop_remainder=not keep,
            )
        )

    def _not_seeded(self, words: str, op: str, source: str | None) -> CannotLower:
        return CannotLower(
            f"{words} has no seed, so it has no order to replay",
            op=op,
            source=source,
            advice="give it a seed, or use shuffle='native'",
        )

    def _seed_of(self, name: str, seed: int, seed2: int) -> int | None:
        """One seed for a shuffle; where it has none and is run in several copies, one drawn for all of them."""
        if seed or seed2:
            return (seed * 1_000_003 + seed2) % 2**62
        if not self.repeated:
            return None
        return self.drawn_seeds.setdefault(name, SystemRandom().randrange(1, 2**62))

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
        shuffle = self._source_shuffle(stage)
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
            and all(op.name in stage.random and (threads > 1 or not _is_seeded(op)) for op in function.stateful)
        )
        in_order = not (free and "parallel" in self.passes)
        self.keep_order |= in_order and function.hides_state
        return Call(call, function, bool(stage.python), in_order=in_order, words=words)

    def _source_shuffle(self, stage: Transform) -> SourceShuffle | None:
        """The shuffle of a producer, where it is to be worked out from its seeds instead of left to the op.

        The op keeps its place in the stream of random numbers from one pass over the dataset to the next; worked
        out, every pass begins anew.
        """
        shuffles = [self.view.by_name[name] for name in stage.random]
        shuffles = [op for op in shuffles if op.type == "RandomShuffle"]
        if stage.inputs or len(shuffles) != 1:
            return None
        op = shuffles[0]
        seed, seed2 = int(op.get_attr("seed")), int(op.get_attr("seed2"))
        if not seed and not seed2:
            rows = op.outputs[0].shape.as_list()[0] if op.outputs[0].shape.rank else None
            if self.shuffle == "replay" and rows != 1:
                raise self._not_seeded(f"the shuffle {op.name}", op.name, stage.source)
            if not self.repeated:
                return None
            seed2 = self.drawn_seeds.setdefault(op.name, SystemRandom().randrange(1, 2**62))
        return SourceShuffle(op, seed, seed2)

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
            return self._records(node, consumers, siblings)
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
        late = self._late(queue) if len(parts) == 1 and "decode-late" in self.passes else None
        if late is not None:
            steps = self._taken_late(queue, parts[0], *late)
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
            dataset = self._shuffled(queue, elements.dataset, batch, keep=keep)
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
        dataset = self._shuffled(queue, elements.dataset, total, keep=False)
        if not replayed:
            dataset = batched(dataset, queue, elements.sparse, total, keep=False)
        return Inputs(names, split_batches(dataset, queue, parts), sparse)

    def _late(self, queue: Queue) -> tuple[Any, Call] | None:
        """Of a queue whose stage may as well run after it: the dataset of what the stage takes, and the stage.

        That holds where all enqueue ops of the queue do the same, and give the same for the same record, whenever
        they run; or draw random numbers without a seed, which are nobody's in particular.
        """
        stages = [self.topology.transform(each.transform) for each in queue.enqueues]
        stage = stages[0]
        if any(each.many or each.conditional for each in queue.enqueues) or any(each.python for each in stages):
            return None
        if not stage.inputs or queue.kind == "PaddingFIFO":
            return None
        runs = [self.component_outputs(each) for each in queue.enqueues]
        if any(stored is not None for run in runs for _, stored in run.outputs):
            return None
        if not all(_is_whole(component) for component in queue.components):
            return None
        names = Inputs(tuple(name for cut in stage.inputs for name in self.names_of(cut)), None, frozenset())
        function = self.function(stage, names, runs[0]).function
        unseeded = self.shuffle == "native" and all(
            op.name in stage.random and not _is_seeded(op) for op in function.stateful
        )
        if (function.stateful and not unseeded) or function.counters or function.numbered:
            return None
        inputs = self.inputs(stage) if len(stages) == 1 else as_one_stage(self, stages, runs)
        if inputs is None or inputs.sparse:
            # Only now is it known; what was lowered is used as it is.
            return None
        call = self.function(stage, inputs, runs[0])
        used = [index for index, name in enumerate(inputs.names) if name in {*function.inputs, *function.outputs}]
        if len(used) < len(inputs.names):
            dataset = inputs.dataset.map(plain(lambda *values: tuple(values[index] for index in used)))
            inputs = Inputs(tuple(inputs.names[index] for index in used), dataset, frozenset())
            call = self.function(stage, inputs, runs[0])
        return inputs.dataset, call

    def _taken_late(self, queue: Queue, take: tuple[str, int], dataset: Any, call: Call) -> Steps:
        """What a dequeue gives, with the stage that fills the queue run after the shuffle, on batches if it can."""
        kind, size = take
        keep = kind == "dequeue_up_to"
        whole = all(spec.shape.is_fully_defined() for spec in tf.nest.flatten(dataset.element_spec))
        batches = kind != "dequeue" and whole and "decode-batches" in self.passes
        vector = call.on_batches(self.view) if batches else None
        replayed = queue.kind == "RandomShuffle" and self.shuffle == "replay"
        one_by_one = call.then(lambda *values: tuple(self.as_component(queue, (False,) * len(values), values)))
        if replayed and not whole and kind != "dequeue":
            return Steps(self._shuffled(queue, one_by_one.map(dataset), size, keep=keep), None, None)
        if call.computes:
            self.applied.append(AppliedPass("decode-late" if vector is None else "decode-batches", call.words))
            if call.runs_parallel:
                self.applied.append(AppliedPass("parallel", call.words))
        if kind == "dequeue":
            return Steps(self._shuffled(queue, dataset, None, keep=keep), one_by_one, None)
        dataset = self._shuffled(queue, dataset, size, keep=keep)
        if vector is None:
            if replayed:
                dataset = dataset.unbatch()
            return Steps(dataset, one_by_one, lambda elements: elements.batch(size, drop_remainder=not keep))
        if not replayed:
            dataset = dataset.batch(size, drop_remainder=not keep)
        rows = None if keep else size
        shapes = [[rows, *(component.shape or ())] for component in queue.components]
        vector = vector.then(
            lambda *values: tuple(shaped(value, shape) for value, shape in zip(values, shapes, strict=True))
        )
        return Steps(dataset, vector, None)

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

    # -- readers ----------------------------------------------------------------------------------------

    def _records(self, read: Read, consumers: Sequence[Transform], siblings: Sequence[Transform]) -> Inputs:
        reader = self.reader_of[read.name]
        self.only_these(reader.name, [other.name for other in reader.reads], consumers)
        if read.queue is None or (read.many and read.up_to is None):
            raise CannotLower(
                f"where {read.name} ({read.source}) reads from, or how many records, is decided while running",
                op=read.name,
                source=read.source,
                advice="read from one queue, with a constant number",
            )
        queue = self.topology.queue(read.queue)
        stages = siblings or consumers
        self.only_these(queue.name, [*queue.dequeues, *queue.reads], stages)
        readers = [
            self.reader_of[cut]
            for stage in stages
            for cut in stage.inputs
            if cut in self.reader_of and self.cuts[cut].queue == queue.name
        ]
        readers = list({id(other): other for other in readers}.values())
        if len(readers) == 1:
            names = self.single_elements(queue.name)
        else:
            # Each reader has a copy of the stream of file names and takes its own out of it.
            index = readers.index(reader)
            if queue.name not in self.assigned:
                self.assigned[queue.name] = assigned_names(self._repeatable(queue), readers)
            ours = self.assigned[queue.name].filter(plain(lambda owner, _: tf.equal(owner, index)))
            names = ours.map(plain(lambda _, name: name))
        with_keys = self.keys_needed(read)
        alone = len(reader.reads) == 1 and len(read.consumers) == 1
        if alone and not with_keys:
            values = read_values(names, reader, up_to=read.up_to)
            return Inputs(self.names_of(read.name)[1:], values, frozenset())
        dataset = read_records(names, reader, up_to=read.up_to, with_keys=with_keys)
        return Inputs(self.names_of(read.name), dataset, frozenset())

    def keys_needed(self, read: Read) -> bool:
        """Whether anything looks at the keys of a read."""
        return bool(self.view.by_name[read.name].outputs[0].consumers()) or any(
            element.name == f"{read.name}:0" for element in self.elements
        )

    def _repeatable(self, queue: Queue) -> Any:
        """The elements of a queue as a dataset that gives the same in every copy of it."""
        for node in self.topology.ancestors(queue):
            stage = self.topology.stage_of(node.name) if isinstance(node, (Producer, Transform)) else None
            if stage is None:
                continue
            draws = [name for name in stage.random if self.view.by_name[name].type != "RandomShuffle"]
            if stage.python or draws:
                op = [*stage.python, *draws][0]
                raise CannotLower(
                    f"several readers take file names from {words_of(queue)}, which {op} computes anew each time it "
                    f"is asked; each reader would see other names",
                    op=op,
                    source=stage.source,
                    advice="list the file names before the graph is built",
                )
        before, self.repeated = self.repeated, True
        try:
            return self.single_elements(queue.name)
        finally:
            self.repeated = before


def _is_whole(component: TensorInfo) -> bool:
    return component.shape is not None and None not in component.shape


def _is_seeded(op: Any) -> bool:
    if op.type in FUNCTION_TYPES:
        return True  # Its random ops are not looked at one by one.
    return any(bool(attribute(op, name, 0)) for name in ("seed", "seed2"))


def _without_lists(structure: Any) -> Any:
    """Lists as tuples: a dataset would stack the tensors of a list into one."""
    if isinstance(structure, dict):
        return type(structure)((key, _without_lists(value)) for key, value in structure.items())
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*(_without_lists(value) for value in structure))
    if isinstance(structure, (list, tuple)):
        return tuple(_without_lists(value) for value in structure)
    return structure
