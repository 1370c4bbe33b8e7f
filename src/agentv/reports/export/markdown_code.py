"""Text as code in Markdown, in which nothing is read as Markdown or HTML. Source: CommonMark 0.31, section 6.1."""

from __future__ import annotations

import re

from agentv.reports.text.escaping import one_line, safe

_BACKTICKS = re.compile("`+")


def fenced(text: str, language: str = "text") -> str:
    """The text between fences longer than any that stands in it."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{language}\n{safe(text)}\n{fence}"


def code(text: str, longest: int) -> str:
    """The text as code on one line, cut to so many characters."""
    line = one_line(text, longest) or " "
    fence = "`" * (_longest_run(line) + 1)
    room = " " if line[0] in "` " or line[-1] in "` " else ""  # one space at each end is no part of the code
    return f"{fence}{room}{line}{room}{fence}"


def cell(text: str, longest: int) -> str:
    r"""The text as code in a table, where a `|` ends the cell unless a lone `\\` stands before it."""
    return re.sub(r"\\+(?=\|)", lambda found: f"{found[0]} ", code(text, longest)).replace("|", "\\|")


def _longest_run(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)
