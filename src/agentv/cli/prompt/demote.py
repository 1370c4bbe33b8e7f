"""`agentv prompt demote`."""

from __future__ import annotations

import click

from agentv.errors import ExitStatus
from agentv.model.exam import PromptStatus


@click.command("demote", epilog="Example: agentv prompt demote diff-surgeon --to draft")
@click.argument("names", nargs=-1, required=True, metavar="ID...")
@click.option("--to", type=click.Choice(("draft", "tested")), help="Which status; the one before if nothing is said.")
@click.option("--dry-run", is_flag=True, help="Nothing is written.")
@click.option("--json", "as_json", is_flag=True, help="As JSON on stdout.")
def command(names: tuple[str, ...], *, to: PromptStatus | None, dry_run: bool, as_json: bool) -> int:
    """Take a step back: ready to tested to draft. It takes no evidence, and the log stays as it is."""
    from agentv.app.prompts.library import Library
    from agentv.app.prompts.promoting import demote
    from agentv.cli.prompt.promotions import tell

    tell([demote(one, to, dry_run=dry_run) for one in Library.here().named(names)], as_json=as_json)
    return ExitStatus.PASSED
