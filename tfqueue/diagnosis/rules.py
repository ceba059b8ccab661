"""The causes of failures: how each is recognised in the kernel's words, and what to do about it.

Each rule has a stable ``cause_name`` for programs. The first that matches wins.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from tfqueue.diagnosis.evidence import Evidence
from tfqueue.diagnosis.paths import about_missing_path, most_similar
from tfqueue.diagnosis.payload import Stored, stored_features
from tfqueue.records import scan
from tfqueue.topology.model import ParseSpec

Match = re.Match[str]
errors = tf.errors


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of failure.

    Attributes:
        cause_name: Its stable name.
        pattern: What the kernel's own words look like.
        advise: Gives the line of advice, from the words and the evidence.
        types: The types of error that it can be; empty for any.
    """

    cause_name: str
    pattern: re.Pattern[str]
    advise: Callable[[Match, Evidence], str]
    types: tuple[type[BaseException], ...] = ()

    def match(self, evidence: Evidence) -> Match | None:
        """The match of the rule, or None."""
        if self.types and not isinstance(evidence.error, self.types):
            return None
        return self.pattern.search(evidence.message)


# -- files -------------------------------------------------------------------------------------------------------------


def _missing_file(match: Match, evidence: Evidence) -> str:
    path = match.group(1).strip()
    evidence.place.file = path
    return f"there is no such file; {about_missing_path(path)}"


def _directory(match: Match, evidence: Evidence) -> str:
    path = match.group(1).strip()
    evidence.place.file = path
    return "this is a folder, where a file was expected: list the files in it, or give a pattern such as folder/*"


def _permission(match: Match, evidence: Evidence) -> str:
    evidence.place.file = match.group(1).strip()
    return "the file may not be read by this user: check its permissions (ls -l) and those of its folders"


def _no_match(match: Match, evidence: Evidence) -> str:
    patterns = [p.pattern for p in (evidence.topology.producers if evidence.topology else ()) if p.pattern]
    if not patterns:
        return "the list of file names is empty: check what it was made from"
    pattern = patterns[0].split("\n")[0]
    return f"no file matches {pattern!r}; {about_missing_path(pattern)}"


def _not_records(match: Match, evidence: Evidence) -> str:
    file = evidence.place.file
    if file is None:
        return "a file is damaged, or is no TFRecord file of the compression that the reader was given"
    return about_unreadable(file, _compression_asked(evidence), evidence.place.damage)


def about_unreadable(file: str, asked: str, damage: str | None = None) -> str:
    """Why a TFRecordReader cannot read a file, and what to do.

    Args:
        file: The file.
        asked: The compression that the reader was given: "GZIP", "ZLIB" or "".
        damage: What a scan of the file has found.
    """
    sniffed = scan.sniff(file)
    if sniffed.kind != "tfrecord":
        return f"{os.path.basename(file)} is no TFRecord file: it is {sniffed.words}"
    if sniffed.compression != asked:
        found, wanted = sniffed.compression or "not compressed", asked or "no compression"
        option = f"TFRecordCompressionType.{sniffed.compression or 'NONE'}"
        return (
            f"the file is {found}, the reader was told {wanted}: "
            f"TFRecordReader(options=tf.python_io.TFRecordOptions(tf.python_io.{option}))"
        )
    if damage is not None:
        return f"{damage}; write the file anew, or take it out of the list"
    return "the file could be read a moment later: was it still being written, or is its disk failing?"


def _compression_asked(evidence: Evidence) -> str:
    topology, op = evidence.topology, evidence.op
    if topology is not None and op is not None:
        for reader in topology.readers:
            if op.name in reader.ops:
                return reader.compression
    return ""


# -- what a record holds -----------------------------------------------------------------------------------------------


def _stored(evidence: Evidence) -> dict[str, Stored]:
    return stored_features(evidence.place.payload) if evidence.place.payload is not None else {}


def _listing(stored: dict[str, Stored]) -> str:
    shown = [f"{name} ({feature})" for name, feature in sorted(stored.items())]
    return ", ".join(shown[:8]) + (f" and {len(shown) - 8} more" if len(shown) > 8 else "")


def _missing_feature(match: Match, evidence: Evidence) -> str:
    key, stored = match.group(1), _stored(evidence)
    if not stored:
        return f"the record has no feature {key!r}; look into the file with tfqueue.records.read"
    similar = most_similar(key, stored)
    suggestion = f": did you mean {similar!r}?" if similar is not None else ""
    return f"the record has {_listing(stored)}; you asked for {key!r}{suggestion}"


