"""Which judge grades what, and that one is named (SPEC section 9)."""

from __future__ import annotations

import pytest

from doubles.loading import found_in, suite_of

BOOK = {
    ".agentv/targets.yaml": """targets:
  - {name: agent, provider: echo}
  - {name: judged, provider: echo, judge: judy}
  - {name: judy, provider: mock, response: yes}
"""
}
JUDGED = "tests:\n  - {id: a, input: x, criteria: y}\n"


@pytest.mark.parametrize(
    "head",
    ["target: agent\njudge: judy\n", "target: judged\n", "targets: [judged]\n", "target: agent\njudge: mock:yes\n"],
)
def test_a_judge_is_named(tmp_path, head):
    assert found_in(tmp_path, head + JUDGED, BOOK) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("target: agent\n" + JUDGED, 3),
        ("targets: [agent, judged]\n" + JUDGED, 3),
        ("target: agent\ntests:\n  - id: a\n    input: x\n    assert: [{contains: x}, {assert-set: [Is kind]}]\n", 5),
        (
            "target: agent\ntests:\n  - id: a\n    input: x\n    assert: [{type: script, command: x, target: {max_calls: 2}}]\n",
            5,
        ),
    ],
)
def test_no_judge_is_named(tmp_path, text, line):
    assert found_in(tmp_path, text, BOOK) == [("no-judge", line)]


@pytest.mark.parametrize(
    "case",
    [
        "{id: a, input: x, criteria: y, judge: judy}",
        "{id: a, input: x, execution: {target: judged}, criteria: y}",
        "{id: a, input: x, assert: [{type: llm-rubric, value: y, judge: judy}]}",
        "{id: a, input: x, assert: [{script: x}]}",
    ],
)
def test_a_case_needs_no_judge_of_the_suites(tmp_path, case):
    suite = suite_of(tmp_path, f"target: agent\ntests:\n  - {case}\n", BOOK)
    assert suite.judge is None
    if "judged" in case or "llm-rubric" in case:
        assert suite.judges["judy"].provider == "mock"


def test_validate_warns_that_no_judge_is_named(tmp_path):
    assert found_in(tmp_path, "target: agent\n" + JUDGED, BOOK, for_run=False)[0][0] == "no-judge"


def test_a_mistake_elsewhere_does_not_hide_that_no_judge_is_named(tmp_path):
    text = "target: agent\ntests:\n  - {id: a, input: x, criteria: y, colour: blue}\n"
    assert found_in(tmp_path, text, BOOK) == [("no-judge", 3), ("unknown-key", 3)]


def test_a_judge_that_does_not_exist_is_told_where_it_is_named(tmp_path):
    text = "target: agent\ntests:\n  - id: a\n    input: x\n    assert:\n      - {type: llm-rubric, value: y, judge: jude}\n"
    assert found_in(tmp_path, text, BOOK) == [("unknown-target", 6)]


@pytest.mark.parametrize(
    ("head", "warned"),
    [
        ("target: judy\njudge: judy\n", True),
        ("target: agent\njudge: judy\n", False),
        ("targets: [agent, judy]\njudge: judy\n", True),
    ],
)
def test_a_target_that_judges_itself_is_a_warning(tmp_path, head, warned):
    assert found_in(tmp_path, head + JUDGED, BOOK) == ([("judge-is-target", 4)] if warned else [])


def test_a_judge_that_nobody_asks_is_no_warning(tmp_path):
    text = "target: judy\njudge: judy\ntests:\n  - {id: a, input: x, assert: [{contains: x}]}\n"
    assert found_in(tmp_path, text, BOOK) == []


def embedding(case="{id: a, input: x, assert: [{similar: y}]}"):
    return f"tests:\n  - {case}\n"


EMBEDDING = {
    ".agentv/targets.yaml": """targets:
  - {name: agent, provider: echo}
  - {name: judged, provider: echo, judge: "local:some/model"}
  - {name: near, provider: "local:some/model"}
"""
}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("target: agent\n" + embedding(), 3),
        ("target: agent\njudge: mock:yes\n" + embedding(), 4),
        ("targets: [judged, agent]\n" + embedding(), 3),
        ("target: judged\n" + embedding("{id: a, input: x, target: agent, assert: [{similar: y}]}"), 3),
        ("target: agent\n" + embedding("{id: a, input: x, assert: [{type: similar, value: y, embedder: agent}]}"), 3),
        ("target: agent\n" + embedding("{id: a, input: x, assert: [{assert-set: [{similar: y}]}]}"), 3),
        ("target: agent\n" + embedding("{id: a, turns: [{input: x, assert: [{similar: y}]}]}"), 3),
    ],
)
def test_no_target_embeds(tmp_path, text, line):
    assert found_in(tmp_path, text, EMBEDDING) == [("no-embedder", line)]


@pytest.mark.parametrize(
    "text",
    [
        "target: judged\n" + embedding(),
        "target: agent\njudge: near\n" + embedding(),
        "target: agent\n" + embedding("{id: a, input: x, judge: near, assert: [{similar: y}]}"),
        "target: agent\n" + embedding("{id: a, input: x, target: judged, assert: [{similar: y}]}"),
        "target: agent\n" + embedding("{id: a, input: x, assert: [{type: similar, value: y, embedder: near}]}"),
        "target: agent\n" + embedding("{id: a, input: x, assert: [{type: similar, value: y, provider: 'local:x'}]}"),
    ],
)
def test_a_target_embeds(tmp_path, text):
    assert found_in(tmp_path, text, EMBEDDING) == []


def test_an_embedder_is_known_by_its_name(tmp_path):
    text = "target: agent\n" + embedding("{id: a, input: x, assert: [{type: similar, value: y, embedder: near}]}")
    assert suite_of(tmp_path, text, EMBEDDING).judges["near"].provider == "local"


def test_validate_warns_of_a_missing_embedder_and_knows_those_that_are_none(tmp_path):
    assert found_in(tmp_path, "target: agent\n" + embedding(), EMBEDDING, for_run=False) == [("no-embedder", 3)]
    text = "target: agent\n" + embedding("{id: a, input: x, assert: [{type: similar, value: y, embedder: agent}]}")
    assert found_in(tmp_path, text, EMBEDDING, for_run=False) == [("no-embedder", 3)]


@pytest.mark.parametrize(
    ("head", "case"),
    [
        ("target: near\n", "{id: a, input: x, assert: [{contains: y}]}"),
        ("target: agent\njudge: near\n", "{id: a, input: x, assert: [Is kind]}"),
        ("target: agent\n", "{id: a, input: x, assert: [{type: llm-rubric, value: y, judge: near}]}"),
    ],
)
def test_what_only_embeds_is_neither_asked_nor_judges(tmp_path, head, case):
    assert [code for code, _ in found_in(tmp_path, head + embedding(case), EMBEDDING)] == ["bad-value"]
