"""`agentv prompt promote` and `demote`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from msgspec.structs import replace

from agentv.app.prompts.library import Library
from agentv.cli.values import Choice
from agentv.errors import ExitStatus
from agentv.model.suite.exam import PromptStatus
from agentv.model.suite.library import Promotion


def _print(done: Sequence[Promotion], *, as_json: bool) -> None:
    """Say it on stderr, or as JSON on stdout."""
    from agentv.reports.commands.prompts import promotion_lines, promotions_json

    here = str(Path.cwd())
    if as_json:
        click.echo(promotions_json(done, here=here))
        return
    for one in done:
        for line in promotion_lines(one, here=here):
            click.echo(line, err=True)


@click.command("promote", epilog="Example: agentv prompt promote diff-surgeon --to ready")
@click.argument("names", nargs=-1, required=True, metavar="ID...")
@click.option("--to", type=Choice(("tested", "ready")), help="Target status (default: the next one).")
@click.option("--dry-run", is_flag=True, help="Report what would happen without writing anything.")
@click.option("--explain", is_flag=True, help="List what the evidence covers: in the latest exam, and now.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def promote_command(
    names: tuple[str, ...], *, to: PromptStatus | None, dry_run: bool, explain: bool, as_json: bool
) -> int:
    """Promote prompts from draft to tested to ready if the evidence is on record; otherwise report what is missing.

    To tested: doctor finds nothing, and the whole exam ran on the current text. To ready: the last exam on the current
    text was complete and passed. Writes the status to meta.yaml and changes nothing else there.

    A prompt that already has the status, or a later one, keeps it. Exit status: 1 if a promotion is refused.
    """
    from agentv.app.prompts.examining import Examiner
    from agentv.app.prompts.promoting import covered_by, promote
    from agentv.cli.printing import print_diagnostics

    library = Library.here()
    examiner = Examiner(library)
    done = []
    for prompt in library.named(names):
        examined = examiner.examine(prompt)
        one = promote(examined, to, dry_run=dry_run)
        if not one.gate.open:
            own = examined.unfounded if one.gate.to is None else ()
            print_diagnostics((*examined.diagnostics, *own))
        done.append(replace(one, evidence=covered_by(examined)) if explain else one)
    _print(done, as_json=as_json)
    return ExitStatus.FAILED if any(one.refused for one in done) else ExitStatus.PASSED


@click.command("demote", epilog="Example: agentv prompt demote diff-surgeon --to draft")
@click.argument("names", nargs=-1, required=True, metavar="ID...")
@click.option("--to", type=Choice(("draft", "tested")), help="Target status (default: the previous one).")
@click.option("--dry-run", is_flag=True, help="Report what would happen without writing anything.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def demote_command(names: tuple[str, ...], *, to: PromptStatus | None, dry_run: bool, as_json: bool) -> int:
    """Demote prompts from ready to tested to draft. Needs no evidence and keeps the log."""
    from agentv.app.prompts.promoting import demote

    _print([demote(one, to, dry_run=dry_run) for one in Library.here().named(names)], as_json=as_json)
    return ExitStatus.PASSED
