"""Where agents' programs are searched, and the messages when they are missing."""

import sys

from agentv.extensions.agents.adapters.native_settings import AgentProgram


def test_a_program_in_a_package_is_found_before_one_on_path(tmp_path, monkeypatch):
    (tmp_path / "package_with_agent/bin").mkdir(parents=True)
    (tmp_path / "package_with_agent/__init__.py").touch()
    program = tmp_path / "package_with_agent/bin/no-such-agent"
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    found = AgentProgram("no-such-agent", module="package_with_agent", path="bin/no-such-agent")
    assert found.find() == "no-such-agent"
    program.touch(0o755)
    assert found.find() == str(program)
    assert found.missing("x") is None
