"""`agentv explain`."""

from __future__ import annotations

import click

from agentv.cli.lazy import codes
from agentv.errors import ExitStatus


@click.command("explain", epilog="Example: agentv explain unknown-assertion")
@click.argument("code", required=False, shell_complete=codes)
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def command(code: str | None, *, as_json: bool) -> int:
    """Explain a code, with an example and the fix. Without a CODE, list all codes.

    Exit status: 2 if there is no such code.
    """
    from agentv.app.authored.explain import GROUPS, explanation
    from agentv.reports.diagnostics.explanations import codes_json, explanation_json, render_codes, render_explanation

    if code is None:
        click.echo(codes_json(GROUPS) if as_json else render_codes(GROUPS))
    else:
        found = explanation(code)
        click.echo(explanation_json(found) if as_json else render_explanation(found))
    return ExitStatus.PASSED
