"""Files that decide how hidden tests run, which an agent changed: a `conftest.py` can report any test as passed.

Only those count that a test runner finds on its way to a hidden file: in its directory, and in those above. Of files
that configure many tools, only their sections on pytest count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from agentv.workspaces.changes.diff import shown_path
from agentv.workspaces.changes.protected import changed_paths
from agentv.workspaces.changes.snapshot import Snapshot

_WHOLE = re.compile(
    r"conftest\.py|\.?pytest\.(?:ini|toml)|\.mocharc(?:\.\w+)?|(?:jest|vitest|playwright|karma)\.config\.\w+"
    r"|phpunit\.xml(?:\.dist)?"
)
_WITH_SECTIONS = frozenset({"pyproject.toml", "tox.ini", "setup.cfg"})
_SECTION = re.compile(r"^\[(?:tool\.pytest[^\]]*|pytest|tool:pytest)\][^\n]*\n?(?:(?!\[)[^\n]*\n?)*", re.MULTILINE)


def changed_test_config(hidden: Iterable[str], before: Snapshot, now: Snapshot) -> tuple[bytes, ...]:
    """The paths of changed files that decide, or may decide by a section, how hidden tests run.

    Args:
        hidden: paths of the hidden files, which are copied over those of the agent.
        before: the state of the workspace at the baseline.
        now: its final state.
    """
    copied = set(hidden)
    directories = {str(above) for path in copied for above in PurePosixPath(path).parents}
    return tuple(
        path
        for path in sorted(changed_paths(before, now))
        if (place := PurePosixPath(shown_path(path))).as_posix() not in copied
        and str(place.parent) in directories
        and (has_sections(path) or _WHOLE.fullmatch(place.name))
    )


def has_sections(path: bytes) -> bool:
    """Whether a file configures many tools, a section each."""
    return PurePosixPath(shown_path(path)).name in _WITH_SECTIONS


def sections(text: str) -> list[str]:
    """The sections on pytest of such a file."""
    return [one.strip() for one in _SECTION.findall(text)]
