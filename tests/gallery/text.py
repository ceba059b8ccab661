"""T6: file names -> TextLineReader -> decode_csv -> batch or shuffle_batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from .data import paths, write_lines
from .registry import BAD_FIELD, FEW_FIELDS, MISSING_FILE, NO_FAULT, Fault, Program, entry

COUNT = 19
CSV = (MISSING_FILE, BAD_FIELD, FEW_FIELDS)
COLOURS = ("red", "green", "blue")


def table(fault: Fault, count: int = COUNT) -> tuple[list[str], list[tuple]]:
    """Lines ``number,half,colour`` and the rows that they mean."""
    rows = [(i, i / 2, COLOURS[i % 3]) for i in range(count)]
    lines = [f"{a},{b},{c}" for a, b, c in rows]
    for i in range(count):
        if fault.at(BAD_FIELD, i):
            lines[i] = f"{i},half,red"
        elif fault.at(FEW_FIELDS, i):
            lines[i] = f"{i},{i / 2}"
    return lines, rows


@entry("T6-csv-batch", topology="T6", ordered=True, stages=CSV)
def csv_batch(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    lines, rows = table(fault)
    files = write_lines(folder, lines, fault=fault)

    def decode(line):
        number, half, _ = tf.decode_csv(line, record_defaults=[[0.0], [0.0], [""]])
        return tf.stack([number, half])

    def build_fn():
        filename_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        _, value = tf.TextLineReader().read(filename_queue)
        features = decode(value)
        x, y = tf.train.batch([features[0:-1], features[-1:]], batch_size=5)
        return x, y

    def twin():
        dataset = tf2.data.TextLineDataset(paths(files)).repeat(epochs).map(decode)
        return dataset.map(lambda row: (row[:-1], row[-1:])).batch(5, drop_remainder=True)

    return Program(
        build_fn=build_fn,
        records=tuple((np.array([a], np.float32), np.array([b], np.float32)) for a, b, _ in rows),
        epochs=epochs,
        batch_size=5,
        files=files,
        hand_written_twin=twin,
    )


@entry(
    "T6-csv-cond-shuffle",
    topology="T6",
    variants=("tf.cond",),
    order_note="shuffled by shuffle_batch",
    stages=CSV,
    style="heart-disease CSV of a course: a header line, and a text column made a number by tf.cond",
)
def csv_cond_shuffle(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    lines, rows = table(fault)
    files = write_lines(folder, lines, files=2, fault=fault, header="number,half,colour")

    def decode(line):
        number, half, colour = tf.decode_csv(line, record_defaults=[[0], [0.0], ["unknown"]])
        is_red = tf.cond(tf.equal(colour, tf.constant("red")), lambda: tf.constant(1.0), lambda: tf.constant(0.0))
        return tf.stack([is_red, half]), number

    def build_fn():
        filename_queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        _, value = tf.TextLineReader(skip_header_lines=1).read(filename_queue)
        features, label = decode(value)
        return tf.train.shuffle_batch([features, label], batch_size=4, capacity=14, min_after_dequeue=8, seed=2)

    def twin():
        names = tf2.data.Dataset.from_tensor_slices(paths(files)).repeat(epochs)
        dataset = names.flat_map(lambda name: tf2.data.TextLineDataset(name).skip(1))
        return dataset.map(decode).shuffle(8, seed=2).batch(4, drop_remainder=True)

    return Program(
        build_fn=build_fn,
        records=tuple((np.array([float(c == "red"), b], np.float32), np.int32(a)) for a, b, c in rows),
        epochs=epochs,
        batch_size=4,
        in_flight=24,
        files=files,
        hand_written_twin=twin,
    )


@entry("T6-lookup-table", topology="T6", variants=("lookup table",), ordered=True, stages=CSV)
def lookup_table(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    lines, rows = table(fault)
    files = write_lines(folder, lines, fault=fault)

    def build_fn():
        keys = tf.constant(list(COLOURS))
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(keys, tf.range(3, dtype=tf.int64)), default_value=-1
        )
        _, value = tf.TextLineReader().read(
            tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        )
        number, _, colour = tf.decode_csv(value, record_defaults=[[0], [0.0], [""]])
        return tf.train.batch({"number": number, "class": table.lookup(colour)}, batch_size=4)

    def twin():
        table = tf2.lookup.StaticHashTable(
            tf2.lookup.KeyValueTensorInitializer(list(COLOURS), tf2.range(3, dtype=tf2.int64)),
            default_value=-1,
        )

        def decode(line):
            number, _, colour = tf2.io.decode_csv(line, record_defaults=[[0], [0.0], [""]])
            return {"number": number, "class": table.lookup(colour)}

        return tf2.data.TextLineDataset(paths(files)).repeat(epochs).map(decode).batch(4, drop_remainder=True)

    return Program(
        build_fn=build_fn,
        records=tuple({"number": np.int32(a), "class": np.int64(COLOURS.index(c))} for a, _, c in rows),
        epochs=epochs,
        batch_size=4,
        files=files,
        hand_written_twin=twin,
    )


@entry("T6-vocabulary-file", topology="T6", variants=("lookup table",), ordered=True, stages=(MISSING_FILE,))
def vocabulary_file(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """Sentences of several lengths, looked up word by word and padded."""
    words = ["a", "bird", "cat", "dog", "eats"]
    sentences = [" ".join(words[(i + j) % 5] for j in range(1 + i % 4)) + " x" * (i % 2) for i in range(14)]
    files = write_lines(folder, sentences, files=2, fault=fault, name="text", suffix=".txt")
    (vocabulary,) = write_lines(folder, words, name="vocabulary", suffix=".txt")

    def build_fn():
        table = tf.lookup.StaticVocabularyTable(
            tf.lookup.TextFileInitializer(
                vocabulary.path,
                tf.string,
                tf.lookup.TextFileIndex.WHOLE_LINE,
                tf.int64,
                tf.lookup.TextFileIndex.LINE_NUMBER,
            ),
            num_oov_buckets=1,
        )
        _, line = tf.TextLineReader().read(
            tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        )
        tokens = tf.string_split([line]).values
        ids = table.lookup(tokens)
        return tf.train.batch([ids, tf.size(tokens)], batch_size=3, dynamic_pad=True)

    def ids(sentence):
        return np.array([words.index(w) if w in words else 5 for w in sentence.split()], dtype=np.int64)

    return Program(
        build_fn=build_fn,
        records=tuple((ids(s), np.int32(len(s.split()))) for s in sentences),
        epochs=epochs,
        batch_size=3,
        files=files,
        unbatch=lambda batch: [(row[:n], n) for row, n in zip(*batch, strict=True)],
    )


@entry("T6-line-keys", topology=("T6", "T22"), ordered=True, stages=(MISSING_FILE,))
def line_keys(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    lines = ["  first", "", "ünïcode ✓", "last, with comma"] * 2
    files = write_lines(folder, lines, files=2, fault=fault, name="naïve text", suffix=".txt")

    def build_fn():
        queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        return tf.train.batch(list(tf.TextLineReader().read(queue)), batch_size=2)

    # The key of a text line is "<file>:<number of the line, from 1>".
    keys = [f"{file.path}:{n + 1}".encode() for file in files for n in range(file.records)]
    return Program(
        build_fn=build_fn,
        records=tuple((key, line.encode()) for key, line in zip(keys, lines, strict=True)),
        epochs=epochs,
        batch_size=2,
        files=files,
    )


@entry("T6-identity-reader", topology=("T6", "T4"), ordered=True, stages=(MISSING_FILE,))
def identity_reader(folder: Path, *, epochs: int | None = 1, fault: Fault = NO_FAULT) -> Program:
    """IdentityReader hands on the file names; the program reads the files itself."""
    files = tuple(
        file
        for i in range(9)
        for file in write_lines(
            folder, [f"text {i}"], name=f"note{i}_", fault=Fault(fault.stage, fault.record - i), suffix=".txt"
        )
    )

    def build_fn():
        queue = tf.train.string_input_producer(paths(files), num_epochs=epochs, shuffle=False)
        key, value = tf.IdentityReader().read(queue)
        return tf.train.batch([key, tf.read_file(value)], batch_size=4, allow_smaller_final_batch=True)

    def twin():
        dataset = tf2.data.Dataset.from_tensor_slices(paths(files)).repeat(epochs)
        return dataset.map(lambda name: (name, tf2.io.read_file(name))).batch(4)

    return Program(
        build_fn=build_fn,
        records=tuple((f.path.encode(), f"text {i}\n".encode()) for i, f in enumerate(files)),
        epochs=epochs,
        batch_size=4,
        keep_remainder=True,
        files=files,
        hand_written_twin=twin,
    )
