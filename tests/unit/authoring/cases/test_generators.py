"""Cases made by a function. `tests/cases` covers its errors."""

from agentv.authoring.cases import generators
from doubles.loading import codes_and_lines, outcome, repository

HEAD = "target: echo\nassert: [{contains: x}]\n"


def test_it_is_called_once_for_a_run_and_never_to_validate(tmp_path):
    mark = tmp_path / "called"
    made = f"""
from pathlib import Path

def cases():
    Path({str(mark)!r}).touch(exist_ok=False)
    yield {{"id": "a", "input": "x"}}
"""
    path = repository(tmp_path, {"suite.eval.yaml": f"{HEAD}tests: gen.py:cases\n", "gen.py": made}) / "suite.eval.yaml"
    suites, found = outcome(path, for_run=False)
    assert [one.code for one in found] == ["unchecked-cases"]
    assert not mark.exists()
    suites, _ = outcome(path)
    assert [case.id for case in suites[0].cases] == [case.id for case in suites[0].cases] == ["a"]
    assert suites[0].generators == ("gen.py:cases",)
    assert mark.exists()


def test_more_cases_than_memory_should_hold_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(generators, "MOST", 3)
    endless = "def cases():\n    n = 0\n    while True:\n        n += 1\n        yield {'id': n, 'input': 'x'}\n"
    assert codes_and_lines(tmp_path, f"{HEAD}tests: gen.py:cases\n", {"gen.py": endless}) == [("bad-generator", 3)]


def test_no_more_mistakes_are_told_than_anybody_reads(tmp_path, monkeypatch):
    monkeypatch.setattr(generators, "SHOWN", 2)
    wrong = "def cases():\n    return [{'id': n} for n in range(5)]\n"
    told = codes_and_lines(tmp_path, f"{HEAD}tests: gen.py:cases\n", {"gen.py": wrong})
    assert told == [("missing-input", 1), ("missing-input", 1), ("more-bad-lines", 3)]


def test_a_function_that_hangs_is_an_error_at_its_line(tmp_path, monkeypatch):
    monkeypatch.setattr(generators, "WAIT_S", 0.05)
    hangs = "import time\n\ndef cases():\n    time.sleep(0.2)\n    return []\n"
    assert codes_and_lines(tmp_path, f"{HEAD}tests: gen.py:cases\n", {"gen.py": hangs}) == [("timeout", 3)]


def test_validating_calls_nothing(tmp_path):
    suite = f"{HEAD}prompts: [p.py:f]\ntests: [cases.mjs, {{id: a, vars: {{x: 1}}}}]\n"
    files = {"p.py": "raise ValueError\ndef f(context): return 1", "cases.mjs": "throw new Error('ran');"}
    assert {code for code, _ in codes_and_lines(tmp_path, suite, files, for_run=False)} <= {"unchecked-cases"}
