"""Mistakes under an older spelling are reported with the spelling in the file."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from agentv.authoring.fields.spellings import CASE, DEFAULT_TEST, RUN, SUITE, TURN, Spellings
from doubles.validation import validate

WRONG = [None, 3, True, "", [], [3], {"x": 1}, -1]


def older(spellings: Spellings) -> Iterator[tuple[tuple[str, ...], str]]:
    for key, canonical in spellings.older.items():
        yield (key,), canonical
    for outer, inner in spellings.nested.items():
        for key, canonical in inner.items():
            yield (outer, key), canonical.rpartition(".")[2]


def suite(kind: str, path: tuple[str, ...], canonical: str, value: Any) -> dict[str, Any]:
    case: dict[str, Any] = {"id": "a", "input": "x", "criteria": "y", "assert": [{"contains": "x"}]}
    document: dict[str, Any] = {"targets": "echo", "input": "x", "tests": [case]}
    places: dict[str, dict[str, Any]] = {"suite": document, "case": case, "run": {}, "default_test": {}}
    if kind in ("run", "default_test"):
        document[kind] = places[kind]
    if kind == "turn":
        places[kind] = {"input": "x", "criteria": "y"}
        document["tests"] = [{"id": "a", "turns": [places[kind]]}]
    inner = places[kind]
    inner.pop(canonical, None)
    for outer in path[:-1]:
        inner = inner.setdefault(outer, {})
    inner[path[-1]] = value
    return document


KINDS = {"suite": SUITE, "case": CASE, "turn": TURN, "default_test": DEFAULT_TEST, "run": RUN}


@pytest.mark.parametrize("kind", KINDS)
def test_no_message_names_a_key_that_the_file_does_not_hold(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    told = 0
    for path, canonical in older(KINDS[kind]):
        if path[-1] == canonical:
            continue
        for value in WRONG:
            (tmp_path / "a.eval.yaml").write_text(json.dumps(suite(kind, path, canonical, value)))
            for found in validate(("a.eval.yaml",), {}):
                if found.severity == "error":
                    told += 1
                    assert f"'{canonical}'" not in found.message, (path, value, found.message)
    assert told > len(KINDS[kind].older)
