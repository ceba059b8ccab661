"""The causes of failures: how each is recognised in the kernel's words, and what to do about it.

Each rule has a stable ``cause_name`` for programs. The first that matches wins.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import tensorflow as tf

from tfqueue.diagnosis import aboutfiles as files
from tfqueue.diagnosis import aboutrecords as records
from tfqueue.diagnosis import aboutstate as state
from tfqueue.diagnosis import aboutvalues as values
from tfqueue.diagnosis.evidence import Evidence

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
        ops: The types of the failed op that it can be; empty for any.
        when: A further condition, or None.
    """

    cause_name: str
    pattern: re.Pattern[str]
    advise: Callable[[Match, Evidence], str]
    types: tuple[type[BaseException], ...] = ()
    ops: tuple[str, ...] = ()
    when: Callable[[Match, Evidence], bool] | None = None

    def match(self, evidence: Evidence) -> Match | None:
        """The match of the rule, or None."""
        if self.types and not isinstance(evidence.error, self.types):
            return None
        if self.ops and (evidence.op is None or evidence.op.type not in self.ops):
            return None
        match = self.pattern.search(evidence.message)
        if match is None or (self.when is not None and not self.when(match, evidence)):
            return None
        return match


def _rule(
    name: str,
    pattern: str,
    advise: Callable[[Match, Evidence], str],
    *types: type[BaseException],
    ops: tuple[str, ...] = (),
    when: Callable[[Match, Evidence], bool] | None = None,
) -> Rule:
    return Rule(name, re.compile(pattern, re.DOTALL), advise, types, ops, when)


_MISFIT = r"Shape mismatch in tuple component (\d+)\. Expected (\[.*?\]), got (\[.*?\])"

