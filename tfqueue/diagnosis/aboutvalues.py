"""Advice on values: bytes that become numbers, shapes, images, lines of text."""

from __future__ import annotations

import re
from math import prod
from typing import Any

from tfqueue.diagnosis.evidence import Evidence
from tfqueue.diagnosis.payload import stored_features
from tfqueue.records import scan

Match = re.Match[str]

_RAW_SIZES = {"uint8": 1, "int8": 1, "int16": 2, "uint16": 2, "float16": 2, "int32": 4, "float32": 4}
_RAW_SIZES |= {"int64": 8, "float64": 8, "bool": 1}


def reshape(match: Match, evidence: Evidence) -> str:
    return _about_values(int(match.group(1)), int(match.group(2)), evidence.op)


def _about_values(have: int, want: int, op: Any) -> str:
    raw = _decode_raw_before(op)
    if raw is None:
        sides = _image_shapes(have)
        return (
            f"the tensor has {have} values for this record, the shape asked for needs {want}: mend the shape, or what "
            f"the record holds{f' (as an image it would be {sides})' if sides and have > 16 else ''}"
        )
    return _about_raw(raw, have, want)


def _about_raw(raw: Any, have: int, want: int) -> str:
    dtype = raw.get_attr("out_type").name
    size = _RAW_SIZES.get(dtype, 1)
    stored_bytes = have * size
    fitting = [name for name, item in _RAW_SIZES.items() if item * want == stored_bytes and name != dtype]
    sides = _image_shapes(have)
    if fitting:
        image = f"; or are they an image of {sides}?" if sides and dtype == "uint8" else ""
        return (
            f"{stored_bytes} bytes are stored, decode_raw read them as {dtype}: as {' or '.join(fitting)} they "
            f"would be the {want} values asked for{image}"
        )
    return (
        f"{stored_bytes} bytes are stored ({have} values of {dtype}), the shape asked for needs {want}: "
        f"no dtype fits{f'; shapes that would: {sides}' if sides else ''}"
    )


def _decode_raw_before(op: Any) -> Any:
    """The decode_raw whose values an op gets, through ops that keep their number."""
    for _ in range(20):
        if op is None or op.type in ("DecodeRaw", "DecodePaddedRaw"):
            return op
        if not op.inputs:
            return None
        op = op.inputs[0].op
    return None


