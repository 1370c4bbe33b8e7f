"""Recorded transcripts as cases, and their replay."""

import json

import pytest

from agentv import LoadError, UsageError, evaluate
from doubles.loading import outcome, repository
from needs import needs


def session(test_id: str, *said: str, **more) -> str:
    """A row of `agentv import`: a conversation in which the user begins."""
    steps = [
        {"type": "message", "role": ("user", "assistant")[place % 2], "text": text} for place, text in enumerate(said)
    ]
    steps.insert(1, {"type": "tool_call", "name": "shop.get_order"})
    steps.insert(1, {"type": "message", "role": "user", "text": "of a sub-agent", "parent": "x"})
    trace = {"version": 1, "source": "claude", "session_id": f"s-{test_id}", "steps": steps}
    return json.dumps({"test_id": test_id, "output": said[-1], "target": "claude", "trace": trace, **more}) + "\n"


FILES = {
    "suite.eval.yaml": "target: 'replay:sessions'\nassert: [contains: refund]\ntests: [{id: own, input: mine}]\n",
    "sessions/one.jsonl": session("a", "My {{ lamp }}?", "Which?", "The red one.", "A refund.")
    + session("b", "B?", "No."),
    "sessions/two.jsonl": session("c", "C?", "A refund, too."),
    "sessions/notes.txt": "not a transcript",
    "sessions/other.jsonl": '{"id": "x", "input": "a case"}\n',
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(repository(tmp_path, FILES))
    return tmp_path


def test_a_directory_of_transcripts_is_graded_without_running_anything(project):
    (project / "sessions" / "other.jsonl").unlink()  # the target reads every file of the directory
    done = evaluate("suite.eval.yaml", tests_from="sessions", out="out")
    shown = [(one.trial.case.id, one.status) for one in done.results]
    assert shown == [("a", "passed"), ("b", "failed"), ("c", "passed")]
    first = done.results[0]
    shown = [(one.role, one.text) for one in first.input]
    assert shown == [("user", "My {{ lamp }}?"), ("assistant", "Which?"), ("user", "The red one.")]
    shown = dict(first.trial.case.metadata)
    assert shown == {"transcript": "sessions/one.jsonl", "recorded_target": "claude", "session_id": "s-a"}
    again = evaluate("suite.eval.yaml", tests_from="out", target="replay:out", repeat=1)
    shown = [(one.trial.case.id, one.status) for one in again.results]
    assert shown == [(one.trial.case.id, one.status) for one in done.results]
    with pytest.raises(UsageError, match="started with --tests-from sessions, but this command has none"):
        evaluate("suite.eval.yaml", resume="out")


def test_samples_and_targets_of_one_case_are_one_case(project):
    rows = [session("a", "A?", "one", sample=1), session("a", "A?", "two", sample=2), session("b", "B?", "x")]
    repository(project, {"sessions/one.jsonl": "".join(rows)})
    suites, _ = outcome(project / "suite.eval.yaml", tests_from="sessions/one.jsonl")
    assert [one.id for one in suites[0].cases] == ["a", "b"]
    repository(project, {"sessions/one.jsonl": session("a", "A?", "x") + session("a", "Another?", "x")})
    _, found = outcome(project / "suite.eval.yaml", tests_from="sessions/one.jsonl")
    assert [one.code for one in found] == ["duplicate-id"]


def test_what_holds_no_conversation_is_an_error_of_its_line(project):
    rows = session("a", "A?", "x") + session("b", "", "x") + '{"test_id": 7, "output": "x"}\n' + "{broken\n"
    repository(project, {"suite.eval.yaml": FILES["suite.eval.yaml"] + "x-a: 1\n", "sessions/one.jsonl": rows})
    _, found = outcome(project / "suite.eval.yaml", tests_from="sessions/one.jsonl")
    assert [(one.code, one.span.line) for one in found] == [("missing-input", 2), ("bad-case", 3), ("bad-json", 4)]


@needs("huggingface_hub", "pyarrow")
def test_other_cases_of_the_command_line(project, tmp_path_factory):
    elsewhere = repository(tmp_path_factory.mktemp("elsewhere"), {"s/one.jsonl": FILES["sessions/one.jsonl"]})
    shown = [len(outcome(project / "suite.eval.yaml", tests_from=str(elsewhere / name))[0][0].cases) for name in ("s",)]
    assert shown == [2]
    repository(
        project,
        {"rows.csv": "q\nrefund\n", "rows.eval.yaml": "target: echo\ninput: '{{ q }}'\nassert: [contains: refund]\n"},
    )
    assert evaluate("rows.eval.yaml", tests_from="rows.csv").passed  # the file needs no cases of its own
    for path, said in (("nope.csv", "missing-file"), ("sessions/notes.txt", "bad-value"), ("hf://x", "bad-dataset")):
        assert [one.code for one in outcome(project / "suite.eval.yaml", tests_from=path)[1]] == [said], path
    with pytest.raises(LoadError, match="holds the cases itself"):
        evaluate("rows.csv", tests_from="sessions")
