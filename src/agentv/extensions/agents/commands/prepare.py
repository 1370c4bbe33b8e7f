"""`agentv prepare`."""

from __future__ import annotations

import click

from agentv.app.settings import EvalSettings
from agentv.cli.completion.values import files
from agentv.cli.options.expected import Choice
from agentv.cli.printing import print_diagnostics
from agentv.errors import ExitStatus
from agentv.reports.text.escaping import one_line


@click.command("prepare", epilog="Example: agentv prepare fix.eval.yaml --test-id negative --out negative")
@click.argument("path", metavar="FILE", shell_complete=files)
@click.option("--test-id", required=True, metavar="ID", help="Case to prepare.")
@click.option("--out", required=True, metavar="DIR", help="Directory to make.")
@click.option("--variant", metavar="NAME", help="Variant to prepare.")
@click.option(
    "--sandbox", type=Choice(("none", "bwrap", "docker")), help="What confines setup and hooks to the workspace."
)
def command(*, path: str, test_id: str, out: str, variant: str | None, sandbox: str | None) -> int:
    """Prepare a case for a person or another program to work on: its prompt and its workspace.

    Writes DIR/prompt.md, DIR/workspace and DIR/manifest.json. Hidden files, expected outputs and assertions are not
    in it. Grade the work with `agentv grade`.

    Exit status: 2 a file or the command is wrong; 3 the workspace could not be made.
    """
    from agentv.extensions.agents.without_agent.prepared_work import PROMPT, WORKSPACE, prepare_case

    settings = EvalSettings(
        paths=(path,),
        variants=(variant,) if variant is not None else (),
        sandbox=sandbox,  # type: ignore[arg-type]  # one of click's choices
    )
    made = prepare_case(settings, test_id, out)
    print_diagnostics(made.diagnostics)
    click.echo(f"prompt: {one_line(str(made.directory / PROMPT))}")
    if made.has_workspace:
        click.echo(f"workspace: {one_line(str(made.directory / WORKSPACE))}")
    click.echo(f"grade: agentv grade {one_line(path)} --test-id {one_line(test_id)} --prepared {one_line(out)}")
    return ExitStatus.PASSED
