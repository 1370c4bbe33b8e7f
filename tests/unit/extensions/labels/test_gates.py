"""Gates by labels, from the eval file to the exit status, with real runs in this process."""

import json

import pytest
import yaml

from agentv.app.planning.preparation import prepare
from agentv.app.running.evaluate import evaluate
from agentv.app.settings import EvalSettings
from agentv.errors import ExitStatus, LoadError, StoreError, UsageError
from agentv.extensions.labels.labelling import open_session
from doubles.loading import repository

SUITE = """
name: orders
targets: [{targets}]
{lines}
default_test: {{threshold: 1}}
assert:
  - {{name: polite, type: llm-rubric, value: {rubric}}}
  - {{type: contains, value: order}}
tests:
{cases}
"""
JUDGE = """
import json

def judge(prompt):
    good = "please" in prompt.lower() and "yourself" not in prompt
    return json.dumps({"score": float(good), "reason": "Tone."})
"""
AGENT = """
import json, pathlib

LABELS = pathlib.Path(__file__).parent / ".agentv" / "labels" / "orders.jsonl"

def agent(prompt):
    LABELS.parent.mkdir(parents=True, exist_ok=True)
    stolen = pathlib.Path(__file__).parent / "stolen.jsonl"
    LABELS.write_text(stolen.read_text())
    return prompt
"""


@pytest.fixture
def project(tmp_path):
    targets = (
        "targets:\n- {name: judge, provider: python, function: judge.py:judge}\n"
        "- {name: agent, provider: python, function: agent.py:agent}\n"
        "- {name: rude, provider: mock, response: 'order it yourself'}\ndefaults: {judge: judge}\n"
    )
    return repository(tmp_path, {".agentv/targets.yaml": targets, "judge.py": JUDGE, "agent.py": AGENT})


def run(project, lines="", *, cases=40, offset=0, rubric="Is polite", targets="echo", **settings):
    """Run a suite in which every tenth case is impolite."""
    numbers = range(offset, offset + cases)
    text = "\n".join(
        f"  - {{id: c{one}, input: '{'Do' if one % 10 == 0 else 'Please do'} order {one}'}}" for one in numbers
    )
    (project / "suite.eval.yaml").write_text(
        SUITE.format(lines=lines, rubric=rubric, targets=targets, cases=text), encoding="utf-8"
    )
    return evaluate(prepare(EvalSettings(paths=("suite.eval.yaml",), **settings)), lambda _: None)


def label(says=lambda _number, passed: passed, sample=40):
    session = open_session("last", None, sample, 0, "ada")
    for drawn in session.drawn:
        session.label(drawn, "pass" if says(int(drawn.answer.case[1:]), drawn.answer.passed) else "fail")


def why(outcome):
    return [(gate.gate, gate.passed, gate.why) for gate in outcome.summary.gates]


def test_the_corrected_rate_decides_the_run_and_not_the_cases(project):
    plain = run(project)
    assert (plain.status, plain.summary.gates) == (ExitStatus.FAILED, ())
    assert plain.summary.corrected.unchecked == ("judge",)
    gated = "run: {gate: corrected, min_pass_rate: 0.7}"
    unlabelled = run(project, gated)
    assert unlabelled.status == ExitStatus.FAILED
    assert "no label counts for 'polite'; label answers: agentv label 2" in why(unlabelled)[0][2]
    label()
    good = run(project, gated)
    assert (good.status, good.summary.cases.failed) == (ExitStatus.PASSED, 4)
    assert good.summary.corrected.run.interval[0] >= 0.7
    strict = run(project, "run: {gate: corrected, min_pass_rate: 0.9}")
    assert strict.status == ExitStatus.FAILED, "0.9 by the judge is no proof of 0.9"
    assert "the lower bound must reach 90.0%" in why(strict)[0][2]
    kept = json.loads((strict.directory / "summary.json").read_text())
    assert (kept["gates"][0]["passed"], kept["judges"]) == (False, ["judge"])
    assert "corrected" not in kept, "labels are given after a run, so that its rate is computed when it is shown"
    fresh = run(project, "run: {gate: corrected, min_pass_rate: 0.5}", offset=1000)
    assert fresh.status == ExitStatus.PASSED
    assert fresh.summary.corrected.run.transferred


def test_a_rate_that_people_do_not_share_fails_though_the_judge_passes_every_case(project):
    one = "run: {gate: corrected}"
    assert run(project, one, cases=9, offset=1).summary.cases.failed == 0
    label(lambda number, _: number % 2 == 0)
    assert run(project, one, cases=9, offset=1).status == ExitStatus.FAILED


