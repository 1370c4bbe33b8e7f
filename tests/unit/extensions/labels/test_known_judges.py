"""Judges that labels show to be bad fail a run, whatever the type of the assertion."""

from contextlib import chdir

import pytest
import yaml

from agentv.app.planning.preparation import prepare
from agentv.app.running.evaluate import evaluate
from agentv.app.settings import EvalSettings
from agentv.errors import ExitStatus
from agentv.extensions.labels.labelling import open_session

JUDGE = """
import json

def judge(prompt):
    good = "Please do" in prompt
    line = {"statement": "x", "claim": "x", "relevant": good, "supported": good, "attributed": good}
    return json.dumps({
        "reason": "r", "score": float(good), "category": "C" if good else "D", "criterion_met": good,
        "goal_achieved": good, "statements": [{"id": "t1", **line}], "claims": [line],
        "sentences": [{"id": "s1", "relevant": good}],
    })
"""
AGENT = """
import json

def agent(prompt):
    return {"output": prompt, "context": [f"{prompt} is sold"]}
"""
CONTEXT = {"threshold": 0.5, "context": "{{ tone }} is sold"}
ASSERTIONS = [
    {"type": "llm-rubric", "value": "Is polite"},
    {"type": "factuality", "value": "an order"},
    {"type": "closed-qa", "value": "Is it polite"},
    {"type": "not-closed-qa", "value": "Is it a question"},
    {"type": "answer-relevance", "threshold": 0.5},
    {"type": "context-faithfulness", **CONTEXT},
    {"type": "context-recall", "value": "It is sold", **CONTEXT},
    {"type": "context-relevance", **CONTEXT},
    {"type": "trajectory:goal-success"},
]


@pytest.fixture
def project(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".agentv").mkdir()
    (tmp_path / ".agentv" / "targets.yaml").write_text(
        "targets:\n- {name: judge, provider: python, function: judge.py:judge}\n"
        "- {name: agent, provider: python, function: agent.py:agent}\ndefaults: {judge: judge}\n"
    )
    (tmp_path / "judge.py").write_text(JUDGE)
    (tmp_path / "agent.py").write_text(AGENT)
    with chdir(tmp_path):
        yield tmp_path


def run(project, assertions, **header):
    """A suite of which every other case is impolite."""
    tests = [
        {"id": f"c{number}", "input": f"{tone} order {number}", "vars": {"tone": tone}}
        for number, tone in enumerate(("Please do", "Do") * 6)
    ]
    suite = {"name": "orders", "target": "agent", **header, "assert": assertions, "tests": tests}
    (project / "suite.eval.yaml").write_text(yaml.safe_dump(suite))
    return evaluate(prepare(EvalSettings(paths=("suite.eval.yaml",))), lambda _: None)


def label_as_failed(sample):
    """People fail nearly everything, so that a judge that passes half of it is a bad one."""
    session = open_session("last", None, sample, 0, "ada")
    for drawn in session.drawn:
        session.label(drawn, "pass" if drawn.answer.case in ("c0", "c1") else "fail")


def test_a_bad_judge_fails_the_run_whatever_type_it_grades_by(project):
    assert run(project, ASSERTIONS).summary.cases.errored == 0
    label_as_failed(12 * len(ASSERTIONS))
    for alone in ASSERTIONS:
        ended = run(project, [alone], judge={"min_tnr": 0.9})
        assert ended.status == ExitStatus.FAILED
        assert "of the judge 'judge' is below the required 90" in ended.summary.gates[0].why, alone
