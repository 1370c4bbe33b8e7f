"""Which judge grades each assertion, and that a judge is configured (SPEC section 9)."""

import pytest

from doubles.loading import suite_of

BOOK = {
    ".agentv/targets.yaml": """targets:
  - {name: agent, provider: echo}
  - {name: judged, provider: echo, judge: judy}
  - {name: judy, provider: mock, response: yes}
"""
}


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
