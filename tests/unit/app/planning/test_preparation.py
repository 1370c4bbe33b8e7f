"""Preparation of a run: as many workers as the file limit allows, stores of answers, and excerpts."""

import json
import resource

import pytest

from agentv.app.authored.validate import source_of
from agentv.app.planning.answer_sources import LayeredStore
from agentv.app.planning.last_failed import last_failed
from agentv.app.planning.preparation import PER_CALL, PER_PROGRAM, RESERVE, prepare, workers_within
from agentv.app.planning.resume import PreviousRun
from agentv.app.running.run_record import record_of
from agentv.app.settings import EvalSettings
from agentv.errors import LoadError
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import TargetResponse
from agentv.targets.cli import Cli
from agentv.targets.mock import Echo
from agentv.targets.openai_api.providers import OpenAI
from doubles.loading import repository
from doubles.stores import MemoryStore, call


def targets(providers):
    found = {"openai": OpenAI("gpt"), "echo": Echo(), "cli": Cli("true")}
    return [TargetSpec(name, name, found.get(name)) for name in providers]


@pytest.fixture
def limited(monkeypatch):
    """Set the system's soft and hard limits."""
    limit = [1024, 1024]

    def change(_what: int, given: tuple[int, int]) -> None:
        if given[0] > limit[1]:
            raise ValueError("not allowed to raise maximum limit")
        limit[:] = given

    monkeypatch.setattr(resource, "getrlimit", lambda _what: tuple(limit))
    monkeypatch.setattr(resource, "setrlimit", change)
    return limit


def test_the_soft_limit_is_raised_as_far_as_needed(limited):
    limited[:] = [1024, 20_000]
    assert workers_within(1200, targets(["openai", "echo"])) == (1200, None)
    assert limited == [1200 * PER_CALL + RESERVE, 20_000]


@pytest.mark.parametrize(
    ("provider", "each"), [("openai", PER_CALL), ("cli", PER_PROGRAM), ("of-a-plugin", PER_PROGRAM)]
)
def test_workers_are_as_many_as_the_hard_limit_allows(limited, provider, each):
    workers, note = workers_within(1200, targets(["openai", provider]))
    assert workers == (1024 - RESERVE) // each
    assert note == f"1,200 workers need more than the 1,024 open files allowed here; using {workers} workers"


YES, NO = TargetResponse("yes"), TargetResponse("no")


@pytest.fixture
def stores():
    return MemoryStore(), MemoryStore(), MemoryStore()


def test_every_answer_is_stored_in_the_run_and_in_the_others(stores):
    own, *others = stores
    LayeredStore(own, others).keep(call("k"), YES)
    assert [one.answers for one in stores] == [[("k", YES)]] * 3


def test_the_runs_own_answer_comes_first_and_the_others_get_it(stores):
    own, *others = stores
    own.recalled["k"] = YES
    others[0].recalled["k"] = NO
    assert LayeredStore(own, others).stored_answer(call("k")) == YES
    assert [one.answers for one in others] == [[("k", YES)]] * 2


def test_an_answer_of_another_is_an_earlier_one_and_the_first_that_has_one_counts(stores):
    own, *others = stores
    layered = LayeredStore(own, others)
    assert layered.stored_answer(call("k")) is None
    others[1].recalled["k"] = YES
    assert layered.stored_answer(call("k")) == TargetResponse("yes", earlier=True)
    others[0].recalled["k"] = NO
    assert layered.stored_answer(call("k")) == TargetResponse("no", earlier=True)
    assert own.answers == []


@pytest.mark.parametrize("replay", [None, "none.jsonl"])
def test_cases_are_listed_where_their_judge_is_missing_and_not_run(tmp_path, replay):
    suite = (
        repository(tmp_path, {"s.yaml": "{target: echo, tests: [{id: a, input: b, assert: [Says hello]}]}"}) / "s.yaml"
    )
    listed = prepare(EvalSettings(paths=(str(suite),), process_env={}, asks=False))
    assert [found.code for found in listed.diagnostics] == ["no-judge"]
    with pytest.raises(LoadError, match="no-judge"):
        prepare(EvalSettings(paths=(str(suite),), process_env={}, replay=replay))


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("API-KEY=sk-123", "API-KEY=…"),
        ("export TOKEN = 'abc", "export TOKEN =…"),
        ("sk-123 is the key", "…"),
        ("AKIAIOSFODNN7", "…"),
        ("bGV0bWVpbg==", "…"),
        ("", ""),
    ],
)
@pytest.mark.parametrize("name", [".env", ".env.local"])
def test_of_a_dotenv_only_names_are_shown(tmp_path, name, line, shown):
    (tmp_path / name).write_text(f"A=1\n{line}\nB=2\n", encoding="utf-8")
    assert source_of(str(tmp_path / name)).split("\n") == ["A=…", shown, "B=…", ""]