RULES: tuple[Rule, ...] = (
    # First, because the words are the user's own, and may look like any of the others.
    _rule("py-func", r"^(\w[\w.]*)(?:: (.*?))?\nTraceback \(most recent call last\)", state.python),
    _rule("py-func-type", r"(\d+)-th value returned by \S+ is (\w+), but expects (\w+)", state.python_type),
    _rule("py-func-count", r"returns (\d+) values, but expects to see (\d+) values", state.python_count),
    _rule("missing-file", r"^(.*?)(?:;|:) No such file or directory", files.missing_file, errors.NotFoundError),
    _rule("is-a-folder", r"^(.*?); Is a directory", files.directory, errors.FailedPreconditionError),
    _rule("not-readable", r"^(.*?); Permission denied", files.permission, errors.PermissionDeniedError),
    _rule("no-match", r"string_input_producer requires a non-null input tensor", files.no_match),
    _rule("not-compressed", r"inflate\(\) failed", values.not_compressed, ops=("DecodeCompressed",)),
    _rule(
        "damaged-file",
        r"corrupted record|truncated record|inflate\(\) failed",
        files.not_records,
        errors.DataLossError,
    ),
    _rule("missing-feature-list", r"Feature list '(.+?)' is required but could not be found", records.missing_list),
    _rule("missing-feature", r"Feature: (.+?) \(data type: \w+\) is required but could not", records.missing_feature),
    _rule(
        "missing-feature",
        r"Inconsistent max number of elements for feature (.+?): expected \d+, but found 0",
        records.missing_feature,
    ),
    _rule(
        "feature-type",
        r"Key: (.+?)(?:, Index: \d+)?\.\s+Data types don't match\. Data type: (\w+)",
        records.feature_type,
    ),
    _rule(
        "feature-type",
        r"(?:Key|Context feature|Feature list): (.+?)(?:, Index: \d+)?\.\s+Data types don't match",
        records.feature_type,
    ),
    _rule("feature-type", r"Feature list: (.+?), Index: \d+\.\s+Data types don't match", records.feature_type),
    _rule("feature-type", r"Context feature: (.+?)\.\s+Data types don't match", records.feature_type),
    _rule("feature-length", r"Feature list '(.+?)' has an unexpected number of values", records.feature_length),
    _rule(
        "feature-length",
        r"Inconsistent max number of elements for feature (.+?): expected",
        records.feature_length,
    ),
    _rule("feature-length", r"Key: (.+?)\.\s+Can't parse serialized Example", records.feature_length),
    _rule("feature-length", r"Key: (.+?), Index: \d+\.\s+Number of \w+ values != expected", records.feature_length),
    _rule("feature-length", r"Key: (.+?)(?:, Index: \d+)?\.\s+Number of ", records.feature_length),
    _rule("not-an-example", r"Could not parse example input", records.not_an_example),
    _rule(
        "reshape",
        r"Input to reshape is a tensor with (\d+) values, but the requested shape has (\d+)",
        values.reshape,
    ),
    _rule("decode-raw-length", r"Input to DecodeRaw has length (\d+) that is not a multiple of", values.raw_length),
    _rule("reshape", _MISFIT, values.misfit_of_reshape, when=values.misfit_is_a_reshape),
    _rule("element-shape", _MISFIT, values.enqueued_shape),
    _rule(
        "not-an-image",
        r"Unknown image file format|Expected image \(JPEG|unknown format starting",
        values.not_an_image,
    ),
    _rule(
        "damaged-image",
        r"Invalid (?:JPEG|PNG|GIF|BMP)|jpeg::Uncompress|Invalid PNG|Error reading.*image|"
        r"(?:PNG|GIF|BMP|WebP) .*(?:failed|incomplete|invalid)",
        values.damaged_image,
    ),
    _rule("not-audio", r"Header mismatch: Expected RIFF but found (.*)", values.not_audio),
    _rule(
        "not-a-tensor",
        r"Cannot parse tensor from proto|Could not parse `serialized` as TensorProto",
        values.not_a_tensor,
    ),
    _rule(
        "tensor-type",
        r"Type mismatch between parsed tensor \((\w+)\) and dtype \((\w+)\)",
        values.another_tensor_type,
    ),
    _rule("not-base64", r"[Bb]ase64", values.not_base64, ops=("DecodeBase64",)),
    _rule("not-json", r"Error while parsing JSON", values.not_json),
    _rule("not-finite", r"Tensor had (NaN|Inf|-Inf|\+Inf|NaN and \S+|Inf and NaN)", values.not_finite),
    _rule("division-by-zero", r"Integer division by zero", values.division),
    _rule("slice-out-of-range", r"slice index (-?\d+) of dimension (\d+) out of bounds", values.slice_bounds),
    _rule("crop-too-large", r"Need value\.shape >= size, got \] \[([\d ]+)\] \[([\d ]+)\]", values.crop),
    _rule("csv-fields", r"Expect (\d+) fields but have (\d+) in record", values.csv_fields),
    _rule("csv-required", r"Field (\d+) is required but missing in record", values.csv_required),
    _rule("csv-quotes", r"[Qq]uote", values.csv_quotes, ops=("DecodeCSV",)),
    _rule("csv-value", r"Field (\d+) in record \d+ is not a valid (\w+): (.*)", values.csv_value),
    _rule("not-a-number", r"StringToNumberOp could not correctly convert string: (.*)", values.number),
    _rule("epochs-not-initialised", r"(?:limit_epochs|/epochs\b)", state.epochs),
    _rule("variable-not-initialised", r"Could not find variable (\S+?)\.? ", state.variable),
    _rule("variable-not-initialised", r"Attempting to use uninitialized value (\S+)", state.variable),
    _rule("table-not-initialised", r"Table not initialized", state.table),
    _rule("placeholder", r"You must feed a value for placeholder tensor '(.+?)'", state.placeholder),
    _rule("capacity", r"min_after_dequeue \d+ must be < capacity \d+", state.capacity),
    _rule("out-of-memory", r"OOM when allocating|[Aa]llocat\w+ .*memory", state.memory, errors.ResourceExhaustedError),
    _rule(
        "index-out-of-range",
        r"indices(?:\[[\d,\s]*\])? = (?:-?\d+ is not in|\[.*?\] is out of bounds|\[.*?\] does not index into)",
        state.index,
    ),
    _rule("assertion", r"assertion failed", state.assertion),
)

UNKNOWN = "unknown"
"""The cause name where no rule matches."""
