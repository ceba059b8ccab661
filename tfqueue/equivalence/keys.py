"""Pairs records of both sides by a key that the user names."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfqueue.equivalence.again import run_again
from tfqueue.equivalence.chunk import Chunk
from tfqueue.equivalence.digest import digest_value
from tfqueue.equivalence.evidence import Evidence, Indices
from tfqueue.equivalence.leaves import as_array
from tfqueue.equivalence.match import Match, split_rows
from tfqueue.errors import InvalidArgument


def pair_by_key(evidence: Evidence, left: list[Chunk], theirs: Indices) -> list[Match]:
    """The candidate's records that have the keys of some records of the reference.

    Args:
        evidence: What was seen; its options hold the key.
        left: Chunks of one record of the reference.
        theirs: Numbers of the candidate's records that the reference does not deliver.

    Raises:
        InvalidArgument: The key is a function, and it fails on a record.
    """
    wanted = {_key(evidence, chunk): chunk for chunk in left}
    numbers = {int(evidence.candidate.digests[n]): int(n) for n in theirs.tolist()}
    found: dict[int, Match] = {}

    def harvest(chunk: Chunk) -> None:
        if len(found) == len(wanted):
            return
        rows = np.flatnonzero(np.isin(chunk.records, np.fromiter(numbers, dtype=np.uint64, count=len(numbers))))
        for row in rows.tolist():
            (one,) = split_rows(chunk.part(row, row + 1).copied())
            key = _key(evidence, one)
            if key in wanted and key not in found:
                one.first = numbers[int(one.records[0])]
                pairs = zip(wanted[key].features, one.features, strict=True)
                equal = tuple(i for i, (a, b) in enumerate(pairs) if a[0] == b[0])
                found[key] = Match(wanted[key], one, equal)

    for chunk in evidence.candidate.kept:
        harvest(chunk)
    if len(found) < len(wanted):
        run_again(evidence.candidate, harvest)
    return sorted(found.values(), key=lambda match: match.reference.first)


def _key(evidence: Evidence, chunk: Chunk) -> int:
    key: Any = evidence.options.key
    if isinstance(key, str):
        return int(chunk.features[evidence.reference.names.index(key)][0])
    values = {name: leaf.row(0) for name, leaf in zip(evidence.reference.names, chunk.leaves, strict=True)}
    try:
        return digest_value(as_array(key(values)))
    except Exception as error:
        raise InvalidArgument(
            f"key failed on record {chunk.first}: {type(error).__name__}: {error}; it is called with a dict of arrays, "
            f"here of {', '.join(values)}"
        ) from error
