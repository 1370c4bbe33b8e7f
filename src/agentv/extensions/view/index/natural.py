"""Order of names in which numbers count as numbers."""

from __future__ import annotations

import re

_DIGITS = re.compile(r"\d+")


def natural_key(name: str) -> str:
    """A text that sorts as people sort a name: `case-9` before `case-10`, whatever the case of its letters."""
    return _DIGITS.sub(_as_number, name.casefold())


def _as_number(found: re.Match[str]) -> str:
    digits = found[0].lstrip("0") or "0"
    return f"{len(digits):04d}{digits}"
