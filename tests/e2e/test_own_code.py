"""Users' code shares the process with agentv's: what it puts in its place does not turn a failure into a success."""

from __future__ import annotations

import json
from textwrap import dedent

import pytest

CODE = """
import asyncio, gc, os, signal, time

def status():
    from agentv.app.running.outcome import Outcome
    Outcome.status = 0

def body():
    from agentv.app.running.outcome import Outcome
    Outcome.status.fget.__code__ = (lambda self: 0).__code__

def module():
    import sys
    sys.modules["agentv.model.run.verdict"] = sys.modules["agentv.model.run.grade"]

def constant():
    import agentv.model.run.grade
    agentv.model.run.grade.TOLERANCE = 2.0

def attribute():
    from agentv.model.run.trial import TrialResult
    TrialResult.status = property(lambda self: "passed", lambda self, value: None)

def loaded_by_itself():
    import agentv.reports.export.junit as junit  # which no run needs that exports nothing
    junit.render_junit = lambda *_: ""

def grade():
    from agentv.assertions.text.matching import Contains
    inner = Contains.grade
    Contains.grade = lambda self, context: inner(self, context).negated()

def kill():
    time.sleep(0.3)  # so that the row of the case before has been written
    os.kill(os.getpid(), signal.SIGKILL)

def stopped_loop():
    for one in gc.get_objects():
        if isinstance(one, asyncio.AbstractEventLoop):
            one.call_soon_threadsafe(one.stop)
    time.sleep(60)

def stop_itself():
    os.kill(os.getpid(), signal.SIGSTOP)

def stop_front():
    os.kill(os.getppid(), signal.SIGSTOP)
"""
TARGET = f"{CODE}\ndef answer(prompt):\n    globals()[prompt.strip()]()\n    return 'wrong'\n"
ASSERTION = f"{CODE}\ndef custom(ctx, *, does: str):\n    globals()[does]()\n    return False\n"
SUITE = {
    "target": "target: python:code.py:answer\ntests:\n  - {{id: a, input: {0}, assert: [contains: right]}}\n",
    "assertion": "target: echo\ntests:\n  - {{id: a, input: hello, assert: [{{type: custom, does: {0}}}]}}\n",
}


@pytest.fixture(params=["target", "assertion"])
def ended(request, project):
    """What a run comes to whose target, or assertion, does something to agentv and fails."""
    project.write("code.py", TARGET)
    project.write(".agentv/assertions/custom.py", ASSERTION)

    def run(does: str):
        project.write("a.eval.yaml", SUITE[request.param].format(does))
        process = project.start("eval", "a.eval.yaml", "--json", "--out", "out")
        stdout, stderr = process.communicate(timeout=60)
        return process.returncode, stdout, stderr

    return run


@pytest.mark.parametrize(
    ("does", "named"),
    [
        ("status", "agentv.app.running.outcome.Outcome.status"),
        ("body", "agentv.app.running.outcome.Outcome.status"),
        ("module", "agentv.model.run.verdict"),
        ("constant", "agentv.model.run.grade.TOLERANCE"),
        ("attribute", "agentv.model.run.trial.TrialResult.status"),
        ("loaded_by_itself", "agentv.reports.export.junit.render_junit"),
    ],
)
def test_a_run_whose_code_was_replaced_has_no_verdict(ended, does, named):
    status, stdout, stderr = ended(does)
    assert (status, stdout) == (3, "")
    assert f"error: user code replaced {named}, which belongs to agentv, so there is no verdict" in stderr
    assert "discarded. Run them again with:\n  agentv eval a.eval.yaml --json --out out --resume=out" in stderr


GRADED = "target: python:code.py:answer\ntests:\n  - {id: a, input: grade, assert: [contains: right]}\n"


