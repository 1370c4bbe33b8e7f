"""Paths as a person would type them."""

from __future__ import annotations

import os
from functools import lru_cache


def shown_from(path: str, here: str) -> str:
    """An absolute path as seen from the directory `here`: relative where that is shorter."""
    return _shown(path, here) if path.startswith("/") else path


@lru_cache(maxsize=1024)
def _shown(path: str, here: str) -> str:
    relative = os.path.relpath(path, here)
    return relative if len(relative) < len(path) else path
