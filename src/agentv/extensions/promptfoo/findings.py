"""Findings of a conversion from promptfoo, printed by what can be done about them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from agentv.cli.printing import print_diagnostics
from agentv.errors import ExitStatus
from agentv.extensions.promptfoo.grouped import render_groups
from agentv.reports.diagnostics.diagnostics import diagnostics_json
from agentv.reports.text.escaping import safe

if TYPE_CHECKING:
    from agentv.errors import Diagnostic
    from agentv.extensions.promptfoo.converting import Converted

_MISSING = (
    "a variable that a test does not set is empty in promptfoo and an error in agentv; set it, or convert with "
    "--missing-vars empty"
)


def report_converted(converted: Converted, *, allow_outside: bool, as_json: bool) -> ExitStatus:
    """Print what has no equivalent, else what agentv itself refuses in the file that was written."""
    from agentv.app.authored.data_trust import SAID

    refused = _refused(converted, allow_outside=allow_outside) if converted.is_complete else []
    if as_json:
        click.echo(diagnostics_json([*converted.left, *refused]))
    else:
        _print_groups(converted)
    click.echo(f"wrote {safe(str(converted.path))}", err=True)
    if converted.trusts:
        click.echo(f"  {SAID}", err=True)
    if not as_json:
        print_diagnostics(refused)
    if any(one.code == "undefined-variable" for one in refused):
        click.echo(f"note: {_MISSING}", err=True)
    return ExitStatus.PASSED if converted.is_complete and not refused else ExitStatus.FAILED


def _print_groups(converted: Converted) -> None:
    left = [one for one in converted.left if one.severity != "hint"]
    omitted = [one for one in converted.left if one.severity == "hint"]
    if left:
        title = "Not converted; the eval file does not run before you decide:"
        click.echo(f"{title}\n{render_groups(left)}", err=True)
    if omitted:
        click.echo(f"Left out; no verdict depends on it:\n{render_groups(omitted)}", err=True)


def _refused(converted: Converted, *, allow_outside: bool) -> list[Diagnostic]:
    """What agentv itself has against a file that was converted: names that it knows and has not built, for one."""
    from agentv.app.authored.validate import validate

    found = validate((str(converted.path),), dict(os.environ), allow_outside=allow_outside)
    return [one for one in found if one.severity == "error"]
