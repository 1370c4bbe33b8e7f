"""Regular expressions that are compiled when they are first used.

A command loads a hundred of them and uses a few: to compile them all took a tenth of its start.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split", "pattern", "flags", "groups")


class _Lazy:
    def __init__(self, *said: Any) -> None:
        self._said = said

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(name)
        compiled = re.compile(*self._said)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))  # so that nobody comes by here again
        return getattr(compiled, name)


def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As `re.compile`, once it is used."""
    return cast("re.Pattern[AnyStr]", _Lazy(pattern, flags))
