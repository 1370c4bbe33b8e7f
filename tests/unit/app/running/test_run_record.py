"""What `run.json` says of a run at its end."""

from __future__ import annotations

import pytest

from agentv.app.running.run_record import with_agent_versions


@pytest.mark.parametrize(
    ("before", "versions", "after"),
    [
        ({}, {}, None),
        ({}, {"claude": {"2.1", "2.0"}}, {"claude": ["2.0", "2.1"]}),
        ({"agent_versions": {"claude": ["2.0"]}}, {"claude": {"2.0"}}, None),
        ({"agent_versions": {"claude": ["2.0"]}}, {"codex": {"1"}}, {"claude": ["2.0"], "codex": ["1"]}),
        ({"agent_versions": "edited"}, {"codex": {"1"}}, {"codex": ["1"]}),
        ({"agent_versions": {"claude": [["edited"], 7]}}, {"claude": {"2.0"}}, {"claude": ["2.0"]}),
    ],
)
def test_versions_of_agents_are_those_of_all_processes(before, versions, after):
    found = with_agent_versions({"run_id": "x", **before}, versions)
    assert found == (None if after is None else {"run_id": "x", "agent_versions": after})
