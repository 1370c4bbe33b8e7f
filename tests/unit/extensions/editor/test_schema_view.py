"""The position of a cursor, and what the schema says about it."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from agentv.app.authored.reference import schema_text
from agentv.authoring.source.nodes import ListNode, MapNode, Node, span_of
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.extensions.editor.cursor import cursor_at
from agentv.extensions.editor.index import kind_of
from agentv.extensions.editor.schema_view import SchemaView
from agentv.model.values.values import Span
from doubles.thorough import each_third, examples

ROOT = Path(__file__).parents[4]
OWN_KEYS = {
    "vars", "knows", "tool-state", "metadata", "env", "input", "expected_output", "value", "schema", "headers", "body",
    "config", "responses", "args", "output", "minimums", "score_ranges", "files", "hidden", "overlay", "tools", "tags",
    "content", "sidecar", "governance", "faults", "json-schema", "json-match", "is-json", "equals",
}  # fmt: skip
"""Keys with user-defined keys below them."""

OTHERS = {
    "word-count.eval.yaml", "agentv-project", "assertions-of-promptfoo", "agentv-providers", "agentv-provider-of-a-file",
    "a-prompt-of-the-library", "custom-assertions", "custom-named-as-a-built-in", "code-that-changes-its-context",
    "config-of-a-script", "five-forms-of-an-entry", "quickstart", "promptfoo-simulated-users",
    "scores-outside-of-0-to-1",
}  # fmt: skip
"""Folders with keys of other programs or custom assertion types; a project may replace `word-count`."""


@cache
def view(kind: str) -> SchemaView:
    return SchemaView(json.loads(schema_text(kind)))


def keys_in(node: Node, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str, Span]]:
    if isinstance(node, MapNode):
        for key, value in node.items.items():
            yield path, key, span_of(node.keys[key])
            yield from keys_in(value, (*path, key))
    elif isinstance(node, ListNode):
        for item in node.items:
            yield from keys_in(item, (*path, "-"))


def files() -> Iterator[tuple[str, str, str]]:
    for path in [*ROOT.glob("examples/**/*.yaml"), *ROOT.glob("tests/cases/valid/*/**/*.yaml")]:
        text = path.read_text(encoding="utf-8")
        kind = kind_of(str(path), text) if path.name not in {"expected.yaml", "request.yaml"} else None
        uses_anchors = "&" in text and "*" in text
        if kind not in {None, "config"} and not uses_anchors and not OTHERS & {*path.parts}:
            yield str(path.relative_to(ROOT)), kind, text


def test_every_key_of_every_right_file_is_known_where_it_stands() -> None:
    seen = 0
    wrong = []
    for name, kind, text in each_third(files(), 0):
        lines = text.split("\n")
        root = read_yaml(name, text.encode(), Report()).value
        for path, key, span in keys_in(root) if root is not None else ():
            seen += 1
            cursor = cursor_at(lines, span.line - 1, span.column - 1)
            if cursor is None or cursor.path != path:
                if path[-2:] != ("-", "-"):  # a list directly inside a list
                    wrong.append((name, span.line, key, path, cursor and cursor.path))
            elif OWN_KEYS & {step.removeprefix("not-") for step in path} or key.startswith("x-"):
                continue
            elif view(kind).key(path, cursor.skeleton(), key) is None:
                wrong.append((name, span.line, key, path, "unknown"))
    assert wrong == []
    assert seen > examples(3000, 1000)


CASE = "tests:\n- id: a\n  assert:\n"


@pytest.mark.parametrize(
    ("text", "path", "key", "prefix"),
    [
        ("|", (), None, ""),
        ("run:\n  wor|\n", ("run",), None, "wor"),
        (f"{CASE}  - type: 'con|", ("tests", "-", "assert", "-"), "type", "con"),
        (f"{CASE}  - trajectory:tool-used: |", ("tests", "-", "assert", "-"), "trajectory:tool-used", ""),
        (f"{CASE}  - |\n  - contains: b\n", ("tests", "-", "assert", "-"), None, ""),
        (f"{CASE}  - {{type: x, expected: [{{to|", ("tests", "-", "assert", "-", "expected", "-"), None, "to"),
        ("tests:\n- id: a\n  input: |-\n    te|xt".replace("|-", ">-"), None, None, None),
        ("target: echo # no|", None, None, None),
        ("\ttests:|", ("\ttests",), None, None),
    ],
)
def test_the_place_of_a_cursor(text, path, key, prefix) -> None:
    before, after = text.split("|", 1)
    lines = (before + after).split("\n")
    at = before.split("\n")
    cursor = cursor_at(lines, len(at) - 1, len(at[-1]))
    if path is None:
        assert cursor is None
    elif prefix is not None:
        assert (cursor.path, cursor.key, cursor.prefix) == (path, key, prefix)


def test_keys_beside_the_cursor_are_those_of_its_mapping() -> None:
    lines = ["tests:", "- id: a", "  input: hi", "  ", "  # note", "  threshold: 1", "- id: b", "  tags: x", ""]
    cursor = cursor_at(lines, 3, 2)
    assert cursor.siblings == {"id": "a", "input": "hi", "threshold": "1"}


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.eval.yaml", "", "eval"),
        ("compose.yaml", "services: {}\ntests: 5\n", None),
        ("any.yaml", "tests:\n- id: a\n  input: b\n", "eval"),
        (".agentv/targets.yaml", "", "targets"),
        (".agentv/config.local.yaml", "", "config"),
        (".agentv/templates/safe.yaml", "", "template"),
        (".github/workflows/ci.yaml", "jobs:\n  tests:\n    input: x\n", None),
    ],
)
def test_kinds_of_files(name, text, kind) -> None:
    assert kind_of(f"/project/{name}", text) == kind
