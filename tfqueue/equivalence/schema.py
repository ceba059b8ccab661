"""The JSON Schema of a report, made from the dataclasses, the checks and the causes that there are.

``report.schema.json`` beside this file is what ``python -m tfqueue.equivalence.schema`` prints: the documentation of
`Report.to_json` for programs that read it, under JSON Schema draft 2020-12. Names that are added later make no new
version: a reader should take a check or a cause that it does not know as information.
"""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

from tfqueue.equivalence.causes.catalogue import CATALOGUE
from tfqueue.equivalence.checks import CHECKS
from tfqueue.equivalence.report import (
    DIFFERENT,
    EQUIVALENT,
    NOT_CHECKED,
    SAME,
    SCHEMA_VERSION,
    UNDECIDED,
    Cause,
    CheckResult,
    Difference,
    FeatureReport,
    Report,
    SideReport,
)

CHECK_NAMES: tuple[str, ...] = tuple(check.__name__.removeprefix("check_") for check in CHECKS)

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
# Attributes that hold one of a few words.
_WORDS: dict[tuple[type, str], tuple[Any, ...]] = {
    (Report, "verdict"): (EQUIVALENT, DIFFERENT, UNDECIDED),
    (Report, "schema_version"): (SCHEMA_VERSION,),
    (CheckResult, "name"): CHECK_NAMES,
    (CheckResult, "status"): (SAME, DIFFERENT, NOT_CHECKED),
    (Cause, "side"): ("candidate", "reference"),
    (Difference, "kind"): ("changed", "missing", "extra"),
    (SideReport, "role"): ("reference", "candidate"),
    (SideReport, "ended"): ("clean", "error", "cut", "going on", "not read"),
    (FeatureReport, "kind"): ("dense", "ragged", "sparse"),
}


def schema() -> dict[str, Any]:
    """The JSON Schema of `Report.to_json`, as plain values."""
    parts: dict[str, Any] = {}
    whole = _of_class(Report, parts)
    whole["properties"]["equivalent"] = {"type": "boolean"}
    whole["required"].append("equivalent")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The report of tfqueue.compare",
        **whole,
        "$defs": dict(sorted(parts.items())),
    }


def _of_class(kind: type, parts: dict[str, Any]) -> dict[str, Any]:
    """The object that a dataclass becomes; the classes that it holds are put into ``parts``."""
    hints = get_type_hints(kind)
    properties: dict[str, Any] = {}
    for item in dataclasses.fields(kind):
        if not item.metadata.get("json", True):
            continue
        words = _WORDS.get((kind, item.name))
        properties[item.name] = _of_type(hints[item.name], parts) if words is None else {"enum": list(words)}
    if kind is Cause:
        properties["name"] = {"oneOf": [{"const": n, "description": e.summary} for n, e in CATALOGUE.items()]}
    first = (kind.__doc__ or "").strip().splitlines()[0]
    return {"description": first, "type": "object", "properties": properties, "required": list(properties)}


def _of_type(hint: Any, parts: dict[str, Any]) -> dict[str, Any]:
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if hint.__name__ not in parts:
            parts[hint.__name__] = {}  # in case it holds itself
            parts[hint.__name__] = _of_class(hint, parts)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return {"anyOf": [_of_type(part, parts) for part in arguments]}
    if origin is tuple and arguments[-1] is Ellipsis:
        return {"type": "array", "items": _of_type(arguments[0], parts)}
    if origin is tuple:
        items = [_of_type(part, parts) for part in arguments]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _of_type(arguments[1], parts)}
    return {}  # any value of a record, by the rules of `tfqueue.equivalence.jsonform`


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2))
