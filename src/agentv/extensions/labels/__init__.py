"""Labels by people, how well judges agree with them, and what that says of pass rates."""

COMMANDS = {
    "label": "agentv.extensions.labels.commands.label:command",
    "judge": "agentv.extensions.labels.commands.judge:group",
}

COMMAND_SECTIONS = {"label": "Judge", "judge": "Judge"}

OPTIONS = {
    "view --label": "agentv.extensions.labels.commands.label:LABEL",
    "view --by": "agentv.extensions.labels.commands.label:BY",
}

ENDPOINTS = {
    "label": "agentv.extensions.labels.pages.labelling:LABELLING",
    "judge": "agentv.extensions.labels.pages.judges:JUDGES",
    "rate": "agentv.extensions.labels.pages.rating:RATING",
}

PORTS = {"LabelledRuns": "agentv.extensions.labels.of_runs:OfRuns"}
