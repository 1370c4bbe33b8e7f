"""`agentv targets`, in tables for people and as JSON for programs. No value of a variable is shown anywhere."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from agentv.model.suite.configured import CheckOutcome, KeyFact, ListedProvider, ListedTarget, TargetsListing
from agentv.model.values.formatting import duration
from agentv.model.values.values import Json
from agentv.reports.text.escaping import one_line
from agentv.reports.text.paths import shown_from

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_STYLES = {"ok": "green", "set": "green", "failed": "red", "not set": "red", "dim": "dim", "untried": "dim"}
_PROBLEMS = {"missing-extra": "library missing", "not-yet": "not supported yet"}
_WHOLE = frozenset({"NAME", "TARGET", "CHECK", "KEY"})
"""Columns whose texts are not broken as long as there is room."""

LONGEST_AGENT = 60
"""Characters of an agent's name and version that are shown."""

Cell = tuple[str, str | None]
"""Text and the name of its style."""


def render_targets(listing: TargetsListing, *, here: str, width: int = 100, color: bool = False) -> str:
    """Configured targets, their problems, and other targets that could be used.

    Args:
        listing: what to show.
        here: absolute path of the directory that paths are shown from.
        width: columns of the terminal.
        color: paint with escape sequences.
    """
    from rich.console import Console

    page = io.StringIO()
    looks: dict[str, Any] = {"force_terminal": color, "color_system": "standard" if color else None}
    console = Console(file=page, width=width, highlight=False, emoji=False, markup=False, **looks)
    _draw(console, listing, here)
    return "\n".join(line.rstrip() for line in page.getvalue().rstrip("\n").split("\n"))


def _draw(console: Console, listing: TargetsListing, here: str) -> None:
    if listing.targets:
        if listing.file and any(one.place for one in listing.targets):
            console.print(_text(f"targets of {shown_from(listing.file, here)}", "dim"))
        _table(console, *_targets(listing, here))
        for line in (*_roles(listing.targets), *_wrongs(listing.targets)):
            console.print(_text(*line))
        console.print()
    else:
        where = f"{shown_from(listing.file, here)} has no targets" if listing.file else "no .agentv/targets.yaml here"
        console.print(_text(f"{where}; none is needed: use the names under TARGET", None))
        console.print()
    if not listing.targets:
        _table(console, ("TARGET", "KEY", "DESCRIPTION"), map(_provider, (*listing.models, *listing.others)))
        console.print()
    for sandbox in listing.sandboxes:
        console.print(_text(sandbox, None), soft_wrap=True)
    for note in _besides(listing):
        console.print(_text(note, None), soft_wrap=False)


def _targets(listing: TargetsListing, here: str) -> tuple[tuple[str, ...], Iterator[list[Cell]]]:
    """Headings and rows; a column that says nothing of any target is left out."""
    targets = listing.targets
    columns: dict[str, list[Cell]] = {
        "NAME": [(one.name, None) for one in targets],
        "DESCRIPTION": [(_what(one), None) for one in targets],
        "KEY": [_keys(one) for one in targets],
        "CHECK": [_check(one.check) for one in targets],
        "LINE": [_where(one, listing.file, here) for one in targets],
    }
    filled = {name: cells for name, cells in columns.items() if any(text for text, _ in cells)}
    return tuple(filled), (list(row) for row in zip(*filled.values(), strict=True))


def _what(target: ListedTarget) -> str:
    """`openai:gpt-5-mini`; nothing where the name says it."""
    what = f"{target.provider}:{target.model}" if target.model else target.provider
    return "" if what == target.name else what


def _where(target: ListedTarget, file: str | None, here: str) -> Cell:
    if target.place is None:
        return ("", None)
    path, line = target.place
    return (str(line) if path == file else f"{shown_from(path, here)}:{line}", "dim")


def _roles(targets: Iterable[ListedTarget]) -> Iterator[Cell]:
    """What some are to the project, below the table."""
    roles = [f"{one_line(one.name)} is the {mark}" for one in targets for mark in one.marks]
    if roles:
        yield "", None
        yield "; ".join(roles), None