def _image_shapes(values: int) -> str:
    shapes = []
    for channels in (3, 1, 4):
        side = int((values // channels) ** 0.5)
        if side and side * side * channels == values:
            shapes.append(f"[{side}, {side}, {channels}]")
    return ", ".join(shapes)


def raw_length(match: Match, evidence: Evidence) -> str:
    length = int(match.group(1))
    fitting = [name for name, size in _RAW_SIZES.items() if length % size == 0]
    return f"{length} bytes are stored: that is a whole number of {', '.join(fitting)}"


def enqueued_shape(match: Match, evidence: Evidence) -> str:
    component, wanted, found = int(match.group(1)), match.group(2), match.group(3)
    op = evidence.op
    if op is None or not op.type.startswith("QueueEnqueue") or len(op.inputs) < component + 2:
        return about_element_shape(wanted, found)
    want, have = _sizes(wanted), _sizes(found)
    if "Many" in op.type and want and have and want[1:] == have[1:]:
        return (
            f"with enqueue_many=True all tensors must have the same number of rows; one has {want[0]}, and number "
            f"{component} has {have[0]}"
        )
    raw = _decode_raw_before(op.inputs[component + 1].op)
    if raw is not None and want is not None and have is not None and prod(want) != prod(have):
        return _about_raw(raw, prod(have), prod(want))
    return about_element_shape(wanted, found)


def misfit_is_a_reshape(match: Match, evidence: Evidence) -> bool:
    """Whether a reshape made the component that does not fit.

    TensorFlow's optimizer takes out a reshape to the shape that it expects anyway, and the queue finds what the
    reshape would have found.
    """
    op, component = evidence.op, int(match.group(1))
    if op is None or not op.type.startswith("QueueEnqueue") or len(op.inputs) < component + 2:
        return False
    made = op.inputs[component + 1].op
    while made.type in ("Identity", "Cast") and made.inputs:
        made = made.inputs[0].op
    return bool(made.type == "Reshape")


def misfit_of_reshape(match: Match, evidence: Evidence) -> str:
    """As for the reshape that would have failed."""
    want, have = _sizes(match.group(2)), _sizes(match.group(3))
    if want is None or have is None:
        return enqueued_shape(match, evidence)
    made = evidence.op.inputs[int(match.group(1)) + 1].op
    return _about_values(prod(have), prod(want), made)


def _sizes(shape: str) -> list[int] | None:
    """The numbers of a shape as kernels print it, ``[4,4,3]``; None where one is open."""
    numbers = shape.strip("[]").replace(" ", "").split(",")
    return [int(number) for number in numbers] if all(number.isdigit() for number in numbers) else None


def about_element_shape(wanted: str, found: str) -> str:
    """What to do where a record has another shape than the queue was built for."""
    return (
        f"the queue was built for elements of shape {wanted}, this record gave {found}: mend the set_shape or reshape "
        f"before it, or batch with dynamic_pad=True"
    )


def not_an_image(match: Match, evidence: Evidence) -> str:
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


def damaged_image(match: Match, evidence: Evidence) -> str:
    return "the image is damaged or cut off: write it anew, or leave the record out"


def csv_fields(match: Match, evidence: Evidence) -> str:
    return (
        f"the line has {match.group(2)} fields where record_defaults has {match.group(1)}: check field_delim, quotes "
        f"and the last line of the file; a header is skipped by TextLineReader(skip_header_lines=1)"
    )


def csv_value(match: Match, evidence: Evidence) -> str:
    return (
        f"field {match.group(1)} holds {match.group(3)!r}, which is no {match.group(2)}: skip the header with "
        f"TextLineReader(skip_header_lines=1), or give the column a string default and convert it"
    )


def number(match: Match, evidence: Evidence) -> str:
    return f"{match.group(1)[:40]!r} is no number: split the line first (decode_csv, string_split), or mend the file"


def csv_required(match: Match, evidence: Evidence) -> str:
    return (
        f"field {match.group(1)} is empty, and its entry in record_defaults is an empty list, which means required: "
        f"give it a default value"
    )


def csv_quotes(match: Match, evidence: Evidence) -> str:
    return 'write a quote inside of a field twice ("a ""b"" c"), or read the line with use_quote_delim=False'


def not_audio(match: Match, evidence: Evidence) -> str:
    return f"the bytes are no WAV audio: they begin with {match.group(1)!r}, where RIFF was expected"


def not_a_tensor(match: Match, evidence: Evidence) -> str:
    return "the bytes are no serialized tensor: write them with tf.io.serialize_tensor, or read them with decode_raw"


def another_tensor_type(match: Match, evidence: Evidence) -> str:
    return f"the stored tensor is {match.group(2)}: give parse_tensor that type, and tf.cast afterwards"


def not_compressed(match: Match, evidence: Evidence) -> str:
    return "the bytes are not compressed in the way that decode_compressed was told, or are damaged"


def not_base64(match: Match, evidence: Evidence) -> str:
    return "the bytes are no web-safe base64: TensorFlow takes - and _ instead of + and /, and padding only where due"


def not_json(match: Match, evidence: Evidence) -> str:
    return "the string is no tf.train.Example in JSON form: read serialized protocol buffers with parse_single_example"


def not_finite(match: Match, evidence: Evidence) -> str:
    return (
        f"the values computed from this record hold {match.group(1)}: look for log(0), division by zero and missing "
        f"values in the data"
    )


def division(match: Match, evidence: Evidence) -> str:
    return "an integer of this record is divided by zero: guard it with tf.maximum or tf.where"


def slice_bounds(match: Match, evidence: Evidence) -> str:
    return (
        f"this record has no element {match.group(1)} in dimension {match.group(2)}: is a list or a split line shorter "
        f"than expected?"
    )


def crop(match: Match, evidence: Evidence) -> str:
    have, want = match.group(1).split(), match.group(2).split()
    return (
        f"the image is {' x '.join(have)}, the crop asked for {' x '.join(want)}: resize it first, or pad it with "
        f"tf.image.resize_image_with_crop_or_pad"
    )
