"""Failures of agents."""

from agentv.extensions.agents.adapters.trials import failed

STACK = "\n".join(f"    at step{number} (node:internal/modules/esm/loader:{number}:20)" for number in range(60))
CRASH = (
    f"Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'chalk' imported from /p/cli.js\n{STACK}\n\nNode.js v24.1.0\n"
)


def test_a_crash_of_node_is_told_by_the_line_that_says_why():
    assert "Cannot find package 'chalk'" in failed("agent-stopped", "it ended", stderr=CRASH.encode()).message
    assert failed("agent-stopped", "it ended", stderr=b"a\nno key").message == "it ended; stderr: a\nno key"
    assert failed("agent-stopped", "it ended").message == "it ended"
