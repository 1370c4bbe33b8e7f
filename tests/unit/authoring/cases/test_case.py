"""One case with its suite's defaults (SPEC sections 4 and 7.4). `tests/cases/valid` covers merging and skipping."""

from itertools import product
from math import prod
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.authoring.cases.case import combinations, label
from agentv.authoring.source.nodes import NOWHERE, Canonical, node_of, plain
from agentv.authoring.source.report import Report
from doubles.loading import case_of


def digest(folder: Path, text: str, files: dict[str, str] | None = None) -> str:
    return case_of(folder, text, files or {}).sha256


CASE = "id: a\ninput: Hello\nvars: {v: 1}\nassert: [{contains: x}]"


def test_the_digest_tells_cases_apart(tmp_path):
    cases = [
        CASE,
        CASE.replace("id: a", "id: b"),
        CASE.replace("Hello", "Bye"),
        CASE.replace("v: 1", "v: 2"),
        CASE.replace("contains: x", "contains: y"),
        CASE.replace("contains: x", "icontains: x"),
        CASE.replace("contains: x", "not-contains: x"),
        CASE.replace("{contains: x}", "{contains: x, weight: 2}"),
        CASE.replace("{contains: x}", "{assert-set: [{assert-set: [{contains: x}]}]}"),
        CASE.replace("{contains: x}", "{assert-set: [{assert-set: [{contains: y}]}]}"),
        CASE + "\nthreshold: 0.5",
        CASE + "\nexpected_output: Hi",
        CASE + "\ncriteria: x\nmetadata: {a: 1}",
    ]
    assert len({digest(tmp_path / str(number), text) for number, text in enumerate(cases)}) == len(cases)


def test_the_digest_is_the_same_wherever_the_repository_lies(tmp_path):
    text = """id: a
input: [{role: user, content: [{type: file, value: ./a.md}]}]
assert:
  - {type: llm-rubric, prompt: ./judge.md}
  - {type: script, command: [cat]}
  - {type: python, value: 'grader.py:f'}
  - {type: own}
description: only shown"""
    files = {
        "a.md": "attached",
        "judge.md": "Judge {{ output }}",
        "grader.py": "def f(output): return True\n",
        ".agentv/assertions/own.py": "def assertion(ctx): return True\n",
    }
    here, there = digest(tmp_path / "here", text, files), digest(tmp_path / "else" / "where", text, files)
    assert here == there
    moved = text.replace("only shown", "shown otherwise").replace("\n", "\n\n") + "\nsolution: {commands: ['true']}"
    assert digest(tmp_path / "third", moved, files) == here
    assert digest(tmp_path / "fourth", text, {**files, "a.md": "changed"}) != here
    assert digest(tmp_path / "fifth", text, {**files, "judge.md": "Judge: {{ output }}"}) != here


names = st.sampled_from(["a", "b", "tone", "locale"])
values = st.text("xyz ,=]\u00e9", max_size=4) | st.integers(0, 9) | st.booleans() | st.none()
lists = st.lists(values, min_size=1, max_size=4, unique_by=lambda value: label(node_of(value, NOWHERE)))


def entry(**given):
    return node_of({"id": "case", "expand": True, **given}, NOWHERE)


def found(node, inherited=None, fixed=()) -> dict[str, dict]:
    report = Report()
    node = Canonical(node.items, node.keys, node.at)
    made = {end: plain(one) for end, one in combinations(node, inherited or {}, dict.fromkeys(fixed, ""), report)}
    assert not report.count
    return made


@given(st.dictionaries(names, lists, max_size=3), st.dictionaries(st.sampled_from(["p", "q"]), values))
def test_every_combination_once_and_nothing_else_changed(listed, other):
    made = found(entry(vars={**other, **listed}))
    assert len(made) == prod(len(one) for one in listed.values())
    combinations = [dict(zip(listed, chosen, strict=True)) for chosen in product(*listed.values())]
    shown = sorted(map(repr, (sorted(one["vars"].items()) for one in made.values())))
    assert shown == sorted(map(repr, (sorted({**other, **one}.items()) for one in combinations)))
    assert all(one["id"] == f"case{end}" for end, one in made.items())


@given(st.dictionaries(names, lists, min_size=1, max_size=3), st.randoms())
def test_an_id_does_not_change_when_keys_and_items_are_sorted_otherwise(listed, random):
    mixed = {name: random.sample(listed[name], len(listed[name])) for name in random.sample(list(listed), len(listed))}
    by_id = found(entry(vars=listed))
    shown = {end: one["vars"] for end, one in found(entry(vars=mixed)).items()}
    assert shown == {end: one["vars"] for end, one in by_id.items()}


@given(lists, values)
def test_an_id_does_not_change_when_an_item_is_added(listed, more):
    longer = [*listed, more]
    if len({label(node_of(one, NOWHERE)) for one in longer}) == len(longer):
        assert found(entry(vars={"a": listed})).keys() <= found(entry(vars={"a": longer})).keys()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("de", "de"),
        ("de DE", "de DE"),
        (1.5, "1.5"),
        (True, "true"),
        ("a" * 40, "a" * 40),
        ("a" * 41, "#"),
        ("a,b", "#"),
        ("a]", "#"),
        (" a", "#"),
        ("", "#"),
        (None, "#"),
        ([1], "#"),
        ("\x1b[2J", "#"),
    ],
)
def test_an_id_shows_short_plain_values_and_hashes_the_others(value, shown):
    found = label(node_of(value, NOWHERE))
    assert found == shown or (shown == "#" and len(found) == 9 and found.startswith("#"))
