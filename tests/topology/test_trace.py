"""The topology read out of graphs, node by node."""

from __future__ import annotations

import inspect

import pytest
import tensorflow as tf

from tests.topology import builders
from tfqueue.errors import InvalidArgument
from tfqueue.topology import Dequeue, Producer, Queue, Reader, Transform
from tfqueue.topology.model import TensorInfo
from tfqueue.topology.trace import trace

tf1 = tf.compat.v1


def line(function, text):
    """What the source of a node must be: the line of `function` that contains `text`."""
    lines, first = inspect.getsourcelines(function)
    number = next(index for index, code in enumerate(lines) if text in code)
    return f"builders.py:{first + number} in {function.__name__}"


def test_fixed_length_records_with_a_shuffle():
    topology = trace(builders.cifar)
    names, examples = topology.queues
    assert (names.kind, names.capacity, names.reads) == ("FIFO", 32, ("ReaderReadV2",))
    assert (examples.kind, examples.capacity, examples.min_after_dequeue) == ("RandomShuffle", 50, 20)
    assert (examples.seed, examples.seed2) == (87654321, 7)
    assert examples.dtypes == ("float32", "int32", "string")
    assert examples.shapes == ((2, 2, 3), (), ())
    assert examples.threads == 16
    assert examples.element_bytes is None
    assert examples.source == line(builders.cifar, "tf1.train.shuffle_batch(")
    (producer,) = topology.producers
    assert (producer.kind, producer.elements, producer.count) == ("files", ("a.bin", "b.bin"), 2)
    assert (producer.num_epochs, producer.shuffle, producer.seed2) == (2, True, 5)
    assert producer.epoch_counter == "input_producer/limit_epochs/epochs"
    (reader,) = topology.readers
    assert (reader.kind, reader.record_bytes, reader.header_bytes, reader.footer_bytes) == (
        "FixedLengthRecord",
        13,
        4,
        2,
    )
    assert reader.source == line(builders.cifar, "FixedLengthRecordReader")
    stage = topology.transform(examples.enqueues[0].transform)
    assert stage.inputs == ("ReaderReadV2",)
    assert [(decode.op_type, dict(decode.options)["out_type"]) for decode in stage.decodes] == [("DecodeRaw", "uint8")]
    assert stage.decodes[0].source == line(builders.cifar, "decode_raw")
    assert len(stage.random) == 1
    assert "random_flip" in stage.random[0]
    (dequeue,) = topology.dequeues
    assert (dequeue.kind, dequeue.batch_size, dequeue.queue) == ("dequeue_many", 4, examples.name)
    assert dequeue.consumers == ("fetches",)
    assert topology.warnings == ()


def test_every_kind_of_feature():
    (spec,) = trace(builders.examples).transforms[1].parses
    assert (spec.kind, spec.serialized, spec.batched) == ("example", "ReaderReadV2:1", False)
    assert spec.source == line(builders.examples, "parse_single_example")
    features = {feature.key: feature for feature in spec.features}
    assert features["fixed"].kind == "fixed"
    assert (features["fixed"].dtype, features["fixed"].shape, features["fixed"].required) == (
        "float32",
        (2, 3),
        True,
    )
    assert (features["default"].default, features["default"].required) == ((4,), False)
    assert features["text"].default == ("none",)
    assert (features["list"].kind, features["list"].shape, features["list"].required) == (
        "fixed_sequence",
        (2,),
        False,
    )
    assert (features["sparse"].kind, features["sparse"].dtype) == ("var", "string")


def test_compression_and_no_shuffle():
    topology = trace(builders.examples)
    assert topology.readers[0].compression == "GZIP"
    assert not topology.producers[0].shuffle
    assert topology.producers[0].num_epochs is None


def test_csv_read_up_to_and_a_pattern():
    topology = trace(builders.csv_lines)
    (reader,) = topology.readers
    assert (reader.kind, reader.skip_header_lines) == ("TextLine", 1)
    assert (reader.reads[0].many, reader.reads[0].up_to) == (True, 10)
    (producer,) = topology.producers
    assert (producer.kind, producer.pattern, producer.variable) == (
        "files",
        "data/*.csv",
        "matching_filenames",
    )
    assert producer.elements is None
    enqueue = topology.queues[1].enqueues[0]
    assert enqueue.many
    (spec,) = topology.transform(enqueue.transform).parses
    assert spec.kind == "csv"
    assert dict(spec.options)["field_delim"] == ";"
    assert [(f.key, f.dtype, f.required, f.default) for f in spec.features] == [
        ("0", "float32", False, (1.5,)),
        ("1", "string", False, ("?",)),
        ("2", "int32", True, None),
    ]
    assert topology.dequeues[0].kind == "dequeue_up_to"


def sequence_examples():
    # Python op inputs keep each feature under the key that was asked for, whatever order TF sorts them into.
    names = tf1.train.string_input_producer(["a"], shuffle=False)
    _, value = tf1.TFRecordReader().read(names)
    context, lists = tf1.parse_single_sequence_example(
        value,
        {"id": tf1.FixedLenFeature([], tf.int64), "tags": tf1.VarLenFeature(tf.string)},
        {
            "words": tf1.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
            "boxes": tf1.FixedLenSequenceFeature([4], tf.float32),
            "names": tf1.VarLenFeature(tf.string),
        },
    )
    return context["id"], lists["words"]


