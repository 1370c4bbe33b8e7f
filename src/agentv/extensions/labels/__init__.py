"""Labels by people, judges' agreement with them, and pass rates corrected by them."""

COMMANDS = {
    "label": "agentv.extensions.labels.commands:command",
    "judge": "agentv.extensions.labels.commands:group",
}

COMMAND_SECTIONS = {"label": "Judge", "judge": "Judge"}

OPTIONS = {
    "view --label": "agentv.extensions.labels.commands:LABEL",
    "view --by": "agentv.extensions.labels.commands:BY",
}

ENDPOINTS = {
    "label": "agentv.extensions.labels.pages:LABELLING",
    "judge": "agentv.extensions.labels.pages:JUDGES",
    "rate": "agentv.extensions.labels.pages:RATING",
}

PORTS = {"LabelledRuns": "agentv.extensions.labels.labelled_runs:StoredLabels"}
