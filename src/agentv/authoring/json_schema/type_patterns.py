"""Regular expressions of the names of assertion types, in the syntax that Python and JavaScript share."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SHORTEST = 5
"""Letters of a name whose slips are looked for; a shorter one is one slip away from too many words."""

_EXACT = 8
"""Letters of the longest name whose slips are listed one by one."""

_PART = 2
"""Letters of a part of a longer one."""


def spelled(names: Iterable[str]) -> str:
    """A pattern of type names as they may be written: with `_` for `-`, and `not-` in front."""
    return f"^(?:not[-_])*(?:{'|'.join(map(_either_dash, sorted(names)))})$"


def misspelt(names: Iterable[str]) -> str:
    """A pattern of names with one slip: a letter too many, too few, another one, or two that changed places.

    The names themselves may match too.
    """
    slips = "|".join(
        _slip(name) if len(name) <= _EXACT else _part(name) for name in sorted(names) if len(name) >= _SHORTEST
    )
    return f"^(?:not[-_])*(?:{slips})$"


def _slip(name: str) -> str:
    """A pattern of a name with one slip: after its first letter, or at it."""
    first, rest = _either_dash(name[:1]), name[1:]
    if not rest:
        return f".?|.{first}|{first}."
    changed = f"(?:.?|.{first}){_either_dash(rest)}"
    swapped = f"{_either_dash(rest[0])}{first}{_either_dash(rest[1:])}"
    return f"{first}(?:{_slip(rest)})|{changed}|{swapped}"


def _part(name: str) -> str:
    """A pattern of a long name with a slip in one part of it. Shorter than `_slip`, and wrong as rarely."""
    parts = [(name[:at], name[at : at + _PART], name[at + _PART :]) for at in range(0, len(name), _PART)]
    return "|".join(
        f"{_either_dash(before)}.{{{len(part) - 1},{len(part) + 1}}}{_either_dash(after)}"
        for before, part, after in parts
    )


def _either_dash(text: str) -> str:
    return re.sub(r"-", "[-_]", re.escape(text).replace(r"\-", "-"))
