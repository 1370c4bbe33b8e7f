"""`agentv plugins`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from msgspec import to_builtins

from agentv.errors import ExitStatus
from agentv.model.suite.configured import ListedPlugin
from agentv.reports.text.escaping import one_line, shown_from
from agentv.reports.text.tables import aligned

_HEADINGS = ("KIND", "NAME", "PACKAGE", "VERSION", "STATUS", "DESCRIPTION")


def render_plugins(found: Sequence[ListedPlugin], *, here: str) -> str:
    """One line a plugin, with what an extension adds below it, then what is wrong with those that are not used.

    Args:
        found: what is installed.
        here: absolute path of the directory that paths are shown from.
    """
    heading, *lines = aligned([_HEADINGS, *map(_row, found)])
    table = (text for line, one in zip(lines, found, strict=True) for text in (line, *_added(one)))
    return "\n".join([heading, *table, *(line for one in found for line in _problem(one, here))])


def _added(one: ListedPlugin) -> Iterator[str]:
    for kind, names in (one.adds or {}).items():
        yield one_line(f"           {kind}: {', '.join(names)}")


def _row(one: ListedPlugin) -> tuple[str, ...]:
    texts = (one.kind, one.name, one.package, one.version or "-", one.status, one.summary)
    return tuple(map(one_line, texts))


def _problem(one: ListedPlugin, here: str) -> Iterator[str]:
    if one.problem is None:
        return
    severity = "warning" if one.status == "shadowed" else "error"
    yield ""
    yield f"{severity}[{one.code}]: {one_line(one.problem)}"
    yield f"  registered in {one_line(shown_from(one.file, here))}:{one.line}"
    yield f"  {one_line(one.hint or '')}"


def plugins_json(found: Sequence[ListedPlugin]) -> str:
    """The same as a JSON array of objects; keys whose value is null say that nothing is wrong."""
    return json.dumps([to_builtins(one) for one in found], ensure_ascii=False, indent=2)


@click.command("plugins", epilog="Example: agentv plugins --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def command(*, as_json: bool) -> int:
    """List agentv's extensions, and installed plugins with their packages and versions.

    Loads every plugin and says what is wrong with those that cannot be used.

    Exit status: 2 if a plugin is broken.
    """
    from agentv.app.plugins.listing import list_extensions, list_plugins

    found = (*list_extensions(), *list_plugins())
    click.echo(plugins_json(found) if as_json else render_plugins(found, here=str(Path.cwd())))
    return ExitStatus.WRONG if any(one.status == "broken" for one in found) else ExitStatus.PASSED
