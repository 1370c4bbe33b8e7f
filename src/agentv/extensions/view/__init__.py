"""Runs in a browser: `agentv view` shows them live, and a report is one self-contained HTML file."""

COMMANDS = {"view": "agentv.extensions.view.command:command"}

COMMAND_SECTIONS = {"view": "Read"}

PAGES = {
    "project": "agentv.extensions.view.app:project_application",
    "static": "agentv.extensions.view.app:static_route",
    "version": "agentv.extensions.view.app:static_version",
}

EXPORT_FORMATS = {".html": "agentv.extensions.view.pages.page:rendered"}
