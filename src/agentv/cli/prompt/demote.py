"""`agentv prompt demote`."""

from __future__ import annotations

import click

from agentv.cli.lazy import Choice
from agentv.errors import ExitStatus
from agentv.model.suite.exam import PromptStatus


@click.command("demote", epilog="Example: agentv prompt demote diff-surgeon --to draft")
@click.argument("names", nargs=-1, required=True, metavar="ID...")
@click.option("--to", type=Choice(("draft", "tested")), help="Target status (default: the previous one).")
@click.option("--dry-run", is_flag=True, help="Report what would happen without writing anything.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def command(names: tuple[str, ...], *, to: PromptStatus | None, dry_run: bool, as_json: bool) -> int:
    """Demote prompts from ready to tested to draft. Needs no evidence and keeps the log."""
    from agentv.app.prompts.library import Library
    from agentv.app.prompts.promoting import demote
    from agentv.cli.prompt.promotions import tell

    tell([demote(one, to, dry_run=dry_run) for one in Library.here().named(names)], as_json=as_json)
    return ExitStatus.PASSED
