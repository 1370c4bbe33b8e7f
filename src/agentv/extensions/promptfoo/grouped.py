"""Diagnostics grouped by what can be done about them."""

from __future__ import annotations

import os
from collections.abc import Iterable

from agentv.errors import Diagnostic
from agentv.reports.text.escaping import one_line, safe
from agentv.reports.text.paths import shown_from

PLACES = 8
"""Places of one message that are listed."""


def render_groups(found: Iterable[Diagnostic], *, here: str | None = None) -> str:
    """Each hint once, and under it the messages that it mends, with their places; those without a hint come last.

    Args:
        found: in any order.
        here: the directory that paths are shown from; the working directory if None.
    """
    directory = here or os.getcwd()  # noqa: PTH109  # text, as all paths of spans are
    groups: dict[str, dict[str, list[str]]] = {}
    for one in sorted(found, key=lambda one: one.order):
        group = groups.setdefault(one.hint or "", {})
        group.setdefault(one.message, []).append(_place(one, directory))
    lines: list[str] = []
    for hint in sorted(groups, key=lambda hint: not hint):
        indent = "  "
        if hint:
            lines.append(f"  {one_line(safe(hint))}")
            indent = "    "
        lines += [f"{indent}{_shown(places)}: {one_line(safe(message))}" for message, places in groups[hint].items()]
    return "\n".join(lines)


def _place(found: Diagnostic, here: str) -> str:
    span = found.span
    return f"{shown_from(span.file, here)}:{span.line}:{span.column}" if span is not None else "the configuration"


def _shown(places: list[str]) -> str:
    """The first places, and how many more there are."""
    listed = ", ".join(places[:PLACES])
    return f"{listed} and {len(places) - PLACES} more" if len(places) > PLACES else listed
