"""Output of `agentv targets`, as tables and as JSON. Values of variables are never shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import to_builtins

from agentv.model.suite.configured import (
    MOST_TURNS,
    CheckOutcome,
    KeyVariables,
    ListedProvider,
    ListedTarget,
    TargetsListing,
)
from agentv.model.values.formatting import duration, money, plural
from agentv.model.values.values import Json
from agentv.reports.text import Cell, aligned, one_line, paint, shown_from

_PROBLEMS = {"missing-extra": "library missing", "not-yet": "not supported yet"}

LONGEST_AGENT = 60
"""Characters shown of an agent's name and version."""


def render_targets(listing: TargetsListing, *, here: str, width: int | None = None, color: bool = False) -> str:
    """Configured targets, their problems, and other targets that could be used.

    Args:
        listing: the targets.
        here: absolute path of the directory that paths are relative to.
        width: width of the terminal; None if the output is not a terminal.
        color: use ANSI colors.
    """
    lines: list[Cell | str] = []
    if listing.targets:
        if listing.file and any(one.place for one in listing.targets):
            lines.append((f"targets of {one_line(shown_from(listing.file, here))}", "dim"))
        lines += aligned(_targets(listing, here), color=color)
        lines += (*_roles(listing.targets), *_agents(listing.targets), *_problems(listing.targets), "")
    else:
        where = f"{shown_from(listing.file, here)} has no targets" if listing.file else "no .agentv/targets.yaml here"
        lines += (f"{one_line(where)}; none is needed: use the names under TARGET", "")
        rows = [
            _headings("TARGET", "KEY", "DESCRIPTION"),
            *(_safe(_provider(one)) for one in (*listing.models, *listing.others)),
        ]
        lines += (*aligned(rows, width, color=color), "")
    lines += (*listing.sandboxes, *_hints(listing))
    shown = (line if isinstance(line, str) else paint(*line, color=color) for line in lines)
    return "\n".join(shown).rstrip("\n")


def _headings(*names: str) -> list[Cell]:
    return [(name, "bold") for name in names]


def _safe(row: Iterable[Cell]) -> list[Cell]:
    return [(one_line(text), style) for text, style in row]


def _targets(listing: TargetsListing, here: str) -> list[list[Cell]]:
    """Headings and rows, without columns that are empty for all targets."""
    targets = listing.targets
    described = [f"{one.provider}:{one.model}" if one.model else one.provider for one in targets]
    columns: dict[str, list[Cell]] = {
        "NAME": [(one.name, None) for one in targets],
        "DESCRIPTION": [("" if what == one.name else what, None) for one, what in zip(targets, described, strict=True)],
        "KEY": [_keys(one) for one in targets],
        "CHECK": [_check(one.check) for one in targets],
        "LINE": [_where(one, listing.file, here) for one in targets],
    }
    filled = {name: cells for name, cells in columns.items() if any(text for text, _ in cells)}
    return [_headings(*filled), *map(_safe, zip(*filled.values(), strict=True))]


def _where(target: ListedTarget, file: str | None, here: str) -> Cell:
    if target.place is None:
        return ("", None)
    path, line = target.place
    return (str(line) if path == file else f"{shown_from(path, here)}:{line}", "dim")


def _roles(targets: Iterable[ListedTarget]) -> Iterator[Cell]:
    """A line with the roles of targets in the project, such as the default."""
    roles = [f"{one_line(one.name)} is the {mark}" for one in targets for mark in one.marks]
    if roles:
        yield "", None
        yield "; ".join(roles), None


def _keys(target: ListedTarget) -> Cell:
    if target.problem is not None:
        return (_PROBLEMS.get(target.problem_code or "", "cannot be used"), "failed")
    if target.keys:
        return _facts(target.keys)
    if target.written:
        return ("in the file", "dim")
    return _no_facts(finds_keys=target.finds_keys)


