"""Which judge grades what, and that one is named (SPEC section 9)."""

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
    ("text", "line"),
    [
        ("targets: [agent, judged]\n" + JUDGED, 3),
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
        ("targets: [judged, agent]\n" + embedding(), 3),
        ("target: judged\n" + embedding("{id: a, input: x, target: agent, assert: [{similar: y}]}"), 3),
        ("target: agent\n" + embedding("{id: a, input: x, assert: [{assert-set: [{similar: y}]}]}"), 3),
        ("target: agent\n" + embedding("{id: a, turns: [{input: x, assert: [{similar: y}]}]}"), 3),
        ("target: judged\n" + embedding(), None),
        ("target: agent\njudge: near\n" + embedding(), None),
        ("target: agent\n" + embedding("{id: a, input: x, judge: near, assert: [{similar: y}]}"), None),
        ("target: agent\n" + embedding("{id: a, input: x, target: judged, assert: [{similar: y}]}"), None),
        ("target: agent\n" + embedding("{id: a, input: x, assert: [{type: similar, value: y, embedder: near}]}"), None),
        (
            "target: agent\n"
            + embedding("{id: a, input: x, assert: [{type: similar, value: y, provider: 'local:x'}]}"),
            None,
        ),
    ],
)
def test_what_embeds(tmp_path, text, line):
    assert found_in(tmp_path, text, EMBEDDING) == ([("no-embedder", line)] if line else [])