def _missing_list(match: Match, evidence: Evidence) -> str:
    stored = _stored(evidence)
    if stored and not any(feature.where == "feature_list" for feature in stored.values()):
        return (
            f"the record is a plain Example without feature lists ({_listing(stored)}): parse it with "
            f"parse_single_example, or write SequenceExamples"
        )
    return _missing_feature(match, evidence)


def _feature_type(match: Match, evidence: Evidence) -> str:
    key = match.group(1)
    stored = _stored(evidence).get(key)
    kinds = {"int64": "tf.int64", "float": "tf.float32", "string": "tf.string"}
    found = kinds.get(match.group(2), match.group(2)) if match.lastindex and match.lastindex >= 2 else None
    detail = f"{key} is stored as {stored}" if stored else f"{key} is stored with another type"
    if found is None and stored is not None:
        found = stored.tensorflow_type
    return f"{detail}: ask for {found or 'the stored type'}, and tf.cast afterwards if needed"


def _feature_length(match: Match, evidence: Evidence) -> str:
    key = match.group(1)
    stored = _stored(evidence).get(key)
    wanted = next((f.shape for spec in _specs(evidence) for f in spec.features if f.key == key), None)
    asked = f"FixedLenFeature of shape {list(wanted)}" if wanted is not None else "a fixed length"
    if wanted is not None:
        asked += f" ({int(np.prod([d or 1 for d in wanted]))} values)"
    if stored is None:
        return f"the length of {key!r} differs from what was asked ({asked}); use VarLenFeature if it varies"
    if stored.count == 0:
        return f"{key} is stored empty, {asked} was asked: give a default_value, or use VarLenFeature"
    return (
        f"{key} is stored as {stored}, {asked} was asked: ask for [{stored.count}], or use "
        f"VarLenFeature or FixedLenSequenceFeature(allow_missing=True) if the length varies"
    )


def _specs(evidence: Evidence) -> Iterator[ParseSpec]:
    if evidence.topology is not None:
        for transform in evidence.topology.transforms:
            yield from transform.parses


def _not_an_example(match: Match, evidence: Evidence) -> str:
    return (
        "the record is no tf.train.Example: were raw bytes, text or another message written? "
        "Read them with tf.io.decode_raw or their own parser instead of parse_single_example"
    )


# -- bytes into numbers ------------------------------------------------------------------------------------------------

_RAW_SIZES = {"uint8": 1, "int8": 1, "int16": 2, "uint16": 2, "float16": 2, "int32": 4, "float32": 4}
_RAW_SIZES |= {"int64": 8, "float64": 8, "bool": 1}


def _reshape(match: Match, evidence: Evidence) -> str:
    have, want = int(match.group(1)), int(match.group(2))
    raw = _decode_raw_before(evidence.op)
    if raw is None:
        return f"{have} values do not fill a shape of {want}: print the shape before the reshape, or reshape to -1"
    dtype = raw.get_attr("out_type").name
    size = _RAW_SIZES.get(dtype, 1)
    stored_bytes = have * size
    fitting = [name for name, item in _RAW_SIZES.items() if item * want == stored_bytes and name != dtype]
    if fitting:
        return (
            f"{stored_bytes} bytes are stored, decode_raw read them as {dtype}: as {' or '.join(fitting)} they "
            f"would be the {want} values asked for"
        )
    sides = _image_shapes(have)
    return (
        f"{stored_bytes} bytes are stored ({have} values of {dtype}), the shape asked for needs {want}: "
        f"no dtype fits{f'; shapes that would: {sides}' if sides else ''}"
    )


def _decode_raw_before(op: Any) -> Any:
    for _ in range(20):
        if op is None or not op.inputs:
            return None
        if op.type in ("DecodeRaw", "DecodePaddedRaw"):
            return op
        op = op.inputs[0].op
    return None


