"""`agentv prompt promote`."""

from __future__ import annotations

import click

from agentv.cli.lazy import Choice
from agentv.errors import ExitStatus
from agentv.model.suite.exam import PromptStatus


@click.command("promote", epilog="Example: agentv prompt promote diff-surgeon --to ready")
@click.argument("names", nargs=-1, required=True, metavar="ID...")
@click.option("--to", type=Choice(("tested", "ready")), help="Target status (default: the next one).")
@click.option("--dry-run", is_flag=True, help="Report what would happen without writing anything.")
@click.option("--explain", is_flag=True, help="List what the evidence covers: in the latest exam, and now.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def command(names: tuple[str, ...], *, to: PromptStatus | None, dry_run: bool, explain: bool, as_json: bool) -> int:
    """Promote prompts from draft to tested to ready if the evidence is on record; otherwise report what is missing.

    To tested: doctor finds nothing, and the whole exam ran on the current text. To ready: the last exam on the current
    text was complete and passed. Writes the status to meta.yaml and changes nothing else there.

    A prompt that already has the status, or a later one, keeps it. Exit status: 1 if a promotion is refused.
    """
    from msgspec.structs import replace

    from agentv.app.prompts.examining import Examiner
    from agentv.app.prompts.library import Library
    from agentv.app.prompts.promoting import covered_by, promote
    from agentv.cli.printing import print_diagnostics
    from agentv.cli.prompt.promotions import tell

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
    tell(done, as_json=as_json)
    return ExitStatus.FAILED if any(one.refused for one in done) else ExitStatus.PASSED
