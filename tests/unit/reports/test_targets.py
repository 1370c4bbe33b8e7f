import json

import pytest
from msgspec.structs import replace

from agentv.model.suite.configured import (
    AgentCheck,
    CheckOutcome,
    KeyVariables,
    ListedProvider,
    ListedTarget,
    TargetsListing,
)
from agentv.reports.targets import render_targets, targets_data

FILE = "/repo/.agentv/targets.yaml"
MINI = ListedTarget(
    "mini",
    "openai",
    "gpt-5-mini",
    (FILE, 2),
    ("default target",),
    (KeyVariables(("OPENAI_API_KEY",), "OPENAI_API_KEY"),),
)
SONNET = ListedTarget(
    "sonnet", "anthropic", "claude-sonnet-5", (FILE, 6), ("judge of mini",), (KeyVariables(("A", "B")),)
)
OPENAI = ListedProvider("openai", "Asks OpenAI.", "openai:gpt-5-mini", MINI.keys)
LISTING = TargetsListing(FILE, (MINI, SONNET), (OPENAI,), (ListedProvider("echo", "Answers.", "echo"),))


def shown(*targets, **changed):
    given = {"targets": targets or LISTING.targets, **changed}
    return render_targets(replace(LISTING, **given), here="/repo", width=200).splitlines()


@pytest.mark.parametrize(
    ("check", "lines"),
    [
        (CheckOutcome("ok", 412.4), ["ok, 412 ms"]),
        (
            CheckOutcome("ok", 412.4, agent=AgentCheck("scripted\x1b[2J", "1.2.3", sandbox="none")),
            [
                "ok, 412 ms",
                "mini: scripted\\x1b[2J 1.2.3; sandbox none; model calls do not pass the gateway; cost unknown",
            ],
        ),
        (
            CheckOutcome(
                "ok", 9.0, agent=AgentCheck("pi", "2.0", ("0.74", "1.6"), True, "bwrap", "openai", 2, 1204, 0.0021)
            ),
            [
                (
                    "mini: pi 2.0 (not a tested version; tested: 0.74, 1.6); sandbox bwrap; gateway (openai); "
                    "2 turns, 1,204 tokens, $0.0021"
                )
            ],
        ),
        (CheckOutcome("untried"), ["not called"]),
        (
            CheckOutcome("failed", 5.0, "http-status", "401\x1b[2J", "look"),
            ["failed", r"mini: http-status: 401\x1b[2J", "   look"],
        ),
    ],
)
def test_what_a_call_came_to(check, lines):
    page = "\n".join(shown(replace(MINI, check=check)))
    assert [line for line in lines if line not in page] == []


def test_what_is_missing_is_said_with_what_to_do():
    page = shown(replace(MINI, keys=(), problem="it needs x", fix="pip install x"))
    assert {"mini: it needs x", "   pip install x"} <= set(page)


def test_without_a_key_it_says_where_keys_go():
    keyless = replace(OPENAI, keys=(KeyVariables(("OPENAI_API_KEY",)),))
    page = render_targets(TargetsListing(None, (), (keyless,)), here="/repo")
    assert "No key is set. Set keys in the environment or in a .env file, such as OPENAI_API_KEY=…" in page


@pytest.mark.parametrize("targets", [(), (replace(MINI, keys=(KeyVariables(("MY_KEY",), "MY_KEY"),)),)])
def test_where_a_key_is_set_nothing_says_that_none_is(targets):
    halves = (KeyVariables(("AZURE_API_KEY",), None if targets else "AZURE_API_KEY"), KeyVariables(("AZURE_ENDPOINT",)))
    page = render_targets(TargetsListing(None, targets, (replace(OPENAI, keys=halves),)), here="/repo")
    assert "No key is set" not in page


def test_json():
    found = json.loads(json.dumps(targets_data(LISTING, here="/repo")))
    assert found["file"] == ".agentv/targets.yaml"
    assert found["targets"][1]["source"] == ".agentv/targets.yaml:6"
    assert [one["usable"] for one in found["providers"]] == [True, True]