SUITE = """\
name: s
target: echo
tests:
  - {id: a, input: x, assert: [contains: x]}
  - {id: b, input: x, assert: [contains: x]NEEDS}
  - {id: c, input: x, assert: [contains: x]}
"""
WHOLE = {"a": "passed", "b": "passed", "c": "passed"}


class Runs:
    """A suite, its past runs, and the selection of `--last-failed` after them."""

    def __init__(self, root):
        self.root = root
        self.number = 0
        self.suite()
        (root / "other.jsonl").write_text('{"id": "a", "input": "other", "assert": [{"contains": "o"}]}\n')

    def suite(self, needs=""):
        repository(self.root, {"s.eval.yaml": SUITE.replace("NEEDS", needs)})

    def prepared(self, **settings):
        return prepare(EvalSettings(paths=(str(self.root / "s.eval.yaml"),), process_env={}, **settings))

    def ran(self, rows, **settings):
        """Write a run with these rows and return its directory."""
        self.number += 1
        prepared = self.prepared(**settings)
        run = self.root / f".agentv/results/20261123T1748{self.number:02}Z-aaaa"
        run.mkdir(parents=True)
        (run / "run.json").write_text(json.dumps(record_of(prepared, run.name, PreviousRun())))
        ended = [row_of(trial, rows[trial.case.id]) for trial in prepared.plan if trial.case.id in rows]
        (run / "index.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ended))
        return run

    def selected(self, **settings):
        found = last_failed(self.prepared(**settings).plan, self.root, str(self.root), settings.get("tests_from"))
        cases = "".join(sorted(key[2] for key in found.trials.keys)) if found.trials is not None else ""
        return cases, [note.replace(str(self.root), "") for note in found.notes]


def row_of(trial, status):
    score = {"passed": 1.0, "failed": 0.0}.get(status)
    facts = {"test_id": trial.case.id, "suite": "s", "eval_path": "s.eval.yaml", "target": trial.target.name}
    facts |= {"key": trial.key, "status": status, "score": score, "scores": [], "threshold": trial.threshold}
    return {**facts, "input": [], "case_sha256": "", "schema_version": 1}


@pytest.fixture
def runs(tmp_path):
    return Runs(tmp_path)


def test_a_dependent_that_did_not_run_because_of_a_failure_runs_with_it(runs):
    runs.suite(", depends_on: [a]")
    runs.ran(WHOLE)
    runs.ran({"a": "failed", "c": "passed"})
    assert runs.selected() == ("ab", [])
    runs.ran(WHOLE, filter="b")  # and its dependency
    assert runs.selected() == ("", [])


def test_cases_without_an_earlier_outcome_are_left_out_and_named(runs):
    runs.ran({"c": "failed"}, filter="c")
    assert runs.selected() == ("c", ["--last-failed: 2 cases without an earlier outcome are left out: a, b"])


def test_cases_of_another_file_are_other_cases(runs):
    other = str(runs.root / "other.jsonl")
    runs.ran({**WHOLE, "a": "failed"})
    runs.ran({"a": "passed"}, tests_from=other)
    assert runs.selected() == ("a", [])
    assert runs.selected(tests_from=other) == ("", [])


@pytest.mark.parametrize("index", [None, "torn\n"])
def test_what_a_damaged_run_may_have_had_runs_again(runs, index):
    runs.ran(WHOLE)
    damaged = runs.ran({**WHOLE, "c": "failed"})
    (damaged / "index.jsonl").unlink()
    if index is not None:
        (damaged / "index.jsonl").write_text(index + "{}\n")
    runs.ran({"b": "passed"}, filter="b")
    selected, (note,) = runs.selected()
    assert (selected, note.startswith(f"--last-failed runs the cases of the run {damaged.name} again: ")) == (
        "ac",
        True,
    )


def test_a_foreign_run_is_ignored_and_it_says_so(runs):
    runs.ran({**WHOLE, "c": "failed"})
    foreign = runs.ran(WHOLE)
    suite = {"name": "s", "path": "s.eval.yaml"}
    for suites in ([1], [{**suite, "targets": 3}], [{**suite, "targets": ["t"]}], [{}], None):
        (foreign / "run.json").write_text(json.dumps({"suites": suites, "settings": {}, "planned": {"trials": 3}}))
        why = f"/.agentv/results/{foreign.name}/run.json does not describe a run"
        assert runs.selected() == ("c", [f"--last-failed ignores the run {foreign.name}: {why}"])
