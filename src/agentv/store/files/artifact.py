"""Paths of artifacts, as rows name them."""

from __future__ import annotations

from pathlib import Path

from agentv.model.values.response import Failure


def artifact(directory: Path, named: str) -> Path | Failure:
    """The path of a file of a run, or a failure if it is outside the run's directory, also by links.

    Args:
        directory: of the run.
        named: relative to it.
    """
    root = directory.resolve()
    try:
        found = (root / named).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        return Failure("bad-trace", f"'{named[:80]}' is no path: {error}")
    if not found.is_relative_to(root):
        return Failure("bad-trace", f"'{named}' is outside the run's directory")
    return found
