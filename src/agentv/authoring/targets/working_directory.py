"""The directory in which a target's command runs, where two are meant by one path."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.files import exists, is_directory
from agentv.authoring.source.nodes import Node, Scalar, span_of
from agentv.registry.fields import Command

_FILE = re.compile(r"(?<![\w{}/.$~-])(?:\.{1,2}/)*[\w.-]+(?:/[\w.-]+)*\.(?:py|[cm]?[jt]s|sh|bash|rb|pl)(?![\w{}/])")
"""The path of a program inside a command."""


def in_directory(settings: Any, written: Node | None, reading: Reading) -> Any:
    """The settings with the directory that has the files of their command.

    A path in `.agentv/targets.yaml` begins where `.agentv` is; AgentV begins beside the eval file. The command decides
    where both exist: the first of the two in which all files are that it names.

    Args:
        settings: of a target; others than of a command are given back.
        written: its `cwd`.
        reading: of the file that holds the target.
    """
    if reading.places.second is None or not isinstance(getattr(settings, "command", None), Command):
        return settings
    if not hasattr(settings, "cwd"):
        return settings
    found = _directory(settings.command, written, reading)
    if found is None:
        return settings
    return replace(settings, cwd=found)


def _directory(command: Command, written: Node | None, reading: Reading) -> str | None:
    """Where a command finds its files; None where the usual place has them, or no place has."""
    files = _FILE.findall(str(command))
    text = written.text.strip() if isinstance(written, Scalar) else "."
    if not files or text.startswith("/"):
        return None
    mentioned = span_of(written.at).file if written is not None else ""
    tried = [path for path in reading.places.candidates(text, mentioned) if is_directory(path)]
    homes = [home for home in tried if all(exists(f"{home}/{file}") for file in files)]
    return homes[0] if homes else None
