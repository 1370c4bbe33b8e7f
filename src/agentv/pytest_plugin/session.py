"""State that the hooks and the collected files of one pytest session share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from agentv.pytest_plugin.running import Runs

RUNS: pytest.StashKey[Runs] = pytest.StashKey()
LEFT: pytest.StashKey[list[str]] = pytest.StashKey()
"""Eval files that were seen and left alone."""

EXAMS: pytest.StashKey[list[str]] = pytest.StashKey()
"""Prompt exams that were seen."""

OWN: pytest.StashKey[set[str]] = pytest.StashKey()
"""Marks that the project declares, and tags of its eval files."""


def is_taken(config: pytest.Config, tag: str) -> bool:
    """Whether a mark of this name means something to pytest or a plugin. The first time makes it the project's own."""
    own = config.stash[OWN]
    if tag not in own and tag in {mark_of(line) for line in config.getini("markers")}:
        return True
    if tag not in own:
        own.add(tag)
        config.addinivalue_line("markers", f"{tag}: cases of eval files with this tag")
    return False


def mark_of(line: str) -> str:
    """`timeout(seconds): …` → `timeout`."""
    return line.partition(":")[0].partition("(")[0].strip()
