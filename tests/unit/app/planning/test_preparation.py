"""What is prepared before a run: as many workers as files may be open, stores of answers, and excerpts."""

import resource

import pytest

from agentv.app.planning.answer_sources import LayeredStore
from agentv.app.planning.excerpts import source_of
from agentv.app.planning.preparation import PER_CALL, PER_PROGRAM, RESERVE, workers_within
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import TargetResponse
from agentv.targets.cli.target import Cli
from agentv.targets.mock import Echo
from agentv.targets.openai_compatible.openai import OpenAI
from doubles.stores import MemoryStore, call
from doubles.trials import finished, trial


def targets(providers):
    found = {"openai": OpenAI("gpt"), "echo": Echo(), "cli": Cli("true")}
    return [TargetSpec(name, name, found.get(name)) for name in providers]


@pytest.fixture
def limited(monkeypatch):
    """The system's limit, of a soft and a hard number."""
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


def test_rows_are_the_runs_own_and_closing_closes_nothing(stores):
    own, *others = stores
    layered = LayeredStore(own, others)
    result = finished(trial=trial("a", key="a"))
    assert layered.finish(result) is result
    assert list(layered.finished()) == ["a"]
    layered.close()
    assert [one.closed for one in stores] == [False] * 3
    assert [one.results for one in stores] == [[result], [], []]


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
