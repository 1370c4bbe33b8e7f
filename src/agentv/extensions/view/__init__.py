"""The pages: runs in a browser, live while they run, and as an HTML file that needs nothing else."""

COMMANDS = {"view": "agentv.extensions.view.command:command"}