def _image_shapes(values: int) -> str:
    shapes = []
    for channels in (3, 1, 4):
        side = int((values // channels) ** 0.5)
        if side and side * side * channels == values:
            shapes.append(f"[{side}, {side}, {channels}]")
    return ", ".join(shapes)


def _raw_length(match: Match, evidence: Evidence) -> str:
    length = int(match.group(1))
    fitting = [name for name, size in _RAW_SIZES.items() if length % size == 0]
    return f"{length} bytes are stored: that is a whole number of {', '.join(fitting)}"


def _enqueued_shape(match: Match, evidence: Evidence) -> str:
    return about_element_shape(match.group(1), match.group(2))


def about_element_shape(wanted: str, found: str) -> str:
    """What to do where a record has another shape than the queue was built for."""
    return (
        f"the queue was built for elements of shape {wanted}, this record gave {found}: mend the set_shape or reshape "
        f"before it, or batch with dynamic_pad=True"
    )


def _not_an_image(match: Match, evidence: Evidence) -> str:
    place = evidence.place
    what = ""
    if place.read_file is not None or _reads_whole_files(evidence):
        file = place.read_file or place.file
        if file is not None:
            return f"{file} is no encoded image: it is {scan.sniff(file).words}; leave it out of the list"
    if place.payload is not None:
        strings = [f.first for f in stored_features(place.payload).values() if f.first is not None]
        if strings:
            what = f"; the stored bytes begin with {strings[0][:12]!r}"
    return f"the bytes are no encoded image{what}: use decode_raw and reshape if they are pixels"


def _reads_whole_files(evidence: Evidence) -> bool:
    stage, topology = evidence.stage, evidence.topology
    if stage is None or topology is None:
        return False
    return any(r.kind == "WholeFile" and set(stage.inputs) & set(r.ops) for r in topology.readers)


def _damaged_image(match: Match, evidence: Evidence) -> str:
    return "the image is damaged or cut off: write it anew, or leave the record out"


def _csv_fields(match: Match, evidence: Evidence) -> str:
    return (
        f"the line has {match.group(2)} fields where record_defaults has {match.group(1)}: check field_delim, quotes "
        f"and the last line of the file; a header is skipped by TextLineReader(skip_header_lines=1)"
    )


def _csv_value(match: Match, evidence: Evidence) -> str:
    return (
        f"field {match.group(1)} holds {match.group(3)!r}, which is no {match.group(2)}: skip the header with "
        f"TextLineReader(skip_header_lines=1), or give the column a string default and convert it"
    )


def _number(match: Match, evidence: Evidence) -> str:
    return f"{match.group(1)[:40]!r} is no number: split the line first (decode_csv, string_split), or mend the file"


# -- state -------------------------------------------------------------------------------------------------------------


def _epochs(match: Match, evidence: Evidence) -> str:
    return (
        "the epoch counter is a local variable and was not initialised: run tf.local_variables_initializer() before "
        "the runners start (QueuePipeline and queue_runners do)"
    )


def _variable(match: Match, evidence: Evidence) -> str:
    return (
        f"the variable {match.group(1)!r} has no value: initialise or restore it before the runners start "
        f"(QueuePipeline: init_fn=, called with the session)"
    )


def _table(match: Match, evidence: Evidence) -> str:
    return (
        "a lookup table has no content: run tf.tables_initializer() before the runners start "
        "(QueuePipeline does, for tables in the TABLE_INITIALIZERS collection)"
    )


def _placeholder(match: Match, evidence: Evidence) -> str:
    return (
        f"the placeholder {match.group(1)!r} lies before a queue, and a queue runner feeds nothing: feed the enqueue "
        f"op from a thread of your own (session.run(enqueue, feed_dict=...)), or use a constant or a variable"
    )


def _python(match: Match, evidence: Evidence) -> str:
    return f"{match.group(1)} was raised inside the function given to py_func; the traceback above names its line"


def _python_type(match: Match, evidence: Evidence) -> str:
    return f"py_func returned {match.group(2)}, but its Tout says {match.group(3)}: convert with numpy before returning"


def _memory(match: Match, evidence: Evidence) -> str:
    return (
        "no memory for this tensor: lower the queue's capacity and min_after_dequeue, or shuffle the serialized "
        "records before they are decoded"
    )


def _assertion(match: Match, evidence: Evidence) -> str:
    return "an assertion of the graph failed; its message and data stand above"


def _index(match: Match, evidence: Evidence) -> str:
    producers = evidence.topology.producers if evidence.topology else ()
    lengths = {t.shape[0] for p in producers for t in p.sliced if t.shape and t.shape[0] is not None}
    if len(lengths) > 1:
        return (
            f"the tensors given to slice_input_producer have {' and '.join(map(str, sorted(lengths)))} rows: "
            f"they must have the same number"
        )
    return "an index lies outside of the tensor: check the labels or indices against its length"


def _rule(name: str, pattern: str, advise: Callable[[Match, Evidence], str], *types: type[BaseException]) -> Rule:
    return Rule(name, re.compile(pattern, re.DOTALL), advise, types)


_KEY = r"(?:Name: [^,]*, )?"

RULES: tuple[Rule, ...] = (
    _rule("missing-file", r"^(.*?)(?:;|:) No such file or directory", _missing_file, errors.NotFoundError),
    _rule("is-a-folder", r"^(.*?); Is a directory", _directory, errors.FailedPreconditionError),
    _rule("not-readable", r"^(.*?); Permission denied", _permission, errors.PermissionDeniedError),
    _rule("no-match", r"string_input_producer requires a non-null input tensor", _no_match),
    _rule(
        "damaged-file",
        r"corrupted record|truncated record|inflate\(\) failed",
        _not_records,
        errors.DataLossError,
    ),
    _rule("missing-feature-list", r"Feature list '(.+?)' is required but could not be found", _missing_list),
    _rule("missing-feature", r"Feature: (.+?) \(data type: \w+\) is required but could not", _missing_feature),
    _rule(
        "missing-feature",
        r"Inconsistent max number of elements for feature (.+?): expected \d+, but found 0",
        _missing_feature,
    ),
    _rule(
        "feature-type",
        r"Key: (.+?)(?:, Index: \d+)?\.\s+Data types don't match\. Data type: (\w+)",
        _feature_type,
    ),
    _rule(
        "feature-type",
        r"(?:Key|Context feature|Feature list): (.+?)(?:, Index: \d+)?\.\s+Data types don't match",
        _feature_type,
    ),
    _rule("feature-length", r"Key: (.+?)\.\s+Can't parse serialized Example", _feature_length),
    _rule("feature-length", r"Key: (.+?), Index: \d+\.\s+Number of \w+ values != expected", _feature_length),
    _rule("feature-length", r"Key: (.+?)(?:, Index: \d+)?\.\s+Number of ", _feature_length),
    _rule("not-an-example", r"Could not parse example input", _not_an_example),
    _rule(
        "reshape",
        r"Input to reshape is a tensor with (\d+) values, but the requested shape has (\d+)",
        _reshape,
    ),
    _rule("decode-raw-length", r"Input to DecodeRaw has length (\d+) that is not a multiple of", _raw_length),
    _rule(
        "element-shape",
        r"Shape mismatch in tuple component \d+\. Expected (\[.*?\]), got (\[.*?\])",
        _enqueued_shape,
    ),
    _rule(
        "not-an-image",
        r"Unknown image file format|Expected image \(JPEG|unknown format starting",
        _not_an_image,
    ),
    _rule(
        "damaged-image",
        r"Invalid (?:JPEG|PNG|GIF|BMP)|jpeg::Uncompress|Invalid PNG|Error reading.*image|"
        r"(?:PNG|GIF|BMP|WebP) .*(?:failed|incomplete|invalid)",
        _damaged_image,
    ),
    _rule("csv-fields", r"Expect (\d+) fields but have (\d+) in record", _csv_fields),
    _rule("csv-value", r"Field (\d+) in record \d+ is not a valid (\w+): (.*)", _csv_value),
    _rule("not-a-number", r"StringToNumberOp could not correctly convert string: (.*)", _number),
    _rule("epochs-not-initialised", r"(?:limit_epochs|/epochs\b)", _epochs),
    _rule("variable-not-initialised", r"Could not find variable (\S+?)\.? ", _variable),
    _rule("variable-not-initialised", r"Attempting to use uninitialized value (\S+)", _variable),
    _rule("table-not-initialised", r"Table not initialized", _table),
    _rule("placeholder", r"You must feed a value for placeholder tensor '(.+?)'", _placeholder),
    _rule("py-func-type", r"(\d+)-th value returned by \S+ is (\w+), but expects (\w+)", _python_type),
    _rule("py-func", r"^(\w[\w.]*): .*Traceback \(most recent call last\)", _python),
    _rule("out-of-memory", r"OOM when allocating|[Aa]llocat\w+ .*memory", _memory, errors.ResourceExhaustedError),
    _rule("index-out-of-range", r"indices(?:\[[\d,\s]*\])? = -?\d+ is not in \[", _index),
    _rule("assertion", r"assertion failed", _assertion),
)

UNKNOWN = "unknown"
"""The cause name where no rule matches."""
