"""Paths as a person would type them."""

from __future__ import annotations

import os
from functools import lru_cache

from agentv.model.values.lazy_pattern import lazy_pattern

_ABSOLUTE = lazy_pattern(r"(?<![^\s'\"`(\[=:,])/(?:[^\s/'\"`:]+/)*[^\s/'\"`:,;)\]]+")
"""Absolute paths in a message, also at the end of a clause; neither addresses (`https://…`) nor relative ones."""


def without_directories(message: str) -> str:
    """A message with absolute paths cut to what a reader elsewhere may know: from `.agentv` on, or the file's name."""
    return _ABSOLUTE.sub(lambda found: _inner(found[0]), message)


def _inner(path: str) -> str:
    parts = path.split("/")
    return "/".join(parts[parts.index(".agentv") :]) if ".agentv" in parts else parts[-1]


def shown_from(path: str, here: str) -> str:
    """An absolute path as seen from the directory `here`: relative where that is shorter."""
    return _shown(path, here) if path.startswith("/") else path


@lru_cache(maxsize=1024)
def _shown(path: str, here: str) -> str:
    relative = os.path.relpath(path, here)
    return relative if len(relative) < len(path) else path