def test_each_target_must_reach_the_rate_by_itself(project):
    run(project, targets="echo, rude")
    label(sample=80)
    both = run(project, "run: {gate: corrected, min_pass_rate: 0.3}", targets="echo, rude")
    assert both.summary.corrected.run.interval[0] > 0.3, "together they reach it"
    assert both.status == ExitStatus.FAILED
    assert "with rude: " in why(both)[0][2]


@pytest.mark.parametrize(
    "changed", [{"rubric": "Is very polite"}, {"judge": JUDGE + "\nNEW = 1\n"}], ids=["rubric", "judge"]
)
def test_labels_of_another_rubric_or_judge_pass_no_gate(project, changed):
    lines = "run: {gate: corrected, min_pass_rate: 0.1}\njudge: {min_tpr: 0.1, min_tnr: 0.1}"
    run(project)
    label()
    assert run(project, lines).status == ExitStatus.PASSED
    (project / "judge.py").write_text(changed.pop("judge", JUDGE))
    after = run(project, lines, **changed)
    assert after.status == ExitStatus.FAILED
    assert [passed for _, passed, _ in why(after)] == [False, False]


def test_labels_that_the_target_writes_do_not_reach_its_own_verdict(project):
    run(project)
    label()
    stolen = (project / ".agentv" / "labels" / "orders.jsonl").read_text()
    (project / "stolen.jsonl").write_text(stolen)
    (project / ".agentv" / "labels" / "orders.jsonl").unlink()
    lines = "run: {gate: corrected, min_pass_rate: 0.1}\njudge: {min_tpr: 0.1}"
    cheating = run(project, lines, targets="agent")
    assert (project / ".agentv" / "labels" / "orders.jsonl").read_text() == stolen
    assert cheating.status == ExitStatus.FAILED
    assert [passed for _, passed, _ in why(cheating)] == [False, False]
    assert cheating.summary.corrected.run is None, "what is shown is by the same labels as the gate"
    assert any("labels were changed during the run" in note for note in cheating.notes)


def test_labels_that_were_added_before_a_run_is_resumed_do_not_decide_it(project):
    lines = "run: {gate: corrected, min_pass_rate: 0.1}"
    run(project)
    label(sample=20)
    first = run(project, lines)
    assert first.status == ExitStatus.PASSED
    labels = project / ".agentv" / "labels" / "orders.jsonl"
    labels.write_text(labels.read_text() + labels.read_text().replace('"ada"', '"eve"'))
    again = run(project, lines, resume=first.run_id, rerun="failed")
    assert again.status == ExitStatus.FAILED
    assert "start a new run" in why(again)[0][2]


def test_a_judge_below_its_minimum_fails_the_run(project):
    run(project)
    label(lambda number, passed: passed and number % 3 != 0)
    bad = run(project, "judge: {min_tnr: 0.9}", cases=9, offset=1)
    assert (bad.summary.cases.failed, bad.status) == (0, ExitStatus.FAILED)
    ((_, _, found),) = why(bad)
    assert "of the judge 'judge' is below the required 90.0%" in found
    good = run(project, "judge: {name: judge, min_tpr: 0.8}", cases=20, offset=1)
    ((_, passed, found),) = why(good)
    assert passed, found
    assert good.status == ExitStatus.FAILED, "a good judge does not make failed cases pass"


def test_a_judge_of_whom_too_little_is_known_fails_the_run(project):
    lines = "judge: {min_tpr: 0.1}"
    unknown = run(project, lines, cases=9, offset=1)
    assert (unknown.summary.cases.failed, unknown.status) == (0, ExitStatus.FAILED)
    label()
    few = run(project, lines, cases=9, offset=1)
    assert few.status == ExitStatus.FAILED
    assert "has 9 labelled answers that count, and 10 are needed" in why(few)[0][2]
    run(project, offset=1000)
    label(lambda *_: True)
    unproved = run(project, "judge: {min_tnr: 0.1}", offset=1000)
    assert "the TNR of the judge 'judge' is unknown: no labelled answer fails" in why(unproved)[0][2]
    assert unproved.status == ExitStatus.FAILED


def test_the_gate_of_judges_fails_where_no_judge_graded(project):
    text = "target: echo\njudge: {name: judge, min_tpr: 0.1}\ntests: [{id: a, input: order, assert: [{contains: order}]}]\n"
    (project / "plain.eval.yaml").write_text(text)
    outcome = evaluate(prepare(EvalSettings(paths=("plain.eval.yaml",))), lambda _: None)
    assert why(outcome) == [("judge", False, "no judge graded a trial")]
    assert (outcome.summary.cases.passed, outcome.status) == (1, ExitStatus.FAILED)


