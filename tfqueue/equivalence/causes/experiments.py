"""Causes that an experiment tells: the reference, run with another resize or JPEG decoding, gives the
candidate.
"""

from __future__ import annotations

import numpy as np

from tfqueue.equivalence.causes.images import resize_causes
from tfqueue.equivalence.causes.pairs import Changed, close
from tfqueue.equivalence.chunk import Chunk
from tfqueue.equivalence.evidence import Evidence
from tfqueue.equivalence.leaves import Array, Dense
from tfqueue.equivalence.match import match_records, split_rows
from tfqueue.equivalence.observe import Observation
from tfqueue.equivalence.variant import Edit, Nodes, decoding_edits, run_edited, unshuffled

_RECORDS = 256  # of the source, among which the records that were matched are looked for


def experiment(evidence: Evidence, feature: str) -> tuple[str, str] | None:
    """(cause, what it is concluded from) if a changed reference delivers what the candidate has in
    ``feature``.

    The reference runs without shuffling and for a few records only; its records are set beside those of the
    candidate that were matched to the reference's own.
    """
    look = evidence.look
    if look is None or look.blueprint is None or not look.matches:
        return None
    index = evidence.reference.names.index(feature)
    wanted = [match.candidate for match in look.matches]
    nearly = None
    for name, words, edit in decoding_edits(look.blueprint.nodes()):

        def both(nodes: Nodes, edit: Edit = edit) -> bool:
            return bool(edit(nodes)) and unshuffled(nodes)

        run = run_edited(evidence.reference, look.blueprint, both, limit=_RECORDS)
        if run is None:
            continue
        if _delivers(run, wanted, index):
            return name, f"the reference, run again with {words}, delivers the candidate's {feature}"
        if name == "resize-half-pixel":
            nearly = _nearly(run, wanted, index)
    return nearly


def _nearly(run: Observation, wanted: list[Chunk], index: int) -> tuple[str, str] | None:
    """What still differs from a run with other pixel centres, if that is antialiasing."""
    rows: list[Chunk] = []
    for chunk in run.kept:
        rows += split_rows(chunk)
    pairs = match_records(rows, wanted, rows)
    if len(pairs) < 2:
        return None
    sides = [_array(m.reference, index) for m in pairs], [_array(m.candidate, index) for m in pairs]
    changed = Changed("", *sides)
    if not changed.numeric or not changed.alike:
        return None
    for name, words in resize_causes(*changed.stacked, "beside other pixel centres"):
        if name == "resize-antialias":
            return name, words
    return None


def _delivers(run: Observation, wanted: list[Chunk], index: int) -> bool:
    """Whether the run's records are the candidate's, in nearly all that both have."""
    rows: list[Chunk] = []
    for chunk in run.kept:
        rows += split_rows(chunk)
    have = {_key(chunk, index) for chunk in rows}
    equal = sum(_key(chunk, index) in have for chunk in wanted)
    if equal >= max(2, 0.5 * min(len(rows), len(wanted))):
        return True
    pairs = match_records(rows, wanted, rows)
    good = sum(close(_array(m.reference, index), _array(m.candidate, index)) for m in pairs)
    # Of a shuffled stream only some of the wanted records are among the first of the source; with another change none.
    return good >= max(2, 0.2 * len(pairs))


def _key(chunk: Chunk, index: int) -> int:
    return int(chunk.features[index][0])


def _array(chunk: Chunk, index: int) -> Array:
    leaf = chunk.leaves[index]
    return np.asarray(leaf.array[0]) if isinstance(leaf, Dense) else np.asarray(leaf.row(0))
