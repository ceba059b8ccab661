"""The documented form of a report is the one that the code gives: names of checks and causes, and real reports."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfqueue
from tests.equivalence.batches import changed, cut, records
from tfqueue.equivalence import causes
from tfqueue.equivalence.schema import CHECK_NAMES, schema

FOLDER = Path(causes.__file__).parent
STORED: dict[str, Any] = json.loads((FOLDER.parent / "report.schema.json").read_text(encoding="utf-8"))
_WORDS = {
    *("$schema", "$defs", "$ref", "title", "description", "type", "enum", "const", "oneOf", "anyOf"),
    *("properties", "required", "additionalProperties", "items", "prefixItems", "minItems", "maxItems"),
}
_TYPES: dict[str, Any] = {"string": str, "boolean": bool, "null": type(None), "array": list, "object": dict}


def problems(value: Any, part: dict[str, Any], at: str = "$") -> Iterator[str]:
    """What does not fit a schema, for the words that ours uses; other words are an error."""
    unknown = set(part) - {"$schema", "$defs", "title", "description", "type", "properties", "required", "items"}
    assert unknown <= {
        "$ref",
        "enum",
        "const",
        "oneOf",
        "anyOf",
        "prefixItems",
        "minItems",
        "maxItems",
        "additionalProperties",
    }
    if "$ref" in part:
        yield from problems(value, STORED["$defs"][part["$ref"].rpartition("/")[2]], at)
    if ("enum" in part and value not in part["enum"]) or ("const" in part and value != part["const"]):
        yield f"{at}: {value!r}"
    for word in ("oneOf", "anyOf"):
        if word in part:
            fits = sum(not list(problems(value, choice, at)) for choice in part[word])
            if not fits or (word == "oneOf" and fits != 1):
                yield f"{at}: {value!r} fits {fits} of {word}"
    kind = part.get("type")
    if kind in ("integer", "number"):
        if isinstance(value, bool) or not isinstance(value, int if kind == "integer" else (int, float)):
            yield f"{at}: {value!r} is no {kind}"
    elif kind is not None and not isinstance(value, _TYPES[kind]):
        yield f"{at}: {value!r} is no {kind}"
    elif kind == "array":
        if not part.get("minItems", 0) <= len(value) <= part.get("maxItems", len(value)):
            yield f"{at}: {len(value)} items"
        for number, item in enumerate(value):
            first = part.get("prefixItems", [])
            yield from problems(
                item, first[number] if number < len(first) else part.get("items", {}), f"{at}[{number}]"
            )
    elif kind == "object":
        known = part.get("properties", {})
        yield from (f"{at}: no {name}" for name in part.get("required", []) if name not in value)
        for name, item in value.items():
            if known and name not in known:
                yield f"{at}: {name} is not documented"
            yield from problems(item, known.get(name, part.get("additionalProperties", {})), f"{at}.{name}")


def test_the_stored_schema_is_that_of_the_code() -> None:
    assert schema() == STORED, "python -m tfqueue.equivalence.schema > tfqueue/equivalence/report.schema.json"


def constants(folder: Path) -> set[str]:
    """The strings in a folder's code, without the catalogue."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in folder.glob("*.py") if path.stem != "catalogue")
    return {
        n.value for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    }


def test_every_cause_that_the_code_names_is_documented_and_the_other_way_round() -> None:
    documented = {choice["const"] for choice in STORED["$defs"]["Cause"]["properties"]["name"]["oneOf"]}
    # A narrowing's name stands before the words that tell how; the experiments stand a folder higher.
    found = {text.split(": ")[0] for text in constants(FOLDER) | constants(FOLDER.parent)}
    assert documented == set(causes.NAMES)
    assert documented <= found, documented - found
    named = {text.split(": ")[0] for text in constants(FOLDER)}
    named = {text for text in named if re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", text)}
    assert named - documented <= {"utf-8"}


def test_every_check_that_the_code_gives_is_documented() -> None:
    """From the code, not from the list of checks: a file that is not in the list would be seen."""
    given = set()
    for path in (FOLDER.parent / "checks").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "CheckResult":
                assert isinstance(node.args[0], ast.Constant)
                given.add(node.args[0].value)
    assert given == set(CHECK_NAMES) == set(STORED["$defs"]["CheckResult"]["properties"]["name"]["enum"])


def failing() -> Iterator[Any]:
    yield from cut(records())[:2]
    raise ValueError("boom")


def sides() -> dict[str, tuple[Any, Any]]:
    data = records()
    wild = {
        "x": np.array([b"\xff\xfe", b"b"], dtype=object),
        "c": np.array([1j, np.nan]),
        "n": np.array([np.inf, np.nan]),
    }
    return {
        "equal": (cut(data), cut(data)),
        "values": (cut(data), cut(changed(data, "image", (9, 1, 2, 0), 255))),
        "labels": (cut(data), cut(data | {"label": data["label"] + 1})),
        "missing": (cut(data), cut({k: v[4:] for k, v in data.items()})),
        "other features": (cut(data), cut({"other": data["label"], "more": data["name"]})),
        "raises": (cut(data), failing),
        "empty": (cut(data), lambda: iter(())),
        "wild": ([wild], [{k: v[::-1] for k, v in wild.items()}]),
        "ranks": ([np.zeros(())] * 3, [np.zeros((1, 1, 1, 1, 1))] * 3),
    }


@pytest.mark.parametrize("name", sides())
def test_real_reports_are_as_documented(name: str) -> None:
    report = tfqueue.compare(*sides()[name])
    form = json.loads(report.to_json())
    assert list(problems(form, STORED)) == []
    assert [check["name"] for check in form["checks"]] == list(CHECK_NAMES)


def test_a_report_that_is_not_as_documented_is_seen() -> None:
    form = tfqueue.compare(*sides()["labels"]).to_dict()
    assert form["causes"]
    for path, wrong in ((("verdict",), "maybe"), (("causes", 0, "name"), "else"), (("checks", 0, "status"), 1)):
        other: Any = json.loads(json.dumps(form))
        place = other
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = wrong
        assert list(problems(other, STORED))
    assert list(problems(form | {"more": 1}, STORED))
    del form["options"]
    assert list(problems(form, STORED))