def _no_facts(*, finds_keys: bool) -> Cell:
    return ("the variable of its provider" if finds_keys else "needs none", "dim")


def _facts(keys: Iterable[KeyVariables]) -> Cell:
    lacking = [" or ".join(key.names) for key in keys if key.found is None]
    if lacking:
        return (f"{', '.join(lacking)} not set", "failed")
    return (f"{', '.join(key.found or '' for key in keys)} set", "passed")


def _check(check: CheckOutcome | None) -> Cell:
    if check is None:
        return ("", None)
    if check.state == "ok":
        took = check.duration_ms or 0.0
        shown = f"{took:.0f} ms" if took < 10_000 else duration(took)
        return (f"ok, {shown}", "passed")
    return ("failed", "failed") if check.state == "failed" else ("not called", "dim")


def check_plan(models: int, agents: Sequence[str], timeout_s: float) -> str:
    """`check: 2 short calls of models, and one turn of 1 agent (claude; ended after 4 model calls or 30 s)`."""
    turns = f"one turn of {plural(len(agents), 'agent')}" if agents else ""
    named = ", ".join(one_line(name, LONGEST_AGENT) for name in agents)
    limit = f" ({named}; ended after {MOST_TURNS} model calls or {timeout_s:g} s)" if agents else ""
    short = f"{plural(models, 'short call')} of models" if models else ""
    return f"check: {', and '.join(part for part in (short, turns) if part)}{limit}"


def _agents(targets: Sequence[ListedTarget]) -> Iterator[Cell]:
    """A line with the result of each agent's test turn."""
    if any(one.check is not None and one.check.agent is not None for one in targets):
        yield "", None
    for one in targets:
        agent = one.check.agent if one.check is not None else None
        if agent is None:
            continue
        known = one_line(f"{agent.name} {agent.version}".strip() or "version unknown", LONGEST_AGENT)
        tested = f"tested: {', '.join(agent.tested)}"
        version = f"{known} (not a tested version; {tested})" if agent.untested else f"{known} ({tested})"
        took = (
            plural(agent.turns, "turn") if agent.turns else "",
            f"{agent.tokens:,} tokens" if agent.tokens is not None else "",
            money(agent.cost_usd) if agent.cost_usd is not None else "cost unknown",
        )
        parts = (
            version if agent.tested else known,
            f"sandbox {agent.sandbox}" if agent.sandbox else "",
            f"gateway ({agent.gateway})" if agent.gateway else "model calls do not pass the gateway",
            ", ".join(part for part in took if part),
        )
        yield f"{one_line(one.name)}: {'; '.join(part for part in parts if part)}", None


def _problems(targets: Iterable[ListedTarget]) -> Iterator[Cell]:
    """The problem of each unusable target, with its fix."""
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
        return [(one.example, None), (one.fix, "failed"), (one.summary, "dim")]
    keys = _facts(one.keys) if one.keys else _no_facts(finds_keys=one.finds_keys)
    return [(one.example, None), keys, (one.summary, "dim")]


def _hints(listing: TargetsListing) -> Iterator[str]:
    """A hint: targets that work without configuration with the keys that are set, or how to set a key."""
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


def targets_data(listing: TargetsListing, *, here: str) -> dict[str, Json]:
    """One JSON object: `file`, `targets` and `providers`; each target has the result of its test call under `check`."""
    return {
        "file": shown_from(listing.file, here) if listing.file else None,
        "targets": [_target_json(one, here) for one in listing.targets],
        "providers": [{**to_builtins(one), "usable": one.usable} for one in (*listing.models, *listing.others)],
        **({"sandboxes": list(listing.sandboxes)} if listing.sandboxes else {}),
    }


def _target_json(target: ListedTarget, here: str) -> Json:
    found: dict[str, Json] = to_builtins(target)
    del found["place"]
    return {**found, "source": f"{shown_from(target.place[0], here)}:{target.place[1]}" if target.place else None}