def test_sequence_example():
    (spec,) = trace(sequence_examples).fetch_stage.parses
    assert spec.kind == "sequence_example"
    assert {(f.key, f.where, f.kind, f.dtype, f.shape, f.required) for f in spec.features} == {
        ("id", "context", "fixed", "int64", (), True),
        ("tags", "context", "var", "string", None, False),
        ("words", "feature_list", "fixed_sequence", "int64", (), False),
        ("boxes", "feature_list", "fixed_sequence", "float32", (4,), True),
        ("names", "feature_list", "var", "string", None, False),
    }


def test_an_enqueue_inside_a_cond_function():
    topology = trace(builders.filtered)
    enqueue = topology.queues[1].enqueues[0]
    assert enqueue.conditional
    assert enqueue.copies == 1
    assert enqueue.runs == "batch/cond/Identity"
    assert topology.transform(enqueue.transform).inputs == ("input_producer_Dequeue",)
    assert topology.live_queues() == ("input_producer", "batch/fifo_queue")


def test_an_enqueue_inside_a_cond_of_old_control_flow():
    def build():
        number = tf1.train.range_input_producer(10, num_epochs=1, shuffle=False).dequeue()
        return tf1.train.maybe_batch([number], number > 3, 4)

    # What a graph that was saved by TF1 looks like: Switch and Merge instead of functions.
    enabled = tf1.control_flow_v2_enabled()
    tf1.disable_control_flow_v2()
    try:
        topology = trace(build)
    finally:
        if enabled:
            tf1.enable_control_flow_v2()
    enqueue = topology.queues[1].enqueues[0]
    assert (enqueue.conditional, enqueue.copies, enqueue.runs) == (True, 1, "batch/cond/Merge")
    assert len(enqueue.components) == 1
    assert topology.transform(enqueue.transform).inputs == ("input_producer_Dequeue",)


def test_slices_of_constants():
    topology = trace(builders.sliced)
    (producer,) = topology.producers
    assert (producer.kind, producer.elements, producer.count) == ("range", (0, 1), 2)
    assert [(info.dtype, info.shape) for info in producer.sliced] == [("string", (2,)), ("int32", (2,))]
    assert topology.transforms[1].decodes[0].op_type in ("DecodePng", "DecodeImage")
    assert topology.queues[1].buffer_bytes == 32 * (12 + 4)


def test_joined_branches_and_a_prefetch_queue():
    topology = trace(builders.branches)
    names, joined, prefetch = (topology.queue(name) for name in topology.live_queues())
    assert (names.capacity, len(names.reads)) == (7, 2)
    assert [enqueue.copies for enqueue in joined.enqueues] == [1, 1]
    assert prefetch.name == "prefetch"
    assert topology.dequeues[0].consumers == (prefetch.enqueues[0].name,)
    dead = topology.queue("dead/random_shuffle_queue")
    assert dead.name not in topology.live_queues()
    assert dead.buffer_bytes == 9 * 16
    assert {producer.kind for producer in topology.producers} == {"files", "random"}


def test_the_walk_goes_from_sink_to_source():
    topology = trace(builders.branches)
    kinds = [type(node) for node in topology.ancestors(topology.fetch_stage)]
    assert kinds == [
        Dequeue,
        Queue,
        Transform,
        Dequeue,
        Queue,
        Transform,
        Transform,
        Reader,
        Reader,
        Queue,
        Producer,
    ]
    (names,) = (queue for queue in topology.queues if queue.capacity == 7)
    assert [node.name for node in topology.downstream(names)] == ["reader_0", "reader_1"]


def test_fed_queues_and_a_choice_between_queues():
    topology = trace(builders.fed)
    assert {producer.kind for producer in topology.producers} == {"fed"}
    assert [enqueue.copies for enqueue in topology.enqueues] == [0, 0]
    (dequeue,) = topology.dequeues
    assert (dequeue.queue, dequeue.candidates) == (None, ("first", "second"))
    assert topology.queue("first").kind == "PaddingFIFO"
    assert topology.queue("first").shapes == ((None,),)
    assert topology.queue("second").shapes == (None,)
    assert set(topology.live_queues()) == {"first", "second"}


def test_a_graph_from_a_metagraph_has_the_same_topology():
    graph = tf.Graph()
    with graph.as_default():
        fetches = builders.branches()
        saved = tf1.train.export_meta_graph()
    imported = tf.Graph()
    with imported.as_default():
        tf1.train.import_meta_graph(saved)
    ours = trace(graph, fetches)
    theirs = trace(imported, [tensor.name for tensor in fetches])
    assert [queue.enqueues[0].copies for queue in theirs.queues] == [1, 1, 1, 1]

    def shape(topology):
        return [(queue.name, queue.capacity, queue.dequeues, queue.reads) for queue in topology.queues]

    assert shape(theirs) == shape(ours)
    assert [stage.ops for stage in theirs.transforms] == [stage.ops for stage in ours.transforms]