def test_labels_beside_one_verdict_alone_show_no_judge_to_be_good(project):
    run(project, cases=120)
    label(sample=60)
    file = project / ".agentv" / "labels" / "orders.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    for verdict, minimum, words, offset in (("false", "min_tnr", "passes", 0), ("true", "min_tpr", "fails", 1000)):
        file.write_text("".join(line for line in lines if f'"judge_pass":{verdict}' in line))
        ((_, passed, text),) = why(run(project, f"judge: {{{minimum}: 0.01}}", cases=120, offset=offset))
        assert not passed, text
        assert f"no label that counts is of an answer that the judge 'judge' {words}" in text


def test_a_gate_that_cannot_decide_is_refused_and_broken_labels_are_not_skipped(project):
    for lines, settings, message in (
        ("run: {gate: corrected, aggregate: pass_all, repeat: 2}", {}, "sets aggregate: pass_all"),
        ("run: {gate: corrected, repeat: 5}", {"until": "decided"}, "needs all samples"),
    ):
        with pytest.raises(UsageError, match=message):
            run(project, lines, **settings)
    with pytest.raises(LoadError, match="min_pass_rate"):
        run(project, "run: {min_pass_rate: 0.9}")
    run(project)
    label()
    labels = project / ".agentv" / "labels" / "orders.jsonl"
    labels.write_text(labels.read_text()[:-20])
    with pytest.raises(StoreError, match="cut off"):
        run(project, "run: {gate: corrected}")
    assert "labels cannot be read" in run(project).summary.corrected.reason


def test_a_run_without_a_judge_has_no_corrected_rate_to_pass_by(project):
    (project / "suite.eval.yaml").write_text(
        "name: orders\ntarget: echo\nrun: {gate: corrected}\ntests: [{id: a, input: hi, assert: [contains: hi]}]\n"
    )
    outcome = evaluate(prepare(EvalSettings(paths=("suite.eval.yaml",))), lambda _: None)
    assert (outcome.summary.cases.passed, outcome.status) == (1, ExitStatus.FAILED)
    assert "no verdict depends on a judge" in why(outcome)[0][2]


def test_a_failed_gate_is_a_failure_in_every_report(project):
    files = [str(project / f"out{suffix}") for suffix in (".xml", ".md", ".json", ".html")]
    outcome = run(project, "run: {gate: corrected}", cases=9, offset=1, exports=tuple(files))
    assert (outcome.summary.cases.failed, outcome.status) == (0, ExitStatus.FAILED)
    junit, markdown, document, page = ((project / file).read_text() for file in files)
    assert 'failures="1"' in junit
    assert 'name="gate: corrected pass rate"' in junit
    for text in (markdown, page):
        assert "ate failed: corrected pass rate of orders: there is no corrected pass rate" in text
    summary = json.loads(document)["summary"]
    assert (summary["gates"][0]["passed"], summary["corrected"]["unchecked"]) == (False, ["judge"])


JUDGE_OF_EVERY_TYPE = """
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
AGENT_WITH_CONTEXT = """
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


def run_of(project, assertions, **header):
    """Run a suite in which every second case is impolite."""
    tests = [
        {"id": f"c{number}", "input": f"{tone} order {number}", "vars": {"tone": tone}}
        for number, tone in enumerate(("Please do", "Do") * 6)
    ]
    suite = {"name": "orders", "target": "agent", **header, "assert": assertions, "tests": tests}
    (project / "suite.eval.yaml").write_text(yaml.safe_dump(suite))
    return evaluate(prepare(EvalSettings(paths=("suite.eval.yaml",))), lambda _: None)


def test_a_bad_judge_fails_the_run_whatever_type_it_grades_by(project):
    repository(project, {"judge.py": JUDGE_OF_EVERY_TYPE, "agent.py": AGENT_WITH_CONTEXT})
    assert run_of(project, ASSERTIONS).summary.cases.errored == 0
    label(lambda number, _: number < 2, 12 * len(ASSERTIONS))  # people fail nearly everything that it passes
    for alone in ASSERTIONS:
        ended = run_of(project, [alone], judge={"min_tnr": 0.9})
        assert ended.status == ExitStatus.FAILED
        assert "of the judge 'judge' is below the required 90" in ended.summary.gates[0].why, alone
