"""The directory of agentv in a user's home."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def agentv_home(env: Mapping[str, str]) -> Path:
    """`$AGENTV_HOME`, else `~/.agentv`.

    Raises:
        RuntimeError: the user has no home.
    """
    home = env.get("AGENTV_HOME")
    return Path(home).absolute() if home else Path.home() / ".agentv"
