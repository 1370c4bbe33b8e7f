"""`agentv explain`."""

from __future__ import annotations

import click

from agentv.errors import ExitStatus


@click.command("explain", epilog="Example: agentv explain unknown-assertion")
@click.argument("code", required=False)
@click.option("--json", "as_json", is_flag=True, help="As JSON on stdout.")
def command(code: str | None, *, as_json: bool) -> int:
    """Say what a code means, with an example and the fix; without a code, list them all.

    Exit status 2 if there is no such code.
    """
    from agentv.app.explain import GROUPS, explanation
    from agentv.reports.explanations import codes_json, explanation_json, render_codes, render_explanation

    if code is None:
        click.echo(codes_json(GROUPS) if as_json else render_codes(GROUPS))
    else:
        found = explanation(code)
        click.echo(explanation_json(found) if as_json else render_explanation(found))
    return ExitStatus.PASSED
