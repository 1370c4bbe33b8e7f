"""JSON Lines: checked in one pass, read again in the run."""

import json
from pathlib import Path

import pytest

from agentv import LoadError, UsageError, evaluate
from agentv.authoring.cases.collector import SHOWN
from agentv.authoring.cases.data_files.rows import KEPT_NAMES
from agentv.authoring.source.json_text import parse_json
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import DEPTH_LIMIT
from agentv.model.values.values import Span
from doubles.loading import outcome, repository
from needs import needs


def line(number: int, **more) -> str:
    return json.dumps({"id": f"c{number}", "input": f"Say {number}", "assert": [{"contains": "Say"}], **more}) + "\n"


def suite(folder: Path, text: str | bytes, sidecar: str = "target: echo\n"):
    suites, found = outcome(repository(folder, {"suite.jsonl": text, "suite.yaml": sidecar}) / "suite.jsonl")
    return (suites[0] if suites else None), [(one.code, one.span.line, one.span.column) for one in found]


def test_a_short_file_is_read_once(tmp_path):
    found, _ = suite(tmp_path, line(1) + "\n" + line(2))
    (tmp_path / "suite.jsonl").unlink()
    assert [(case.id, case.span.line) for case in found.cases] == [("c1", 1), ("c2", 3)]


def test_a_bom_at_the_begin_is_fine_and_anywhere_else_is_not(tmp_path):
    assert suite(tmp_path, "\ufeff" + line(1))[1] == []
    assert suite(tmp_path, line(1) + "\ufeff" + line(2))[1] == [("bad-json", 2, 1)]


def test_no_more_warnings_are_told_than_anybody_reads(tmp_path):
    found, told = suite(tmp_path, "".join(line(number, criteria="Says it") for number in range(SHOWN + 20)))
    assert len(found.cases) == SHOWN + 20
    assert [code for code, _, _ in told] == ["more-bad-lines"] + ["criteria-not-judged"] * SHOWN


def test_no_more_duplicates_are_told_than_anybody_reads(tmp_path):
    _, told = suite(tmp_path, "".join(line(number % 300) for number in range(600)))
    assert [code for code, _, _ in told] == ["duplicate-id"] * (SHOWN + 1)
    assert told[0][1] == 1  # the total count
    assert [at for _, at, _ in told[1:]] == list(range(301, 301 + SHOWN))


def test_a_remark_far_down_a_file_has_its_line_and_column(tmp_path):
    _, told = suite(tmp_path, "".join(line(number) for number in range(2000)) + line(2000, criteria="Says it"))
    assert told == [("criteria-not-judged", 2001, line(2000, criteria="").index('"criteria"') + 1)]


@pytest.mark.parametrize(
    ("text", "deep"),
    [
        ("[" * DEPTH_LIMIT + "]" * DEPTH_LIMIT, False),
        ("[" * (DEPTH_LIMIT + 1) + "]" * (DEPTH_LIMIT + 1), True),
        ("[" * 100_000, True),
        ('"' + "[" * 500 + '"', False),
        ("[" + "[]," * 500 + "[]]", False),
    ],
)
def test_json_that_is_too_deep_is_refused(text, deep):
    report = Report()
    found = parse_json(text, Span("a.json", 1, 1, 1, 2), report)
    assert (found is None) is deep
    assert [one.code for one in report.diagnostics] == ["too-deep"] * deep


def data_suite(folder: Path, rows: str):
    """Return the outcome of a suite that includes these rows."""
    files = {"a.eval.yaml": "target: echo\ntests: rows.jsonl\n", "rows.jsonl": rows}
    suites, found = outcome(repository(folder, files) / "a.eval.yaml")
    return (suites[0] if suites else None), found


def test_of_very_many_different_unknown_keys_some_are_listed_and_all_are_kept(tmp_path):
    count = KEPT_NAMES + 50
    rows = "".join(line(number, **{f"ß{number}z{number}": number}) for number in range(count))
    found, told = data_suite(tmp_path, rows)
    assert [one.code for one in told] == ["extra-keys"]
    assert told[0].message.endswith(" and more than 990 more")
    assert [list(case.metadata.values()) for case in found.cases] == [[number] for number in range(count)]


def test_an_unknown_key_of_data_is_part_of_what_the_case_is(tmp_path):
    hashes = []
    for topic in ("lamps", "chairs"):
        (tmp_path / topic).mkdir()
        found, _ = data_suite(tmp_path / topic, line(1, topic=topic))
        hashes += [case.sha256 for case in found.cases]
    assert len(set(hashes)) == 2


def session(test_id: str, *said: str, **more) -> str:
    """Return a row of `agentv import`: a conversation that the user starts."""
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
