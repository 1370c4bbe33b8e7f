import json
from pathlib import Path

import pytest
import yaml

from agentv.app.planning.preparation import prepare
from agentv.app.running.evaluate import evaluate
from agentv.app.settings import EvalSettings
from agentv.cli.main import run
from agentv.errors import UsageError
from agentv.extensions.mutate.mutating import MutationSettings, mutate

CASES = Path(__file__).parents[3] / "cases/valid"
ANSWER = "Refunds are possible within 30 days. Please contact Ann Smith in Berlin."


def write(tests, **header):
    target = {"name": "shop", "provider": "mock", "response": ANSWER}
    suite = {"name": "refunds", "target": target, **header, "tests": tests}
    Path("refunds.eval.yaml").write_text(yaml.safe_dump(suite, sort_keys=False))


def case(identity, *assertions, **keys):
    return {"id": identity, "input": "May I return it?", "assert": list(assertions), **keys}


def ran(tests, **header):
    write(tests, **header)
    return evaluate(prepare(EvalSettings(paths=("refunds.eval.yaml",))), lambda _: None)


def survivors(report):
    return {(one.case, one.change): one.line for one in report.survivors if one.counts}


LATE = case(
    "late", {"contains": "days"}, {"icontains": "refund"}, {"contains": "Ann Smith"}, criteria="Ends after 30 days"
)


def test_what_no_check_notices_is_told_with_a_line_that_notices_it(project):
    ran([LATE])
    report = mutate("last", MutationSettings())
    found = survivors(report)
    change = '"30 days" became "60 days"'
    assert found["late", change] == "- {type: contains, value: 30 days, required: true, weight: 0}"
    assert report.status == 0
    assert 0 < report.score < 1
    assert report.counted == report.counts.killed + len(found)

    added = [yaml.safe_load(line)[0] for line in found.values()]
    write([{**LATE, "assert": [*LATE["assert"], *added]}])
    again = mutate("last", MutationSettings())
    assert survivors(again) == {}
    assert again.failing == ()
    assert again.score == 1.0


def files_of(root):
    files = (path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path: path.read_bytes() for path in files}


def test_the_run_is_not_changed_and_no_target_is_called(project):
    Path("target.py").write_text(
        "from pathlib import Path\n\ndef answer(prompt):\n    Path('calls').write_text('x')\n    return '30 days'\n"
    )
    ran([case("late", {"contains": "days"}, expected_output="30 days")], target="python:target.py:answer")
    files = files_of(project)
    assert mutate("last", MutationSettings()).counts.total > 3
    assert files_of(project) == files


def test_an_original_that_fails_now_counts_for_nothing(project):
    ran([LATE, case("open", {"contains": "days"}, expected_output="30 days")])
    write([LATE, case("open", {"contains": "nine"}, expected_output="30 days")])
    report = mutate("last", MutationSettings())
    assert [(one.case, one.message) for one in report.failing] == [("open", "contains: 'nine'")]
    assert report.answers == 1
    assert {one.case for one in report.survivors} == {"late"}


def test_assertions_that_no_mutant_fails_are_named(project):
    checks = ({"contains": "30 days"}, {"word-count": {"min": 1}}, {"not-contains": "never"}, {"latency": 60_000})
    ran([case("late", *checks)])
    idle = mutate("last", MutationSettings()).idle
    assert [(one.name, one.mutants > 5) for one in idle] == [("word-count: at least 1", True)]


JUDGE = {"name": "judge", "provider": "mock", "response": '{"score": 1, "pass": true, "reason": "fine"}'}


def test_a_judge_without_a_verdict_is_no_kill(project):
    ran([case("late", {"contains": "days"}, {"llm-rubric": "Names 30 days"})], judge=JUDGE)
    broken = {"name": "judge", "provider": "mock", "error": "down"}
    write([case("late", {"contains": "days"}, {"llm-rubric": "Names 30 days"})], judge=broken)
    with pytest.raises(UsageError, match="judge gave no verdict"):
        mutate("last", MutationSettings(judge=True))


def test_nothing_to_mutate_is_no_success(project):
    ran([case("late", {"contains": "nine"})])
    with pytest.raises(UsageError, match="nothing to mutate: no case passed"):
        mutate("last", MutationSettings())
    ran([case("late", {"llm-rubric": "Is polite"})], judge=JUDGE)
    with pytest.raises(UsageError, match="only a model grades"):
        mutate("last", MutationSettings())
    ran([LATE])
    write([{**LATE, "input": "Something else"}])
    with pytest.raises(UsageError, match="input or target changed"):
        mutate("last", MutationSettings())
    write([{**LATE, "id": "renamed"}])
    with pytest.raises(UsageError, match="no longer have"):
        mutate("last", MutationSettings())
    Path("refunds.eval.yaml").unlink()
    with pytest.raises(UsageError, match="is gone"):
        mutate("last", MutationSettings())


