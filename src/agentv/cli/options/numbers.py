"""What an option takes that wants a number, in words."""

from __future__ import annotations

from typing import Any

import click
from click.types import FloatParamType, IntParamType, IntRange


def expected_number(kind: click.ParamType[Any]) -> str | None:
    """`a whole number of 1 or more`, `a number above 0 and below 1`; None if the option takes no number."""
    if not isinstance(kind, IntParamType | FloatParamType):
        return None
    what = "a whole number" if isinstance(kind, IntParamType) else "a number"
    if not isinstance(kind, IntRange | click.FloatRange):
        return what
    low, high = kind.min, kind.max
    if low is None or high is None or kind.min_open or kind.max_open:
        at_least = "" if low is None else f"above {low:g}" if kind.min_open else f"of {low:g} or more"
        at_most = "" if high is None else f"below {high:g}" if kind.max_open else f"at most {high:g}"
        return f"{what} {' and '.join(one for one in (at_least, at_most) if one)}".rstrip()
    return f"{what} from {low:g} to {high:,}"
