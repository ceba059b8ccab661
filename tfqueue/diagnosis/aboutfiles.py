"""Advice on files: missing, unreadable, or none of the kind that was expected."""

from __future__ import annotations

import os
import re

from tfqueue.diagnosis.evidence import Evidence
from tfqueue.diagnosis.paths import about_missing_path
from tfqueue.records import scan

Match = re.Match[str]


def missing_file(match: Match, evidence: Evidence) -> str:
    path = match.group(1).strip()
    return f"there is no such file{_put_at(path, evidence)}; {about_missing_path(path)}"


def directory(match: Match, evidence: Evidence) -> str:
    listed = _put_at(match.group(1).strip(), evidence)
    return (
        f"this is a folder{listed}, where a file was expected: list the files in it, or give a pattern such as folder/*"
    )


def permission(match: Match, evidence: Evidence) -> str:
    _put_at(match.group(1).strip(), evidence)
    return "the file may not be read by this user: check its permissions (ls -l) and those of its folders"


def _put_at(path: str, evidence: Evidence) -> str:
    """Make the file that cannot be read the place of the failure; says which record named it, if one did."""
    place = evidence.place
    named = ""
    if place.payload is not None and place.file not in (None, path, place.read_file):
        named = f" (record {place.record} of {os.path.basename(str(place.file))} names it)"
    place.file, place.record = path, None
    return named


def no_match(match: Match, evidence: Evidence) -> str:
    patterns = [p.pattern for p in (evidence.topology.producers if evidence.topology else ()) if p.pattern]
    if not patterns:
        return "the list of file names is empty: check what it was made from"
    pattern = patterns[0].split("\n")[0]
    return f"no file matches {pattern!r}; {about_missing_path(pattern)}"


def not_records(match: Match, evidence: Evidence) -> str:
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
