"""Agents as targets: workspaces, sandboxes, traces, scripted tools, the gateway, and checks of what agents did."""

COMMANDS = {
    "prepare": "agentv.extensions.agents.commands.prepare:command",
    "grade": "agentv.extensions.agents.commands.grade:command",
    "check": "agentv.extensions.agents.commands.check:command",
    "trace": "agentv.extensions.agents.commands.trace:group",
    "import": "agentv.extensions.agents.commands.importing:command",
}
