"""Workers within the limit of open files."""

from __future__ import annotations

import resource

import pytest

from agentv.app.planning.preparation import PER_CALL, PER_PROGRAM, RESERVE, workers_within
from agentv.model.suite.suite import TargetSpec
from agentv.targets.cli.target import Cli
from agentv.targets.mock import Echo
from agentv.targets.openai_compatible.openai import OpenAI


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
