"""Files of a target's command that are not where it runs, but beside the eval file, where AgentV runs commands."""

from __future__ import annotations

import os

from msgspec.structs import replace

from agentv.authoring.code.command_files import paths_of_command
from agentv.authoring.code.fingerprints import commands_of
from agentv.authoring.fields.reading import FROM_PROJECT, Reading
from agentv.authoring.source.files import exists, is_file
from agentv.authoring.source.nodes import Node
from agentv.model.suite.search_paths import SearchPaths


def report_misplaced(settings: object, at: Node, search: SearchPaths, reading: Reading) -> None:
    """Report files that a command names, that do not exist from where it runs, and that exist from the eval file.

    Args:
        settings: of a target of a project file; others are not checked.
        at: the command, or the target.
        search: where the target's environment has code looked for.
        reading: of the file that holds the target.
    """
    home, beside = reading.places.suite, reading.places.beside
    for command in commands_of(settings) if beside not in (None, home) else ():
        there = os.path.normpath(f"{beside}{os.sep}{os.path.relpath(command.cwd, home)}")
        known = paths_of_command(command, search)
        for path in paths_of_command(replace(command, cwd=there), search):
            written = os.path.relpath(path, there)
            here = os.path.normpath(f"{command.cwd}{os.sep}{written}")
            if path not in known and written in str(command) and is_file(path) and not exists(here):
                hint = f"did you mean '{os.path.relpath(path, command.cwd)}'?"
                message = f"file '{written}' does not exist where this command runs"
                reading.report.error("missing-file", at, message, hint=hint, notes=(FROM_PROJECT,))
