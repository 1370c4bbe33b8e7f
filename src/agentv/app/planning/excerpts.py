"""Text of authored files for the excerpts in diagnostics, with secrets redacted."""

from __future__ import annotations

from pathlib import Path

from agentv.authoring.source.boundary import boundary_around
from agentv.authoring.source.files import TABLES, repository_root
from agentv.authoring.source.masking import secrets_in_line
from agentv.model.values.values import lazy_pattern

_NAME = lazy_pattern(r"\s*(?:export\s+)?[A-Z_][A-Z0-9_.-]*\s*=")
"""The name in a line of a `.env`. In capitals: other text before a `=` may be the end of a key's base64."""


def source_of(path: str) -> str | None:
    """The text of an authored file for an excerpt, or None for any other file. Values in a `.env` are left out."""
    if not Path(path).is_file() or path.endswith(TABLES) or _lies_elsewhere(path):
        return None
    try:
        text = Path(path).read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return None
    return "\n".join(map(_masked if Path(path).name.startswith(".env") else _hidden, text.split("\n")))


def _lies_elsewhere(path: str) -> bool:
    """Whether a link leads from a repository to a file outside."""
    directory = str(Path(path).parent)
    return not boundary_around(directory, repository_root(directory)).holds(path)


def _masked(line: str) -> str:
    """A line of a `.env` with its value hidden: it may be a secret, and so may a line without a name."""
    name = _NAME.match(line)
    return f"{name[0]}…" if name else "…" if line.strip() else ""


def _hidden(line: str) -> str:
    """A line of any other file, every letter of a secret in it hidden, so that a caret below it points to its place."""
    if "://" in line or "=" in line or ":" in line:
        for found in secrets_in_line(line):
            line = line.replace(found, "*" * len(found))
    return line
