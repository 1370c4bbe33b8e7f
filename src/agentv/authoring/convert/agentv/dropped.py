"""Keys without effect, taken out of a text: they are named by the diagnostics about a file.

Pure: text in, text out. Whoever uses it makes sure that the result means the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentv.authoring.convert.agentv.entries import Entry, entry_at, without
from agentv.errors import Diagnostic

NO_EFFECT = "no-effect"
"""Code of the diagnostics that name such keys."""

_NAMES = re.compile(r"'([^']+)'(?=[,' ]*(?:(?:'[^']+')[, ]*)*(?:has|have) no effect)")


def names_in(found: Diagnostic) -> list[str]:
    """The keys that a diagnostic says have no effect; the last part of one with dots."""
    if found.code != NO_EFFECT:
        return []
    return [name.rpartition(".")[2] for name in _NAMES.findall(found.message)]


def without_key(text: str, name: str) -> Iterator[str]:
    """The text without one entry of a name, for every place where the name is a key."""
    for match in re.finditer(rf"""(?:^|(?<=[\s{{,]))['"]?{re.escape(name)}['"]?[ \t]*:""", text, re.MULTILINE):
        entry: Entry | None = entry_at(text, match.start())
        made = without(text, entry) if entry is not None and entry.name == name else None
        if made is not None:
            yield made
