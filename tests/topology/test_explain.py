"""Topologies told as text, JSON and Graphviz."""

from __future__ import annotations

import argparse
import inspect
import json
import re

import pytest
import tensorflow as tf

from tests import gallery
from tests.topology import builders
from tfqueue.topology import commands
from tfqueue.topology.explain import explain, human_bytes
from tfqueue.topology.trace import trace

tf1 = tf.compat.v1
ALL = ("cifar", "examples", "csv_lines", "filtered", "sliced", "branches", "fed")


def test_the_whole_text_of_one_pipeline():
    text = str(explain(builders.csv_lines))
    lines, first = inspect.getsourcelines(builders.csv_lines)

    def at(code):
        number = next(index for index, line in enumerate(lines) if code in line)
        return f"  <- builders.py:{first + number} in csv_lines"

    names, reader, parse, batch = at("match_filenames"), at("TextLineReader"), at("decode_csv("), at("train.batch(")
    assert text == (
        f"fetches: float32[?], string[?], int32[?]{batch}\n"
        f"└─ dequeue_up_to 8 (a last partial batch is delivered) [batch]{batch}\n"
        f"   └─ FIFO queue batch/fifo_queue: capacity 32{batch}\n"
        "      │  element: float32, string, int32; full: of unknown size\n"
        "      │  enqueue_many, 1 thread [batch/fifo_queue_EnqueueMany]\n"
        f"      └─ stage batch/fifo_queue_EnqueueMany{batch}\n"
        f"         │  parse CSV (field_delim=;, use_quote_delim=True){parse}\n"
        "         │      column 0: float32, default 1.5\n"
        "         │      column 1: string, default '?'\n"
        "         │      column 2: int32, required\n"
        "         │  ops: DecodeCSV\n"
        "         └─ TextLine reader TextLineReaderV2: skip_header_lines 1, read_up_to 10"
        f"{reader}\n"
        f"            └─ FIFO queue input_producer: capacity 32{names}\n"
        "               │  element: string; full: of unknown size\n"
        "               │  enqueue_many, 1 thread [input_producer/input_producer_EnqueueMany]\n"
        "               └─ source: files that match data/*.csv; without end; shuffled each epoch, no seed"
        f"{names}\n"
        "\n"
        "memory of the full buffers: 2 of unknown size (strings, or shapes left open)\n"
        "\n"
        "warnings\n"
        f"  - order undefined: the files are shuffled without a seed ({names.removeprefix('  <- ')})"
    )


@pytest.mark.parametrize("name", ALL)
def test_the_text_names_every_live_part_once(name):
    topology = trace(getattr(builders, name))
    lines = str(explain(topology)).splitlines()
    for node_name in topology.live_queues():
        told = [line for line in lines if f"queue {node_name}: " in line and "see above" not in line]
        assert len(told) == 1
    for node in (*topology.readers, *topology.dequeues):
        assert any(node.name in line for line in lines)


def test_a_queue_that_two_branches_share_is_told_once():
    text = str(explain(builders.branches))
    assert text.count("(see above)") == 1
    assert text.count("source: 3 strings: a, b, c") == 1


def test_what_branches_parse_alike_is_told_once():
    def build():
        names = tf1.train.string_input_producer(["a"], num_epochs=1)
        spec = {"x": tf1.FixedLenFeature([3], tf.float32), "y": tf1.FixedLenFeature([], tf.int64)}
        rows = [tf1.parse_single_example(tf1.TFRecordReader().read(names)[1], spec) for _ in range(3)]
        return tf1.train.batch_join(rows, 2)

    text = str(explain(build))
    assert text.count("'x': fixed float32[3]") == 1
    assert text.count("parse tf.train.Example: the same 2 features as above") == 2


def test_a_graph_without_fetches_is_told_from_its_last_dequeues():
    graph = tf.Graph()
    with graph.as_default():
        builders.cifar()
    text = str(explain(graph))
    assert text.startswith("dequeue_many 4 ")
    assert "2 strings: a.bin, b.bin; 2 epochs" in text