def _keys(target: ListedTarget) -> Cell:
    if target.problem is not None:
        return (_PROBLEMS.get(target.problem_code or "", "cannot be used"), "not set")
    if target.keys:
        return _facts(target.keys)
    if target.written:
        return ("in the file", "dim")
    return _no_facts(finds_keys=target.finds_keys)


def _no_facts(*, finds_keys: bool) -> Cell:
    return ("the variable of its provider" if finds_keys else "needs none", "dim")


def _facts(keys: Iterable[KeyFact]) -> Cell:
    lacking = [" or ".join(key.names) for key in keys if key.found is None]
    if lacking:
        return (f"{', '.join(lacking)} not set", "not set")
    return (f"{', '.join(key.found or '' for key in keys)} set", "set")


def _check(check: CheckOutcome | None) -> Cell:
    if check is None:
        return ("", None)
    if check.state == "ok":
        agent = f", {one_line(check.agent, LONGEST_AGENT)}" if check.agent else ""
        return (f"ok, {_duration(check)}{agent}", "ok")
    return ("failed", "failed") if check.state == "failed" else ("not called", "untried")


def _duration(check: CheckOutcome) -> str:
    took = check.duration_ms or 0.0
    return f"{took:.0f} ms" if took < 10_000 else duration(took)


def _wrongs(targets: Iterable[ListedTarget]) -> Iterator[Cell]:
    """What did not work, each with what to do about it."""
    for one in targets:
        check = one.check
        if check is not None and check.state == "failed":
            yield "", None
            yield f"{one_line(one.name)}: {check.code}: {one_line(check.message or '', 400)}", "failed"
            yield from _indented(check.fix)
        elif check is None and one.problem is not None:
            yield "", None
            yield f"{one_line(one.name)}: {one_line(one.problem)}", "failed"
            yield from _indented(one.fix)


def _indented(fix: str | None) -> Iterator[Cell]:
    if fix:
        yield f"   {one_line(fix)}", None


def _provider(one: ListedProvider) -> list[Cell]:
    if one.fix is not None:
        return [(one.example, None), (one.fix, "not set"), (one.summary, "dim")]
    keys = _facts(one.keys) if one.keys else _no_facts(finds_keys=one.finds_keys)
    return [(one.example, None), keys, (one.summary, "dim")]


def _besides(listing: TargetsListing) -> Iterator[str]:
    """Targets that work without configuration, with the keys that are set."""
    providers = (*listing.models, *listing.others)
    usable = [one.example for one in providers if one.usable and one.keys]
    if listing.targets and usable:
        yield f"Usable without configuration, with the keys that are set: {', '.join(usable)}"
    elif usable:
        yield f"With the keys that are set: agentv eval evals/ --target {usable[0]}"
    found = [key.found for target in listing.targets for key in target.keys if key.found]
    found += [key.found for one in providers for key in one.keys if key.found]
    if not usable and not found:
        names = next((key.names[0] for one in listing.models for key in one.keys), None)
        yield f"No key is set. Set keys in the environment or in a .env file, such as {names}=…" if names else ""


def _table(console: Console, headings: Sequence[str], rows: Iterable[list[Cell]]) -> None:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold", no_wrap=heading in _WHOLE)
    for row in rows:
        table.add_row(*(_text(one_line(text), style) for text, style in row))
    console.print(table)


def _text(text: str, style: str | None) -> Text:
    from rich.text import Text

    return Text(text, _STYLES.get(style or "", ""))


def targets_json(listing: TargetsListing, *, here: str) -> str:
    """One JSON object: `file`, `targets` and `providers`; each target has the result of its test call under `check`."""
    shown: dict[str, Json] = {
        "file": shown_from(listing.file, here) if listing.file else None,
        "targets": [_target_json(one, here) for one in listing.targets],
        "providers": [{**to_builtins(one), "usable": one.usable} for one in (*listing.models, *listing.others)],
        **({"sandboxes": list(listing.sandboxes)} if listing.sandboxes else {}),
    }
    return json.dumps(shown, indent=2)


def _target_json(target: ListedTarget, here: str) -> Json:
    found: dict[str, Json] = to_builtins(target)
    del found["place"]
    return {**found, "source": f"{shown_from(target.place[0], here)}:{target.place[1]}" if target.place else None}