def test_grades_by_replaced_code_are_neither_exported_nor_resumed(project):
    project.write("code.py", TARGET)
    project.write("a.eval.yaml", GRADED)
    for resumed in ((), ("--resume=out",), ("--resume=out",)):
        ended = project.run("eval", "a.eval.yaml", "--out", "out", "--out", "all.xml", *resumed)
        assert (ended.status, ended.stdout) == (3, "")
        named = "agentv.assertions.text.matching.Contains.grade"
        assert f"error: user code replaced {named}, which belongs to agentv" in ended.stderr
        assert "passed" not in ended.stderr
    assert not (project.path / "all.xml").exists()
    shown = json.loads(project.run("results", "show", "out", "--json").stdout)
    assert (shown["summary"]["cases"]["skipped"], shown["rows"]) == (1, [])
    project.write("code.py", "def answer(prompt):\n    return 'wrong'\n")
    honest = project.run("eval", "a.eval.yaml", "--resume=out")
    assert honest.status == 1, honest.stderr
    assert "1 case: 0 passed, 1 failed" in honest.stderr


KILLED = "target: python:code.py:answer\nrun: {workers: 1}\ntests:\n" + "".join(
    f"  - {{id: {does}, input: {does}, assert: [contains: right]}}\n" for does in ("grade", "kill")
)


def test_grades_by_replaced_code_are_not_kept_if_the_process_is_killed(project):
    project.write("code.py", TARGET)
    project.write("a.eval.yaml", KILLED)
    ended = project.run("eval", "a.eval.yaml", "--out", "out")
    assert (ended.status, "was ended by SIGKILL" in ended.stderr) == (3, True), ended.stderr
    assert (project.path / "out/index.jsonl").read_text() == ""
    project.write("code.py", "def answer(prompt):\n    return 'wrong'\n")
    honest = project.run("eval", "a.eval.yaml", "--resume=out")
    assert honest.status == 1, honest.stderr
    assert "2 cases: 0 passed, 2 failed" in honest.stderr


def test_grades_by_replaced_code_pass_no_exam(project):
    project.write("code.py", TARGET)
    project.write(
        ".agentv/targets.yaml",
        "targets: [{name: t, provider: python, function: 'code.py:answer'}]\ndefaults: {target: t}\n",
    )
    project.write("prompts/p/prompt.md", "grade\n")
    project.write("prompts/p/meta.yaml", "description: d\nowner: me\nstatus: draft\n")
    project.write("prompts/p/eval.yml", "cases:\n  - {name: a, inputs: {}, assert: [contains: right]}\n")
    ended = project.run("prompt", "eval", "p")
    assert (ended.status, "user code replaced" in ended.stderr) == (3, True), ended.stderr
    assert not (project.path / "prompts/p/.eval.jsonl").exists()
    refused = project.run("prompt", "promote", "p")
    assert (refused.status, "its exam has never run" in refused.stderr) == (1, True), refused.stderr


def test_an_assertion_alone_whose_code_replaced_code_has_no_verdict(project):
    code = """
        def custom(ctx):
            import agentv.app.grade_one
            agentv.app.grade_one.verdict_json = lambda _: {"pass": True}
            return False
    """
    project.write(".agentv/assertions/custom.py", dedent(code))
    ended = project.run("assert", "custom", "--output", "x")
    assert (ended.status, ended.stdout) == (3, "")
    named = "agentv.app.grade_one.verdict_json"
    assert ended.stderr == f"error: user code replaced {named}, which belongs to agentv, so there is no verdict\n"


def test_a_run_that_breaks_in_the_middle_tells_how_to_go_on(ended):
    status, stdout, stderr = ended("stopped_loop")
    assert (status, stdout) == (3, "")
    assert "agentv eval a.eval.yaml --json --out out --resume=out" in stderr


@pytest.mark.parametrize("does", ["stop_itself", "stop_front"])
def test_a_process_that_is_stopped_goes_on(ended, does):
    status, stdout, stderr = ended(does)
    assert status == 1, stderr
    assert json.loads(stdout)["cases"]["failed"] == 1
