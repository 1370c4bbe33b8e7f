"""The recording used for a trial, and the values named in its prompts."""

from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from agentv.extensions.agents.trial.works import exchanges_of, placeholders_of, recorded_call
from agentv.model.suite.conversation import Turn
from agentv.model.suite.suite import Suite
from agentv.model.suite.tools import ModelUpstream
from agentv.model.suite.workspace import Variant, WorkspaceSpec
from agentv.model.values.message import Message
from doubles import trials
from doubles.given_workspaces import FakeWorkspace

TRIAL = trials.trial("a")


def of_case(**change):
    return replace(TRIAL, case=replace(TRIAL.case, **change))


def turns(*texts):
    return of_case(turns=tuple(Turn((Message("user", text),)) for text in texts))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (TRIAL, replace(TRIAL, sample=2)),
        (TRIAL, of_case(id="b")),
        (TRIAL, of_case(input=(Message("user", "another"),))),
        (TRIAL, of_case(workspace=WorkspaceSpec(sha256="x"))),
        (of_case(workspace=WorkspaceSpec(sha256="x")), of_case(workspace=WorkspaceSpec(sha256="y"))),
        (TRIAL, replace(TRIAL, variant=Variant("bare", sha256="v"))),
        (TRIAL, replace(TRIAL, target=replace(TRIAL.target, fingerprint="other"))),
        (turns("one", "two"), turns("one", "three")),
    ],
)
def test_whatever_the_agent_gets_tells_recordings_apart(one, other):
    assert recorded_call(one).key == recorded_call(one).key != recorded_call(other).key


def test_a_trial_whose_calls_do_not_pass_the_gateway_has_none():
    opened = SimpleNamespace(open=lambda call: ("opened", call.key))
    assert exchanges_of(TRIAL, opened) is None
    through = replace(TRIAL, target=replace(TRIAL.target, upstream=ModelUpstream("openai", "http://x", "k")))
    assert exchanges_of(through, opened) == ("opened", recorded_call(TRIAL).key)
    assert exchanges_of(through, None) is None


def test_paths_of_the_trial_and_its_token_are_named():
    trial = replace(TRIAL, suite=Suite("s", (), root="/repo"))
    named = placeholders_of(trial, FakeWorkspace([]), "agentv-trial-1")
    assert named["/workspaces/1"] == "[workspace]"
    assert named["agentv-trial-1"] == "[token]"
    assert named["/repo"] == "[repository]"
    assert "/workspaces" not in named
    assert "" not in placeholders_of(TRIAL, None, "")
    workspace = FakeWorkspace([])
    workspace.path, workspace.sandbox = "/runs/1/workspace", SimpleNamespace(home="/runs/1/home")
    assert placeholders_of(trial, workspace, "t")["/runs/1"] == "[trial]"
