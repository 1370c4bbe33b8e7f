"""The text of authored files, for the excerpts under diagnostics."""

from __future__ import annotations

import re
from pathlib import Path

_NAME = re.compile(r"\s*(?:export\s+)?[A-Z_][A-Z0-9_.-]*\s*=")
"""The name in a line of a `.env`. In capitals: other text before a `=` may be the end of a key's base64."""


def source_of(path: str) -> str | None:
    """The text of an authored file, for an excerpt; None where it cannot be read. Of a `.env` only names are shown."""
    if not Path(path).is_file():
        return None
    try:
        text = Path(path).read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return None
    return "\n".join(map(_masked, text.split("\n"))) if Path(path).name.startswith(".env") else text


def _masked(line: str) -> str:
    """A line of a `.env` with its value hidden: it may be a secret, and so may a line without a name."""
    name = _NAME.match(line)
    return f"{name[0]}…" if name else "…" if line.strip() else ""
