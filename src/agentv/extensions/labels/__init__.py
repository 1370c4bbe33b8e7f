"""Labels by people, how well judges agree with them, and what that says of pass rates."""

COMMANDS = {
    "label": "agentv.extensions.labels.commands.label:command",
    "judge": "agentv.extensions.labels.commands:group",
}
