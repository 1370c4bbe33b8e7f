"""`agentv results pin`."""

from __future__ import annotations

import click

from agentv.cli.lazy import runs
from agentv.errors import ExitStatus


@click.command("pin", epilog="Example: agentv results pin last")
@click.argument("run", metavar="RUN", shell_complete=runs)
@click.option("--remove", is_flag=True, help="Remove the pin.")
def command(run: str, *, remove: bool) -> int:
    """Pin a run as the baseline of its suites and targets in `agentv trend`.

    The newest pin counts. `results delete --older-than` and `--keep` keep pinned runs.
    """
    from agentv.app.results.deleting import pin
    from agentv.reports.text.escaping import one_line

    found = one_line(pin(run, remove=remove))
    click.echo(f"{found} is no longer pinned" if remove else f"pinned {found}: trend compares later runs with it")
    return ExitStatus.PASSED
