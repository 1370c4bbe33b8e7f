"""What an agent gets of a skill under test: the skill itself, where agents look for skills, and input files."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from agentv.authoring.dialects.skill.skills import Skill

WITH_SKILL = "with-skill"
WITHOUT_SKILL = "without-skill"

PLACES = (".claude/skills", ".agents/skills")
"""Directories of a workspace where agents look for skills: Claude Code in the first, the others in the second."""

_LEFT_OUT = frozenset({"evals", ".git", ".agentv", "__pycache__"})
"""Entries of a skill's directory that an agent does not get; its evals say what is expected of it."""

_INPUTS = ("evals", "files")


def overlay_of(skill: Skill, eval_file: str) -> dict[str, str]:
    """Place in the workspace → path, relative to the directory of the eval file.

    Args:
        skill: with a `SKILL.md`.
        eval_file: absolute; neither it nor what lies beside it below the skill's directory is part of the skill.
    """
    directory, own = Path(skill.directory), Path(eval_file)
    tests = own.relative_to(directory).parts[0]
    names = [one.name for one in sorted(directory.iterdir()) if one.name not in _LEFT_OUT and one.name != tests]
    found = {name: os.path.relpath(directory / name, own.parent) for name in names}
    name = PurePosixPath(skill.meta.id).name or directory.name
    return {f"{place}/{name}/{inner}": path for place in PLACES for inner, path in found.items()}


def place_of(path: str) -> str:
    """Where an input file of an eval lies in the workspace: `evals/files/a.csv` is `a.csv`."""
    parts = [part for part in PurePosixPath(path).parts if part not in {".", "..", "/"}]
    for prefix in _INPUTS:
        parts = parts[1:] if len(parts) > 1 and parts[0] == prefix else parts
    return "/".join(parts) or path