def test_conversations_are_left_out_and_said_so(project):
    turns = [{"input": "Hello", "assert": [{"contains": "days"}]}, {"input": "And?", "assert": [{"contains": "days"}]}]
    ran([LATE, {"id": "talk", "turns": turns}])
    assert mutate("last", MutationSettings()).notes == ("left out: 1 answer of conversations",)


def test_secrets_are_in_no_report(project, monkeypatch):
    monkeypatch.setenv("SHOP_TOKEN", "tok-83746528364")
    ran([LATE, case("open", {"not-contains": "{{ env.SHOP_TOKEN }}"})])
    write([LATE, case("open", {"contains": "{{ env.SHOP_TOKEN }}"})])
    report = mutate("last", MutationSettings())
    assert [one.message for one in report.failing] == ["contains: '[redacted]'"]
    assert "tok-8374" not in repr(report)


def test_the_command(project, capsys):
    ran([LATE])
    assert run(["mutate", "last", "--min-score", "1"]) == 1
    shown = capsys.readouterr().out
    assert 'late: no check noticed that "30 days" became "60 days"\n  add: - ' in shown
    assert run(["mutate", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["passed"] is True
    assert all(one["line"].startswith("- ") for one in plain["survivors"] if one["counts"])
    for arguments, message in [(["--operators", "change-nmber"], "change-number"), (["--operators", " ,"], "no name")]:
        assert run(["mutate", *arguments]) == 2
        assert message in capsys.readouterr().err


def test_an_assertion_that_errors_kills_nothing(project):
    check = project / ".agentv/assertions/reads_json.py"
    check.parent.mkdir(parents=True)
    check.write_text(
        "import json\n\nfrom agentv import define_assertion\n\n\n@define_assertion\ndef reads_json(ctx):\n"
        "    return json.loads(ctx.output)['days'] > 0\n"
    )
    answer = {"name": "shop", "provider": "mock", "response": '{"days": 30}'}
    json_case = case("json", {"type": "reads-json"}, expected_output='{"days": 30}')
    ran([json_case], target=answer)
    report = mutate("last", MutationSettings(("break-json", "change-number")))
    assert (report.counts.killed, report.counted, report.counts.errored) == (0, 1, 1)
    report = mutate("last", MutationSettings(("break-json",)))
    assert (report.score, report.status) == (None, 3)
    with_contains = {**json_case, "assert": [*json_case["assert"], {"type": "equals", "value": '{"days": 30}'}]}
    write([with_contains], target=answer)
    report = mutate("last", MutationSettings(("break-json",)))
    assert (report.counts.killed, report.counts.errored, report.idle) == (1, 0, ())


def test_the_minimum_must_hold_even_if_the_errored_mutants_had_survived(project):
    check = project / ".agentv/assertions/picky.py"
    check.parent.mkdir(parents=True)
    check.write_text(
        "from agentv import define_assertion\n\n\n@define_assertion\ndef picky(ctx):\n"
        "    if 'sorry' in ctx.output:\n        raise ValueError\n    return '30 days' in ctx.output\n"
    )
    ran([case("late", {"type": "picky"}, expected_output="30 days")])
    settings = MutationSettings(("change-number", "refuse"), min_score=0.9)
    report = mutate("last", settings)
    assert (report.score, report.least_score, report.status) == (1.0, 0.5, 3)


def test_assertions_that_compare_answers_are_counted_apart(project):
    Path("judge.py").write_text((CASES / "select-best/judge.py").read_text())
    prompts = [{"id": "short", "prompt": "Say 30 days"}, {"id": "long", "prompt": "Say 30 days, and at great length"}]
    checks = [{"select-best": "the longest answer"}, {"contains": "30 days"}]
    judge = {"name": "judge", "provider": "python", "function": "judge.py:longest"}
    suite = {"target": "echo", "judge": judge, "prompts": prompts, "tests": [{"id": "late", "assert": checks}]}
    Path("refunds.eval.yaml").write_text(yaml.safe_dump(suite))
    evaluate(prepare(EvalSettings(paths=("refunds.eval.yaml",))), lambda _: None)
    report = mutate("last", MutationSettings(("change-number",)))
    assert (report.answers, report.counts.killed) == (1, 1)  # the longest answer passes
    assert report.notes == ("left out: 1 assertion that compares the answers to a case",)
    del checks[1]
    Path("refunds.eval.yaml").write_text(yaml.safe_dump(suite))
    with pytest.raises(UsageError, match="1 answer of cases that only compare answers"):
        mutate("last", MutationSettings())