def test_an_empty_graph_says_so():
    assert str(explain(tf.Graph())) == "no queue in this graph"


def test_json_holds_everything(tmp_path):
    explanation = explain(builders.cifar)
    explanation.to_json(tmp_path / "topology.json")
    told = json.loads((tmp_path / "topology.json").read_text())
    assert told["queues"][1]["min_after_dequeue"] == 20
    assert told["queues"][1]["enqueues"][0]["copies"] == 16
    assert told["producers"][0]["elements"] == ["a.bin", "b.bin"]
    assert told["transforms"][1]["decodes"][0]["options"][0] == ["out_type", "uint8"]
    assert told["order_is_defined"] is False
    assert [finding["kind"] for finding in told["findings"]] == ["records-dropped", "order", "order"]


def test_file_names_that_are_no_utf8_can_be_told():
    def build():
        return tf1.train.string_input_producer([b"caf\xe9\n.tfrecord", "кот.tfrecord"], shuffle=False).dequeue()

    explanation = explain(build)
    told = json.loads(explanation.to_json())
    assert told["producers"][0]["elements"] == ["caf\\xe9\n.tfrecord", "кот.tfrecord"]
    assert "caf\\xe9\\n.tfrecord, кот.tfrecord".encode() in str(explanation).encode("utf-8")


@pytest.mark.parametrize("name", ALL)
def test_the_picture_has_an_edge_for_each_flow(name, tmp_path):
    explanation = explain(getattr(builders, name))
    text = explanation.to_dot(tmp_path / "picture.dot")
    assert (tmp_path / "picture.dot").read_text() == text
    nodes = set(re.findall(r"^  (n\d+) \[", text, flags=re.MULTILINE))
    edges = re.findall(r"^  (n\d+) -> (n\d+)", text, flags=re.MULTILINE)
    assert {end for edge in edges for end in edge} <= nodes
    topology = explanation.topology
    produced = {producer.name for producer in topology.producers}
    told = [n for n in topology.nodes if n.name not in produced or n in topology.producers]
    assert len(edges) == sum(len(topology.upstream(node)) for node in told)
    # Quotes must be even on each line, or Graphviz would refuse the text.
    assert all(line.replace('\\"', "").count('"') % 2 == 0 for line in text.splitlines())


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (1_234_567, "1.23 MB"), (999_700_000, "1 GB")],
)
def test_sizes_for_people(size, words):
    assert human_bytes(size) == words


def test_the_command(tmp_path, capsys):
    (tmp_path / "inputs.py").write_text(inspect.getsource(builders))
    parser = argparse.ArgumentParser()
    commands.add_parser(parser.add_subparsers())
    target = f"{tmp_path / 'inputs.py'}:cifar"
    arguments = parser.parse_args(["explain", target, "--dot", str(tmp_path / "out.dot")])
    assert arguments.run(arguments) == 0
    assert "dequeue_many 4" in capsys.readouterr().out
    assert (tmp_path / "out.dot").read_text().startswith("digraph")
    arguments = parser.parse_args(["explain", target, "--json"])
    assert arguments.run(arguments) == 0
    assert json.loads(capsys.readouterr().out)["queues"]


@pytest.mark.parametrize("entry", [e for e in gallery.entries() if not e.needs], ids=str)
def test_the_gallery_is_understood(entry, tmp_path):
    program = entry.program(tmp_path)
    topology = trace(program.build_fn)
    explanation = explain(topology)
    assert str(explanation)
    json.loads(explanation.to_json())
    # Nothing is read from a queue without being told where that comes from.
    for dequeue in topology.dequeues:
        assert dequeue.candidates
    for name in topology.live_queues():
        assert topology.queue(name).enqueues or program.feeders or program.before_step
    if program.ordered and not program.feeders and not program.before_step:
        assert [f for f in explanation.findings if f.kind in ("order", "implicit-zip")] == []
    elif program.threads > 1 and topology.queues and not program.feeders:
        assert [f for f in explanation.findings if f.kind == "order"]
