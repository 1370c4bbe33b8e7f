"""State that the hooks and the collected files of one pytest session share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from agentv.pytest_plugin.running import Runs

RUNS: pytest.StashKey[Runs] = pytest.StashKey()
NOT_COLLECTED: pytest.StashKey[list[str]] = pytest.StashKey()
"""Eval files that were found but not collected."""

EXAMS: pytest.StashKey[list[str]] = pytest.StashKey()
"""Prompt exams that were found; they are not collected."""

PROJECT_MARKS: pytest.StashKey[set[str]] = pytest.StashKey()
"""Marks that the project declares, and tags of its eval files."""


def is_reserved(config: pytest.Config, tag: str) -> bool:
    """Return whether a tag cannot be a mark, or pytest or a plugin defines this mark; otherwise register it."""
    if tag.startswith("_") or mark_of(tag) != tag:
        return True
    own = config.stash[PROJECT_MARKS]
    if tag not in own and tag in {mark_of(line) for line in config.getini("markers")}:
        return True
    if tag not in own:
        own.add(tag)
        config.addinivalue_line("markers", f"{tag}: cases of eval files with this tag")
    return False


def mark_of(line: str) -> str:
    """Return the name in a line of the ini option `markers`: `timeout(seconds): …` → `timeout`."""
    return line.partition(":")[0].partition("(")[0].strip()