def test_a_priority_queue_shows_its_priority():
    def build():
        queue = tf1.PriorityQueue(5, [tf.float32], [[2]])
        queue.enqueue([tf.constant(3, tf.int64), [1.0, 2.0]])
        return queue.dequeue()

    (queue,) = trace(build).queues
    assert queue.kind == "Priority"
    assert queue.components == (TensorInfo("", "int64", ()), TensorInfo("", "float32", (2,)))


def test_one_runner_op_that_fills_two_queues():
    def build():
        value = tf1.random_uniform([2])
        queues = [tf1.FIFOQueue(3, tf.float32, [[2]], name=name) for name in ("left", "right")]
        both = tf.group(*(queue.enqueue([value]) for queue in queues))
        tf1.train.add_queue_runner(tf1.train.QueueRunner(queues[0], [both] * 3))
        return [queue.dequeue() for queue in queues]

    topology = trace(build)
    assert [(e.queue, e.copies, e.runs) for e in topology.enqueues] == [
        ("left", 3, "group_deps"),
        ("right", 3, "group_deps"),
    ]


def test_dequeues_inside_a_cond():
    def build():
        left, right = (tf1.train.range_input_producer(4, name=name) for name in ("left", "right"))
        return tf1.cond(tf1.placeholder_with_default(True, []), left.dequeue, right.dequeue)

    topology = trace(build)
    (dequeue,) = topology.dequeues
    assert dequeue.conditional
    assert set(dequeue.candidates) == set(topology.live_queues())
    assert len(dequeue.candidates) == 2


def test_what_is_not_followed_becomes_unknown():
    def build():
        value = tf.raw_ops.Unstage(dtypes=[tf.float32], shared_name="area")[0]
        tf.raw_ops.Stage(values=[tf1.random_uniform([])], shared_name="area")
        return value

    topology = trace(build)
    assert {node.op_type for node in topology.unknown} == {"Stage", "Unstage"}
    assert len(topology.warnings) == 2
    assert "StagingArea" in topology.warnings[0]


def test_a_runner_that_fills_no_queue_is_reported():
    def build():
        queue = tf1.FIFOQueue(3, tf.float32, [[]])
        stranger = tf.no_op(name="stranger")
        tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, [stranger]))
        return queue.dequeue()

    topology = trace(build)
    assert [node.name for node in topology.unknown] == ["stranger"]


def test_a_queue_filled_from_itself_is_reported_and_does_not_loop():
    def build():
        queue = tf1.FIFOQueue(3, tf.float32, [[]], name="ring")
        value = queue.dequeue()
        queue.enqueue(value + 1)
        return value

    topology = trace(build)
    assert [queue.name for queue in topology.queues] == ["ring"]
    assert any("filled from itself" in warning for warning in topology.warnings)
    assert topology.ancestors(topology.fetch_stage)


def test_cut_tensors_may_be_fetched_themselves():
    def build():
        return tf1.train.string_input_producer(["a", "b"]).dequeue()

    stage = trace(build).fetch_stage
    assert stage.inputs == ("input_producer_Dequeue",)
    assert stage.ops == ()


def test_an_empty_graph():
    topology = trace(tf.Graph())
    assert topology.nodes == ()
    assert topology.fetch_stage is None


def test_fetches_must_be_of_the_graph():
    with pytest.raises(InvalidArgument, match="not in the graph"):
        trace(tf.Graph(), "nothing:0")
    with pytest.raises(InvalidArgument, match="returns its own"):
        trace(builders.cifar, "x:0")


def test_nodes_are_found_by_op():
    topology = trace(builders.cifar)
    assert isinstance(topology.node_of("ReaderReadV2:1"), Reader)
    assert isinstance(topology.node_of("DecodeRaw"), Transform)
    assert isinstance(topology.node_of("input_producer/RandomShuffle"), Producer)
    assert topology.node_of("no such op") is None
    assert topology.stage_of("DecodeRaw").target == "shuffle_batch/random_shuffle_queue"
    assert topology.stage_of("ReaderReadV2") is topology.stage_of("DecodeRaw")
    with pytest.raises(KeyError, match="the queues are"):
        topology.queue("nothing")


def test_tracing_changes_nothing():
    graph = tf.Graph()
    with graph.as_default():
        fetches = builders.branches()
    graph.finalize()
    before = graph.as_graph_def().SerializeToString(deterministic=True)
    trace(graph, fetches)
    assert graph.as_graph_def().SerializeToString(deterministic=True) == before


def test_a_large_graph_is_not_walked_more_than_it_needs():
    graph = tf.Graph()
    with graph.as_default():
        value, label, _ = builders.cifar()
        value = tf.reshape(value, [4, 12])
        for _ in range(1000):
            value = value * 1.5 + 1.0
    topology = trace(graph, [value, label])
    assert len(topology.fetch_stage.ops) > 3000
    # The model of the fetches is in no other stage.
    assert len(topology.transforms[1].ops) < 60
